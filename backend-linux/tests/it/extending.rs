//! Groups that take over the counters of smaller ones.

use crate::machine::{FreshPages, backend, open, user};
use quipu_hal::{Attributes, Backend, ErrorKind, Event, Group, GroupSpec, Software, Target};

/// Page faults as often as there are members, in the calling thread.
fn faults(members: usize) -> GroupSpec {
    let attributes = Attributes::default().with_disabled(true);
    GroupSpec::new(vec![user(Software::PageFaults); members]).with_attributes(attributes)
}

/// Returns the values of a group.
fn values(group: &mut dyn Group) -> Vec<u64> {
    let mut buf = group.read_buf();
    group.read(&mut buf).expect("it is open");
    buf[0].iter().map(|reading| reading.value).collect()
}

/// A stopped group that has counted this many faults and more.
fn counted(test: &str, members: usize, pages: usize) -> Option<Box<dyn Group>> {
    let spec = faults(members);
    let mut group: Box<dyn Group> = Box::new(open(test, &spec, &Target::CurrentThread)?);
    let pages = FreshPages::map(pages);
    group.enable().expect("it is open");
    pages.touch();
    group.disable().expect("it is open");
    Some(group)
}

#[test]
fn counters_are_kept_and_count_together_with_those_that_are_added() {
    let name = "counters_are_kept_and_count_together_with_those_that_are_added";
    let (Some(backend), Some(mut group)) = (backend(name), counted(name, 2, 100)) else {
        return;
    };
    let kept = values(&mut *group);
    assert!(kept[0] >= 100 && kept[1] == kept[0], "{kept:?}");
    for members in 3..6 {
        group = backend
            .extend(group, &faults(members), &Target::CurrentThread)
            .expect("software counts without end");
        let mut now = kept.clone();
        now.resize(members, 0);
        assert_eq!(values(&mut *group), now);
        assert_eq!(group.members().len(), members);
    }
    let pages = FreshPages::map(50);
    group.enable().expect("it is open");
    pages.touch();
    group.disable().expect("it is open");
    let all = values(&mut *group);
    let more = all[4];
    assert!(more >= 50, "{all:?}");
    let sum = kept[0] + more;
    assert_eq!(all, [sum, sum, more, more, more]);
}

#[test]
fn a_single_counter_is_opened_anew_as_a_leader() {
    let name = "a_single_counter_is_opened_anew_as_a_leader";
    let (Some(backend), Some(group)) = (backend(name), counted(name, 1, 10)) else {
        return;
    };
    let mut two = backend
        .extend(group, &faults(2), &Target::CurrentThread)
        .expect("software counts without end");
    assert_eq!(values(&mut *two), [0, 0]);
    let pages = FreshPages::map(10);
    two.enable().expect("it is open");
    pages.touch();
    two.disable().expect("it is open");
    let both = values(&mut *two);
    assert!(both[0] >= 10 && both[1] == both[0], "{both:?}");
}

#[test]
fn a_refusal_names_the_member_that_was_added() {
    let name = "a_refusal_names_the_member_that_was_added";
    let (Some(backend), Some(group)) = (backend(name), counted(name, 2, 1)) else {
        return;
    };
    let mut spec = faults(3);
    spec.members[2].event = Event::Named("no-such-event-anywhere".into());
    let refused = backend.extend(group, &spec, &Target::CurrentThread);
    let error = refused.expect_err("there is no such event");
    assert_eq!(
        (error.kind(), error.member()),
        (ErrorKind::UnsupportedEvent, Some(2))
    );
}
