//! Registers that are written, restored, and left alone.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use quipu_hal::{
    Count, Encoding, ErrorKind, Event, Filter, FixedCounter, Group, GroupSpec, P5Function,
    SlotClass, Target, X86Select,
};
use quipu_msr::sim::{Defect, EventNames, Generation, Level, SimulatedMsrs, Stretch};
use quipu_msr::{MsrBus, MsrPmu, Options, Repair, restore};
use quipu_pmu::{ManualClock, Pmu, VirtualPmu};

use crate::support::accepts;

const EIO: i32 = 5;
const INTEL_V4: Generation = Generation::ALL[5];

fn pmu(bus: &SimulatedMsrs, options: Options) -> quipu_hal::Result<MsrPmu<SimulatedMsrs>> {
    MsrPmu::new(bus.clone(), &bus.model(), options)
}

fn spec(names: &[&str]) -> GroupSpec {
    GroupSpec::new(names.iter().map(|&name| Event::Named(name.into())))
}

fn backend(
    bus: &SimulatedMsrs,
    options: Options,
) -> (VirtualPmu<MsrPmu<SimulatedMsrs>>, ManualClock) {
    let map = EventNames::new(bus.model())
        .any("A", 0x10)
        .any("B", 0x11)
        .any("C", 0x12)
        .any("D", 0x13);
    let clock = ManualClock::new();
    let pmu = pmu(bus, options).unwrap();
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
    (backend, clock)
}

/// A word that the first counter of a generation can be programmed with, and its encoding.
fn instructions(generation: Generation) -> Encoding {
    let event = generation.instructions() as u16;
    match generation {
        Generation::P5 => Encoding::P5(P5Function(event | P5Function::USER)),
        _ => Encoding::X86(X86Select::new(event, 0).with_flags(X86Select::USER)),
    }
}

#[test]
fn a_group_read_is_a_register_read_for_each_counter_and_nothing_else() {
    let bus = SimulatedMsrs::new(INTEL_V4, 1);
    let (backend, _clock) = backend(&bus, Options::default());
    let mut group = backend
        .open_group(&spec(&["A", "B", "C", "D"]), &Target::Cpu(0))
        .unwrap();
    let mut out = group.read_buf();
    let (reads, writes) = bus.accesses();
    group.read(&mut out).unwrap();
    assert_eq!(bus.accesses(), (reads + 4, writes));
}

#[test]
fn nothing_is_written_before_a_group_is_opened() {
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 4);
        bus.refuse_writes(true);
        let (backend, _clock) = backend(&bus, Options::default());
        assert_eq!(bus.accesses().1, 0, "{generation:?}");
        let refused = backend
            .open_group(&spec(&["A"]), &Target::Cpu(1))
            .err()
            .unwrap();
        assert_eq!(refused.kind(), ErrorKind::NoPermission);
        assert!(
            refused
                .hint()
                .is_some_and(|hint| hint.contains("allow_writes")),
            "{refused:#}"
        );
    }
}

#[test]
fn the_cost_of_opening_on_all_cpus_is_that_of_one_for_each() {
    let accesses = |cpus| {
        let bus = SimulatedMsrs::new(INTEL_V4, cpus);
        let (backend, _clock) = backend(&bus, Options::default());
        let made = bus.accesses();
        let group = backend.open_group(&spec(&["A"]), &Target::AllCpus).unwrap();
        assert_eq!(group.parts().len(), cpus as usize);
        let opened = bus.accesses();
        (made, opened.0 - made.0 + opened.1 - made.1)
    };
    let (one, many) = (accesses(1), accesses(256));
    assert_eq!(many.1, 256 * one.1);
    assert!(many.0.0 <= 256 * one.0.0);
}

#[test]
fn the_current_cpu_is_the_one_that_counts() {
    let bus = SimulatedMsrs::new(INTEL_V4, 2);
    let (backend, _clock) = backend(&bus, Options::default());
    for (current, other) in [(1, 0), (0, 1)] {
        bus.set_current_cpu(current);
        let idle = bus.dump(other);
        let group = backend
            .open_group(&spec(&["A"]), &Target::CurrentCpu)
            .unwrap();
        assert_eq!(group.parts()[0].cpu, Some(current));
        assert_ne!(bus.counted(current), [0; 0]);
        assert_eq!(bus.dump(other), idle);
    }
}

