//! Whatever operation of the driver fails: an error and no panic, no wrong value, no leak.

use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Attributes, Error, ErrorKind, Group, GroupSpec, Hardware, ReadBuf, Target};
use quipu_pmu::{ManualClock, Pmu, SimOperation, SimPmu, SimRegister, VirtualGroup, VirtualPmu};

const EIO: i32 = 5;
const EBUSY: i32 = 16;

type SimGroup = VirtualGroup<SimPmu>;

fn machine() -> (ManualClock, SimPmu, VirtualPmu<SimPmu>) {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock.clone());
    for slot in 0..4 {
        let found = SimRegister {
            select: 3,
            counting: false,
            raw: 1000 + slot as u64,
        };
        pmu.overwrite(1, slot, found);
    }
    let map = Arc::new(pmu.event_map());
    let backend = VirtualPmu::new(pmu.clone(), clock.clone(), map).unwrap();
    (clock, pmu, backend)
}

/// Opens, rotates, reads, resets, disables, enables and closes; returns what failed.
fn session(clock: &ManualClock, pmu: &SimPmu, backend: &VirtualPmu<SimPmu>) -> Vec<Error> {
    let mut errors = Vec::new();
    let cycles = GroupSpec::new([Hardware::Cycles; 2]);
    let pinned = cycles
        .clone()
        .with_attributes(Attributes::default().with_pinned(true));
    let three = GroupSpec::new([Hardware::Cycles; 3]);
    let mut groups: Vec<(SimGroup, ReadBuf)> = Vec::new();
    for spec in [&cycles, &pinned, &three] {
        match backend.open_group(spec, &Target::AllCpus) {
            Ok(group) => {
                let out = group.read_buf();
                groups.push((group, out));
            }
            Err(e) => errors.push(e),
        }
    }
    for turn in 0..6 {
        clock.advance(Duration::from_micros(10));
        backend.tick().unwrap();
        clock.advance(Duration::from_micros(10));
        for (group, out) in &mut groups {
            let done = match turn {
                2 => group.reset(),
                3 => group.disable(),
                4 => group.enable(),
                _ => Ok(()),
            };
            errors.extend(done.err());
            match group.read(out) {
                Ok(()) => check(out, pmu),
                Err(e) => errors.push(e),
            }
        }
    }
    errors
}

/// Three cycles a nanosecond on CPU 0, and not one more.
fn check(out: &ReadBuf, pmu: &SimPmu) {
    for (part, cpu) in [(0, 0), (1, 1)] {
        for reading in &out[part] {
            let truth = pmu.truth_at(1, cpu, quipu_hal::Filter::all(), reading.time_running);
            assert_eq!(reading.value, truth, "{reading:?}");
        }
    }
}

#[test]
fn every_call_may_fail_once() {
    let (clock, pmu, backend) = machine();
    let before = [pmu.registers(0), pmu.registers(1)];
    let calls = || SimOperation::ALL.map(|o| pmu.calls(o)).iter().sum::<u64>();
    assert!(session(&clock, &pmu, &backend).is_empty());
    let all = calls();
    assert!(all > 100);
    for nth in 1..=all {
        pmu.fail_any(nth, EIO);
        for e in session(&clock, &pmu, &backend) {
            let kind = e.kind();
            let told = kind == ErrorKind::Os && e.errno() == Some(EIO);
            assert!(
                told || kind == ErrorKind::CounterInErrorState,
                "call {nth}: {e}"
            );
        }
        // A session of failures may have fewer calls.
        pmu.forget_failures();
        assert_eq!([pmu.registers(0), pmu.registers(1)], before, "call {nth}");
        for cpu in [0, 1] {
            pmu.acquire(cpu).unwrap();
            pmu.release(cpu).unwrap();
        }
    }
}

#[test]
fn opening_is_all_or_nothing_over_cpus() {
    let (_, pmu, backend) = machine();
    let spec = GroupSpec::new([Hardware::Cycles]);
    for (operation, nth) in [
        (SimOperation::Acquire, 2),
        (SimOperation::Program, 2),
        (SimOperation::Clear, 2),
        (SimOperation::Start, 2),
    ] {
        let before = [pmu.registers(0), pmu.registers(1)];
        pmu.fail(operation, nth, EBUSY);
        let e = backend.open_group(&spec, &Target::AllCpus).unwrap_err();
        assert_eq!((e.kind(), e.errno()), (ErrorKind::Busy, Some(EBUSY)));
        assert_eq!([pmu.registers(0), pmu.registers(1)], before);
    }
}

#[test]
fn enabling_that_fails_leaves_the_group_off() {
    let (clock, pmu, backend) = machine();
    let spec = GroupSpec::new([Hardware::Cycles])
        .with_attributes(Attributes::default().with_disabled(true));
    let mut group = backend.open_group(&spec, &Target::AllCpus).unwrap();
    pmu.fail(SimOperation::Start, 2, EIO);
    assert_eq!(group.enable().unwrap_err().errno(), Some(EIO));
    clock.advance(Duration::from_micros(1));
    let mut out = group.read_buf();
    group.read(&mut out).unwrap();
    for part in 0..2 {
        let nothing = quipu_hal::Reading::default().with_max_rate(out[part][0].max_rate);
        assert_eq!(out[part][0], nothing);
    }
    group.enable().unwrap();
    clock.advance(Duration::from_micros(1));
    group.read(&mut out).unwrap();
    assert_eq!(out[0][0].value, 3000);
}

#[test]
fn counters_that_could_not_be_given_back_are_given_back_later() {
    let (_, pmu, backend) = machine();
    let before = pmu.registers(1);
    let spec = GroupSpec::new([Hardware::Cycles]);
    pmu.fail(SimOperation::Release, 1, EIO);
    pmu.fail(SimOperation::Release, 2, EIO);
    drop(backend.open_group(&spec, &Target::Cpu(1)).unwrap());
    assert_ne!(pmu.registers(1), before);
    // They are still ours, so that the next group finds them.
    let group = backend.open_group(&spec, &Target::Cpu(1)).unwrap();
    pmu.fail(SimOperation::Release, 1, EIO);
    pmu.fail(SimOperation::Release, 2, EIO);
    drop(group);
    drop(backend);
    assert_eq!(pmu.registers(1), before);
}
