//! Software events against what getrusage(2) and the program itself know.

use std::time::Duration;

use crate::machine::{FreshPages, open, read, skip, user};
use quipu_hal::{
    Attributes, Count, EventSpec, Filter, Group, GroupSpec, Simultaneity, Software, Target,
};

#[test]
fn fresh_pages_fault_once_each() {
    let name = "fresh_pages_fault_once_each";
    let spec = GroupSpec::single(user(Software::PageFaults));
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let mut before = read(&mut group);
    let mut after = group.read_buf();
    // The machine may take a page away and give it back meanwhile, which adds a fault now and then.
    let mut faults = |pages: &FreshPages| {
        group.read(&mut before).expect("read");
        pages.touch();
        group.read(&mut after).expect("read");
        after[0][0].since(&before[0][0]).count()
    };
    let tries: Vec<_> = (0..5)
        .map(|_| {
            let pages = FreshPages::map(512);
            (faults(&pages), faults(&pages))
        })
        .collect();
    let exact = (Count::Exact(512), Count::Exact(0));
    assert!(tries.contains(&exact), "{tries:?}");
    let least =
        |(first, again): &(Count, Count)| first.exact() >= Some(512) && again.exact() >= Some(0);
    assert!(tries.iter().all(least), "{tries:?}");
}

/// Voluntary and involuntary context switches of this thread so far.
fn switches() -> libc::c_long {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live local, zeroed, which the kernel fills in.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_nvcsw + usage.ru_nivcsw
}

#[test]
fn context_switches_agree_with_getrusage() {
    let name = "context_switches_agree_with_getrusage";
    let spec = GroupSpec::single(Software::ContextSwitches);
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let mut buf = group.read_buf();
    // Both at a moment at which there was no switch between them.
    let mut both = || loop {
        let before = switches();
        group.read(&mut buf).expect("read");
        if switches() == before {
            return (before, buf[0][0].value);
        }
    };
    let (usage, counted) = both();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (usage_after, counted_after) = both();
    assert!(usage_after - usage >= 20);
    assert_eq!(
        counted_after.checked_sub(counted),
        u64::try_from(usage_after - usage).ok()
    );
}

fn group_of_three() -> GroupSpec {
    GroupSpec::new([
        user(Software::TaskClock),
        user(Software::PageFaults),
        user(Software::MinorFaults),
    ])
}

#[test]
fn members_share_their_times_and_start_together() {
    let name = "members_share_their_times_and_start_together";
    let Some(mut group) = open(name, &group_of_three(), &Target::CurrentThread) else {
        return;
    };
    // To another thread that reads them; here nothing happens between one and the next.
    assert_eq!(group.simultaneity(), Simultaneity::Sequential);
    FreshPages::map(100).touch();
    let buf = read(&mut group);
    let [clock, faults, minor] = &buf[0] else {
        panic!("three members");
    };
    assert!(clock.time_enabled > 0);
    assert_eq!(clock.time_running, clock.time_enabled);
    for other in [faults, minor] {
        assert_eq!(other.time_enabled, clock.time_enabled);
        assert_eq!(other.time_running, clock.time_running);
    }
    // Two counters of the same thing, so they differ if one started earlier.
    assert!(faults.value >= 100);
    assert_eq!(faults.value, minor.value);
}

#[test]
fn disabling_stops_values_and_times_and_enabling_goes_on() {
    let name = "disabling_stops_values_and_times_and_enabling_goes_on";
    let Some(mut group) = open(name, &group_of_three(), &Target::CurrentThread) else {
        return;
    };
    FreshPages::map(10).touch();
    group.disable().expect("disable");
    let stopped = read(&mut group);
    FreshPages::map(10).touch();
    assert_eq!(read(&mut group), stopped);
    group.disable().expect("again");
    assert_eq!(read(&mut group), stopped);
    group.enable().expect("enable");
    let pages = FreshPages::map(10);
    pages.touch();
    let after = read(&mut group);
    assert!(after[0][1].value >= stopped[0][1].value + 10);
    assert_eq!(after[0][1].value, after[0][2].value);
    assert!(after[0][0].time_enabled > stopped[0][0].time_enabled);
}

