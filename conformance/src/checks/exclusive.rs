//! Exclusive groups are alone on the PMU while they run.

use quipu_hal::{Attributes, ErrorKind, Features, GroupSpec};

use crate::Check;
use crate::bench::{Bench, reading};
use crate::verdict::{Missing, Outcome, ensure, ensure_eq};

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
    GroupSpec::single(event).with_attributes(Attributes {
        exclusive: true,
        ..Attributes::default()
    })
}

fn counts(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::EXCLUSIVE)?;
    let event = bench.exact()?;
    let mut group = bench.open(&exclusive(event.clone()))?;
    group.disable()?;
    group.reset()?;
    group.enable()?;
    bench.cause(&event, 19)?;
    group.disable()?;
    ensure_eq!(
        reading(&mut *group)?.scaled().exact(),
        Some(19),
        "what was counted"
    );
    Ok(())
}

fn shares_no_time(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::EXCLUSIVE.union(Features::MULTIPLEXING))?;
    let event = bench.slot_event()?;
    bench.need_room(2)?;
    let from = bench.now()?;
    let mut alone = bench.open(&exclusive(event.clone()))?;
    let mut other = bench.open(&GroupSpec::single(event))?;
    bench.pass_turns(50);
    let passed = bench.now()? - from;
    let (a, b) = (reading(&mut *alone)?, reading(&mut *other)?);
    ensure!(
        a.time_running + b.time_running <= passed,
        "in {passed} ns they ran {} and {} ns",
        a.time_running,
        b.time_running
    );
    Ok(())
}

fn takes_turns(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::EXCLUSIVE.union(Features::MULTIPLEXING))?;
    let event = bench.slot_event()?;
    let mut groups = [
        bench.open(&GroupSpec::single(event.clone()))?,
        bench.open(&exclusive(event.clone()))?,
        bench.open(&GroupSpec::single(event))?,
    ];
    bench.pass_turns(50);
    for (i, group) in groups.iter_mut().enumerate() {
        let seen = reading(&mut **group)?;
        ensure!(seen.time_running > 0, "group {i} had no turn: {seen:?}");
    }
    Ok(())
}

fn refused_where_unclaimed(bench: &Bench<'_>) -> Outcome {
    if bench.capabilities().features.contains(Features::EXCLUSIVE) {
        return Err(Missing::Inapplicable("groups can be exclusive").into());
    }
    let error = bench.refusal(&exclusive(bench.exact()?), &bench.subject().target())?;
    ensure_eq!(
        error.kind(),
        ErrorKind::UnsupportedFeature,
        "the kind of \"{error}\""
    );
    Ok(())
}
