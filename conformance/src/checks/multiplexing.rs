//! More groups than slots: turns, times, and estimates against the truth.

use quipu_hal::{EventSpec, Features, Group, GroupSpec, Reading, Scaled, Simultaneity, Total};

use crate::bench::{Bench, BoxGroup, pinned, read, reading};
use crate::verdict::{Outcome, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "multiplexing.runs-part-of-the-time",
        requires: "With more groups than slots, some run for a part of the time they are enabled.",
        source: "Mackerras 2009, \"record time running and time enabled\"; perf_event_open(2), PERF_FORMAT_TOTAL_TIME_RUNNING",
        run: runs_part_of_the_time,
    },
    Check {
        id: "multiplexing.everybody-gets-a-turn",
        requires: "Every group runs before long, however many wait.",
        source: "kernel/events/core.c, rotate_ctx; perf_event_tests, multiplexing",
        run: everybody_gets_a_turn,
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
        id: "multiplexing.estimate-near-truth",
        requires: "The estimate of a steady event is within 5 % of the truth.",
        source: "perf_event_tests, multiplexing accuracy",
        run: estimate_near_truth,
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
        id: "multiplexing.interval-near-truth",
        requires: "The difference of two readings scales to within 5 % of the truth of its interval.",
        source: "quipu_hal::Reading::since",
        run: interval_near_truth,
    },
    Check {
        id: "multiplexing.since-reset-near-truth",
        requires: "After a reset the estimate is of what happened since, by the times since.",
        source: "docs/architecture.md, \"Reading\"",
        run: since_reset_near_truth,
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
        requires: "While groups wait for any slot, every slot is in use.",
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
        source: "quipu_hal::Total",
        run: totals_are_estimates,
    },
];

/// Turns that let everybody run often, whatever the number of groups.
const MANY_TURNS: u64 = 1_600;

/// More groups of one than there are slots, all counting.
fn crowd(bench: &Bench<'_>, event: &EventSpec) -> Outcome<Vec<BoxGroup>> {
    bench.need(Features::MULTIPLEXING)?;
    let size = bench.capabilities().slots.unwrap_or(16) * 2 + 1;
    (0..size)
        .map(|_| bench.open(&GroupSpec::single(event.clone())))
        .collect()
}

fn stop(groups: &mut [BoxGroup]) -> Outcome {
    for group in groups {
        group.disable()?;
    }
    Ok(())
}

fn runs_part_of_the_time(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    bench.pass_turns(100);
    let mut part = 0;
    for group in &mut groups {
        let seen = reading(&mut **group)?;
        part += usize::from(seen.time_running < seen.time_enabled);
    }
    ensure!(part > 0, "{} groups all ran all the time", groups.len());
    Ok(())
}

fn everybody_gets_a_turn(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    bench.pass_turns(4 * groups.len() as u64);
    for (i, group) in groups.iter_mut().enumerate() {
        let seen = reading(&mut **group)?;
        ensure!(seen.time_running > 0, "group {i} had no turn: {seen:?}");
    }
    Ok(())
}

fn enabled_while_waiting(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    let from = bench.now()?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(reading(&mut **group)?);
    }
    bench.pass_turns(10);
    let passed = bench.now()? - from;
    for (group, before) in groups.iter_mut().zip(before) {
        let now = reading(&mut **group)?;
        ensure_eq!(now.since(&before).time_enabled, passed, "time enabled");
    }
    Ok(())
}

