//! Hardware events, where there is a PMU.

use std::hint::black_box;

use crate::machine::{self, open, read, skip, user};
use quipu_hal::{
    Attributes, Backend, Count, ErrorKind, EventSpec, Features, Group, GroupSpec, Hardware, Target,
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
        backend.open_group(&alone, &Target::CurrentThread).is_ok()
    });
    if found.is_none() {
        skip(test, "no hardware event opens");
    }
    found
}

/// On one counter at least: a hypervisor may show counters that do not count.
#[test]
fn instructions_grow_with_the_work() {
    let name = "instructions_grow_with_the_work";
    if !has_pmu(name) {
        return;
    }
    let opened = (1..=4).rev().find_map(|counters| {
        let spec = GroupSpec::new(vec![user(Hardware::Instructions); counters]);
        let backend = machine::backend(name)?;
        backend.open_group(&spec, &Target::CurrentThread).ok()
    });
    let Some(mut group) = opened else {
        return skip(name, "instructions cannot be counted");
    };
    let mut work = |n| {
        let before = read(&mut group);
        spin(n);
        let after = read(&mut group);
        let members = after[0].iter().zip(&before[0]);
        members
            .map(|(after, before)| after.since(before).count())
            .collect::<Vec<_>>()
    };
    let (little, much) = (work(10_000), work(1_000_000));
    let mut exact = little.iter().zip(&much).filter_map(|pair| match pair {
        (Count::Exact(little), Count::Exact(much)) => Some((*little, *much)),
        _ => None,
    });
    if exact.clone().next().is_none() {
        return skip(name, format!("others use the PMU too: {little:?} {much:?}"));
    }
    let grows = |(little, much)| little >= 10_000 && much >= little + 990_000;
    assert!(exact.any(grows), "{little:?} {much:?}");
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
    match backend.open_group(&spec, &Target::CurrentThread) {
        Err(e) if e.kind() == ErrorKind::TooManyEvents => assert!(e.member() > Some(0), "{e:#}"),
        Err(e) => skip(name, e),
        Ok(mut group) => {
            spin(1_000_000);
            assert_eq!(read(&mut group).total(0), Count::NotCounted);
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
    let spec = GroupSpec::single(event).with_attributes(Attributes::default().with_pinned(true));
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
    // By the time on the CPU: on a loaded machine this thread gets little of what passes.
    let start = read(&mut groups[0])[0][0].time_enabled;
    while read(&mut groups[0])[0][0].time_enabled - start < 400_000_000 {
        spin(100_000);
    }
    let (mut partly, mut ran) = (0, 0);
    for group in &mut groups {
        let buf = read(group);
        let reading = buf[0][0];
        ran += u32::from(reading.time_running > 0);
        match reading.count() {
            Count::Exact(_) => assert!(reading.time_running >= reading.time_enabled),
            Count::Estimated(_) => partly += 1,
            other => assert_eq!((other, reading.value), (Count::NotCounted, 0)),
        }
    }
    if ran == 0 {
        return skip(name, "others hold every counter");
    }
    assert!(partly > 0, "40 counters all fit");
}
