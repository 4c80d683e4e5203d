//! Counters that another program takes while Quipu counts are left alone.

use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{
    Count, Encoding, Error, ErrorKind, Event, FixedCounter, Group, GroupSpec, P5Function, SlotSet,
    Target,
};
use quipu_msr::sim::{EventNames, Generation, Level, SimulatedMsrs, Stretch};
use quipu_msr::{MsrBus, MsrPmu, Options, Repair, restore};
use quipu_pmu::{ManualClock, Pmu, VirtualPmu};

use crate::support::{accepts, acquired, user, values};

const INTEL_V4: Generation = Generation::ALL[5];
const AMD_V2: Generation = Generation::ALL[11];

#[test]
fn a_counter_taken_meanwhile_keeps_its_global_enable() {
    for (generation, select, control) in
        [(INTEL_V4, 0x188, 0x38f), (AMD_V2, 0xc001_0204, 0xc000_0301)]
    {
        let (bus, pmu) = acquired(generation);
        pmu.program(0, 0, &user(0xc0)).unwrap();
        pmu.start(0, &[0], &mut [0]).unwrap();
        bus.write(0, select, 0x53_0076).unwrap();
        bus.write(0, control, 0x5).unwrap();
        pmu.stop(0, &[0], &mut [0]).unwrap();
        pmu.release(0).unwrap();
        assert_eq!(
            values(&bus, [select, control]),
            [0x53_0076, 0x4],
            "{generation:?}"
        );
    }
}

#[test]
fn an_overflow_of_a_counter_taken_meanwhile_is_left_for_its_interrupt() {
    let (bus, pmu) = acquired(INTEL_V4);
    bus.write(0, 0x188, 0x53_00c0).unwrap();
    bus.write(0, 0x4c3, (1 << 48) - 1).unwrap();
    bus.write(0, 0x38f, 0x4).unwrap();
    let stretch = Stretch::new(Level::User, 2);
    bus.run(0, &stretch.occurring(0xc0, 1));
    assert_eq!(values(&bus, [0x38e]), [0x4]);
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x38e]), [0x4]);
}

#[test]
fn a_fixed_counter_taken_for_the_same_levels_is_noticed_by_its_interrupt_and_left() {
    let (bus, pmu) = acquired(INTEL_V4);
    let cycles = Encoding::Fixed(FixedCounter {
        index: 1,
        control: FixedCounter::USER | FixedCounter::KERNEL,
    });
    let slot = 9;
    pmu.program(0, slot, &cycles).unwrap();
    pmu.start(0, &[slot], &mut [0]).unwrap();
    pmu.verify(0, &[slot]).unwrap();
    // The NMI watchdog, as perf programs it.
    bus.write(0, 0x38d, 0xb0).unwrap();
    assert_eq!(
        pmu.verify(0, &[slot]).unwrap_err().kind(),
        ErrorKind::Interference
    );
    let stopped = pmu.stop(0, &[slot], &mut [0]).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interference);
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x38d, 0x38f]), [0xb0, 0x2_0000_0000]);
}

#[test]
fn what_a_fixed_counters_control_held_besides_is_off_while_it_counts_and_put_back() {
    let bus = SimulatedMsrs::new(INTEL_V4, 1);
    // Not enabled: any thread and interrupt alone.
    bus.write(0, 0x38d, 0xc00).unwrap();
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default()).unwrap();
    pmu.acquire(0).unwrap();
    let control = FixedCounter::USER;
    pmu.program(0, 10, &Encoding::Fixed(FixedCounter { index: 2, control }))
        .unwrap();
    assert_eq!(values(&bus, [0x38d]), [0x200]);
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x38d]), [0xc00]);
}

#[test]
fn a_half_of_the_pentiums_register_that_was_taken_is_left() {
    let (bus, pmu) = acquired(Generation::P5);
    let function = Encoding::P5(P5Function::new(0x16).with_flags(P5Function::USER));
    for slot in [0, 1] {
        pmu.program(0, slot, &function).unwrap();
    }
    pmu.start(0, &[0, 1], &mut [0; 2]).unwrap();
    bus.write(0, 0x11, 0x00d2_0096).unwrap();
    let stopped = pmu.stop(0, &[0, 1], &mut [0; 2]).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interference);
    assert_eq!(values(&bus, [0x11]), [0x00d2_0000]);
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x11]), [0x00d2_0000]);
}

