//! Pinned groups are on the PMU or in the error state.

use quipu_hal::{Error, ErrorKind, Features, GroupSpec};

use crate::Check;
use crate::context::{BoxGroup, Context, pinned};
use crate::verdict::{Outcome, Stop, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "pinned.counts",
        requires: "A pinned group with the PMU to itself counts exactly.",
        source: "perf_event_open(2), attr.pinned",
        run: counts,
    },
    Check {
        id: "pinned.is-never-rotated",
        requires: "A pinned group runs all the time, however many others want the PMU.",
        source: "perf_event_open(2), attr.pinned",
        run: is_never_rotated,
    },
    Check {
        id: "pinned.displaces-others",
        requires: "A pinned group that is opened late takes its slots from groups that are not pinned.",
        source: "kernel/events/core.c, pinned groups are scheduled first",
        run: displaces_others,
    },
    Check {
        id: "pinned.error-state",
        requires: "A pinned group that cannot be scheduled is in the error state, and reading it says so.",
        source: "perf_event_open(2), attr.pinned: read returns end-of-file",
        run: error_state,
    },
    Check {
        id: "pinned.error-state-lasts",
        requires: "The error state lasts until the group is enabled again, even when there is room.",
        source: "perf_event_open(2), attr.pinned; Mackerras 2009, \"record time running and time enabled\", state error",
        run: error_state_lasts,
    },
    Check {
        id: "pinned.enable-recovers",
        requires: "Enabling a group in the error state schedules it when there is room by then.",
        source: "kernel/events/core.c, __perf_event_enable",
        run: enable_recovers,
    },
    Check {
        id: "pinned.first-is-unharmed",
        requires: "A pinned group counts on while another fails to be scheduled beside it.",
        source: "perf_event_open(2), attr.pinned",
        run: first_is_unharmed,
    },
    Check {
        id: "pinned.refused-where-unclaimed",
        requires: "A backend that cannot pin says so instead of ignoring it.",
        source: "quipu_hal::Features::PINNED",
        run: refused_where_unclaimed,
    },
];

/// Two pinned groups of which only the first fits.
fn two(context: &Context<'_>) -> Outcome<(BoxGroup, BoxGroup)> {
    context.need(Features::PINNED)?;
    let event = context.slot_event()?;
    let first = context.open(&pinned(vec![event.clone(); context.slots()?]))?;
    let second = context.open(&pinned([event]))?;
    context.pass_turns(3)?;
    Ok((first, second))
}

fn refused_reading(group: &mut BoxGroup) -> Outcome<Error> {
    let mut buf = group.read_buf();
    match group.read(&mut buf) {
        Err(error) => Ok(error),
        Ok(()) => Err(Stop::Fail(format!(
            "a pinned group that is not on the PMU reads {:?}",
            buf[0][0]
        ))),
    }
}

fn counts(context: &Context<'_>) -> Outcome {
    context.need(Features::PINNED)?;
    let event = context.exact()?;
    let mut group = context.open(&pinned([event.clone()]))?;
    group.disable()?;
    group.reset()?;
    context.count(&mut *group, &event, 40)?;
    ensure_eq!(
        context.reading(&mut *group)?.count().exact(),
        Some(40),
        "what was counted"
    );
    Ok(())
}

fn is_never_rotated(context: &Context<'_>) -> Outcome {
    context.need(Features::PINNED.union(Features::MULTIPLEXING))?;
    let event = context.slot_event()?;
    let mut others = Vec::new();
    for _ in 0..context.slots()? {
        others.push(context.open(&GroupSpec::single(event.clone()))?);
    }
    let mut group = context.open(&pinned([event]))?;
    context.pass_turns(20)?;
    let seen = context.reading(&mut *group)?;
    ensure!(
        seen.count().exact().is_some(),
        "pinned, and rotated: {seen:?}"
    );
    ensure!(seen.time_running > 0, "pinned, and never running: {seen:?}");
    Ok(())
}

fn displaces_others(context: &Context<'_>) -> Outcome {
    context.need(Features::PINNED.union(Features::MULTIPLEXING))?;
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let slots = context.slots()?;
    let mut others = Vec::new();
    for _ in 0..slots {
        others.push(context.open(&GroupSpec::single(event.clone()))?);
    }
    context.pass_turns(1)?;
    let mut group = context.open(&pinned(vec![event; slots]))?;
    context.pass_turns(2)?;
    let seen = context.reading(&mut *group)?;
    ensure!(
        seen.count().exact().is_some_and(|v| v > 0),
        "it does not run: {seen:?}"
    );
    for other in &mut others {
        let before = context.reading(&mut **other)?;
        context.pass_turns(1)?;
        let since = context.reading(&mut **other)?.since(&before);
        ensure_eq!(
            since.time_running,
            0,
            "time running of a group that was displaced"
        );
    }
    Ok(())
}

/// Fails unless reading the group says that it is in the error state.
fn says_error_state(group: &mut BoxGroup) -> Outcome {
    let error = refused_reading(group)?;
    ensure_eq!(
        error.kind(),
        ErrorKind::CounterInErrorState,
        "the kind of \"{error}\""
    );
    Ok(())
}

fn error_state(context: &Context<'_>) -> Outcome {
    let (_first, mut second) = two(context)?;
    says_error_state(&mut second)
}

fn error_state_lasts(context: &Context<'_>) -> Outcome {
    let (first, mut second) = two(context)?;
    drop(first);
    context.pass_turns(5)?;
    says_error_state(&mut second)
}

fn enable_recovers(context: &Context<'_>) -> Outcome {
    context.need_working_counters()?;
    let (first, mut second) = two(context)?;
    drop(first);
    second.enable()?;
    context.pass_turns(3)?;
    let seen = context.reading(&mut *second)?;
    ensure!(
        seen.time_running > 0 && seen.value > 0,
        "there is room, and it waits: {seen:?}"
    );
    Ok(())
}

fn first_is_unharmed(context: &Context<'_>) -> Outcome {
    context.need_working_counters()?;
    let (mut first, mut second) = two(context)?;
    refused_reading(&mut second)?;
    second.enable()?;
    context.pass_turns(3)?;
    let seen = context.reading(&mut *first)?;
    ensure!(
        seen.count().exact().is_some_and(|v| v > 0),
        "it was disturbed: {seen:?}"
    );
    Ok(())
}

fn refused_where_unclaimed(context: &Context<'_>) -> Outcome {
    context.refused_without(Features::PINNED, "groups can be pinned", |event| {
        pinned([event])
    })
}
