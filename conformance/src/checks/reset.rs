//! Reset: clears values, keeps the raw times, and starts the others over.

use quipu_hal::{Count, GroupSpec};

use crate::Check;
use crate::context::{Context, stopped};
use crate::verdict::{Outcome, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "reset.clears-value",
        requires: "After a reset the value is 0.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET",
        run: clears_value,
    },
    Check {
        id: "reset.every-member",
        requires: "A reset clears every member of the group.",
        source: "perf_event_open(2), PERF_IOC_FLAG_GROUP",
        run: every_member,
    },
    Check {
        id: "reset.keeps-raw-times",
        requires: "A reset leaves the raw times as they are.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET: resets the count only",
        run: keeps_raw_times,
    },
    Check {
        id: "reset.restarts-times",
        requires: "The times that go with the value start over at a reset.",
        source: "docs/architecture.md, \"Reading\"",
        run: restarts_times,
    },
    Check {
        id: "reset.while-counting",
        requires: "A group that is reset while it counts goes on counting from 0.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET",
        run: while_counting,
    },
    Check {
        id: "reset.while-disabled",
        requires: "A reset does not start a group that is disabled.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET",
        run: while_disabled,
    },
    Check {
        id: "reset.twice",
        requires: "A second reset changes nothing.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET",
        run: twice,
    },
    Check {
        id: "reset.other-groups-untouched",
        requires: "A reset of one group leaves every other group alone.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET",
        run: other_groups_untouched,
    },
    Check {
        id: "reset.before-enable",
        requires: "A group that was never enabled can be reset, and counts exactly afterwards.",
        source: "perf_event_open(2), example: reset, then enable",
        run: before_enable,
    },
    Check {
        id: "reset.stays-exact",
        requires: "A group that was on the PMU all the time is exact after a reset, too.",
        source: "docs/architecture.md, \"Reading\"",
        run: stays_exact,
    },
    Check {
        id: "reset.many",
        requires: "A thousand resets in a row lose no later event.",
        source: "perf_event_tests, reset",
        run: many,
    },
];

fn clears_value(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.measure(&event, 10)?;
    context.ensure_value(&mut *group, 10, "the value before the reset")?;
    group.reset()?;
    context.ensure_value(&mut *group, 0, "the value after the reset")?;
    Ok(())
}

fn every_member(context: &Context<'_>) -> Outcome {
    let [a, b] = context.exact_pair()?;
    let mut group = context.open(&stopped([a.clone(), b.clone()]))?;
    group.enable()?;
    context.cause(&a, 3)?;
    context.cause(&b, 4)?;
    group.disable()?;
    group.reset()?;
    ensure_eq!(
        context.values(&mut *group)?,
        [0, 0],
        "the values after the reset"
    );
    context.count(&mut *group, &b, 2)?;
    ensure_eq!(
        context.values(&mut *group)?,
        [0, 2],
        "the values counted since"
    );
    Ok(())
}

fn keeps_raw_times(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    context.pass_turns(2)?;
    group.disable()?;
    let before = context.reading(&mut *group)?;
    ensure!(
        before.raw_time_enabled > 0,
        "no time was enabled: {before:?}"
    );
    group.reset()?;
    let after = context.reading(&mut *group)?;
    ensure_eq!(
        after.raw_time_enabled,
        before.raw_time_enabled,
        "raw time enabled"
    );
    ensure_eq!(
        after.raw_time_running,
        before.raw_time_running,
        "raw time running"
    );
    Ok(())
}

fn restarts_times(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    context.pass_turns(3)?;
    group.disable()?;
    let before = context.reading(&mut *group)?;
    group.reset()?;
    let zero = context.reading(&mut *group)?;
    ensure_eq!(
        (zero.time_enabled, zero.time_running),
        (0, 0),
        "the times after the reset"
    );
    group.enable()?;
    context.pass_turns(1)?;
    group.disable()?;
    let after = context.reading(&mut *group)?;
    ensure!(after.time_enabled > 0, "time did not go on: {after:?}");
    ensure_eq!(
        after.since(&before).raw_time_enabled,
        after.time_enabled,
        "time enabled since the reset, from the raw times"
    );
    ensure_eq!(
        after.since(&before).raw_time_running,
        after.time_running,
        "time running since the reset, from the raw times"
    );
    Ok(())
}

fn while_counting(context: &Context<'_>) -> Outcome {
    let event = context.exact_for(1, 500)?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    context.cause(&event, 500)?;
    group.reset()?;
    context.cause(&event, 12)?;
    group.disable()?;
    context.ensure_value(&mut *group, 12, "the value since the reset")?;
    Ok(())
}

fn while_disabled(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.reset()?;
    context.cause(&event, 12)?;
    context.pass_turns(1)?;
    let seen = context.reading(&mut *group)?;
    ensure_eq!(
        (seen.value, seen.raw_time_enabled),
        (0, 0),
        "value and time enabled"
    );
    Ok(())
}

fn twice(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.measure(&event, 2)?;
    group.reset()?;
    let once = context.reading(&mut *group)?;
    group.reset()?;
    ensure_eq!(
        context.reading(&mut *group)?,
        once,
        "the reading after the second reset"
    );
    Ok(())
}

fn other_groups_untouched(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_room(2)?;
    let mut bystander = context.measure(&event, 9)?;
    let before = context.reading(&mut *bystander)?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    group.reset()?;
    group.disable()?;
    ensure_eq!(
        context.reading(&mut *bystander)?,
        before,
        "the other group's reading"
    );
    Ok(())
}

fn before_enable(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.reset()?;
    context.count(&mut *group, &event, 21)?;
    ensure_eq!(
        context.reading(&mut *group)?.count(),
        Count::Exact(21),
        "what was counted"
    );
    Ok(())
}

fn stays_exact(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    context.pass_turns(1)?;
    group.disable()?;
    group.reset()?;
    group.enable()?;
    context.cause(&event, 6)?;
    context.pass_turns(1)?;
    group.disable()?;
    let seen = context.reading(&mut *group)?;
    ensure!(
        seen.count().exact().is_some(),
        "alone on the PMU, and not exact: {seen:?}"
    );
    Ok(())
}

fn many(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    for _ in 0..1_000 {
        group.reset()?;
    }
    context.cause(&event, 3)?;
    group.disable()?;
    context.ensure_value(&mut *group, 3, "the value since the last reset")?;
    Ok(())
}
