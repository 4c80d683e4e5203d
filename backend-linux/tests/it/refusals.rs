//! Refusals: their kinds, the member they name, and that nothing else suffers.

use crate::machine::{FreshPages, backend, open, read, skip, user};
use quipu_hal::{
    Attributes, Backend, Breakpoint, BreakpointAccess, Error, ErrorKind, Event, EventSpec, Filter,
    Group, GroupSpec, Hardware, PmuEvent, Software, Target,
};

/// An event that opens nowhere.
fn no_such_event() -> EventSpec {
    user(PmuEvent::new("software").with_value("config", 9999))
}

fn refusal(test: &str, spec: &GroupSpec, target: &Target) -> Option<Error> {
    match backend(test)?.open(spec, target) {
        Ok(_) => panic!("{test}: it opened"),
        Err(e) => Some(e),
    }
}

#[test]
fn failed_open_leaves_other_groups_usable() {
    let name = "failed_open_leaves_other_groups_usable";
    let spec = GroupSpec::new([user(Software::PageFaults), user(Software::TaskClock)]);
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let bad = GroupSpec::new([user(Software::PageFaults), no_such_event()]);
    let e = refusal(name, &bad, &Target::CurrentThread).expect("a backend");
    assert_eq!(e.member(), Some(1), "{e:#}");
    assert_eq!(e.kind(), ErrorKind::UnsupportedEvent, "{e:#}");
    FreshPages::map(10).touch();
    assert!(read(&mut group)[0][0].value >= 10);
}

#[test]
fn drop_of_one_group_leaves_others_readable() {
    let name = "drop_of_one_group_leaves_others_readable";
    let spec = GroupSpec::new([user(Software::PageFaults), user(Software::MinorFaults)]);
    let (Some(mut kept), Some(dropped)) = (
        open(name, &spec, &Target::CurrentThread),
        open(name, &spec, &Target::CurrentThread),
    ) else {
        return;
    };
    let before = read(&mut kept)[0][0];
    drop(dropped);
    let pages = FreshPages::map(10);
    let mut buf = kept.read_buf();
    kept.read(&mut buf).expect("still open");
    let start = buf[0][0];
    assert!(start.value >= before.value);
    pages.touch();
    kept.read(&mut buf).expect("still open");
    assert_eq!(buf[0][0].since(&start).value, 10);
    assert_eq!(buf[0][1].value, buf[0][0].value);
}

#[test]
fn an_empty_group_is_refused() {
    let name = "an_empty_group_is_refused";
    if let Some(e) = refusal(name, &GroupSpec::default(), &Target::CurrentThread) {
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
    }
}

#[test]
fn targets_that_mean_nothing_are_refused() {
    let name = "targets_that_mean_nothing_are_refused";
    let clock = GroupSpec::single(user(Software::TaskClock));
    let (path, cpus) = ("/nowhere/at/all".into(), vec![]);
    for (target, kind) in [
        (Target::Thread(0), ErrorKind::InvalidConfiguration),
        (Target::Process(-1), ErrorKind::InvalidConfiguration),
        (Target::Cpus(vec![]), ErrorKind::InvalidConfiguration),
        (Target::Process(i32::MAX), ErrorKind::NoSuchTarget),
        (Target::Cgroup { path, cpus }, ErrorKind::NoSuchTarget),
    ] {
        if let Some(e) = refusal(name, &clock, &target) {
            assert_eq!(e.kind(), kind, "{e:#}");
        }
    }
}

