//! Time enabled and time running. No length of time is asserted, unless time stands still by itself.

use std::thread;
use std::time::{Duration, Instant};

use quipu_hal::{GroupSpec, Target, TargetKinds};

use crate::context::{Context, need_atomic, stopped};
use crate::verdict::{Outcome, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "times.advance-while-enabled",
        requires: "Both times advance while a group counts.",
        source: "Mackerras 2009, \"record time running and time enabled\"",
        run: advance_while_enabled,
    },
    Check {
        id: "times.stop-while-disabled",
        requires: "Both times stand still while a group is disabled.",
        source: "Mackerras 2009, \"record time running and time enabled\": times stop in state off",
        run: stop_while_disabled,
    },
    Check {
        id: "times.add-up",
        requires: "Time goes on from where it stood when a group is enabled again.",
        source: "Mackerras 2009, \"record time running and time enabled\", total_time_enabled",
        run: add_up,
    },
    Check {
        id: "times.raw-equal-without-reset",
        requires: "Without a reset the raw times and the others are the same.",
        source: "quipu_hal::Reading",
        run: raw_equal_without_reset,
    },
    Check {
        id: "times.alone-runs-always",
        requires: "A group with the PMU to itself runs as long as it is enabled, so its value is exact.",
        source: "perf_event_open(2), PERF_FORMAT_TOTAL_TIME_RUNNING",
        run: alone_runs_always,
    },
    Check {
        id: "times.to-the-nanosecond",
        requires: "With a clock that stands still, both times are what passed between enable and disable.",
        source: "Mackerras 2009, \"record time running and time enabled\"",
        run: to_the_nanosecond,
    },
    Check {
        id: "times.grow-between-reads",
        requires: "A group that counts shows the time up to the read, not up to its last change of state.",
        source: "Mackerras 2009, \"record time running and time enabled\": times are brought up to date on read",
        run: grow_between_reads,
    },
    Check {
        id: "times.members-share",
        requires: "The members of an atomic reading share both times.",
        source: "perf_event_open(2), PERF_FORMAT_GROUP",
        run: members_share,
    },
    Check {
        id: "times.never-backwards",
        requires: "No time ever runs backwards.",
        source: "kernel commit on time_enabled and time_running; jimblandy/perf-event issue 65",
        run: never_backwards,
    },
    Check {
        id: "times.sleep-is-not-enabled",
        requires: "A thread's counters are not enabled while the thread sleeps.",
        source: "perf_event_open(2), PERF_FORMAT_TOTAL_TIME_ENABLED on a task",
        run: sleep_is_not_enabled,
    },
    Check {
        id: "times.late-enable-counts-late",
        requires: "Time before the first enable is in neither time.",
        source: "perf_event_open(2), attr.disabled",
        run: late_enable_counts_late,
    },
];

fn advance_while_enabled(context: &Context<'_>) -> Outcome {
    let mut group = context.open_stopped(&context.exact()?)?;
    group.enable()?;
    context.pass_turns(2)?;
    group.disable()?;
    let seen = context.reading(&mut *group)?;
    ensure!(
        seen.time_enabled > 0 && seen.time_running > 0,
        "time stood still: {seen:?}"
    );
    Ok(())
}

fn stop_while_disabled(context: &Context<'_>) -> Outcome {
    let mut group = context.open(&GroupSpec::single(context.exact()?))?;
    context.pass_turns(1)?;
    group.disable()?;
    let before = context.reading(&mut *group)?;
    context.pass_turns(3)?;
    ensure_eq!(
        context.reading(&mut *group)?,
        before,
        "the reading after time passed"
    );
    Ok(())
}

fn add_up(context: &Context<'_>) -> Outcome {
    let mut group = context.open_stopped(&context.exact()?)?;
    let mut last = context.reading(&mut *group)?;
    for round in 0..4 {
        group.enable()?;
        context.pass_turns(1)?;
        group.disable()?;
        let now = context.reading(&mut *group)?;
        ensure!(
            now.time_enabled > last.time_enabled && now.time_running > last.time_running,
            "round {round} did not add to {last:?}: {now:?}"
        );
        last = now;
    }
    Ok(())
}

