//! The most that events can count in a time, as every interface tells it.

use std::path::Path;

use quipu_events::{Database, EventDetails, Interface};
use quipu_hal::{
    Encoding, Event, EventMap, Filter, MaxRate, P5Function, PerfConfig, RawEvent, X86Select,
};

/// Returns the bound of an event, the same through every interface that can count it.
fn bound_in(database: &Database, cpu: &str, event: &Event) -> Option<MaxRate> {
    let table = database.cpu(cpu).expect("a CPU of the database");
    let mut bounds = Interface::ALL.iter().filter_map(|interface| {
        let map = table.events_for(*interface);
        let resolved = map.resolve(event, Filter::LEVELS).ok()?;
        assert_eq!(resolved.info.max_rate, None, "{event}");
        Some(map.max_rate(&resolved.encoding))
    });
    let first = bounds.next()?;
    for other in bounds {
        assert_eq!(other, first, "{event} on {cpu}");
    }
    Some(first)
}

#[track_caller]
fn bounds(cpu: &str, expected: &[(&str, MaxRate)]) {
    for (name, bound) in expected {
        let event = Event::Named((*name).to_owned());
        let found = bound_in(&Database::embedded(), cpu, &event);
        assert_eq!(found, Some(*bound), "{name} on {cpu}");
    }
}

#[test]
fn events_have_the_bound_of_their_name_and_bits() {
    const ONCE: MaxRate = MaxRate::CYCLES;
    const FEW: MaxRate = MaxRate::EVENTS;
    const MANY: MaxRate = MaxRate::OTHER;
    bounds(
        "intel-skl",
        &[
            ("INST_RETIRED.ANY_P", FEW),
            ("CPU_CLK_UNHALTED.THREAD_P", ONCE),
            // A counter mask and edges, of the entry and of the name; without the mask it adds what it compares.
            ("OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", MANY),
            (
                "OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DEMAND_DATA_RD",
                ONCE,
            ),
            (
                "OFFCORE_REQUESTS_OUTSTANDING.CYCLES_WITH_DEMAND_DATA_RD:c=0",
                MANY,
            ),
            ("L1D_PEND_MISS.PENDING", MANY),
            ("L1D_PEND_MISS.PENDING_CYCLES", ONCE),
            ("L1D_PEND_MISS.PENDING:c=4", ONCE),
            ("UOPS_ISSUED.ANY", FEW),
            ("UOPS_ISSUED.ANY:edge", ONCE),
            ("DTLB_LOAD_MISSES.WALK_PENDING", MANY),
            ("DTLB_LOAD_MISSES.WALK_COMPLETED", FEW),
        ],
    );
    bounds("intel-spr", &[("TOPDOWN.SLOTS_P", FEW)]);
    bounds("intel-core2", &[("BUS_REQUEST_OUTSTANDING:SELF", MANY)]);
    bounds(
        "intel-p6",
        &[("BUS_REQ_OUTSTANDING", MANY), ("INST_RETIRED", FEW)],
    );
    bounds(
        "amd-zen3",
        &[
            ("fp_ret_sse_avx_ops.add_sub_flops", MANY),
            ("ls_alloc_mab_count", MANY),
            ("ls_alloc_mab_count:c=1", ONCE),
            ("ex_ret_instr", FEW),
            ("ls_not_halted_cyc", ONCE),
        ],
    );
    bounds(
        "arm-neoverse-v1",
        &[
            ("FP_SCALE_OPS_SPEC", MANY),
            ("FP_FIXED_OPS_SPEC", MANY),
            ("CPU_CYCLES", ONCE),
            ("INST_RETIRED", FEW),
        ],
    );
}