fn estimate_is_marked(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    let before = bench.occurred(&event)?;
    bench.pass_turns(50);
    let truth = bench.occurred(&event)? - before;
    for group in &mut groups {
        let seen = reading(&mut **group)?;
        // It has been enabled for at least as long, so a lower value that is called exact is a lie.
        if let Some(exact) = seen.scaled().exact() {
            ensure!(
                exact >= truth,
                "{exact} is called exact, {truth} occurred: {seen:?}"
            );
        }
    }
    let estimated = |g: &mut BoxGroup| -> Outcome<bool> {
        Ok(matches!(reading(&mut **g)?.scaled(), Scaled::Estimated(_)))
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

fn near(reading: &Reading, truth: u64, percent: u128) -> Outcome {
    let estimate = reading.scaled().value();
    let truth = u128::from(truth);
    ensure!(truth > 0, "the steady event did not occur");
    ensure!(
        estimate.is_some_and(|e| e.abs_diff(truth) * 100 <= truth * percent),
        "{truth} occurred, estimated as {estimate:?} from {reading:?}"
    );
    Ok(())
}

fn estimate_near_truth(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    stop(&mut groups)?;
    for group in &mut groups {
        group.reset()?;
        group.enable()?;
    }
    let before = bench.occurred(&event)?;
    bench.pass_turns(MANY_TURNS);
    let truth = bench.occurred(&event)? - before;
    for group in &mut groups {
        near(&reading(&mut **group)?, truth, 5)?;
    }
    Ok(())
}

fn estimate_near_pinned(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::PINNED)?;
    let event = bench.slot_event()?;
    let mut witness = bench.open(&pinned([event.clone()]))?;
    let mut groups = crowd(bench, &event)?;
    let first = reading(&mut *witness)?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(reading(&mut **group)?);
    }
    bench.pass_turns(MANY_TURNS);
    let truth = reading(&mut *witness)?.since(&first).value;
    for (group, before) in groups.iter_mut().zip(before) {
        near(&reading(&mut **group)?.since(&before), truth, 10)?;
    }
    Ok(())
}

fn estimate_near_work(bench: &Bench<'_>) -> Outcome {
    const ROUNDS: u64 = 10_000;
    const LOOPS: u64 = 100;
    let (once, twice) = (bench.counted_loop(ROUNDS)?, bench.counted_loop(2 * ROUNDS)?);
    let (event, _) = bench
        .subject()
        .counted_loop(0)
        .ok_or(Ability::CountedLoop)?;
    let mut groups = crowd(bench, &event)?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(reading(&mut **group)?);
    }
    let long = MANY_TURNS / 4 * bench.subject().rotation_interval();
    let mut truth = 0;
    while reading(&mut *groups[0])?.since(&before[0]).time_enabled < long {
        for _ in 0..LOOPS {
            let (_, work) = bench
                .subject()
                .counted_loop(ROUNDS)
                .ok_or(Ability::CountedLoop)?;
            work();
            truth += twice.saturating_sub(once);
        }
    }
    for (group, before) in groups.iter_mut().zip(before) {
        near(&reading(&mut **group)?.since(&before), truth, 5)?;
    }
    Ok(())
}

fn interval_near_truth(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    for _ in 0..3 {
        let from = bench.occurred(&event)?;
        let mut before = Vec::new();
        for group in &mut groups {
            before.push(reading(&mut **group)?);
        }
        bench.pass_turns(MANY_TURNS / 2);
        let truth = bench.occurred(&event)? - from;
        for (group, before) in groups.iter_mut().zip(before) {
            near(&reading(&mut **group)?.since(&before), truth, 5)?;
        }
    }
    Ok(())
}

fn since_reset_near_truth(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    // Times from before the reset that would spoil the ratio.
    bench.pass_turns(groups.len() as u64 + 1);
    for group in &mut groups {
        group.reset()?;
    }
    let from = bench.occurred(&event)?;
    bench.pass_turns(MANY_TURNS / 2);
    let truth = bench.occurred(&event)? - from;
    for group in &mut groups {
        near(&reading(&mut **group)?, truth, 5)?;
    }
    Ok(())
}

fn value_is_what_was_seen(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    let (start, before) = (bench.now()?, bench.occurred(&event)?);
    bench.pass_turns(100);
    let passed = u128::from(bench.now()? - start);
    let truth = u128::from(bench.occurred(&event)? - before);
    for group in &mut groups {
        let seen = reading(&mut **group)?;
        let wanted = truth * u128::from(seen.time_running) / passed;
        ensure!(
            u128::from(seen.value).abs_diff(wanted) <= wanted / 20 + 1,
            "{wanted} occurred while running: {seen:?}"
        );
    }
    Ok(())
}