#[test]
fn both_counters_of_a_p6_are_left_to_whom_enables_them() {
    let (bus, pmu) = acquired(Generation::P6);
    pmu.program(0, 1, &user(0xc0)).unwrap();
    pmu.start(0, &[1], &mut [0]).unwrap();
    bus.write(0, 0x187, 0x13_00c1).unwrap();
    bus.write(0, 0x186, 0x53_0079).unwrap();
    let stopped = pmu.stop(0, &[1], &mut [0]).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interference);
    assert_eq!(
        pmu.program(0, 1, &user(0xc0)).unwrap_err().kind(),
        ErrorKind::Busy
    );
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x186, 0x187]), [0x53_0079, 0x13_00c1]);
}

/// Returns the registers and the journal that a process leaves that was killed while it counted.
fn killed(
    bus: &SimulatedMsrs,
    journal: &std::path::Path,
    count: impl FnOnce(&MsrPmu<SimulatedMsrs>),
) {
    let options = Options::default().with_journal(journal.to_owned());
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), options).unwrap();
    count(&pmu);
    for &cpu in pmu.cpus() {
        // As SIGKILL would: the lock goes with the process, what is in the file stays.
        let record = journal.join(format!("cpu{cpu}"));
        let text = std::fs::read(&record).unwrap();
        std::fs::remove_file(&record).unwrap();
        std::fs::write(&record, text).unwrap();
    }
    std::mem::forget(pmu);
}

#[test]
fn what_others_took_after_a_kill_is_left_by_a_restore() {
    for (generation, slots, control) in [
        (INTEL_V4, [0, 1, 9], 0x38f),
        (AMD_V2, [0, 1, 2], 0xc000_0301),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("quipu");
        let bus = SimulatedMsrs::new(generation, 1);
        let cycles = Encoding::Fixed(FixedCounter {
            index: 1,
            control: FixedCounter::USER | FixedCounter::KERNEL,
        });
        killed(&bus, &journal, |pmu| {
            pmu.acquire(0).unwrap();
            for slot in slots {
                let fixed = accepts(pmu, slot, &cycles);
                let encoding = if fixed { cycles.clone() } else { user(0xc0) };
                pmu.program(0, slot, &encoding).unwrap();
            }
            pmu.start(0, &slots, &mut [0; 3]).unwrap();
        });
        // perf: counter 1, and the watchdog's fixed counter.
        let (selects, counter, expected) = if generation == INTEL_V4 {
            bus.write(0, 0x38d, 0xb0).unwrap();
            ([0x186, 0x187], 0x4c2, 0x2_0000_0002)
        } else {
            ([0xc001_0200, 0xc001_0202], 0xc001_0203, 0x2)
        };
        bus.write(0, selects[1], 0x53_00c0).unwrap();
        bus.write(0, counter, 0xffff_ffff_0000).unwrap();
        let repairs = restore(bus.clone(), &bus.model(), &journal).unwrap();
        let [Repair::Restored { cpu: 0, left, .. }] = &*repairs else {
            panic!("{repairs:?}");
        };
        let names: Vec<_> = left.iter().map(ToString::to_string).collect();
        let kept: &[_] = match generation {
            INTEL_V4 => &["counter 1", "fixed counter 1"],
            _ => &["counter 1"],
        };
        assert_eq!(names, kept);
        assert_eq!(values(&bus, selects), [0, 0x53_00c0], "{generation:?}");
        assert_eq!(
            values(&bus, [counter, control]),
            [0xffff_ffff_0000, expected]
        );
        if generation == INTEL_V4 {
            assert_eq!(values(&bus, [0x38d]), [0xb0]);
        }
    }
}

