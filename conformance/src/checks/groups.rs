//! Groups: all or nothing, in order, and one snapshot.

use quipu_hal::{ErrorKind, EventSpec, GroupSpec};

use crate::context::{Context, need_atomic, stopped};
use crate::verdict::{Missing, Outcome, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "groups.member-order",
        requires: "Readings come in the order the members were asked for.",
        source: "perf_event_open(2), PERF_FORMAT_GROUP: leader first, then siblings",
        run: member_order,
    },
    Check {
        id: "groups.names-in-order",
        requires: "The members that a group names are those asked for, in that order.",
        source: "quipu_hal::Group::members",
        run: names_in_order,
    },
    Check {
        id: "groups.all-or-nothing",
        requires: "A group with a member that cannot be counted is refused whole, and the error says which member.",
        source: "tools/perf/design.txt, counter groups; perf-event, failed additions to a group",
        run: all_or_nothing,
    },
    Check {
        id: "groups.failure-leaves-room",
        requires: "A group that was refused leaves the PMU as free as it was.",
        source: "quipu_hal::Backend::open",
        run: failure_leaves_room,
    },
    Check {
        id: "groups.empty",
        requires: "A group without members is refused as an invalid request.",
        source: "quipu_hal::GroupSpec",
        run: empty,
    },
    Check {
        id: "groups.same-event-twice",
        requires: "One event may be in a group twice; both members count all of it.",
        source: "perf_event_tests, the same event twice in a group",
        run: same_event_twice,
    },
    Check {
        id: "groups.one-snapshot",
        requires: "Members of one event in an atomic group are equal in every reading, also while counting.",
        source: "tools/perf/design.txt: groups give a snapshot; perf_event_open(2), PERF_FORMAT_GROUP",
        run: one_snapshot,
    },
    Check {
        id: "groups.start-and-stop-together",
        requires: "The members of a group start together and stop together.",
        source: "perf_event_open(2), PERF_IOC_FLAG_GROUP",
        run: start_and_stop_together,
    },
    Check {
        id: "groups.full",
        requires: "A group that takes every slot counts exactly.",
        source: "docs/architecture.md, \"Bare registers\"",
        run: full,
    },
    Check {
        id: "groups.too-many",
        requires: "A group with more members than there are slots is refused as such when it is opened.",
        source: "perf_event_open(2), group_fd: a group that can never be scheduled",
        run: too_many,
    },
    Check {
        id: "groups.conflict",
        requires: "Events that need the same slot are refused as a group, and the reason names each of them.",
        source: "Intel SDM vol. 3, events restricted to one counter",
        run: conflict,
    },
    Check {
        id: "groups.needs-backtracking",
        requires: "A group is counted whenever there is any assignment of its events to slots.",
        source: "kernel arch/x86/events/core.c, perf_assign_events",
        run: needs_backtracking,
    },
    Check {
        id: "groups.simultaneity-is-claimed",
        requires: "No group is more simultaneous than the backend says it can be.",
        source: "quipu_hal::Capabilities::simultaneity",
        run: simultaneity_is_claimed,
    },
    Check {
        id: "groups.one-and-many-agree",
        requires: "An event counts the same alone and as a member of any position.",
        source: "perf_event_tests, group against single counts",
        run: one_and_many_agree,
    },
];

fn member_order(context: &Context<'_>) -> Outcome {
    let [a, b] = context.exact_pair()?;
    for (members, wanted) in [
        ([a.clone(), b.clone()], [17, 5]),
        ([b.clone(), a.clone()], [5, 17]),
    ] {
        let mut group = context.open(&stopped(members))?;
        context.count_all(&mut *group, [(&a, 17), (&b, 5)])?;
        ensure_eq!(context.values(&mut *group)?, wanted, "the values");
    }
    Ok(())
}

fn names_in_order(context: &Context<'_>) -> Outcome {
    let [a, b] = context.exact_pair()?;
    if a.event == b.event {
        return Err(Missing::Inapplicable("the exact events have one name").into());
    }
    let name = |event: &EventSpec| -> Outcome<String> {
        let group = context.open_stopped(event)?;
        Ok(group.members()[0].name.to_string())
    };
    let wanted = [name(&a)?, name(&b)?];
    ensure!(
        wanted[0] != wanted[1],
        "two events are both called {}",
        wanted[0]
    );
    for reverse in [false, true] {
        let (mut members, mut wanted) = ([a.clone(), b.clone()], wanted.clone());
        if reverse {
            members.reverse();
            wanted.reverse();
        }
        let group = context.open(&stopped(members))?;
        let seen: Vec<_> = group.members().iter().map(|m| m.name.clone()).collect();
        ensure_eq!(seen, wanted, "the members' names");
    }
    Ok(())
}

fn all_or_nothing(context: &Context<'_>) -> Outcome {
    let (good, bad) = (context.exact()?, context.unsupported()?);
    context.need_room(2)?;
    for size in 1..=context.room(3) {
        for position in 0..size {
            let mut members = vec![good.clone(); size];
            members[position] = bad.clone();
            let error = context.refusal(&GroupSpec::new(members), &context.fixture().target())?;
            ensure_eq!(
                error.kind(),
                ErrorKind::UnsupportedEvent,
                "the kind of \"{error}\""
            );
            ensure_eq!(
                error.member(),
                Some(position),
                "the member that \"{error}\" names"
            );
        }
    }
    Ok(())
}

