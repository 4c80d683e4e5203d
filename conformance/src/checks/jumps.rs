//! Counters that jump: a value that cannot have been counted is no count.

use quipu_hal::{Count, GroupSpec};

use crate::context::Context;
use crate::verdict::{Outcome, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "jumps.have-no-count",
        requires: "A counter that moved further than its event can have occurred in the time has no count.",
        source: "quipu_hal::MaxRate",
        run: have_no_count,
    },
    Check {
        id: "jumps.end-with-the-interval",
        requires: "What is counted after a jump is a count, in an interval and after a reset.",
        source: "quipu_hal::MaxRate; quipu_hal::Reading::since",
        run: end_with_the_interval,
    },
];

fn have_no_count(context: &Context<'_>) -> Outcome {
    let event = context.fixture().slot_event().ok_or(Ability::SlotEvent)?;
    let mut group = context.open(&GroupSpec::single(event))?;
    context.pass_turns(1)?;
    let before = context.reading(&mut *group)?;
    ensure!(
        before.count().value().is_some(),
        "no count before the jump: {before:?}"
    );
    if !context.fixture().jump() {
        return Err(Ability::Jump.into());
    }
    let jumped = context.read(&mut *group)?;
    ensure_eq!(
        jumped[0][0].count(),
        Count::Jumped,
        "the count of {:?}",
        jumped[0][0]
    );
    ensure_eq!(jumped.total(0), Count::Jumped, "the total");
    ensure_eq!(
        jumped[0][0].since(&before).count(),
        Count::Jumped,
        "the interval of the jump"
    );
    Ok(())
}

fn end_with_the_interval(context: &Context<'_>) -> Outcome {
    let event = context.fixture().slot_event().ok_or(Ability::SlotEvent)?;
    let mut group = context.open(&GroupSpec::single(event))?;
    context.pass_turns(1)?;
    if !context.fixture().jump() {
        return Err(Ability::Jump.into());
    }
    let jumped = context.reading(&mut *group)?;
    context.pass_turns(1)?;
    let interval = context.reading(&mut *group)?.since(&jumped);
    ensure!(
        interval.count().exact() > Some(0),
        "nothing was counted after the jump: {interval:?}"
    );
    group.reset()?;
    context.pass_turns(1)?;
    let reset = context.reading(&mut *group)?;
    ensure!(
        reset.count().exact() > Some(0),
        "nothing was counted after a reset: {reset:?}"
    );
    Ok(())
}
