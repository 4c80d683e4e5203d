//! Counters that are zeroed while they count: no difference of two readings is made up from that.

use quipu_hal::{ErrorKind, EventSpec, GroupSpec};

use crate::context::Context;
use crate::verdict::{Outcome, ensure, ensure_eq};
use crate::{Ability, Check, Fixture};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "interference.same-function",
        requires: "A counter that another process zeroes, by setting the function it has, gives an error or a count that is not exact, never a wrap that was none.",
        source: "pctr(4), PCIOCSn: setting a function resets the counter",
        run: same_function,
    },
    Check {
        id: "interference.suspend",
        requires: "Counters that suspending the machine has zeroed give an error or a count that is not exact, never a wrap that was none.",
        source: "OpenBSD amd64 pctr.c, pctr_resume",
        run: suspend,
    },
    Check {
        id: "interference.between-looks",
        requires: "A counter that another process zeroes while nothing is read, and that has passed its last reading since, gives an error or a count that is not exact.",
        source: "OpenBSD amd64 pctr.c, pctrsel: another function and the same again zero the counter",
        run: between_looks,
    },
];

fn same_function(context: &Context<'_>) -> Outcome {
    zeroed(context, |fixture| fixture.zero_counters())
}

fn suspend(context: &Context<'_>) -> Outcome {
    zeroed(context, |fixture| fixture.suspend())
}

/// Many commands take no longer than half a second.
fn between_looks(context: &Context<'_>) -> Outcome {
    const HALF_A_SECOND: u64 = 500_000_000;
    let event = context.slot_event()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    let before = context.expected_count(&event)?;
    context.fixture().pass(HALF_A_SECOND);
    if !context.fixture().zero_counters() {
        return Err(Ability::Interference.into());
    }
    context.fixture().pass(2 * HALF_A_SECOND);
    let expected = u128::from(context.expected_count(&event)? - before);
    let mut buf = group.read_buf();
    if let Err(error) = group.read(&mut buf) {
        ensure_eq!(
            error.kind(),
            ErrorKind::Interference,
            "the kind of \"{error}\""
        );
    }
    let exact = context.read(&mut *group)?[0][0].count().exact();
    ensure!(
        exact.is_none_or(|value| value == expected),
        "{expected} occurred, {exact:?} is called exact"
    );
    Ok(())
}

/// Returns an exact event whose rate is known, where there is one: a narrow counter of another can wrap in little time.
fn bounded(context: &Context<'_>) -> Outcome<EventSpec> {
    let mut events = context.fixture().exact_events().into_iter();
    let is_bounded = |event: &EventSpec| {
        let group = context.open(&GroupSpec::single(event.clone()));
        group.is_ok_and(|group| group.members()[0].max_rate.is_some())
    };
    events.find(is_bounded).map_or_else(|| context.exact(), Ok)
}

fn zeroed(context: &Context<'_>, zero: fn(&dyn Fixture) -> bool) -> Outcome {
    let event = bounded(context)?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    context.cause(&event, 1_000)?;
    let mut buf = group.read_buf();
    context.read(&mut *group)?;
    if !zero(context.fixture()) {
        return Err(Ability::Interference.into());
    }
    context.cause(&event, 10)?;
    if let Err(error) = group.read(&mut buf) {
        ensure_eq!(
            error.kind(),
            ErrorKind::Interference,
            "the kind of \"{error}\""
        );
    }
    context.cause(&event, 20)?;
    let seen = context.read(&mut *group)?[0][0];
    let exact = seen.count().exact();
    ensure!(
        exact.is_none_or(|value| value == 1_030),
        "1030 occurred, {exact:?} is called exact"
    );
    ensure!(
        seen.value <= 1_030,
        "1030 occurred, {} were counted",
        seen.value
    );
    Ok(())
}
