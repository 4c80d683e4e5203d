//! Reading in user space: the same counts, whoever reads them.

use std::thread;

use quipu_hal::{Features, Filter, Group, GroupSpec, ReadBuf, Reading, TargetKinds, UserReads};

use crate::Check;
use crate::context::{BoxGroup, Context, stopped};
use crate::verdict::{Missing, Outcome, Stop, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "user-reads.between-system-calls",
        requires: "A read in user space gives no less than the system call before it, and no more than the one after it.",
        source: "perf_event_open(2), cap_user_rdpmc and cap_user_time",
        run: between_system_calls,
    },
    Check {
        id: "user-reads.equal-at-rest",
        requires: "An event that does not occur has the same value in user space and by system call.",
        source: "perf_event_open(2), cap_user_rdpmc",
        run: equal_at_rest,
    },
    Check {
        id: "user-reads.monotone",
        requires: "Reads in user space never run backwards, whatever is scheduled in between.",
        source: "quipu_hal::Reading",
        run: monotone,
    },
    Check {
        id: "user-reads.after-reset",
        requires: "Values and times start over in user space too when a group is reset.",
        source: "quipu_hal::Group::reset",
        run: after_reset,
    },
    Check {
        id: "user-reads.stopped-is-left-to-the-system",
        requires: "A group that is stopped is not read in user space, and reads the same as before.",
        source: "perf_event_open(2), index",
        run: stopped_is_left_to_the_system,
    },
    Check {
        id: "user-reads.other-thread",
        requires: "On another thread than the measured one the counts of the measured one are read.",
        source: "quipu_hal::UserReads",
        run: other_thread,
    },
    Check {
        id: "user-reads.whole-groups",
        requires: "A group in user space is whole: members in order, each with its own value.",
        source: "quipu_hal::UserReads",
        run: whole_groups,
    },
    Check {
        id: "user-reads.not-what-is-inherited",
        requires: "What includes other threads' counts is not read in user space.",
        source: "perf_event_open(2), inherit and mmap",
        run: not_what_is_inherited,
    },
];

/// The number of attempts at a read that a context switch can prevent.
const TRIES: usize = 1000;

/// A group of the calling thread that can be read in user space, running.
fn open(context: &Context<'_>, members: usize) -> Outcome<BoxGroup> {
    context.need(Features::USER_READS)?;
    let event = context.slot_event()?;
    let mut group = context.open(&stopped(vec![event; members]))?;
    ways(&mut *group)?;
    group.enable()?;
    Ok(group)
}

fn ways(group: &mut dyn Group) -> Outcome<&mut dyn UserReads> {
    let ways = group.user_reads();
    ways.ok_or_else(|| Stop::Fail("a group without the ability that is claimed".into()))
}

/// Reads in user space, as soon as that is possible.
fn in_user_space(group: &mut dyn Group, buf: &mut ReadBuf) -> Outcome {
    for _ in 0..TRIES {
        if ways(group)?.read_in_user_space(buf)? {
            return Ok(());
        }
        // It may need times that only the system call returns.
        ways(group)?.read_by_system_call(buf)?;
    }
    Err(Stop::Fail(format!(
        "{TRIES} reads in a row were not possible in user space"
    )))
}

fn by_system_call(group: &mut dyn Group, buf: &mut ReadBuf) -> Outcome {
    ways(group)?.read_by_system_call(buf)?;
    Ok(())
}

fn ensure_order(earlier: &Reading, later: &Reading) -> Outcome {
    ensure!(
        later.checked_since(earlier).is_some(),
        "{later:?} came after {earlier:?}"
    );
    Ok(())
}

fn between_system_calls(context: &Context<'_>) -> Outcome {
    let mut group = open(context, 1)?;
    let [mut before, mut user, mut after] = [(); 3].map(|()| group.read_buf());
    for _ in 0..TRIES {
        by_system_call(&mut *group, &mut before)?;
        in_user_space(&mut *group, &mut user)?;
        by_system_call(&mut *group, &mut after)?;
        ensure_order(&before[0][0], &user[0][0])?;
        ensure_order(&user[0][0], &after[0][0])?;
    }
    Ok(())
}

fn equal_at_rest(context: &Context<'_>) -> Outcome {
    context.need(Features::USER_READS)?;
    let mut event = context.slot_event()?;
    if !context.capabilities().filters.contains(Filter::USER) {
        return Err(Missing::Filter(Filter::USER).into());
    }
    // Counted at no privilege level, it never occurs.
    event.filter = Filter::all().difference(Filter::LEVELS);
    let mut group = context.open(&GroupSpec::single(event))?;
    let [mut user, mut system] = [(); 2].map(|()| group.read_buf());
    for _ in 0..TRIES {
        in_user_space(&mut *group, &mut user)?;
        by_system_call(&mut *group, &mut system)?;
        ensure_eq!(
            user[0][0].value,
            system[0][0].value,
            "the value in user space"
        );
    }
    Ok(())
}