#[test]
fn a_counter_that_was_taken_from_its_owner_goes_back_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("quipu");
    let bus = SimulatedMsrs::new(INTEL_V4, 1);
    bus.write(0, 0x186, 0x53_003c).unwrap();
    bus.write(0, 0x38d, 0xb0).unwrap();
    bus.write(0, 0x38f, 0x2_0000_0001).unwrap();
    let before = bus.dump(0);
    let options = Options::default()
        .with_journal(journal.clone())
        .taking_enabled();
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), options).unwrap();
    pmu.acquire(0).unwrap();
    pmu.program(0, 0, &user(0xc0)).unwrap();
    let record = std::fs::read(journal.join("cpu0")).unwrap();
    std::fs::remove_file(journal.join("cpu0")).unwrap();
    std::fs::write(journal.join("cpu0"), record).unwrap();
    std::mem::forget(pmu);
    let repairs = restore(bus.clone(), &bus.model(), &journal).unwrap();
    assert!(
        matches!(&*repairs, [Repair::Restored { left, .. }] if left.is_empty()),
        "{repairs:?}"
    );
    assert_eq!(bus.dump(0), before);
}

#[test]
fn a_cpu_that_cannot_be_reached_keeps_no_other_from_being_restored() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("quipu");
    let bus = SimulatedMsrs::new(Generation::AmdK7, 3);
    killed(&bus, &journal, |pmu| {
        for cpu in 0..3 {
            pmu.acquire(cpu).unwrap();
            pmu.program(cpu, 0, &user(0xc0)).unwrap();
            pmu.start(cpu, &[0], &mut [0]).unwrap();
        }
    });
    bus.fail(0, libc::ENXIO);
    let error = restore(bus.clone(), &bus.model(), &journal).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchTarget);
    let selects = [0, 1, 2].map(|cpu| bus.read(cpu, 0xc001_0000).unwrap());
    assert_eq!(selects, [0x41_00c0, 0, 0]);
    let repairs = restore(bus.clone(), &bus.model(), &journal).unwrap();
    assert!(
        matches!(&*repairs, [Repair::Restored { cpu: 0, .. }]),
        "{repairs:?}"
    );
    assert_eq!(values(&bus, [0xc001_0000]), [0]);
}

#[test]
fn what_was_not_put_back_is_said() {
    let (bus, pmu) = acquired(INTEL_V4);
    pmu.program(0, 0, &user(0xc0)).unwrap();
    pmu.start(0, &[0], &mut [0]).unwrap();
    bus.refuse_writes(true);
    pmu.release(0).unwrap_err();
    let told = pmu.restore_failures();
    let [error] = &*told else {
        panic!("{told:?}");
    };
    assert_eq!(error.kind(), ErrorKind::Os);
    assert_eq!(error.attempted(), "put back the counter registers of CPU 0");
    assert!(
        error
            .reason()
            .is_some_and(|r| r.starts_with("cannot write")),
        "{error}"
    );
    assert_eq!(error.hint(), None, "there is no journal");
    bus.refuse_writes(false);
    bus.write(0, 0x186, 0x53_0076).unwrap();
    pmu.release(0).unwrap();
    assert_eq!(
        pmu.restore_failures(),
        [
            Error::new(ErrorKind::Interference, "put back counter 0 of CPU 0")
                .with_reason("another process has enabled it since")
        ]
    );
    bus.write(0, 0x186, 0).unwrap();
    pmu.acquire(0).unwrap();
    pmu.program(0, 0, &user(0xc0)).unwrap();
    pmu.release(0).unwrap();
    assert!(pmu.restore_failures().is_empty());
}

/// Enables counter 0 for another program.
fn takes_counter_0(bus: &SimulatedMsrs, generation: Generation) {
    match generation {
        Generation::P5 => bus.write(0, 0x11, 0x00d2),
        Generation::P6 | Generation::Intel { .. } => bus.write(0, 0x186, 0x53_0079),
        Generation::AmdPerfMonV2 { .. } | Generation::Amd15h => {
            bus.write(0, 0xc001_0200, 0x53_0079)
        }
        _ => bus.write(0, 0xc001_0000, 0x53_0079),
    }
    .unwrap();
}

fn counting_a(
    bus: &SimulatedMsrs,
    options: Options,
) -> (VirtualPmu<MsrPmu<SimulatedMsrs>>, ManualClock) {
    let map = EventNames::new(bus.model()).any("A", 0x16);
    let clock = ManualClock::new();
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), options).unwrap();
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
    (backend, clock)
}

