//! Enable-on-exec: counting begins when the target executes a new program.

use quipu_hal::{Attributes, EventSpec, Features, GroupSpec, Reading, Target, TargetKinds};

use crate::Check;
use crate::child::Waiting;
use crate::context::{Context, stopped};
use crate::verdict::{Outcome, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "exec.silent-before",
        requires: "With enable-on-exec nothing is counted before the new program starts.",
        source: "perf_event_open(2), attr.enable_on_exec",
        run: silent_before,
    },
    Check {
        id: "exec.counts-after",
        requires: "With enable-on-exec the new program is counted from its start.",
        source: "perf_event_open(2), attr.enable_on_exec; tools/perf/tests/task-exit.c",
        run: counts_after,
    },
    Check {
        id: "exec.readable-after-exit",
        requires: "The count of a process that has ended can be read, and stands still.",
        source: "perf_event_open(2), reading results; perf stat",
        run: readable_after_exit,
    },
    Check {
        id: "exec.not-enabled-without",
        requires: "A group that is disabled stays so through the execution of a new program.",
        source: "perf_event_open(2), attr.disabled",
        run: not_enabled_without,
    },
    Check {
        id: "exec.removed",
        requires: "With remove-on-exec what a task does before it executes a program is counted, and nothing after that.",
        source: "perf_event_open(2), attr.remove_on_exec",
        run: removed,
    },
    Check {
        id: "exec.removal-refused-where-unclaimed",
        requires: "A backend without remove-on-exec says so instead of ignoring it.",
        source: "quipu_hal::Features::REMOVE_ON_EXEC",
        run: removal_refused_where_unclaimed,
    },
    Check {
        id: "exec.refused-where-unclaimed",
        requires: "A backend without enable-on-exec says so instead of ignoring it.",
        source: "quipu_hal::Features::ENABLE_ON_EXEC",
        run: refused_where_unclaimed,
    },
];

fn on_exec(event: EventSpec, enable_on_exec: bool) -> GroupSpec {
    GroupSpec::single(event).with_attributes(
        Attributes::default()
            .with_disabled(true)
            .with_enable_on_exec(enable_on_exec),
    )
}

fn need(context: &Context<'_>) -> Outcome<EventSpec> {
    context.need(Features::ENABLE_ON_EXEC)?;
    context.need_target(TargetKinds::THREAD)?;
    context.exact()
}

fn silent_before(context: &Context<'_>) -> Outcome {
    let event = need(context)?;
    let mut child = Waiting::start()?;
    let mut group = context.open_on(&on_exec(event, true), &Target::Thread(child.id()))?;
    child.stir()?;
    ensure_eq!(
        context.reading(&mut *group)?,
        Reading::new(0, 0, 0),
        "a process that has not executed anything yet"
    );
    Ok(())
}

fn counts_after(context: &Context<'_>) -> Outcome {
    let event = need(context)?;
    let mut child = Waiting::start()?;
    let mut group = context.open_on(&on_exec(event, true), &Target::Thread(child.id()))?;
    let status = child.finish()?;
    ensure!(status.success(), "the measured process: {status}");
    let seen = context.reading(&mut *group)?;
    ensure!(
        seen.value > 0 && seen.time_enabled > 0,
        "the new program was not counted: {seen:?}"
    );
    Ok(())
}

fn readable_after_exit(context: &Context<'_>) -> Outcome {
    let event = need(context)?;
    let mut child = Waiting::start()?;
    let mut group = context.open_on(&on_exec(event.clone(), true), &Target::Thread(child.id()))?;
    child.finish()?;
    let first = context.reading(&mut *group)?;
    context.cause(&event, 10)?;
    ensure_eq!(context.reading(&mut *group)?, first, "a later reading");
    // Neither has anything left to act on; neither may lose the count.
    group.disable()?;
    group.enable()?;
    context.ensure_value(
        &mut *group,
        first.value,
        "the value after enabling it again",
    )?;
    Ok(())
}

fn removed(context: &Context<'_>) -> Outcome {
    context.need(Features::REMOVE_ON_EXEC)?;
    context.need_target(TargetKinds::THREAD)?;
    let event = context.exact()?;
    let mut child = Waiting::start()?;
    let target = Target::Thread(child.id());
    let mut removed = stopped([event.clone()]);
    removed.attributes.remove_on_exec = true;
    let mut removed = context.open_on(&removed, &target)?;
    let mut all = context.open_on(&stopped([event]), &target)?;
    all.enable()?;
    removed.enable()?;
    child.stir()?;
    let before = context.reading(&mut *removed)?;
    ensure!(
        before.time_enabled > 0,
        "it is enabled before the program is executed: {before:?}"
    );
    let status = child.finish()?;
    ensure!(status.success(), "the measured process: {status}");
    let (removed, all) = (context.reading(&mut *removed)?, context.reading(&mut *all)?);
    ensure!(
        removed.value >= before.value && removed.time_enabled >= before.time_enabled,
        "what was counted before stays: {before:?}, then {removed:?}"
    );
    ensure!(
        removed.value < all.value && removed.time_enabled < all.time_enabled,
        "{removed:?} until the program was executed, {all:?} with that"
    );
    Ok(())
}

fn removal_refused_where_unclaimed(context: &Context<'_>) -> Outcome {
    context.refused_without(
        Features::REMOVE_ON_EXEC,
        "groups can be removed on exec",
        |event| {
            let mut spec = GroupSpec::single(event);
            spec.attributes.remove_on_exec = true;
            spec
        },
    )
}

fn not_enabled_without(context: &Context<'_>) -> Outcome {
    let event = need(context)?;
    let mut child = Waiting::start()?;
    let mut group = context.open_on(&on_exec(event, false), &Target::Thread(child.id()))?;
    child.finish()?;
    ensure_eq!(
        context.reading(&mut *group)?,
        Reading::new(0, 0, 0),
        "a group that was never enabled"
    );
    Ok(())
}

fn refused_where_unclaimed(context: &Context<'_>) -> Outcome {
    context.refused_without(
        Features::ENABLE_ON_EXEC,
        "groups can be enabled on exec",
        |event| on_exec(event, true),
    )
}
