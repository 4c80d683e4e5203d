//! Exclusive groups are alone on the PMU while they run.

use quipu_hal::{Attributes, Features, GroupSpec};

use crate::Check;
use crate::context::Context;
use crate::verdict::{Outcome, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "exclusive.counts",
        requires: "An exclusive group with the PMU to itself counts exactly.",
        source: "perf_event_open(2), attr.exclusive",
        run: counts,
    },
    Check {
        id: "exclusive.shares-no-time",
        requires: "An exclusive group and any other never run at the same time, though both would fit.",
        source: "perf_event_open(2), attr.exclusive",
        run: shares_no_time,
    },
    Check {
        id: "exclusive.takes-turns",
        requires: "An exclusive group and the others all get their turn.",
        source: "kernel/events/core.c, group_can_go_on and rotate_ctx",
        run: takes_turns,
    },
    Check {
        id: "exclusive.refused-where-unclaimed",
        requires: "A backend without exclusive groups says so instead of ignoring it.",
        source: "quipu_hal::Features::EXCLUSIVE",
        run: refused_where_unclaimed,
    },
];

fn exclusive(event: quipu_hal::EventSpec) -> GroupSpec {
    GroupSpec::single(event).with_attributes(Attributes::default().with_exclusive(true))
}

fn counts(context: &Context<'_>) -> Outcome {
    context.need(Features::EXCLUSIVE)?;
    let event = context.exact()?;
    let mut group = context.open(&exclusive(event.clone()))?;
    group.disable()?;
    group.reset()?;
    context.count(&mut *group, &event, 19)?;
    ensure_eq!(
        context.reading(&mut *group)?.count().exact(),
        Some(19),
        "what was counted"
    );
    Ok(())
}

fn shares_no_time(context: &Context<'_>) -> Outcome {
    context.need(Features::EXCLUSIVE.union(Features::MULTIPLEXING))?;
    let event = context.slot_event()?;
    context.need_room(2)?;
    let from = context.now()?;
    let mut alone = context.open(&exclusive(event.clone()))?;
    let mut other = context.open(&GroupSpec::single(event))?;
    context.pass_turns(50)?;
    let passed = context.now()? - from;
    let (a, b) = (context.reading(&mut *alone)?, context.reading(&mut *other)?);
    ensure!(
        a.time_running + b.time_running <= passed,
        "in {passed} ns they ran {} and {} ns",
        a.time_running,
        b.time_running
    );
    Ok(())
}

fn takes_turns(context: &Context<'_>) -> Outcome {
    context.need(Features::EXCLUSIVE.union(Features::MULTIPLEXING))?;
    let event = context.slot_event()?;
    let mut groups = [
        context.open(&GroupSpec::single(event.clone()))?,
        context.open(&exclusive(event.clone()))?,
        context.open(&GroupSpec::single(event))?,
    ];
    context.pass_turns(50)?;
    for (i, group) in groups.iter_mut().enumerate() {
        let seen = context.reading(&mut **group)?;
        ensure!(seen.time_running > 0, "group {i} had no turn: {seen:?}");
    }
    Ok(())
}

fn refused_where_unclaimed(context: &Context<'_>) -> Outcome {
    context.refused_without(Features::EXCLUSIVE, "groups can be exclusive", exclusive)
}