#[test]
fn counters_in_use_are_left_alone_and_the_others_serve() {
    let bus = SimulatedMsrs::new(INTEL_V4, 2);
    // The watchdog: fixed counter 1 everywhere, and another program on general counter 2 of one CPU.
    for cpu in 0..2 {
        bus.write(cpu, 0x38d, 0xb0).unwrap();
        bus.write(cpu, 0x38f, 0x7_0000_00ff).unwrap();
    }
    bus.write(1, 0x188, 0x53_00c0).unwrap();
    let before: Vec<_> = (0..2).map(|cpu| bus.dump(cpu)).collect();
    let (backend, _clock) = backend(&bus, Options::default());
    let taken: Vec<_> = backend
        .pmu()
        .in_use()
        .iter()
        .map(|s| (s.class, s.number))
        .collect();
    assert_eq!(taken, [(SlotClass::General, 2), (SlotClass::Fixed, 1)]);
    // Nine counters, and the time stamp counter.
    assert_eq!(backend.pmu().slots().len(), 10);
    let mut group = backend
        .open_group(&spec(&["A", "B", "C", "D"]), &Target::AllCpus)
        .unwrap();
    assert_eq!(bus.read(1, 0x188).unwrap(), 0x53_00c0);
    assert_eq!(bus.read(1, 0x38d).unwrap(), 0xb0);
    assert_eq!(bus.read(1, 0x38f).unwrap() & 0x2_0000_0004, 0x2_0000_0004);
    bus.run(
        1,
        &Stretch::new(Level::User, 5)
            .occurring(0x13, 2)
            .occurring(0xc0, 1),
    );
    let mut out = group.read_buf();
    group.read(&mut out).unwrap();
    assert_eq!(out[1][3].value, 10);
    assert_eq!(out[0][3].value, 0);
    drop(group);
    let after: Vec<_> = (0..2).map(|cpu| bus.dump(cpu)).collect();
    let own = |dump: &[(u32, u64)]| -> Vec<_> {
        // What the others counted meanwhile is theirs.
        let theirs = [0xc3, 0x4c3, 0x30a];
        dump.iter()
            .filter(|(a, _)| !theirs.contains(a))
            .copied()
            .collect()
    };
    assert_eq!(
        after.iter().map(|d| own(d)).collect::<Vec<_>>(),
        before.iter().map(|d| own(d)).collect::<Vec<_>>()
    );
}

#[test]
fn when_every_counter_is_in_use_the_backend_is_busy_unless_told_to_take_them() {
    for generation in [Generation::P6, Generation::AmdK7] {
        let bus = SimulatedMsrs::new(generation, 1);
        let (select, number) = if generation == Generation::P6 {
            (0x186, 2)
        } else {
            (0xc001_0000, 4)
        };
        for n in 0..number {
            bus.write(0, select + n, 0x43_0079).unwrap();
        }
        let before = bus.dump(0);
        let error = pmu(&bus, Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.hint().is_some());
        let take = Options::default().taking_enabled();
        let (backend, _clock) = backend(&bus, take);
        let group = backend.open_group(&spec(&["A"]), &Target::Cpu(0)).unwrap();
        assert_ne!(bus.dump(0), before);
        drop(group);
        assert_eq!(bus.dump(0), before);
    }
}

/// Linux sets the one enable of a P6 when it boots, and leaves it set: with no level in a select word nothing counts.
#[test]
fn an_enable_without_a_level_is_not_busy_and_put_back() {
    for (generation, select) in [(Generation::P6, 0x186), (Generation::AmdK7, 0xc001_0000)] {
        let bus = SimulatedMsrs::new(generation, 1);
        bus.write(0, select, 0x40_0000).unwrap();
        let before = bus.dump(0);
        let (backend, clock) = backend(&bus, Options::default());
        assert_eq!(backend.pmu().in_use(), []);
        let mut group = backend.open_group(&spec(&["A"]), &Target::Cpu(0)).unwrap();
        clock.advance(Duration::from_micros(1));
        bus.run(0, &Stretch::new(Level::User, 10).occurring(0x10, 1));
        let mut buf = group.read_buf();
        group.read(&mut buf).unwrap();
        assert_eq!(buf[0][0].count(), Count::Exact(10), "{generation:?}");
        drop(group);
        assert_eq!(bus.dump(0), before, "{generation:?}");
        // Its counter 1 counts by the enable of counter 0.
        bus.write(0, select + 1, 0x43_0079).unwrap();
        let busy = pmu(&bus, Options::default()).map(|pmu| pmu.in_use().len());
        match generation {
            Generation::P6 => assert_eq!(busy.unwrap_err().kind(), ErrorKind::Busy),
            _ => assert_eq!(busy.unwrap(), 1),
        }
    }
}

