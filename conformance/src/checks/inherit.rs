//! Inheritance: threads and processes made later.

use std::thread;

use quipu_hal::{Attributes, EventSpec, Features, GroupSpec, Target};

use crate::child::{self, Waiting};
use crate::context::{Context, stopped};
use crate::verdict::{Outcome, Stop, ensure};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "inherit.threads-are-counted",
        requires: "With inherit, a thread made later is counted, and its count stays when it has ended.",
        source: "perf_event_open(2), attr.inherit",
        run: threads_are_counted,
    },
    Check {
        id: "inherit.not-unless-asked",
        requires: "Without inherit, threads made later are not counted.",
        source: "perf_event_open(2), attr.inherit",
        run: not_unless_asked,
    },
    Check {
        id: "inherit.many-threads",
        requires: "Counts of any number of inherited threads add up.",
        source: "perf_event_open(2), attr.inherit: counts are added when children end",
        run: many_threads,
    },
    Check {
        id: "inherit.disable-reaches-children",
        requires: "Disabling a group disables it in inherited threads, too.",
        source: "kernel/events/core.c, perf_event_for_each_child",
        run: disable_reaches_children,
    },
    Check {
        id: "inherit.reset-forgets-children",
        requires: "After a reset, nothing of what ended threads counted before is in the value.",
        source: "perf_event_open(2), PERF_EVENT_IOC_RESET; kernel/events/core.c, child_count",
        run: reset_forgets_children,
    },
    Check {
        id: "inherit.processes-are-counted",
        requires: "With inherit, a process started later is counted.",
        source: "perf_event_open(2), attr.inherit",
        run: processes_are_counted,
    },
    Check {
        id: "inherit.goes-unnoticed",
        requires: "Whatever is counted, a program executes others, forks and makes threads as it does uncounted.",
        source: "perf_event_open(2), attr.inherit; kernel/events/core.c, perf_event_init_task: its errors are those of fork(2)",
        run: goes_unnoticed,
    },
    Check {
        id: "inherit.threads-alone",
        requires: "With inherit-thread too, a thread made later is counted and a process is not.",
        source: "perf_event_open(2), attr.inherit_thread",
        run: threads_alone,
    },
    Check {
        id: "inherit.threads-alone-refused-where-unclaimed",
        requires: "A backend that cannot inherit threads alone says so instead of ignoring it.",
        source: "quipu_hal::Features::INHERIT_THREAD",
        run: threads_alone_refused_where_unclaimed,
    },
    Check {
        id: "inherit.refused-where-unclaimed",
        requires: "A backend that cannot inherit says so instead of ignoring it.",
        source: "quipu_hal::Features::INHERIT",
        run: refused_where_unclaimed,
    },
];

fn inherited(event: EventSpec) -> GroupSpec {
    GroupSpec::single(event)
        .with_attributes(Attributes::default().with_inherit(true).with_disabled(true))
}

/// An exact event that making a thread does not cause.
fn event(context: &Context<'_>) -> Outcome<EventSpec> {
    context.need(Features::INHERIT)?;
    context.undisturbed()
}

fn in_a_thread(context: &Context<'_>, event: &EventSpec, times: u64) -> Outcome {
    let fixture = context.fixture();
    let done = thread::scope(|scope| {
        let worker = scope.spawn(|| fixture.workload(event, times).map(|work| work()));
        worker.join()
    });
    match done {
        Ok(Some(())) => Ok(()),
        _ => Err(Stop::Fail("the working thread failed".into())),
    }
}

fn threads_are_counted(context: &Context<'_>) -> Outcome {
    let event = event(context)?;
    let mut group = context.open(&inherited(event.clone()))?;
    group.enable()?;
    context.cause(&event, 2)?;
    in_a_thread(context, &event, 30)?;
    group.disable()?;
    context.ensure_value(&mut *group, 32, "2 here and 30 in a thread made later")?;
    Ok(())
}

fn not_unless_asked(context: &Context<'_>) -> Outcome {
    let event = event(context)?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    context.cause(&event, 2)?;
    in_a_thread(context, &event, 30)?;
    group.disable()?;
    context.ensure_value(&mut *group, 2, "2 here and 30 in a thread made later")?;
    Ok(())
}

fn many_threads(context: &Context<'_>) -> Outcome {
    let event = event(context)?;
    let mut group = context.open(&inherited(event.clone()))?;
    group.enable()?;
    let fixture = context.fixture();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| fixture.workload(&event, 5).map(|work| work()));
        }
    });
    group.disable()?;
    context.ensure_value(&mut *group, 40, "5 in each of 8 threads")?;
    Ok(())
}