fn raw_equal_without_reset(context: &Context<'_>) -> Outcome {
    let mut group = context.open(&GroupSpec::single(context.exact()?))?;
    context.pass_turns(1)?;
    for _ in 0..3 {
        let seen = context.reading(&mut *group)?;
        ensure_eq!(
            seen.time_enabled,
            seen.raw_time_enabled,
            "time enabled against the raw one"
        );
        ensure_eq!(
            seen.time_running,
            seen.raw_time_running,
            "time running against the raw one"
        );
        group.disable()?;
    }
    Ok(())
}

fn alone_runs_always(context: &Context<'_>) -> Outcome {
    let mut group = context.open_stopped(&context.exact()?)?;
    for _ in 0..5 {
        group.enable()?;
        context.pass_turns(2)?;
        let seen = context.reading(&mut *group)?;
        ensure!(
            seen.count().exact().is_some(),
            "alone, and not exact: {seen:?}"
        );
        group.disable()?;
    }
    Ok(())
}

fn to_the_nanosecond(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    let mut wanted = 0;
    for nanoseconds in [1, 999, 1_000, 12_345_678] {
        context.pass(77_777);
        let from = context.now()?;
        group.enable()?;
        context.pass(nanoseconds);
        group.disable()?;
        wanted += context.now()? - from;
        let seen = context.reading(&mut *group)?;
        ensure_eq!(
            (seen.time_enabled, seen.time_running),
            (wanted, wanted),
            "time enabled and running"
        );
    }
    Ok(())
}

fn grow_between_reads(context: &Context<'_>) -> Outcome {
    let mut group = context.open(&GroupSpec::single(context.exact()?))?;
    let mut last = context.reading(&mut *group)?;
    for _ in 0..5 {
        context.pass_turns(1)?;
        let now = context.reading(&mut *group)?;
        ensure!(
            now.time_enabled > last.time_enabled && now.time_running > last.time_running,
            "time passed, and {last:?} became {now:?}"
        );
        last = now;
    }
    Ok(())
}

fn members_share(context: &Context<'_>) -> Outcome {
    let pair = context.exact_pair()?;
    let mut group = context.open(&stopped(pair))?;
    need_atomic(context, &*group)?;
    group.enable()?;
    for _ in 0..20 {
        let buf = context.read(&mut *group)?;
        let (a, b) = (buf[0][0], buf[0][1]);
        ensure_eq!(
            (a.time_enabled, a.time_running),
            (b.time_enabled, b.time_running),
            "the times of two members"
        );
        context.pass_turns(1)?;
    }
    Ok(())
}

fn never_backwards(context: &Context<'_>) -> Outcome {
    let mut group = context.open_stopped(&context.exact()?)?;
    let mut last = context.reading(&mut *group)?;
    for step in 0..100 {
        match step % 4 {
            0 => group.enable()?,
            1 => context.pass(1_000),
            3 => group.disable()?,
            _ => {}
        }
        let now = context.reading(&mut *group)?;
        ensure!(
            now.raw_time_enabled >= last.raw_time_enabled
                && now.raw_time_running >= last.raw_time_running,
            "{now:?} came after {last:?}"
        );
        last = now;
    }
    Ok(())
}

fn sleep_is_not_enabled(context: &Context<'_>) -> Outcome {
    const SLEEP: Duration = Duration::from_millis(20);
    context.need_target(TargetKinds::CURRENT_THREAD)?;
    let mut group = context.open_on(&stopped([context.exact()?]), &Target::CurrentThread)?;
    let start = Instant::now();
    group.enable()?;
    thread::sleep(SLEEP);
    group.disable()?;
    // However long the rest took, half of the sleep cannot have been missed.
    let awake = start.elapsed() - SLEEP / 2;
    let enabled = Duration::from_nanos(context.reading(&mut *group)?.time_enabled);
    ensure!(
        enabled < awake,
        "enabled for {enabled:?}, the sleep included"
    );
    Ok(())
}

fn late_enable_counts_late(context: &Context<'_>) -> Outcome {
    let mut group = context.open_stopped(&context.exact()?)?;
    if context.fixture().now().is_none() {
        return Err(Ability::ManualClock.into());
    }
    context.pass(50_000_000);
    group.enable()?;
    ensure_eq!(
        context.reading(&mut *group)?.time_enabled,
        0,
        "time enabled at the moment of enabling"
    );
    context.pass(10);
    ensure_eq!(
        context.reading(&mut *group)?.time_enabled,
        10,
        "time enabled 10 ns later"
    );
    Ok(())
}