#[test]
fn a_counter_that_another_program_took_meanwhile_is_busy_and_stays_theirs() {
    let bus = SimulatedMsrs::new(Generation::AmdK7, 1);
    let (backend, _clock) = backend(&bus, Options::default());
    bus.write(0, 0xc001_0001, 0x43_0076).unwrap();
    let error = backend
        .open_group(&spec(&["A"]), &Target::Cpu(0))
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(bus.read(0, 0xc001_0001).unwrap(), 0x43_0076);
}

#[test]
fn a_counter_that_another_program_takes_during_a_measurement_is_given_up() {
    for generation in [Generation::AmdK7, INTEL_V4] {
        let bus = SimulatedMsrs::new(generation, 1);
        let select = if generation == Generation::AmdK7 {
            0xc001_0000
        } else {
            0x186
        };
        let (backend, clock) = backend(&bus, Options::default());
        let mut group = backend.open_group(&spec(&["A"]), &Target::Cpu(0)).unwrap();
        clock.advance(Duration::from_millis(100));
        bus.run(0, &Stretch::new(Level::User, 7).occurring(0x10, 1));
        let mut out = group.read_buf();
        group.read(&mut out).unwrap();
        clock.advance(Duration::from_millis(100));
        bus.write(0, select, 0x43_00ff).unwrap();
        bus.run(0, &Stretch::new(Level::User, 1000).occurring(0xff, 1));
        let error = group.disable().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interference, "{error}");
        group.read(&mut out).unwrap();
        let reading = out[0][0];
        assert_eq!((reading.value, reading.time_running), (7, 100_000_000));
        drop(group);
        assert_eq!(bus.read(0, select).unwrap(), 0x43_00ff, "{generation:?}");
    }
}

#[test]
fn counters_that_do_not_count_are_unusable_and_not_zeros() {
    for &generation in Generation::ALL {
        for defect in [Defect::Hollow, Defect::HollowCounters, Defect::Standstill] {
            let bus = SimulatedMsrs::new(generation, 1);
            bus.set_defect(defect);
            let error = match pmu(&bus, Options::default()) {
                Err(error) => error,
                Ok(pmu) => pmu.acquire(0).unwrap_err(),
            };
            assert_eq!(
                error.kind(),
                ErrorKind::NoSuchDevice,
                "{generation:?} {defect:?}"
            );
            assert!(error.to_string().contains("do not work"), "{error}");
        }
    }
}

#[test]
fn a_cpu_without_leaf_0xa_has_no_counters() {
    let none = Generation::Intel {
        version: 0,
        general: 0,
        fixed: 0,
        width: 0,
        full_width: false,
    };
    let bus = SimulatedMsrs::new(none, 1);
    let error = pmu(&bus, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchDevice);
    assert!(error.to_string().contains("leaf 0xA"), "{error}");
}

#[test]
fn a_killed_process_is_repaired_from_its_journal() {
    for &generation in Generation::ALL {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("quipu");
        let options = || Options::default().with_journal(journal.clone());
        let bus = SimulatedMsrs::new(generation, 2);
        let before = bus.dump(1);
        let killed = pmu(&bus, options()).unwrap();
        killed.acquire(1).unwrap();
        killed.program(1, 0, &instructions(generation)).unwrap();
        killed.start(1, &[0], &mut [0]).unwrap();
        bus.run(
            1,
            &Stretch::new(Level::User, 99).occurring(generation.instructions(), 3),
        );
        assert_ne!(bus.dump(1), before);
        let busy = |cpu| Repair::InUse {
            cpu,
            pid: Some(std::process::id()),
        };
        let repair = || restore(bus.clone(), &bus.model(), &journal).unwrap();
        assert_eq!(repair(), [busy(1)], "while it lives");
        // As SIGKILL would: the lock goes with the process, what is in the file stays.
        let file = std::fs::read(journal.join("cpu1")).unwrap();
        std::fs::remove_file(journal.join("cpu1")).unwrap();
        std::fs::write(journal.join("cpu1"), file).unwrap();
        std::mem::forget(killed);
        let next = pmu(&bus, options().taking_enabled()).unwrap();
        let refused = next.acquire(1).unwrap_err();
        assert!(
            refused
                .hint()
                .is_some_and(|hint| hint.contains("quipu msr restore"))
        );
        let repaired = repair();
        assert!(
            matches!(repaired[..], [Repair::Restored { cpu: 1, .. }]),
            "{repaired:?}"
        );
        assert_eq!(
            without_status(bus.dump(1)),
            without_status(before),
            "{generation:?}"
        );
        assert_eq!(repair(), []);
        next.acquire(1).unwrap();
    }
}