fn disable_reaches_children(context: &Context<'_>) -> Outcome {
    let event = event(context)?;
    let mut group = context.open(&inherited(event.clone()))?;
    group.enable()?;
    let fixture = context.fixture();
    thread::scope(|scope| -> Outcome {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel::<()>();
        let event = &event;
        scope.spawn(move || {
            // Either side may be gone when the check has failed.
            let _ = fixture.workload(event, 4).map(|work| work());
            let _ = ready.send(());
            let _ = wait.recv();
            fixture.workload(event, 70).map(|work| work())
        });
        let gone = |_| Stop::Fail("the working thread is gone".into());
        is_ready.recv().map_err(gone)?;
        group.disable()?;
        go.send(())
            .map_err(|_| Stop::Fail("the working thread is gone".into()))
    })?;
    context.ensure_value(&mut *group, 4, "4 before disabling and 70 after")?;
    Ok(())
}

fn reset_forgets_children(context: &Context<'_>) -> Outcome {
    let event = event(context)?;
    let mut group = context.open(&inherited(event.clone()))?;
    group.enable()?;
    in_a_thread(context, &event, 30)?;
    group.reset()?;
    context.cause(&event, 2)?;
    in_a_thread(context, &event, 5)?;
    group.disable()?;
    context.ensure_value(&mut *group, 7, "30 before the reset and 7 after")?;
    Ok(())
}

/// Returns what an event counts of this thread alone, and in a group of this thread, while a process is started.
fn while_a_process_is_started(
    context: &Context<'_>,
    group: impl FnOnce(EventSpec) -> GroupSpec,
) -> Outcome<(u64, u64)> {
    let event = context.exact()?;
    // The witness counts at least as long as the other, and this thread only.
    let mut witness = context.open_on(&stopped([event.clone()]), &Target::CurrentThread)?;
    let mut group = context.open_on(&group(event), &Target::CurrentThread)?;
    witness.enable()?;
    group.enable()?;
    let status = Waiting::start()?.finish()?;
    group.disable()?;
    witness.disable()?;
    ensure!(status.success(), "the measured process: {status}");
    Ok((
        context.reading(&mut *witness)?.value,
        context.reading(&mut *group)?.value,
    ))
}

fn processes_are_counted(context: &Context<'_>) -> Outcome {
    context.need(Features::INHERIT)?;
    let (own, all) = while_a_process_is_started(context, inherited)?;
    ensure!(
        all > own,
        "{all} with a process that was started, {own} without"
    );
    Ok(())
}

fn of_threads_alone(event: EventSpec) -> GroupSpec {
    let mut spec = inherited(event);
    spec.attributes.inherit_thread = true;
    spec
}

fn threads_alone(context: &Context<'_>) -> Outcome {
    context.need(Features::INHERIT_THREAD)?;
    let event = event(context)?;
    let mut group = context.open(&of_threads_alone(event.clone()))?;
    group.enable()?;
    context.cause(&event, 2)?;
    in_a_thread(context, &event, 30)?;
    group.disable()?;
    context.ensure_value(&mut *group, 32, "2 here and 30 in a thread made later")?;
    let (own, all) = while_a_process_is_started(context, of_threads_alone)?;
    ensure!(
        all <= own,
        "{all} while a process was started, which is to be left out, and {own} in this thread"
    );
    Ok(())
}

fn threads_alone_refused_where_unclaimed(context: &Context<'_>) -> Outcome {
    let inherit = context.capabilities().features.contains(Features::INHERIT);
    context.refused_without(
        Features::INHERIT_THREAD,
        "threads can be inherited alone",
        |event| {
            let mut spec = GroupSpec::single(event);
            spec.attributes.inherit_thread = true;
            spec.attributes.inherit = inherit;
            spec
        },
    )
}

fn goes_unnoticed(context: &Context<'_>) -> Outcome {
    let inherit = context.capabilities().features.contains(Features::INHERIT);
    let attributes = Attributes::default().with_inherit(inherit);
    let events = context.fixture().countable_events();
    let no_event = Stop::from(Ability::ExactEvent);
    events.first().ok_or(no_event)?;
    for event in events {
        let spec = GroupSpec::single(event.clone()).with_attributes(attributes);
        let mut group = context.open(&spec)?;
        let status = child::forks_often()?;
        ensure!(
            status.success(),
            "a program that forks, while {} is counted: {status}",
            event.event
        );
        for _ in 0..20 {
            let thread = thread::Builder::new().spawn(|| ());
            let ended = thread.map(thread::JoinHandle::join);
            ensure!(
                matches!(ended, Ok(Ok(()))),
                "a thread, while {} is counted: {ended:?}",
                event.event
            );
        }
        context.read_after_other_threads(&mut *group)?;
    }
    Ok(())
}

fn refused_where_unclaimed(context: &Context<'_>) -> Outcome {
    context.refused_without(Features::INHERIT, "groups can be inherited", inherited)
}
