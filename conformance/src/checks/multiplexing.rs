//! More groups than slots: turns, times, and estimates against expected counts.

use quipu_hal::{Count, EventSpec, Features, Group, GroupSpec, Reading, Simultaneity};

use crate::context::{BoxGroup, Context, pinned};
use crate::verdict::{Outcome, Stop, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "multiplexing.runs-part-of-the-time",
        requires: "With more groups than slots, some run for a part of the time they are enabled.",
        source: "Mackerras 2009, \"record time running and time enabled\"; perf_event_open(2), PERF_FORMAT_TOTAL_TIME_RUNNING",
        run: runs_part_of_the_time,
    },
    Check {
        id: "multiplexing.every-group-runs",
        requires: "Every group runs before long, however many wait.",
        source: "kernel/events/core.c, rotate_ctx; perf_event_tests, multiplexing",
        run: every_group_runs,
    },
    Check {
        id: "multiplexing.enabled-while-waiting",
        requires: "Time enabled goes on for a group that waits for the PMU.",
        source: "Mackerras 2009, \"record time running and time enabled\": enabled in state inactive, too",
        run: enabled_while_waiting,
    },
    Check {
        id: "multiplexing.estimate-is-marked",
        requires: "A value that covers a part of the time is an estimate and never looks exact.",
        source: "rezolus pull request 1052; google/benchmark issue 1813",
        run: estimate_is_marked,
    },
    Check {
        id: "multiplexing.estimate-near-expected",
        requires: "The estimate of a steady event is within 5 % of the expected count.",
        source: "perf_event_tests, multiplexing accuracy",
        run: estimate_near_expected,
    },
    Check {
        id: "multiplexing.estimate-near-pinned",
        requires: "The estimate of a steady event is within 10 % of what a pinned counter of it says.",
        source: "perf_event_tests, multiplexing accuracy",
        run: estimate_near_pinned,
    },
    Check {
        id: "multiplexing.estimate-near-work",
        requires: "The estimate of the instructions of a loop is within 5 % of what the loop has.",
        source: "perf_event_tests, multiplexing accuracy",
        run: estimate_near_work,
    },
    Check {
        id: "multiplexing.interval-near-expected",
        requires: "The difference of two readings scales to within 5 % of the expected count of its interval.",
        source: "quipu_hal::Reading::since",
        run: interval_near_expected,
    },
    Check {
        id: "multiplexing.since-reset-near-expected",
        requires: "After a reset the estimate is of what happened since, by the times since.",
        source: "docs/architecture.md, \"Reading\"",
        run: since_reset_near_expected,
    },
    Check {
        id: "multiplexing.value-is-what-was-seen",
        requires: "The value is what was counted while running; it is not scaled before it is asked for.",
        source: "perf_event_open(2), reading results",
        run: value_is_what_was_seen,
    },
    Check {
        id: "multiplexing.groups-rotate-whole",
        requires: "The members of a group are on the PMU together or not at all.",
        source: "tools/perf/design.txt, counter groups",
        run: groups_rotate_whole,
    },
    Check {
        id: "multiplexing.no-slot-counts-twice",
        requires: "Groups of one cannot run for more time, all together, than the slots have.",
        source: "docs/architecture.md, \"Bare registers\"",
        run: no_slot_counts_twice,
    },
    Check {
        id: "multiplexing.no-slot-is-idle",
        requires: "While groups wait for any slot, every slot is in use, and none waits that fits beside the others, \
                   in whatever order they came and whatever was left in the counters.",
        source: "kernel/events/core.c, merge_sched_in",
        run: no_slot_is_idle,
    },
    Check {
        id: "multiplexing.room-is-used",
        requires: "When the others leave, a group runs all the time again.",
        source: "kernel/events/core.c, perf_event_remove_from_context",
        run: room_is_used,
    },
    Check {
        id: "multiplexing.disabled-takes-no-turn",
        requires: "Groups that are disabled take no turn from those that count.",
        source: "Mackerras 2009, \"record time running and time enabled\": state off",
        run: disabled_takes_no_turn,
    },
    Check {
        id: "multiplexing.time-stops-while-disabled",
        requires: "Times stand still for a disabled group, also when it was waiting for the PMU.",
        source: "Mackerras 2009, \"record time running and time enabled\": times stop while off",
        run: time_stops_while_disabled,
    },
    Check {
        id: "multiplexing.totals-are-estimates",
        requires: "A total over an estimated part is an estimate.",
        source: "quipu_hal::Count",
        run: totals_are_estimates,
    },
];

