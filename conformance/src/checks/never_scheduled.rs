//! Groups that never get onto the PMU: they have no value, which is not the value 0.

use quipu_hal::{Count, EventSpec, Features, GroupSpec};

use crate::Check;
use crate::context::{BoxGroup, Context, pinned};
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
        source: "quipu_hal::Count",
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
fn hog(context: &Context<'_>, event: &EventSpec) -> Outcome<BoxGroup> {
    context.need(Features::PINNED.union(Features::MULTIPLEXING))?;
    context.open(&pinned(vec![event.clone(); context.slots()?]))
}

fn has_no_value(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let _hog = hog(context, &event)?;
    let mut group = context.open(&GroupSpec::single(event))?;
    context.pass_turns(10)?;
    let seen = context.reading(&mut *group)?;
    ensure_eq!(
        seen.count(),
        Count::NotCounted,
        "a group that never ran ({seen:?})"
    );
    Ok(())
}

fn is_enabled(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let _hog = hog(context, &event)?;
    let mut group = context.open(&GroupSpec::single(event))?;
    context.pass_turns(10)?;
    let seen = context.reading(&mut *group)?;
    ensure!(seen.time_enabled > 0, "it was enabled: {seen:?}");
    ensure_eq!(
        (seen.time_running, seen.value),
        (0, 0),
        "time running and value"
    );
    Ok(())
}

fn total_is_missing(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let _hog = hog(context, &event)?;
    let mut group = context.open(&GroupSpec::single(event))?;
    context.pass_turns(3)?;
    ensure_eq!(
        context.read(&mut *group)?.total(0),
        Count::NotCounted,
        "the total"
    );
    Ok(())
}

fn runs_when_there_is_room(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let hog = hog(context, &event)?;
    let mut group = context.open(&GroupSpec::single(event))?;
    context.pass_turns(5)?;
    drop(hog);
    context.pass_turns(5)?;
    let seen = context.reading(&mut *group)?;
    ensure!(
        seen.time_running > 0,
        "the PMU is free, and it does not run: {seen:?}"
    );
    ensure!(
        matches!(seen.count(), Count::Estimated(_)),
        "half of the time was not counted: {seen:?}"
    );
    Ok(())
}

fn interval_is_missing(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    context.pass_turns(3)?;
    let _hog = hog(context, &event)?;
    context.pass_turns(2)?;
    let before = context.reading(&mut *group)?;
    context.pass_turns(3)?;
    let since = context.reading(&mut *group)?.since(&before);
    ensure_eq!(since.count(), Count::NotCounted, "the interval ({since:?})");
    Ok(())
}