/// Overflow bits are not part of the journal: they are set when they are read, or never.
fn without_status(mut dump: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    dump.retain(|(address, _)| ![0x38e, 0xc000_0300].contains(address));
    dump
}

#[test]
fn a_forged_journal_writes_nothing_that_is_not_on_the_allow_list() {
    let directory = tempfile::tempdir().unwrap();
    let bus = SimulatedMsrs::new(INTEL_V4, 1);
    let header = "quipu-msr 1\nboot -\npid 1\n";
    for step in [
        "10 ffffffffffffffff 0",
        "186 ffffffffffffffff 8000000000000000",
        "38f ffffffffffffffff ffffffffffffffff",
        "1a0 ffffffffffffffff 0",
    ] {
        std::fs::write(
            directory.path().join("cpu0"),
            format!("{header}{step}\nend\n"),
        )
        .unwrap();
        let (_, writes) = bus.accesses();
        let error = restore(bus.clone(), &bus.model(), directory.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfiguration, "{step}");
        assert_eq!(bus.accesses().1, writes, "{step}");
    }
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        any::<u64>().prop_map(|select| Encoding::X86(X86Select {
            select,
            extra: Vec::new()
        })),
        (any::<u64>(), 0..64u32).prop_map(|(select, drop)| {
            Encoding::X86(X86Select {
                select: select >> drop,
                extra: Vec::new(),
            })
        }),
        any::<u16>().prop_map(|word| Encoding::P5(P5Function(word))),
        (0..6u8, any::<u8>())
            .prop_map(|(index, control)| { Encoding::Fixed(FixedCounter { index, control }) }),
    ]
}

proptest! {
    /// The simulated registers fault on reserved bits, so that a write too many is an error; and
    /// whatever was programmed, all is put back.
    #[test]
    fn any_encoding_is_either_refused_or_written_without_a_fault(
        generation in prop::sample::select(Generation::ALL.to_vec()),
        encodings in prop::collection::vec((0..14usize, encoding()), 1..6),
    ) {
        let bus = SimulatedMsrs::new(generation, 1);
        let before = bus.dump(0);
        let pmu = pmu(&bus, Options::default()).unwrap();
        pmu.acquire(0).unwrap();
        for (slot, encoding) in encodings {
            let programmed = pmu.program(0, slot, &encoding);
            prop_assert_eq!(programmed.is_ok(), accepts(&pmu, slot, &encoding));
            if programmed.is_ok() {
                for n in 0..4 {
                    let bits = bus.dump(0).iter().find(|(a, _)| *a == 0x186 + n).map_or(0, |r| r.1);
                    prop_assert_eq!(bits & 0x38_0000, 0, "pin, interrupt, any thread");
                }
                pmu.clear(0, slot).unwrap();
                let mut raw = [0];
                pmu.start(0, &[slot], &mut raw).unwrap();
                bus.run(0, &Stretch::new(Level::User, 1 << 50));
                pmu.stop(0, &[slot], &mut raw).unwrap();
            }
        }
        pmu.release(0).unwrap();
        prop_assert_eq!(bus.dump(0), before);
    }
}

#[test]
fn every_failing_access_leaves_nothing_behind() {
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 1);
        let before = bus.dump(0);
        let (backend, _clock) = backend(&bus, Options::default());
        for after in 0.. {
            bus.fail(after, EIO);
            let opened = backend.open_group(&spec(&["A", "B"]), &Target::Cpu(0));
            let reached = !bus.withdraw();
            if let Ok(group) = opened {
                assert!(!reached, "{generation:?}: access {after} failed unnoticed");
                drop(group);
                assert_eq!(bus.dump(0), before, "{generation:?}");
                break;
            }
            assert_eq!(
                bus.dump(0),
                before,
                "{generation:?}: after access {after} failed"
            );
        }
    }
}

#[test]
fn user_and_kernel_are_counted_apart_on_every_generation() {
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 1);
        let (backend, _clock) = backend(&bus, Options::default());
        let of = |levels| {
            let event = quipu_hal::EventSpec::new(Event::Named("A".into()));
            event.with_filter(Filter::default().with_levels(levels))
        };
        let group = GroupSpec::new([of(Filter::USER), of(Filter::KERNEL)]);
        let mut group = backend.open_group(&group, &Target::Cpu(0)).unwrap();
        bus.run(0, &Stretch::new(Level::User, 3).occurring(0x10, 1));
        bus.run(0, &Stretch::new(Level::Kernel, 50).occurring(0x10, 1));
        let mut out = group.read_buf();
        group.read(&mut out).unwrap();
        assert_eq!([0, 1].map(|m| out[0][m].value), [3, 50], "{generation:?}");
    }
}