fn failure_leaves_room(context: &Context<'_>) -> Outcome {
    let (good, bad) = (context.slot_event()?, context.unsupported()?);
    let slots = context.slots()?;
    let target = context.fixture().target();
    for _ in 0..slots + 1 {
        let mut members = vec![good.clone(); slots];
        members[slots - 1] = bad.clone();
        context.refusal(&GroupSpec::new(members), &target)?;
    }
    let mut group = context.open(&GroupSpec::new(vec![good; slots]))?;
    context.pass_turns(2)?;
    for reading in &context.read(&mut *group)?[0] {
        ensure!(
            reading.count().exact().is_some(),
            "the PMU is not free: {reading:?}"
        );
    }
    Ok(())
}

fn empty(context: &Context<'_>) -> Outcome {
    let target = context.fixture().target();
    context.need_target(target.kind())?;
    let error = context.refusal(&GroupSpec::default(), &target)?;
    ensure_eq!(
        error.kind(),
        ErrorKind::InvalidConfiguration,
        "the kind of \"{error}\""
    );
    Ok(())
}

fn same_event_twice(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_room(2)?;
    let mut group = context.open(&stopped([event.clone(), event.clone()]))?;
    context.count(&mut *group, &event, 31)?;
    ensure_eq!(context.values(&mut *group)?, [31, 31], "the values");
    Ok(())
}

fn one_snapshot(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_room(2)?;
    let mut group = context.open(&stopped(vec![event.clone(); context.room(4)]))?;
    need_atomic(context, &*group)?;
    group.enable()?;
    for step in 0..100 {
        context.cause(&event, 1 + step % 3)?;
        let seen = context.values(&mut *group)?;
        ensure!(
            seen.iter().all(|v| *v == seen[0]),
            "one snapshot of one event: {seen:?}"
        );
    }
    Ok(())
}

fn start_and_stop_together(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_room(2)?;
    let mut group = context.open(&stopped(vec![event.clone(); context.room(4)]))?;
    for round in 1..=20 {
        context.count(&mut *group, &event, 2)?;
        context.cause(&event, 3)?;
        let seen = context.values(&mut *group)?;
        ensure!(
            seen.iter().all(|&v| v == 2 * round),
            "after round {round}: {seen:?}"
        );
    }
    Ok(())
}

fn full(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let slots = context.slots()?;
    let mut group = context.open(&stopped(vec![event.clone(); slots]))?;
    let before = context.expected_count(&event)?;
    group.enable()?;
    context.pass_turns(3)?;
    group.disable()?;
    let wanted = context.expected_count(&event)? - before;
    ensure!(wanted > 0, "the steady event did not occur");
    for (slot, reading) in context.read(&mut *group)?[0].iter().enumerate() {
        ensure_eq!(
            reading.count().exact(),
            Some(wanted.into()),
            "member {slot}"
        );
    }
    Ok(())
}

fn too_many(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let too_many = GroupSpec::new(vec![event; context.slots()? + 1]);
    let error = context.refusal(&too_many, &context.fixture().target())?;
    ensure_eq!(
        error.kind(),
        ErrorKind::TooManyEvents,
        "the kind of \"{error}\""
    );
    Ok(())
}

fn conflict(context: &Context<'_>) -> Outcome {
    let events = context.fixture().conflicting().ok_or(Ability::Conflict)?;
    let mut names = Vec::new();
    for event in &events {
        names.push(context.open_stopped(event)?.members()[0].name.clone());
    }
    let error = context.refusal(&GroupSpec::new(events), &context.fixture().target())?;
    ensure_eq!(
        error.kind(),
        ErrorKind::TooManyEvents,
        "the kind of \"{error}\""
    );
    let text = format!("{error:#}");
    for name in names {
        ensure!(text.contains(&*name), "\"{text}\" does not name {name}");
    }
    Ok(())
}

fn needs_backtracking(context: &Context<'_>) -> Outcome {
    let events = context
        .fixture()
        .needs_backtracking()
        .ok_or(Ability::Backtracking)?;
    for rotation in 0..events.len() {
        let mut events = events.clone();
        events.rotate_left(rotation);
        let mut group = context.open(&stopped(events.iter().cloned()))?;
        group.enable()?;
        for (position, event) in events.iter().enumerate() {
            context.cause(event, 10 + position as u64)?;
        }
        group.disable()?;
        let wanted: Vec<_> = (0..events.len() as u64).map(|p| 10 + p).collect();
        ensure_eq!(context.values(&mut *group)?, wanted, "the values");
    }
    Ok(())
}

fn simultaneity_is_claimed(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let claimed = context.capabilities().simultaneity;
    for members in 1..=context.room(3) {
        let group = context.open(&stopped(vec![event.clone(); members]))?;
        ensure!(
            members == 1 || group.simultaneity() <= claimed,
            "a group of {members} is {:?}, the backend {claimed:?}",
            group.simultaneity()
        );
    }
    Ok(())
}

fn one_and_many_agree(context: &Context<'_>) -> Outcome {
    let [a, b] = context.exact_pair()?;
    for members in [
        vec![a.clone()],
        vec![a.clone(), b.clone()],
        vec![b, a.clone()],
    ] {
        let position = members.iter().position(|m| *m == a).unwrap_or_default();
        let mut group = context.open(&stopped(members))?;
        context.count(&mut *group, &a, 64)?;
        ensure_eq!(
            context.values(&mut *group)?[position],
            64,
            "the value at position {position}"
        );
    }
    Ok(())
}