/// Turns that let every group run often, whatever the number of groups.
const MANY_TURNS: u64 = 1_600;

/// Turns of its own that make the estimate of a group a good one.
const ENOUGH_TURNS: u64 = 50;

/// More groups of one than there are slots, all counting.
fn crowd(context: &Context<'_>, event: &EventSpec) -> Outcome<Vec<BoxGroup>> {
    context.need(Features::MULTIPLEXING)?;
    let size = context.slots().unwrap_or(16) * 2 + 1;
    (0..size)
        .map(|_| context.open(&GroupSpec::single(event.clone())))
        .collect()
}

fn stop(groups: &mut [BoxGroup]) -> Outcome {
    for group in groups {
        group.disable()?;
    }
    Ok(())
}

fn runs_part_of_the_time(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    context.pass_turns(3 * groups.len() as u64)?;
    let mut part = 0;
    for group in &mut groups {
        let seen = context.reading(&mut **group)?;
        part += usize::from(seen.time_running < seen.time_enabled);
    }
    ensure!(part > 0, "{} groups all ran all the time", groups.len());
    Ok(())
}

fn every_group_runs(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    let turns = 4 * groups.len() as u64;
    context.pass_turns_until_run(&mut groups, turns, 1)?;
    for (i, group) in groups.iter_mut().enumerate() {
        let seen = context.reading(&mut **group)?;
        ensure!(seen.time_running > 0, "group {i} had no turn: {seen:?}");
    }
    Ok(())
}

fn enabled_while_waiting(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    let from = context.now()?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(context.reading(&mut **group)?);
    }
    context.pass_turns(10)?;
    let passed = context.now()? - from;
    for (group, before) in groups.iter_mut().zip(before) {
        let now = context.reading(&mut **group)?;
        ensure_eq!(now.since(&before).time_enabled, passed, "time enabled");
    }
    Ok(())
}

fn estimate_is_marked(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    let before = context.expected_count(&event)?;
    context.pass_turns(50)?;
    let expected = context.expected_count(&event)? - before;
    for group in &mut groups {
        let seen = context.reading(&mut **group)?;
        // It has been enabled for at least as long, so a lower value that is called exact is a lie.
        if let Some(exact) = seen.count().exact() {
            ensure!(
                exact >= u128::from(expected),
                "{exact} is called exact, {expected} occurred: {seen:?}"
            );
        }
    }
    let estimated = |g: &mut BoxGroup| -> Outcome<bool> {
        Ok(matches!(
            context.reading(&mut **g)?.count(),
            Count::Estimated(_)
        ))
    };
    for group in &mut groups {
        if estimated(group)? {
            return Ok(());
        }
    }
    ensure!(
        false,
        "twice as many groups as slots, and no estimate among them"
    );
    Ok(())
}

fn near(reading: &Reading, expected: u64, percent: u128) -> Outcome {
    let estimate = reading.count().value();
    let expected = u128::from(expected);
    ensure!(expected > 0, "the steady event did not occur");
    ensure!(
        estimate.is_some_and(|e| e.abs_diff(expected) * 100 <= expected * percent),
        "{expected} occurred, estimated as {estimate:?} from {reading:?}"
    );
    Ok(())
}

fn estimate_near_expected(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let mut groups = crowd(context, &event)?;
    stop(&mut groups)?;
    for group in &mut groups {
        group.reset()?;
        group.enable()?;
    }
    let before = context.expected_count(&event)?;
    context.pass_turns_until_run(&mut groups, MANY_TURNS, ENOUGH_TURNS)?;
    let expected = context.expected_count(&event)? - before;
    for group in &mut groups {
        near(&context.reading(&mut **group)?, expected, 5)?;
    }
    Ok(())
}

fn estimate_near_pinned(context: &Context<'_>) -> Outcome {
    context.need(Features::PINNED)?;
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let mut witness = context.open(&pinned([event.clone()]))?;
    let mut groups = crowd(context, &event)?;
    let first = context.reading(&mut *witness)?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(context.reading(&mut **group)?);
    }
    context.pass_turns_until_run(&mut groups, MANY_TURNS, ENOUGH_TURNS)?;
    let expected = context.reading(&mut *witness)?.since(&first).value;
    for (group, before) in groups.iter_mut().zip(before) {
        near(&context.reading(&mut **group)?.since(&before), expected, 10)?;
    }
    Ok(())
}