#[test]
fn targets_that_do_not_exist_are_told_from_events_that_do_not() {
    let name = "targets_that_do_not_exist_are_told_from_events_that_do_not";
    let clock = GroupSpec::single(user(Software::TaskClock));
    let ended = {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = i32::try_from(child.id()).expect("a pid");
        child.wait().expect("it ends");
        pid
    };
    let targets = [
        Target::Thread(ended),
        Target::Process(ended),
        Target::Cpu(60_000),
        Target::Cpu(u32::MAX),
    ];
    for target in targets {
        let Some(e) = refusal(name, &clock, &target) else {
            return;
        };
        if e.kind() == ErrorKind::NoPermission {
            skip(name, e);
            continue;
        }
        assert_eq!(e.kind(), ErrorKind::NoSuchTarget, "{e:#}");
        assert!(e.to_string().contains(&target.to_string()), "{e:#}");
    }
    let not_a_cgroup = Target::Cgroup {
        path: "/".into(),
        cpus: vec![0],
    };
    if let Some(e) = refusal(name, &clock, &not_a_cgroup) {
        let expected = [
            ErrorKind::NoSuchTarget,
            ErrorKind::NoPermission,
            // A kernel without cgroups.
            ErrorKind::InvalidConfiguration,
        ];
        assert!(expected.contains(&e.kind()), "{e:#}");
    }
}

#[test]
fn a_machine_without_a_pmu_is_said_to_have_none() {
    let name = "a_machine_without_a_pmu_is_said_to_have_none";
    use quipu_hal::Features;
    let Some(backend) = backend(name) else { return };
    if backend
        .capabilities()
        .features
        .contains(Features::HARDWARE_EVENTS)
    {
        return skip(name, "this machine has a PMU");
    }
    let spec = GroupSpec::new([user(Software::TaskClock), user(Hardware::Cycles)]);
    let Err(e) = backend.open_group(&spec, &Target::CurrentThread) else {
        panic!("cycles opened");
    };
    assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
    assert_eq!((e.member(), e.errno()), (Some(1), Some(libc::ENOENT)));
    let text = format!("{e:#}");
    assert!(
        text.starts_with("cannot open cycles:u on this thread"),
        "{text}"
    );
    assert!(text.contains("shows no CPU PMU"), "{text}");
}

#[test]
fn a_pmu_without_filters_says_so() {
    let name = "a_pmu_without_filters_says_so";
    let tsc = PmuEvent::new("msr").with("tsc");
    let everywhere = GroupSpec::single(tsc.clone());
    let Some(mut group) = open(name, &everywhere, &Target::CurrentThread) else {
        return;
    };
    assert!(read(&mut group)[0][0].value > 0);
    assert_eq!(group.members()[0].honours, Filter::empty());
    let e = refusal(name, &GroupSpec::single(user(tsc)), &Target::CurrentThread);
    let e = e.expect("a backend");
    assert_eq!(e.kind(), ErrorKind::UnsupportedFeature, "{e:#}");
    assert!(e.to_string().contains("takes no filter"), "{e:#}");
}

#[test]
fn a_typo_names_the_nearest_event() {
    let name = "a_typo_names_the_nearest_event";
    let spec = GroupSpec::single(Event::Named("page-falts".into()));
    if let Some(e) = refusal(name, &spec, &Target::CurrentThread) {
        assert_eq!(
            (e.kind(), e.member()),
            (ErrorKind::UnsupportedEvent, Some(0))
        );
        assert!(
            e.hint().is_some_and(|hint| hint.contains("page-faults")),
            "{e:#}"
        );
    }
}

#[test]
fn a_breakpoint_the_cpu_does_not_take_is_refused() {
    let name = "a_breakpoint_the_cpu_does_not_take_is_refused";
    let three_bytes = Breakpoint {
        address: 0x1001,
        len: 99,
        access: BreakpointAccess::Write,
    };
    let spec = GroupSpec::single(user(three_bytes));
    if let Some(e) = refusal(name, &spec, &Target::CurrentThread) {
        let expected = [ErrorKind::InvalidConfiguration, ErrorKind::UnsupportedEvent];
        assert!(expected.contains(&e.kind()), "{e:#}");
    }
}

/// A pinned group of events that always fit is never in the error state.
#[test]
fn pinned_software_counts() {
    let name = "pinned_software_counts";
    let spec = GroupSpec::new([user(Software::PageFaults), user(Software::TaskClock)])
        .with_attributes(Attributes::default().with_pinned(true).with_exclusive(true));
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    FreshPages::map(5).touch();
    assert!(read(&mut group)[0][0].value >= 5);
}