/// A counter that another program takes between two looks a second apart: reads look too, and what they say
/// is confirmed. The event goes on with a free counter, and the other program keeps its own.
#[test]
fn a_taken_counter_is_noticed_by_the_next_read_and_a_free_one_goes_on() {
    let event = || GroupSpec::single(Event::Named("A".into()));
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 1);
        let (backend, clock) = counting_a(&bus, Options::default());
        let mut group = backend.open_group(&event(), &Target::Cpu(0)).unwrap();
        let mut buf = group.read_buf();
        let run = |code, times| {
            clock.advance(Duration::from_micros(100));
            bus.run(0, &Stretch::new(Level::User, times).occurring(code, 1));
        };
        run(0x16, 10);
        group.read(&mut buf).unwrap();
        assert_eq!(buf[0][0].value, 10, "{generation:?}");
        takes_counter_0(&bus, generation);
        run(0x79, 1_000);
        let told = group.read(&mut buf).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Interference, "{generation:?}");
        run(0x16, 5);
        group.read(&mut buf).unwrap();
        let reading = buf[0][0];
        // Whoever has counter 0 of a P6 has the enable of both.
        let shared = generation == Generation::P6;
        let expected = if shared { 10 } else { 15 };
        assert_eq!(reading.value, expected, "{generation:?}");
        assert!(
            reading.time_running < reading.time_enabled,
            "{generation:?}"
        );
        let before = bus.dump(0);
        drop(group);
        drop(backend);
        let taken = |dump: &[(u32, u64)]| {
            let select = [0x11, 0x186, 0xc001_0000, 0xc001_0200];
            let found = dump.iter().find(|(address, _)| select.contains(address));
            found.map(|(_, value)| value & 0xffff)
        };
        assert_eq!(taken(&bus.dump(0)), taken(&before), "{generation:?}");
    }
}

/// A counter that jumps forward has counted more than its event can have occurred in the time.
#[test]
fn a_counter_that_jumps_forward_has_no_count() {
    let event = || GroupSpec::single(Event::Named("A".into()));
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 1);
        // At most a million in a second; 20 ms more are allowed.
        let map =
            EventNames::new(bus.model()).with("A", 0x16, SlotSet::ANY_GENERAL, Some(1_000_000));
        let clock = ManualClock::new();
        let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default()).unwrap();
        let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
        let mut group = backend.open_group(&event(), &Target::Cpu(0)).unwrap();
        let mut buf = group.read_buf();
        let mut total = |times| {
            clock.advance(Duration::from_millis(1));
            bus.run(0, &Stretch::new(Level::User, times).occurring(0x16, 1));
            group.read(&mut buf).unwrap();
            buf.total(0)
        };
        assert_eq!(total(1_000), Count::Exact(1_000), "{generation:?}");
        // 2 ms and the 20: to the event.
        assert_eq!(total(21_000), Count::Exact(22_000), "{generation:?}");
        assert_eq!(total(1_001), Count::Jumped, "{generation:?}");
    }
}

/// Taking what is busy begins with what is free.
#[test]
fn free_counters_are_taken_before_busy_ones() {
    let bus = SimulatedMsrs::new(Generation::AmdK7, 1);
    bus.write(0, 0xc001_0000, 0x53_0076).unwrap();
    let (backend, _clock) = counting_a(&bus, Options::default().taking_enabled());
    assert_eq!(backend.pmu().taken_over(), []);
    let spec = GroupSpec::new(vec![Event::Named("A".into()); 3]);
    let group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    let first = backend.pmu().slots()[0];
    assert_eq!(backend.pmu().taken_over(), [(0, first)]);
    assert_eq!(values(&bus, [0xc001_0000]), [0x53_0076]);
    for select in 0xc001_0001..=0xc001_0003 {
        assert_eq!(values(&bus, [select])[0] & 0xff, 0x16);
    }
    drop(group);
    let spec = GroupSpec::new(vec![Event::Named("A".into()); 4]);
    let group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    assert_eq!(values(&bus, [0xc001_0000])[0] & 0xff, 0x16);
    drop(group);
    assert_eq!(values(&bus, [0xc001_0000]), [0x53_0076]);
}
