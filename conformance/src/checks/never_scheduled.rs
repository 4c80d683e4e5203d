//! Groups that never get onto the PMU: they have no value, which is not the value 0.

use quipu_hal::{EventSpec, Features, GroupSpec, Scaled, Total};

use crate::Check;
use crate::bench::{Bench, BoxGroup, pinned, read, reading};
use crate::verdict::{Outcome, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "never-scheduled.has-no-value",
        requires: "A group that was enabled and never ran has no value.",
        source: "rezolus pull request 1052; perf_event_open(2), time_running of 0",
        run: has_no_value,
    },
    Check {
        id: "never-scheduled.is-enabled",
        requires: "A group that never ran was enabled all the time, and says so.",
        source: "Mackerras 2009, \"record time running and time enabled\": enabled in state inactive, too",
        run: is_enabled,
    },
    Check {
        id: "never-scheduled.total-is-missing",
        requires: "A total over parts that never ran is not a number.",
        source: "quipu_hal::Total",
        run: total_is_missing,
    },
    Check {
        id: "never-scheduled.runs-when-there-is-room",
        requires: "A group that waited runs as soon as there is room, and the wait stays visible.",
        source: "kernel/events/core.c, ctx_resched",
        run: runs_when_there_is_room,
    },
    Check {
        id: "never-scheduled.interval-is-missing",
        requires: "An interval in which a group never ran has no value, though the group has one.",
        source: "quipu_hal::Reading::since",
        run: interval_is_missing,
    },
];

/// A pinned group in every slot.
fn hog(bench: &Bench<'_>, event: &EventSpec) -> Outcome<BoxGroup> {
    bench.need(Features::PINNED.union(Features::MULTIPLEXING))?;
    bench.open(&pinned(vec![event.clone(); bench.slots()?]))
}

fn has_no_value(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let _hog = hog(bench, &event)?;
    let mut group = bench.open(&GroupSpec::single(event))?;
    bench.pass_turns(10);
    let seen = reading(&mut *group)?;
    ensure_eq!(
        seen.scaled(),
        Scaled::NotCounted,
        "a group that never ran ({seen:?})"
    );
    Ok(())
}

fn is_enabled(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let _hog = hog(bench, &event)?;
    let mut group = bench.open(&GroupSpec::single(event))?;
    bench.pass_turns(10);
    let seen = reading(&mut *group)?;
    ensure!(seen.time_enabled > 0, "it was enabled: {seen:?}");
    ensure_eq!(
        (seen.time_running, seen.value),
        (0, 0),
        "time running and value"
    );
    Ok(())
}

fn total_is_missing(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let _hog = hog(bench, &event)?;
    let mut group = bench.open(&GroupSpec::single(event))?;
    bench.pass_turns(3);
    ensure_eq!(read(&mut *group)?.total(0), Total::NotCounted, "the total");
    Ok(())
}

fn runs_when_there_is_room(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let hog = hog(bench, &event)?;
    let mut group = bench.open(&GroupSpec::single(event))?;
    bench.pass_turns(5);
    drop(hog);
    bench.pass_turns(5);
    let seen = reading(&mut *group)?;
    ensure!(
        seen.time_running > 0,
        "the PMU is free, and it does not run: {seen:?}"
    );
    ensure!(
        matches!(seen.scaled(), Scaled::Estimated(_)),
        "half of the time was not counted: {seen:?}"
    );
    Ok(())
}

fn interval_is_missing(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut group = bench.open(&GroupSpec::single(event.clone()))?;
    bench.pass_turns(3);
    let _hog = hog(bench, &event)?;
    bench.pass_turns(2);
    let before = reading(&mut *group)?;
    bench.pass_turns(3);
    let since = reading(&mut *group)?.since(&before);
    ensure_eq!(
        since.scaled(),
        Scaled::NotCounted,
        "the interval ({since:?})"
    );
    Ok(())
}
