//! Notes: each reason once, with its events.

use std::time::Duration;

use quipu::{Count, Error, ErrorKind, Hardware, Software};
use quipu_shell::reasons::{is_unsupported, why};
use quipu_stat::notes::Notes;

use super::sample;

#[test]
fn one_reason_is_told_once_for_all_its_events() {
    let mut notes = Notes::default();
    for hardware in [Hardware::Cycles, Hardware::Branches, Hardware::Cycles] {
        notes.row(&sample::not_counted(hardware.into()), None);
    }
    assert_eq!(notes.0.len(), 1);
    assert_eq!(notes.0[0].events, ["cycles", "branches"]);
}

/// wait4(2) has a command's usage from the fork on, and the time elapsed begins when it is executed.
#[test]
fn the_clock_of_a_command_begins_with_the_time_elapsed() {
    for (backend, counted) in [(Some("posix"), 20_000_000), (Some("linux"), 32_000_000)] {
        let mut clock = sample::row(Software::TaskClock.into(), 32_000_000, 32_000_000);
        let mut faults = sample::row(Software::PageFaults.into(), 94, 32_000_000);
        for row in [&mut clock, &mut faults] {
            row.backend = backend;
            row.begins_when_executed(Duration::from_millis(12));
        }
        assert_eq!(clock.count, Count::Exact(counted));
        assert_eq!(faults.count, Count::Exact(94));
    }
}

#[test]
fn kernel_events_without_permission_share_their_reason() {
    let denied = |event: &str| {
        Error::new(ErrorKind::NoPermission, format!("open {event}"))
            .with_reason(format!("{event} happens in the kernel only"))
            .with_hint("do that")
    };
    let cs = why(&Software::ContextSwitches.into(), &denied("a"));
    let migrations = why(&Software::CpuMigrations.into(), &denied("b"));
    assert_eq!(cs, migrations);
    assert!(cs.ends_with("would read 0; do that"));
    assert_eq!(
        why(&Hardware::Cycles.into(), &denied("c")),
        "c happens in the kernel only; do that"
    );
}

/// The reason is shown for every member of the group.
#[test]
fn a_group_without_room_says_which_event_is_too_many() {
    let error = Error::new(ErrorKind::TooManyEvents, "open cycles")
        .with_member(4)
        .with_reason("it opens by itself");
    let text = why(&Hardware::Cycles.into(), &error);
    assert!(
        text.contains("the whole group: its event 5 opens"),
        "{text}"
    );
}

/// A user of the command cannot disable and enable a group, as the library's hint says.
#[test]
fn a_pinned_counter_without_room_says_what_can_be_asked_for() {
    let error = Error::new(ErrorKind::CounterInErrorState, "read the counters")
        .with_reason("the group is pinned")
        .with_hint("disable and enable the group to try again");
    let text = why(&Hardware::Cycles.into(), &error);
    assert!(
        text.contains("leave out D") && !text.contains("enable"),
        "{text}"
    );
}

#[test]
fn what_does_not_exist_is_not_supported() {
    let of = |kind| is_unsupported(&Error::new(kind, "open it"));
    assert!(of(ErrorKind::UnsupportedEvent));
    assert!(!of(ErrorKind::NoPermission));
    assert!(!of(ErrorKind::Busy));
}