fn estimate_near_work(context: &Context<'_>) -> Outcome {
    // So many that making a loop is little beside it.
    const ROUNDS: u64 = 100_000;
    const LOOPS: u64 = 10;
    let (once, twice) = (
        context.counted_loop(ROUNDS)?,
        context.counted_loop(2 * ROUNDS)?,
    );
    let counted_loop = |rounds| {
        let found = context.fixture().counted_loop(rounds);
        found.ok_or(Stop::from(Ability::CountedLoop))
    };
    let (event, _) = counted_loop(0)?;
    context.need_working_counters()?;
    let mut groups = crowd(context, &event)?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(context.reading(&mut **group)?);
    }
    let interval = context.fixture().rotation_interval();
    let (enough, most) = (ENOUGH_TURNS * interval, MANY_TURNS * interval);
    let mut expected = 0;
    let (mut least_running, mut enabled) = (0, 0);
    while least_running < enough && enabled < most {
        for _ in 0..LOOPS {
            let (_, work) = counted_loop(ROUNDS)?;
            work();
            expected += twice.saturating_sub(once);
        }
        least_running = u64::MAX;
        for (group, before) in groups.iter_mut().zip(&before) {
            let since = context.reading(&mut **group)?.since(before);
            least_running = least_running.min(since.time_running);
            enabled = since.time_enabled;
        }
    }
    for (group, before) in groups.iter_mut().zip(before) {
        near(&context.reading(&mut **group)?.since(&before), expected, 5)?;
    }
    Ok(())
}

fn interval_near_expected(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let mut groups = crowd(context, &event)?;
    for _ in 0..3 {
        let from = context.expected_count(&event)?;
        let mut before = Vec::new();
        for group in &mut groups {
            before.push(context.reading(&mut **group)?);
        }
        context.pass_turns_until_run(&mut groups, MANY_TURNS / 2, ENOUGH_TURNS)?;
        let expected = context.expected_count(&event)? - from;
        for (group, before) in groups.iter_mut().zip(before) {
            near(&context.reading(&mut **group)?.since(&before), expected, 5)?;
        }
    }
    Ok(())
}

fn since_reset_near_expected(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let mut groups = crowd(context, &event)?;
    // Times from before the reset that would spoil the ratio.
    context.pass_turns(groups.len() as u64 + 1)?;
    for group in &mut groups {
        group.reset()?;
    }
    let from = context.expected_count(&event)?;
    context.pass_turns_until_run(&mut groups, MANY_TURNS / 2, ENOUGH_TURNS)?;
    let expected = context.expected_count(&event)? - from;
    for group in &mut groups {
        near(&context.reading(&mut **group)?, expected, 5)?;
    }
    Ok(())
}

fn value_is_what_was_seen(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let mut groups = crowd(context, &event)?;
    let (start, before) = (context.now()?, context.expected_count(&event)?);
    context.pass_turns(100)?;
    let passed = u128::from(context.now()? - start);
    let expected = u128::from(context.expected_count(&event)? - before);
    for group in &mut groups {
        let seen = context.reading(&mut **group)?;
        let wanted = expected * u128::from(seen.time_running) / passed;
        ensure!(
            u128::from(seen.value).abs_diff(wanted) <= wanted / 20 + 1,
            "{wanted} occurred while running: {seen:?}"
        );
    }
    Ok(())
}

fn groups_rotate_whole(context: &Context<'_>) -> Outcome {
    context.need(Features::MULTIPLEXING)?;
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let slots = context.slots()?;
    context.need_room(2)?;
    let spec = GroupSpec::new(vec![event; slots / 2 + 1]);
    let mut groups = [
        context.open(&spec)?,
        context.open(&spec)?,
        context.open(&spec)?,
    ];
    // Members that start, or are read, one after the other while time goes on see that much
    // more; of instructions of the user's there are none in between.
    let time_stands_still = context.fixture().now().is_some();
    let in_one_moment = time_stands_still
        || groups[0].simultaneity() == Simultaneity::Atomic
            && context.fixture().counted_loop(0).is_some();
    context.pass_turns(1)?;
    for _ in 0..10 {
        context.pass_turns(1)?;
        for group in &mut groups {
            let buf = context.read(&mut **group)?;
            let first = buf[0][0];
            for reading in &buf[0] {
                ensure_eq!(
                    reading.time_running,
                    first.time_running,
                    "a member's time running"
                );
                let apart = reading.value.abs_diff(first.value);
                let skew = if in_one_moment { 0 } else { first.value / 20 };
                ensure!(
                    apart <= skew,
                    "members' counts of the same event: {} and {}",
                    first.value,
                    reading.value
                );
            }
        }
    }
    Ok(())
}