#[test]
fn words_are_told_by_what_the_table_has_of_their_number() {
    let raw = |config| Event::Raw(RawEvent::new(config));
    let zen = |config| bound_in(&Database::embedded(), "amd-zen3", &raw(config));
    for (word, bound) in [
        (0xc0, MaxRate::EVENTS),
        (0x4_00c0, MaxRate::CYCLES),
        (0x0100_00c0, MaxRate::CYCLES),
        (0xff03, MaxRate::OTHER),
        (0x0100_ff03, MaxRate::CYCLES),
        // A number that no entry has may be anything.
        (0xf_0000_00fe, MaxRate::OTHER),
    ] {
        assert_eq!(zen(word), Some(bound), "{word:#x}");
    }
    let arm = |config| bound_in(&Database::embedded(), "arm-neoverse-v1", &raw(config));
    assert_eq!(arm(0x08), Some(MaxRate::EVENTS));
    assert_eq!(arm(0x80c0), Some(MaxRate::OTHER));

    let map = |cpu: &str| {
        let table = Database::embedded().cpu(cpu).expect("known");
        table.events_for(Interface::Msr)
    };
    // A combination that is no entry has the largest bound of its number.
    let flops = Encoding::X86(X86Select::new(0x03, 0x03));
    assert_eq!(map("amd-zen4").max_rate(&flops), MaxRate::OTHER);
    // Cycles of any thread of the core are cycles.
    let of_core = Encoding::X86(X86Select::new(0x3c, 0).with_flags(X86Select::ANY_THREAD));
    assert_eq!(map("intel-skl").max_rate(&of_core), MaxRate::CYCLES);
    // Generalized events, other PMUs and other schemes are as the bits alone tell.
    let perf = |type_, config| Encoding::Perf(PerfConfig::new(type_, config));
    assert_eq!(map("amd-zen4").max_rate(&perf(0, 3)), MaxRate::EVENTS);
    assert_eq!(map("amd-zen4").max_rate(&perf(11, 3)), MaxRate::NONE);
    let p5 = |flags| Encoding::P5(P5Function::new(0x03).with_flags(flags));
    assert_eq!(map("amd-zen4").max_rate(&p5(0)), MaxRate::EVENTS);
    assert_eq!(map("intel-p5").max_rate(&p5(0)), MaxRate::EVENTS);
    assert_eq!(
        map("intel-p5").max_rate(&p5(P5Function::CLOCKS)),
        MaxRate::CYCLES
    );
}

#[test]
fn a_file_states_the_largest_increment() {
    let file = "\
[[cpu]]
id = \"intel-skl\"
[cpu.events.MINE]
code = 0xfd
max-increment = 20
masks.A = 0x01
masks.B = { bits = 0x02, max-increment = 200 }
masks.C = { bits = 0x04, counter-mask = 2 }
[cpu.events.MINE_OUTSTANDING]
code = 0xfb
max-increment = 3
";
    let mine = Database::embedded()
        .with_text(Path::new("mine.toml"), file)
        .expect("no findings");
    for (name, bound) in [
        ("MINE.A", MaxRate::per_cycle(20)),
        ("MINE.B", MaxRate::per_cycle(200)),
        ("MINE.C", MaxRate::CYCLES),
        ("MINE.C:c=0", MaxRate::per_cycle(20)),
        ("MINE:umask=0x3", MaxRate::per_cycle(200)),
        ("MINE_OUTSTANDING", MaxRate::per_cycle(3)),
    ] {
        let event = Event::Named(name.to_owned());
        assert_eq!(bound_in(&mine, "intel-skl", &event), Some(bound), "{name}");
    }
}

/// No event of any CPU has a bound below what its name and bits allow: all that add much or at most once, and a tenth
/// of the others.
#[test]
fn no_event_is_bounded_too_low() {
    let database = Database::embedded();
    let mut large = 0;
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).expect("listed");
        let chosen = |(at, event): &(usize, EventDetails)| {
            at % 10 == 0
                || event.counter_mask > 0
                || event.name.contains("OUTSTANDING")
                || event.code == 3
        };
        let map = table.events_for(Interface::Msr);
        for (_, details) in table.events().into_iter().enumerate().filter(chosen) {
            if details.needs_mask {
                continue;
            }
            let event = Event::Named(details.name.clone());
            let Ok(resolved) = map.resolve(&event, Filter::LEVELS) else {
                continue;
            };
            let bound = map.max_rate(&resolved.encoding).increments_per_second();
            let bound = bound.expect("each is bounded");
            let name = details.name.to_ascii_uppercase();
            let adds_many =
                name.contains("OUTSTANDING") || details.code == 3 && name.contains("FLOPS");
            let once = details.counter_mask > 0
                || details
                    .flags
                    .iter()
                    .any(|flag| ["edge", "clocks"].contains(flag));
            let least = match (once, adds_many) {
                (true, _) => MaxRate::CYCLES,
                (false, true) => MaxRate::OTHER,
                (false, false) if bound == 10_000_000_000 => {
                    let cycles = ["CLK_UNHALTED", "CYCLES", "NOT_HALTED_CYC", "DURATION"];
                    assert!(
                        cycles.iter().any(|part| name.contains(part)),
                        "{name} on {}",
                        cpu.id
                    );
                    MaxRate::CYCLES
                }
                (false, false) => MaxRate::EVENTS,
            };
            large += usize::from(adds_many && !once);
            assert!(
                bound >= least.increments_per_second().expect("bounded"),
                "{name}"
            );
            assert!(!once || bound == 10_000_000_000, "{name} on {}", cpu.id);
        }
    }
    assert!(large > 200, "{large}");
}
