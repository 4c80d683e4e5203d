//! Hardware events, where there is a PMU.

#![cfg(target_os = "linux")]

mod machine;

use std::hint::black_box;

use machine::{open, read, skip, user};
use quipu_hal::{
    Attributes, Backend, ErrorKind, EventSpec, Features, Group, GroupSpec, Hardware, Scaled,
    Target, Total,
};

/// A loop of at least `n` instructions.
fn spin(n: u64) {
    for i in 0..n {
        black_box(i);
    }
}

fn has_pmu(test: &str) -> bool {
    let Some(backend) = machine::backend(test) else {
        return false;
    };
    let there = backend
        .capabilities()
        .features
        .contains(Features::HARDWARE_EVENTS);
    if !there {
        skip(test, "this machine shows no CPU PMU");
    }
    there
}

/// An event that several can count at once, but not 40: instructions where the machine has them.
/// The others may have one counter, or many, of their own.
fn slot_event(test: &str) -> Option<EventSpec> {
    if !has_pmu(test) {
        return None;
    }
    let backend = machine::backend(test)?;
    let candidates = [Hardware::Instructions, Hardware::Branches, Hardware::Cycles];
    let found = candidates.into_iter().map(user).find(|event| {
        let alone = GroupSpec::single(event.clone());
        backend.open(&alone, &Target::CurrentThread).is_ok()
    });
    if found.is_none() {
        skip(test, "no hardware event opens");
    }
    found
}

#[test]
fn instructions_grow_with_the_work() {
    let name = "instructions_grow_with_the_work";
    let spec = GroupSpec::single(user(Hardware::Instructions));
    if !has_pmu(name) {
        return;
    }
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let mut work = |n| {
        let before = read(&mut group);
        spin(n);
        let after = read(&mut group);
        after.get(0, 0).since(before.get(0, 0))
    };
    let (little, much) = (work(10_000), work(1_000_000));
    match (little.scaled(), much.scaled()) {
        (Scaled::Exact(little), Scaled::Exact(much)) => {
            assert!(little >= 10_000, "{little}");
            assert!(much - little >= 990_000, "{little} {much}");
        }
        other => skip(name, format!("others use the PMU too: {other:?}")),
    }
}

/// A group of more events than there are counters fails loudly: at open, or by never having a value.
#[test]
fn an_oversized_group_is_never_zeros() {
    let name = "an_oversized_group_is_never_zeros";
    let Some(event) = slot_event(name) else {
        return;
    };
    let spec = GroupSpec::new(vec![event; 40]);
    let backend = machine::backend(name).expect("it was there");
    match backend.open(&spec, &Target::CurrentThread) {
        Err(e) if e.kind() == ErrorKind::TooManyEvents => assert!(e.member() > Some(0), "{e:#}"),
        Err(e) => skip(name, e),
        Ok(mut group) => {
            spin(1_000_000);
            assert_eq!(read(&mut group).total(0), Total::NotCounted);
        }
    }
}

/// One pinned group more than fit: it is in the error state, and says so.
#[test]
fn a_pinned_group_that_does_not_fit_is_in_the_error_state() {
    let name = "a_pinned_group_that_does_not_fit_is_in_the_error_state";
    let Some(event) = slot_event(name) else {
        return;
    };
    let spec = GroupSpec::single(event).with_attributes(Attributes {
        pinned: true,
        ..Attributes::default()
    });
    let mut groups = Vec::new();
    for _ in 0..40 {
        let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
            return;
        };
        spin(1000);
        let mut buf = group.read_buf();
        match group.read(&mut buf) {
            Ok(()) => groups.push(group),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::CounterInErrorState, "{e:#}");
                return;
            }
        }
    }
    skip(name, "40 counters were not enough to run out");
}

/// Ten times as many single counters as usually fit take turns, and are estimates.
#[test]
fn multiplexed_counters_are_estimates() {
    let name = "multiplexed_counters_are_estimates";
    let Some(event) = slot_event(name) else {
        return;
    };
    let spec = GroupSpec::single(event);
    let mut groups = Vec::new();
    for _ in 0..40 {
        let Some(group) = open(name, &spec, &Target::CurrentThread) else {
            return;
        };
        groups.push(group);
    }
    let until = std::time::Instant::now() + std::time::Duration::from_millis(400);
    while std::time::Instant::now() < until {
        spin(100_000);
    }
    let mut partly = 0;
    for group in &mut groups {
        let buf = read(group);
        let reading = buf.get(0, 0);
        match reading.scaled() {
            Scaled::Exact(_) => assert!(reading.time_running >= reading.time_enabled),
            Scaled::Estimated(_) => partly += 1,
            Scaled::NotCounted => assert_eq!(reading.value, 0),
        }
    }
    assert!(partly > 0, "40 counters all fit");
}