fn groups_rotate_whole(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::MULTIPLEXING)?;
    let event = bench.slot_event()?;
    let slots = bench.slots()?;
    bench.need_room(2)?;
    let spec = GroupSpec::new(vec![event; slots / 2 + 1]);
    let mut groups = [bench.open(&spec)?, bench.open(&spec)?, bench.open(&spec)?];
    // Where members start, or are read, one after the other while time goes on, they see that much
    // more; of instructions of the user's there are none in between.
    let time_stands_still = bench.subject().now().is_some();
    let in_one_moment = time_stands_still
        || groups[0].simultaneity() == Simultaneity::Atomic
            && bench.subject().counted_loop(0).is_some();
    bench.pass_turns(1);
    for _ in 0..10 {
        bench.pass_turns(1);
        for group in &mut groups {
            let buf = read(&mut **group)?;
            let first = buf.get(0, 0);
            for reading in buf.part(0) {
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
fn running_times(bench: &Bench<'_>) -> Outcome<(Vec<u64>, u64)> {
    let event = bench.slot_event()?;
    let slots = bench.slots()? as u64;
    let mut groups = crowd(bench, &event)?;
    let from = bench.now()?;
    let mut before = Vec::new();
    for group in &mut groups {
        before.push(reading(&mut **group)?);
    }
    bench.pass_turns(100);
    let had = (bench.now()? - from) * slots;
    let mut ran = Vec::new();
    for (group, before) in groups.iter_mut().zip(before) {
        ran.push(reading(&mut **group)?.since(&before).time_running);
    }
    Ok((ran, had))
}

fn no_slot_counts_twice(bench: &Bench<'_>) -> Outcome {
    let (ran, had) = running_times(bench)?;
    let sum: u64 = ran.iter().sum();
    ensure!(
        sum <= had,
        "slots had {had} ns, and {sum} ns were run in them: {ran:?}"
    );
    Ok(())
}

fn no_slot_is_idle(bench: &Bench<'_>) -> Outcome {
    let (ran, had) = running_times(bench)?;
    let sum: u64 = ran.iter().sum();
    ensure!(
        sum >= had,
        "slots had {had} ns, of which {sum} ns were used: {ran:?}"
    );
    Ok(())
}

/// A group that waits for nobody.
fn counts_all_along(bench: &Bench<'_>, group: &mut dyn Group) -> Outcome {
    let before = reading(group)?;
    bench.pass_turns(10);
    let since = reading(group)?.since(&before);
    ensure!(
        since.scaled().exact().is_some(),
        "nobody is in its way, and it is not exact: {since:?}"
    );
    Ok(())
}

fn room_is_used(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    bench.pass_turns(10);
    groups.truncate(1);
    bench.pass_turns(2);
    counts_all_along(bench, &mut *groups[0])
}

fn disabled_takes_no_turn(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    bench.pass_turns(5);
    stop(&mut groups[1..])?;
    bench.pass_turns(2);
    counts_all_along(bench, &mut *groups[0])
}

fn time_stops_while_disabled(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    bench.pass_turns(7);
    let half = groups.len() / 2;
    stop(&mut groups[..half])?;
    let mut before = Vec::new();
    for group in &mut groups[..half] {
        before.push(reading(&mut **group)?);
    }
    bench.pass_turns(20);
    for (group, before) in groups.iter_mut().zip(before) {
        ensure_eq!(reading(&mut **group)?, before, "the reading while disabled");
    }
    Ok(())
}

fn totals_are_estimates(bench: &Bench<'_>) -> Outcome {
    let event = bench.slot_event()?;
    let mut groups = crowd(bench, &event)?;
    bench.pass_turns(40);
    for group in &mut groups {
        let buf = read(&mut **group)?;
        let wanted = match buf.get(0, 0).scaled() {
            Scaled::Exact(v) => Total::Exact(v.into()),
            Scaled::Estimated(v) => Total::Estimated(v),
            Scaled::NotCounted => Total::NotCounted,
        };
        ensure_eq!(buf.total(0), wanted, "the total of one part");
    }
    Ok(())
}