fn monotone(context: &Context<'_>) -> Outcome {
    let mut group = open(context, 1)?;
    let [mut last, mut now] = [(); 2].map(|()| group.read_buf());
    in_user_space(&mut *group, &mut last)?;
    for round in 0..100 * TRIES {
        // `read` takes either way, as it comes.
        match round % 3 {
            0 => in_user_space(&mut *group, &mut now)?,
            1 => group.read(&mut now)?,
            _ => {
                if round % 64 == 2 {
                    thread::yield_now();
                }
                in_user_space(&mut *group, &mut now)?;
            }
        }
        ensure_order(&last[0][0], &now[0][0])?;
        ensure!(
            now[0][0].value > last[0][0].value,
            "{now:?}: the event had to occur since {last:?}"
        );
        last.clone_from(&now);
    }
    Ok(())
}

fn after_reset(context: &Context<'_>) -> Outcome {
    let mut group = open(context, 1)?;
    let mut buf = group.read_buf();
    context.pass_turns(10)?;
    in_user_space(&mut *group, &mut buf)?;
    let before = buf[0][0];
    group.reset()?;
    in_user_space(&mut *group, &mut buf)?;
    let after = buf[0][0];
    ensure!(
        after.value < before.value && after.time_enabled < before.time_enabled,
        "{after:?} after a reset at {before:?}"
    );
    ensure!(
        after.raw_time_enabled >= before.raw_time_enabled,
        "the raw times of {after:?} go on from {before:?}"
    );
    Ok(())
}

fn stopped_is_left_to_the_system(context: &Context<'_>) -> Outcome {
    let mut group = open(context, 1)?;
    let mut buf = group.read_buf();
    in_user_space(&mut *group, &mut buf)?;
    let running = buf[0][0];
    group.disable()?;
    ensure!(
        !ways(&mut *group)?.read_in_user_space(&mut buf)?,
        "a stopped group was read in user space"
    );
    let stopped = context.reading(&mut *group)?;
    ensure_order(&running, &stopped)?;
    ensure_eq!(context.reading(&mut *group)?, stopped, "a stopped group");
    group.enable()?;
    in_user_space(&mut *group, &mut buf)?;
    ensure_order(&stopped, &buf[0][0])
}

fn other_thread(context: &Context<'_>) -> Outcome {
    context.need(Features::ANY_THREAD)?;
    let mut group = open(context, 1)?;
    let mut buf = group.read_buf();
    in_user_space(&mut *group, &mut buf)?;
    let own = buf[0][0];
    // The measured thread waits meanwhile, so what it has counted stands still.
    let elsewhere = thread::scope(|scope| {
        let other = scope.spawn(|| -> Outcome<[Reading; 2]> {
            ensure!(
                !ways(&mut *group)?.read_in_user_space(&mut buf)?,
                "another thread's counters were read in user space"
            );
            while context.reading(&mut *group)?.time_enabled
                != context.reading(&mut *group)?.time_enabled
            {
                thread::yield_now();
            }
            let first = context.reading(&mut *group)?;
            std::hint::black_box((0..10_000u64).map(std::hint::black_box).sum::<u64>());
            Ok([first, context.reading(&mut *group)?])
        });
        match other.join() {
            Ok(outcome) => outcome,
            Err(_) => Err(Stop::Fail("the thread panicked".into())),
        }
    })?;
    ensure_order(&own, &elsewhere[0])?;
    ensure_eq!(
        elsewhere[1],
        elsewhere[0],
        "the counts of a thread that waits"
    );
    in_user_space(&mut *group, &mut buf)?;
    ensure_order(&elsewhere[1], &buf[0][0])
}

fn whole_groups(context: &Context<'_>) -> Outcome {
    let members = context.slots().map_or(2, |slots| slots.min(4));
    let mut group = open(context, members)?;
    let [mut before, mut user, mut after] = [(); 3].map(|()| group.read_buf());
    for _ in 0..TRIES {
        by_system_call(&mut *group, &mut before)?;
        in_user_space(&mut *group, &mut user)?;
        by_system_call(&mut *group, &mut after)?;
        for member in 0..members {
            ensure_order(&before[0][member], &user[0][member])?;
            // Members also start one after the other: what bounds one is its own reads, not another member's.
            ensure_order(&user[0][member], &after[0][member])?;
        }
    }
    Ok(())
}

fn not_what_is_inherited(context: &Context<'_>) -> Outcome {
    context.need(Features::USER_READS.union(Features::INHERIT))?;
    context.need_target(TargetKinds::CURRENT_THREAD)?;
    let event = context.slot_event()?;
    let mut spec = GroupSpec::single(event);
    spec.attributes.inherit = true;
    let mut group = context.open(&spec)?;
    let mut buf = group.read_buf();
    ensure!(
        !ways(&mut *group)?.read_in_user_space(&mut buf)?,
        "an inherited group was read in user space"
    );
    group.read(&mut buf)?;
    Ok(())
}
