//! Tests of refusals that need other machines than this.

use quipu_hal::{EventSpec, Hardware, Software};

use super::*;
use crate::events::tests::{config, machine};
use crate::sys::Attach;

/// A hybrid of which one kind of core has a counter that does not count.
#[test]
fn a_group_is_refused_on_the_core_pmu_that_has_too_few_counters() {
    let hybrid = machine(&[
        ("cpu_core", 4, &[("cpus", "0-1")]),
        ("cpu_atom", 10, &[("cpus", "2-3")]),
    ]);
    let dead: &CounterTest = Box::leak(Box::new(CounterTest {
        pmu: "cpu_atom".into(),
        event: Hardware::Instructions,
        advertised: 3,
        tested: 3,
        counting: 2,
    }));
    let refusal = |events: &[quipu_hal::Event], core: &str| {
        let members: Vec<_> = events.iter().cloned().map(EventSpec::new).collect();
        let placements = members.iter().map(|member| {
            let resolved = hybrid.source.resolve(member);
            resolved.expect("a portable event").placement
        });
        let request = OpenRequest {
            placements: &placements.collect::<Vec<_>>(),
            spec: &GroupSpec::new(members.clone()),
            target: &Target::CurrentThread,
            events: &hybrid.source,
            rates: &Rates::default(),
            dead_counters: vec![dead],
            infos: &[],
            user_reads: Ok(()),
            known_pages: &KnownPages::default(),
        };
        let refused = request.check_counters(&PlannedPart {
            attach: Attach::thread(0),
            part: Part::whole().with_core(core),
            bits: Vec::new(),
        });
        refused.err().map(|error| format!("{error:#}"))
    };
    let (cycles, clock) = (Hardware::Cycles.into(), Software::TaskClock.into());
    let three = [
        Hardware::Instructions.into(),
        cycles,
        Hardware::Branches.into(),
    ];
    assert_eq!(refusal(&three, "cpu_core"), None);
    let refused = refusal(&three, "cpu_atom").expect("too few");
    assert!(
        refused.contains("cpu_atom shows 3 counters, 2 of them count"),
        "{refused}"
    );
    assert!(
        refused.contains("at most 2 hardware events of cpu_atom"),
        "{refused}"
    );
    // A clock takes none.
    let with_a_clock = [three[0].clone(), three[1].clone(), clock];
    assert_eq!(refusal(&with_a_clock, "cpu_atom"), None);

    let resolve = |event| {
        hybrid
            .source
            .resolve(&EventSpec::new(event))
            .expect("portable")
    };
    let cores = hybrid.source.core_pmus();
    let everywhere = resolve(three[0].clone());
    assert!(cores.one_gives_counter("cpu_atom", &everywhere.placement));
    let on_core = Placement::Cores(vec![(0, config(4, 0))]);
    assert!(!cores.one_gives_counter("cpu_atom", &on_core));
}