/// The time that every group ran, and the time that every slot had, in a stretch of many turns.
fn running_times(context: &Context<'_>) -> Outcome<(Vec<u64>, u64)> {
    let event = context.slot_event()?;
    let slots = context.slots()? as u64;
    let mut groups = crowd(context, &event)?;
    let from = context.now()?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(context.reading(&mut **group)?);
    }
    context.pass_turns(100)?;
    let had = (context.now()? - from) * slots;
    let mut ran = Vec::new();
    for (group, before) in groups.iter_mut().zip(before) {
        ran.push(context.reading(&mut **group)?.since(&before).time_running);
    }
    Ok((ran, had))
}

fn no_slot_counts_twice(context: &Context<'_>) -> Outcome {
    let (ran, had) = running_times(context)?;
    let sum: u64 = ran.iter().sum();
    ensure!(
        sum <= had,
        "slots had {had} ns, and {sum} ns were run in them: {ran:?}"
    );
    Ok(())
}

fn no_slot_is_idle(context: &Context<'_>) -> Outcome {
    if let Some(mut events) = context.fixture().needs_backtracking() {
        all_run(context, &events)?;
        events.reverse();
        all_run(context, &events)?;
    }
    context.fixture().dirty_registers();
    let (ran, had) = running_times(context)?;
    let sum: u64 = ran.iter().sum();
    ensure!(
        sum >= had,
        "slots had {had} ns, of which {sum} ns were used: {ran:?}"
    );
    Ok(())
}

/// Fails unless groups of one, which fit together, all run all the time beside counters that others have left set.
fn all_run(context: &Context<'_>, events: &[EventSpec]) -> Outcome {
    context.fixture().dirty_registers();
    let open = |event: &EventSpec| context.open(&GroupSpec::single(event.clone()));
    let mut groups = events.iter().map(open).collect::<Outcome<Vec<_>>>()?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(context.reading(&mut **group)?);
    }
    context.pass_turns(10)?;
    for ((group, event), before) in groups.iter_mut().zip(events).zip(before) {
        let since = context.reading(&mut **group)?.since(&before);
        ensure!(
            since.count().exact().is_some(),
            "{} waited, and there was room for all: {since:?}",
            event.event
        );
    }
    Ok(())
}

/// Fails unless a group that has the PMU to itself is exact.
fn counts_all_along(context: &Context<'_>, group: &mut dyn Group) -> Outcome {
    let before = context.reading(group)?;
    context.pass_turns(10)?;
    let since = context.reading(group)?.since(&before);
    ensure!(
        since.count().exact().is_some(),
        "the PMU is free, and it is not exact: {since:?}"
    );
    Ok(())
}

fn room_is_used(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    context.pass_turns(10)?;
    groups.truncate(1);
    context.pass_turns(2)?;
    counts_all_along(context, &mut *groups[0])
}

fn disabled_takes_no_turn(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    context.pass_turns(5)?;
    stop(&mut groups[1..])?;
    context.pass_turns(2)?;
    counts_all_along(context, &mut *groups[0])
}

fn time_stops_while_disabled(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    context.pass_turns(7)?;
    let half = groups.len() / 2;
    stop(&mut groups[..half])?;
    let mut before = Vec::new();
    for group in &mut groups[..half] {
        before.push(context.reading(&mut **group)?);
    }
    context.pass_turns(20)?;
    for (group, before) in groups.iter_mut().zip(before) {
        ensure_eq!(
            context.reading(&mut **group)?,
            before,
            "the reading while disabled"
        );
    }
    Ok(())
}

fn totals_are_estimates(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let mut groups = crowd(context, &event)?;
    context.pass_turns(2 * groups.len() as u64)?;
    for group in &mut groups {
        let buf = context.read(&mut **group)?;
        let wanted = buf[0][0].count();
        ensure_eq!(buf.total(0), wanted, "the total of one part");
    }
    Ok(())
}
