//! Sets that take over the counters of smaller ones.

use quipu::{EventSet, GroupSpec, Software};

/// Returns a builder of a group with these events.
fn builder(events: &[Software]) -> quipu::EventSetBuilder {
    let mut builder = EventSet::builder();
    let group = GroupSpec::new(events.iter().copied());
    builder.events(group).expect("no text");
    builder
}

/// Returns the values of a stopped set.
fn values(set: &mut EventSet) -> Vec<Option<u128>> {
    let mut counts = set.counts();
    set.read(&mut counts).expect("its own counts");
    let total = |event: quipu::EventCount<'_>| event.total().expect("it is open").exact();
    counts.events().map(total).collect()
}

const CLOCKS: [Software; 3] = [Software::TaskClock, Software::CpuClock, Software::TaskClock];

/// A set of the first two that has counted.
fn counted() -> EventSet {
    let mut set = builder(&CLOCKS[..2]).open().expect("a backend");
    set.enable().expect("it is open");
    std::hint::black_box((0..100_000u64).map(std::hint::black_box).sum::<u64>());
    set.disable().expect("it is open");
    set
}

#[test]
#[cfg(target_os = "linux")]
fn values_of_kept_counters_go_on() {
    let mut set = counted();
    let kept = values(&mut set);
    assert!(kept.iter().all(|value| *value > Some(0)), "{kept:?}");
    let mut set = builder(&CLOCKS).extend(set).expect("a backend");
    assert_eq!(values(&mut set), [kept[0], kept[1], Some(0)]);
    assert_eq!(set.events().len(), 3);
}

#[test]
fn what_does_not_begin_with_the_set_is_opened_anew() {
    let [first, second, third] = CLOCKS;
    for (events, groups) in [
        (vec![second, first, third], 1),
        (vec![first], 1),
        (CLOCKS.to_vec(), 2),
    ] {
        let mut builder = builder(&events);
        if groups == 2 {
            builder.events(Software::TaskClock).expect("no text");
        }
        let mut set = builder.extend(counted()).expect("a backend");
        let zeros = vec![Some(0); events.len() + groups - 1];
        assert_eq!(values(&mut set), zeros, "{events:?}");
    }
}
