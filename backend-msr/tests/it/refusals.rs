//! Refusals, and their words.

use std::sync::Arc;

use quipu_hal::{ErrorKind, Event, GroupSpec, Result, SlotClass, SlotSet, Target};
use quipu_msr::sim::{EventNames, Generation, SimulatedMsrs};
use quipu_msr::{MsrBus, MsrPmu, Options};
use quipu_pmu::{ManualClock, Pmu, VirtualPmu};

use crate::support::acquired;

fn reason<T: std::fmt::Debug>(refused: Result<T>, kind: ErrorKind) -> String {
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:#}");
    error.reason().unwrap_or_default().to_owned()
}

#[test]
fn only_the_cpus_that_were_named_are_counted_on() {
    let bus = SimulatedMsrs::new(Generation::AmdK7, 4);
    let on = |cpus: &[u32]| {
        MsrPmu::new(
            bus.clone(),
            &bus.model(),
            Options::default().on_cpus(cpus.to_vec()),
        )
    };
    let none = reason(on(&[]), ErrorKind::NoSuchDevice);
    assert_eq!(none, "no CPU is named");
    let pmu = on(&[1, 3]).unwrap();
    assert_eq!(pmu.cpus(), [1, 3]);
    for other in [0, 2, 4] {
        let refused = reason(pmu.acquire(other), ErrorKind::NoSuchTarget);
        assert_eq!(refused, "it is not one of the CPUs this backend counts on");
    }
    pmu.acquire(3).unwrap();
    pmu.release(3).unwrap();
}

#[test]
fn counters_have_to_be_acquired_and_there() {
    let (_bus, pmu) = acquired(Generation::AmdK7);
    let kind = ErrorKind::InvalidConfiguration;
    // Four counters, and the time stamp counter.
    let beyond = reason(pmu.start(0, &[5], &mut [0; 5]), kind);
    assert_eq!(beyond, "there are 5 slots");
    pmu.release(0).unwrap();
    let released = reason(pmu.start(0, &[0], &mut [0; 5]), kind);
    assert_eq!(released, "they have not been taken");
}

#[test]
fn an_event_whose_counter_is_in_use_is_refused_as_busy() {
    let bus = SimulatedMsrs::new(Generation::AmdK7, 2);
    bus.write(1, 0xc001_0002, 0x53_0076).unwrap();
    let only = SlotSet::one(SlotClass::General, 2);
    let map = EventNames::new(bus.model()).with("A", 0x16, only, None);
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default()).unwrap();
    let backend = VirtualPmu::new(pmu, ManualClock::new(), Arc::new(map)).unwrap();
    let spec = GroupSpec::single(Event::Named("A".into()));
    let refused = backend.open_group(&spec, &Target::Cpu(1)).map(drop);
    let said = reason(refused, ErrorKind::Busy);
    assert!(
        said.contains("every counter that can count it is enabled already"),
        "{said}"
    );
}

#[test]
fn what_is_shown_names_the_machine() {
    let (bus, pmu) = acquired(Generation::AmdK7);
    let shown = format!("{pmu:?}");
    assert!(shown.starts_with("MsrPmu { description: "), "{shown}");
    assert!(shown.contains("cpus: [0]"), "{shown}");
    assert_eq!(
        format!("{bus:?}"),
        "SimulatedMsrs { generation: AmdK7, cpus: 1, .. }"
    );
    let names = Generation::ALL.iter().map(|generation| generation.name());
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "p5",
            "p6",
            "intel-v1",
            "intel-v2",
            "intel-v3",
            "intel-v4",
            "intel-v5",
            "intel-v6",
            "amd-k7",
            "amd-10h",
            "amd-15h",
            "amd-perfmonv2"
        ]
    );
}