#[test]
fn a_group_opened_disabled_counts_nothing_until_enabled() {
    let name = "a_group_opened_disabled_counts_nothing_until_enabled";
    let spec = group_of_three().with_attributes(Attributes::default().with_disabled(true));
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    FreshPages::map(10).touch();
    assert_eq!(read(&mut group), group.read_buf());
    group.enable().expect("enable");
    FreshPages::map(10).touch();
    assert!(read(&mut group)[0][1].value >= 10);
}

#[test]
fn reset_clears_values_and_starts_times_over_but_not_the_raw_ones() {
    let name = "reset_clears_values_and_starts_times_over_but_not_the_raw_ones";
    let Some(mut group) = open(name, &group_of_three(), &Target::CurrentThread) else {
        return;
    };
    FreshPages::map(10).touch();
    group.disable().expect("disable");
    let before = read(&mut group);
    for _ in 0..2 {
        group.reset().expect("reset");
        let after = read(&mut group);
        for member in 0..3 {
            let (before, after) = (before[0][member], after[0][member]);
            assert_eq!(
                (after.value, after.time_enabled, after.time_running),
                (0, 0, 0)
            );
            assert_eq!(after.raw_time_enabled, before.time_enabled);
            assert_eq!(after.raw_time_running, before.time_running);
        }
    }
    group.enable().expect("enable");
    let pages = FreshPages::map(10);
    pages.touch();
    group.disable().expect("disable");
    let after = read(&mut group)[0][1];
    assert!(after.value >= 10);
    let enabled = after.time_enabled;
    assert_eq!(
        after.raw_time_enabled,
        before[0][1].raw_time_enabled + enabled
    );
}

/// The clocks count nanoseconds of every mode, and say that they heed no filter; what happens in
/// the kernel only says that too.
#[test]
fn members_say_what_they_honour() {
    let name = "members_say_what_they_honour";
    let spec = GroupSpec::new([user(Software::CpuClock), user(Software::ContextSwitches)]);
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let [clock, switches] = group.members() else {
        panic!("two members");
    };
    assert_eq!((&*clock.name, clock.unit.as_ref()), ("cpu-clock", "ns"));
    assert_eq!(clock.honours, Filter::empty());
    assert_eq!(switches.honours, Filter::KERNEL);
    std::thread::sleep(Duration::from_millis(1));
    let buf = read(&mut group);
    assert!(buf[0][0].value > 0);
    assert_eq!(buf[0][1].value, 0, "the sleep was a switch in the kernel");
}

#[test]
fn every_software_event_opens_or_says_that_the_kernel_lacks_it() {
    let name = "every_software_event_opens_or_says_that_the_kernel_lacks_it";
    let Some(backend) = crate::machine::backend(name) else {
        return;
    };
    use quipu_hal::ErrorKind;
    for &event in Software::ALL {
        let spec = GroupSpec::single(user(event));
        match backend.open_group(&spec, &Target::CurrentThread) {
            Ok(group) => assert_eq!(group.members()[0].name, event.name()),
            Err(e) if e.kind() == ErrorKind::UnsupportedEvent => skip(name, e),
            // Cgroup switches are counted for CPUs and cgroups.
            Err(e) => panic!("{e:#}"),
        }
    }
}

#[test]
fn a_buffer_of_another_group_is_refused() {
    use quipu_hal::ErrorKind;
    let name = "a_buffer_of_another_group_is_refused";
    let single =
        GroupSpec::single(EventSpec::new(Software::TaskClock).with_filter(Filter::USER_ONLY));
    let (Some(mut group), Some(other)) = (
        open(name, &group_of_three(), &Target::CurrentThread),
        open(name, &single, &Target::CurrentThread),
    ) else {
        return;
    };
    let e = group.read(&mut other.read_buf()).expect_err("one member");
    assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
}
