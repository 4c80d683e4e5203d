//! Readers of groups, which many threads have at once.

use std::sync::Arc;
use std::thread;

use quipu_hal::{
    Attributes, Backend, ErrorKind, EventSpec, Group, GroupReader, GroupSpec, OverflowSignal,
    ReadBuf, Software, Target,
};

use crate::machine::{FreshPages, backend, open, read, user};

/// Faults of the calling thread, twice in a group.
fn faults() -> GroupSpec {
    let attributes = Attributes::default().with_disabled(true);
    GroupSpec::new(vec![user(Software::PageFaults); 2]).with_attributes(attributes)
}

/// Returns what another thread reads.
fn read_elsewhere(reader: &Arc<dyn GroupReader>, mut buf: ReadBuf) -> Vec<u64> {
    let reader = Arc::clone(reader);
    let other = thread::spawn(move || {
        reader.read(&mut buf).expect("the counters are open");
        buf[0].iter().map(|reading| reading.value).collect()
    });
    other.join().expect("no panic")
}

#[test]
fn a_reader_counts_from_the_last_reset_before_it_and_outlives_the_group() {
    let name = "a_reader_counts_from_the_last_reset_before_it_and_outlives_the_group";
    let Some(mut group) = open(name, &faults(), &Target::CurrentThread) else {
        return;
    };
    let count = |group: &mut dyn Group, pages: usize| {
        let pages = FreshPages::map(pages);
        group.enable().expect("it is open");
        pages.touch();
        group.disable().expect("it is open");
    };
    let first = group.reader().expect("software has readers");
    count(&mut group, 100);
    let before = read(&mut group);
    assert!(before[0][0].value >= 100, "{before:?}");
    let mut seen = group.read_buf();
    first.read(&mut seen).expect("it is open");
    assert_eq!(seen, before);
    assert_eq!(
        read_elsewhere(&first, group.read_buf()),
        [before[0][0].value; 2]
    );

    group.reset().expect("it is open");
    let second = group.reader().expect("software has readers");
    count(&mut group, 50);
    let after = read(&mut group);
    second.read(&mut seen).expect("it is open");
    assert_eq!(seen, after);
    let sum = before[0][0].value + after[0][0].value;
    assert_eq!(read_elsewhere(&first, group.read_buf()), [sum; 2]);

    drop(group);
    first.read(&mut seen).expect("a reader keeps it open");
    assert_eq!(seen[0][1].value, sum);
}

#[test]
fn a_group_that_is_extended_leaves_its_reader_the_counters_it_had() {
    let name = "a_group_that_is_extended_leaves_its_reader_the_counters_it_had";
    let (Some(backend), Some(mut group)) =
        (backend(name), open(name, &faults(), &Target::CurrentThread))
    else {
        return;
    };
    let pages = FreshPages::map(30);
    group.enable().expect("it is open");
    pages.touch();
    group.disable().expect("it is open");
    let (reader, mut buf) = (
        group.reader().expect("software has readers"),
        group.read_buf(),
    );
    let counted = read(&mut group);
    let mut three = faults();
    three.members.push(user(Software::PageFaults));
    let group = backend.extend(Box::new(group), &three, &Target::CurrentThread);
    assert_eq!(
        group.expect("software counts without end").members().len(),
        3
    );
    reader.read(&mut buf).expect("a reader keeps it open");
    assert_eq!(buf, counted);
}

#[test]
fn other_buffers_and_groups_with_signals_are_refused() {
    let name = "other_buffers_and_groups_with_signals_are_refused";
    let Some(group) = open(name, &faults(), &Target::CurrentThread) else {
        return;
    };
    let reader = group.reader().expect("software has readers");
    let wrong = reader.read(&mut ReadBuf::new(1, group.parts()));
    assert_eq!(
        wrong.expect_err("another shape").kind(),
        ErrorKind::InvalidConfiguration
    );
    let clock = EventSpec::new(Software::TaskClock)
        .with_overflow(OverflowSignal::new(1_000_000_000, libc::SIGUSR1));
    let spec = GroupSpec::single(clock).with_attributes(Attributes::default().with_disabled(true));
    let Some(group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let refused = group.reader().err().expect("signals end with the group");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
}
