//! The time stamp counter and the count of the idle loop: they need no counter, and wait for none.

use std::time::Duration;

use crate::support::{backend, named, open, two_events, with_counters};
use quipu_hal::{Count, ErrorKind, Group, GroupSpec, Target};
use quipu_pctr::abi::Layout;
use quipu_pctr::simulation::{Era, Processor, SimMachine};

fn count(group: &mut impl Group, member: usize) -> Count {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    buf[0][member].count()
}

/// With as many other groups as there are counters, and with more.
#[test]
fn the_time_stamp_counter_waits_for_no_counter_and_is_not_stopped_for_one() {
    for (era, processor) in with_counters() {
        for crowd in [era.counters(processor), 2 * era.counters(processor) + 1] {
            let machine = SimMachine::new(era, processor, 1);
            let backend = backend(&machine);
            let [(name, _), _] = two_events(processor);
            let mut groups: Vec<_> = (0..crowd).map(|_| open(&backend, &[name])).collect();
            let mut alone = open(&backend, &["tsc"]);
            let mut beside = open(&backend, &["TSC", "tsc"]);
            for _ in 0..10 {
                machine.pass(Duration::from_millis(4));
                backend.tick().unwrap();
            }
            // Two cycles a nanosecond.
            let expected = Count::Exact(80_000_000);
            let counts = [
                count(&mut alone, 0),
                count(&mut beside, 0),
                count(&mut beside, 1),
            ];
            assert_eq!(counts, [expected; 3], "{era:?} {processor:?}");
            drop(alone);
            drop(beside);
            // Closing them has stopped nothing else.
            machine.pass(Duration::from_millis(1));
            backend.tick().unwrap();
            let running = |group: &mut _| {
                let group: &mut crate::support::SimGroup = group;
                let mut buf = group.read_buf();
                group.read(&mut buf).unwrap();
                buf[0][0].time_running
            };
            let ran: u64 = groups.iter_mut().map(running).sum();
            let counters = era.counters(processor) as u64;
            assert_eq!(ran, counters * 41_000_000, "{era:?} {processor:?}");
        }
    }
}

/// pctr(4) advises to read the time stamp counter with each count.
#[test]
fn every_group_can_have_a_time_stamp() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let names = two_events(processor).map(|(name, _)| name);
        let mut groups = names.map(|name| open(&backend, &[name, "tsc"]));
        machine.pass(Duration::from_millis(1));
        for group in &mut groups {
            assert_eq!(count(group, 0), Count::Exact(0));
            assert_eq!(count(group, 1), Count::Exact(2_000_000));
        }
    }
}

#[test]
fn the_passes_of_the_idle_loop_are_an_event_where_the_kernel_has_them() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let spec = GroupSpec::new([named("idle"), named("tsc")]);
        let opened = backend.open_group(&spec, &Target::CurrentCpu);
        if era.layout() == Layout::Legacy {
            let mut group = opened.unwrap();
            machine.pass(Duration::from_millis(3));
            assert_eq!(count(&mut group, 0), Count::Exact(3_000));
            assert_eq!(count(&mut group, 1), Count::Exact(6_000_000));
        } else {
            let refused = opened.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
            let text = refused.to_string();
            assert_eq!(
                text,
                "cannot count idle: this kernel does not report the passes of its idle loop"
            );
        }
    }
    // Also where there is no other counter.
    let machine = SimMachine::new(Era::I386Of2003, Processor::TimeStampOnly, 1);
    let mut group = open(&backend(&machine), &["idle"]);
    machine.pass(Duration::from_millis(1));
    assert_eq!(count(&mut group, 0), Count::Exact(1_000));
}
