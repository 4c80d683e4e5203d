//! Misuse: calls in odd orders and with odd arguments, which must not crash, leak or count wrongly.

use quipu_hal::{
    Breakpoint, BreakpointAccess, ErrorKind, Event, Features, GroupSpec, Part, PmuEvent, RawEvent,
    ReadBuf, Target,
};

use crate::Check;
use crate::context::{Context, stopped};
use crate::verdict::{Outcome, Stop, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "hostile.enable-twice",
        requires: "Enabling a group that counts changes nothing.",
        source: "quipu_hal::Group::enable",
        run: enable_twice,
    },
    Check {
        id: "hostile.disable-twice",
        requires: "Disabling a group that does not count changes nothing.",
        source: "quipu_hal::Group::disable",
        run: disable_twice,
    },
    Check {
        id: "hostile.wrong-buffer",
        requires: "A buffer of another shape is refused as an invalid request, and not written to.",
        source: "quipu_hal::Group::read",
        run: wrong_buffer,
    },
    Check {
        id: "hostile.buffer-of-other-parts",
        requires: "A buffer of the same size made for other parts is refused.",
        source: "quipu_hal::Group::read",
        run: buffer_of_other_parts,
    },
    Check {
        id: "hostile.any-drop-order",
        requires: "Groups may be closed in any order; those that are left count on.",
        source: "perf-event: dropping a group member, then reading the group",
        run: any_drop_order,
    },
    Check {
        id: "hostile.closed-while-counting",
        requires: "A group may be closed while it counts.",
        source: "close(2); kernel/events/core.c, perf_release",
        run: closed_while_counting,
    },
    Check {
        id: "hostile.goes-on-after-refusals",
        requires: "Requests that are refused do not disturb a group that counts.",
        source: "perf-event: a failed addition that broke the group",
        run: goes_on_after_refusals,
    },
    Check {
        id: "hostile.odd-events",
        requires: "An event that makes no sense is refused or counted, without a panic.",
        source: "perf_event_open(2), errors; quipu_hal::Event",
        run: odd_events,
    },
    Check {
        id: "hostile.odd-targets",
        requires: "A target that makes no sense is refused, without a panic.",
        source: "perf_event_open(2), pid and cpu",
        run: odd_targets,
    },
    Check {
        id: "hostile.enormous-group",
        requires: "A group of a thousand members is refused or counted, and leaves nothing behind when refused.",
        source: "perf_event_open(2), EMFILE and ENOSPC",
        run: enormous_group,
    },
    Check {
        id: "hostile.many-groups",
        requires: "A hundred open groups do not disturb one another.",
        source: "perf_event_tests, many events",
        run: many_groups,
    },
    Check {
        id: "hostile.toggled-often",
        requires: "A thousand enables and disables lose nothing.",
        source: "perf_event_tests, ioctl storms",
        run: toggled_often,
    },
];

fn enable_twice(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    context.cause(&event, 5)?;
    context.count(&mut *group, &event, 6)?;
    context.cause(&event, 9)?;
    let seen = context.reading(&mut *group)?;
    ensure_eq!(seen.count().exact(), Some(11), "what was counted");
    Ok(())
}

fn disable_twice(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.disable()?;
    context.count(&mut *group, &event, 5)?;
    let once = context.reading(&mut *group)?;
    context.pass_turns(1)?;
    group.disable()?;
    ensure_eq!(
        context.reading(&mut *group)?,
        once,
        "the reading after the second time"
    );
    ensure_eq!(once.value, 5, "the value");
    context.count(&mut *group, &event, 2)?;
    context.ensure_value(&mut *group, 7, "the value after going on")?;
    Ok(())
}

fn refuses_buffer(group: &mut dyn quipu_hal::Group, buf: &mut ReadBuf) -> Outcome {
    let before = buf.clone();
    match group.read(buf) {
        Ok(()) => Err(Stop::Fail(format!("read into the wrong buffer: {buf:?}"))),
        Err(error) => {
            ensure_eq!(
                error.kind(),
                ErrorKind::InvalidConfiguration,
                "the kind of \"{error}\""
            );
            ensure_eq!(*buf, before, "the buffer");
            Ok(())
        }
    }
}

fn wrong_buffer(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    let part = group.parts().to_vec();
    for (members, parts) in [
        (0, part.clone()),
        (2, part.clone()),
        (1, Vec::new()),
        (1, [part.clone(), part].concat()),
    ] {
        refuses_buffer(&mut *group, &mut ReadBuf::new(members, parts))?;
    }
    context.cause(&event, 1)?;
    context.reading(&mut *group)?;
    Ok(())
}

fn buffer_of_other_parts(context: &Context<'_>) -> Outcome {
    let mut group = context.open(&GroupSpec::single(context.exact()?))?;
    refuses_buffer(
        &mut *group,
        &mut ReadBuf::new(1, vec![Part::of_thread(i32::MAX)]),
    )
}

fn any_drop_order(context: &Context<'_>) -> Outcome {
    let event = context.exact_for(4, 3)?;
    // The code of all calls is loaded before they are made while other groups count: loading it may be page faults.
    let mut alone = context.open_stopped(&event)?;
    alone.enable()?;
    context.cause(&event, 3)?;
    alone.disable()?;
    context.ensure_value(&mut *alone, 3, "a group alone")?;
    drop(alone);
    for first in 0..4 {
        let mut groups = Vec::new();
        for _ in 0..4 {
            groups.push(context.open_stopped(&event)?);
        }
        groups.iter_mut().try_for_each(|g| g.enable())?;
        let mut counted = 0;
        groups.rotate_left(first);
        while let Some(mut last) = groups.pop() {
            context.cause(&event, 3)?;
            counted += 3;
            last.disable()?;
            context.ensure_value(&mut *last, counted, "a group of those left")?;
            groups.reverse();
        }
    }
    Ok(())
}

fn closed_while_counting(context: &Context<'_>) -> Outcome {
    let event = context.undisturbed()?;
    context.need_room(2)?;
    let mut stays = context.open_stopped(&event)?;
    stays.enable()?;
    for _ in 0..20 {
        let leaves = context.open(&GroupSpec::single(event.clone()))?;
        context.cause(&event, 1)?;
        drop(leaves);
        context.cause(&event, 1)?;
    }
    stays.disable()?;
    context.ensure_value(&mut *stays, 40, "the group that stays")?;
    Ok(())
}

fn goes_on_after_refusals(context: &Context<'_>) -> Outcome {
    let (event, bad) = (context.undisturbed()?, context.unsupported()?);
    let target = context.fixture().target();
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    for _ in 0..10 {
        context.cause(&event, 2)?;
        context.refusal(&GroupSpec::new([event.clone(), bad.clone()]), &target)?;
        context.refusal(&GroupSpec::default(), &target)?;
        let mut wrong = ReadBuf::new(7, Vec::new());
        refuses_buffer(&mut *group, &mut wrong)?;
    }
    group.disable()?;
    ensure_eq!(
        context.reading(&mut *group)?.count().exact(),
        Some(20),
        "what was counted"
    );
    Ok(())
}

fn odd_events(context: &Context<'_>) -> Outcome {
    let target = context.fixture().target();
    context.need_target(target.kind())?;
    let breakpoint = |address, len, access| Breakpoint {
        address,
        len,
        access,
    };
    let odd: [Event; 14] = [
        Event::Named(String::new()),
        Event::Named("\0".into()),
        Event::Named("../../../etc/passwd".into()),
        Event::Named("x".repeat(100_000)),
        Event::Named("😀:😀".into()),
        Event::tracepoint("", ""),
        Event::tracepoint("..", ".."),
        Event::tracepoint("sched", "\0"),
        PmuEvent::new("").into(),
        PmuEvent::new("..").with("..").into(),
        PmuEvent::new("cpu").with_value("config", u64::MAX).into(),
        RawEvent::new(u64::MAX).into(),
        breakpoint(u64::MAX, 255, BreakpointAccess::ReadWrite).into(),
        breakpoint(1, 0, BreakpointAccess::Execute).into(),
    ];
    for event in odd {
        let spec = GroupSpec::single(event.clone());
        match context.fixture().backend().open(&spec, &target) {
            Ok(mut group) => drop(context.read(&mut *group)?),
            Err(error) => {
                ensure!(!error.to_string().is_empty(), "no words for {event:?}");
                let blamed = error.member().unwrap_or_default();
                ensure_eq!(blamed, 0, "the member that \"{error}\" blames");
            }
        }
    }
    Ok(())
}

fn odd_targets(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    for target in [
        Target::Thread(0),
        Target::Thread(-1),
        Target::Thread(i32::MIN),
        Target::Process(0),
        Target::Process(-1),
        Target::Process(i32::MAX),
        Target::Cpu(u32::MAX),
        Target::Cpus(vec![u32::MAX; 1_000]),
    ] {
        let error = context.refusal(&GroupSpec::single(event.clone()), &target)?;
        ensure!(
            matches!(
                error.kind(),
                ErrorKind::UnsupportedFeature
                    | ErrorKind::InvalidConfiguration
                    | ErrorKind::NoSuchTarget
                    | ErrorKind::NoPermission
            ),
            "{target}: {error:#}"
        );
    }
    Ok(())
}

fn enormous_group(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let before = context.resources()?;
    let spec = stopped(vec![event.clone(); 1_000]);
    match context
        .fixture()
        .backend()
        .open(&spec, &context.fixture().target())
    {
        Err(error) => {
            ensure!(
                matches!(error.kind(), ErrorKind::TooManyEvents | ErrorKind::Os),
                "refused for another reason than its size: {error:#}"
            );
        }
        Ok(mut group) => {
            context.count(&mut *group, &event, 2)?;
            ensure_eq!(context.values(&mut *group)?, vec![2; 1_000], "the values");
        }
    }
    ensure_eq!(context.resources()?, before, "held afterwards");
    Ok(())
}

fn many_groups(context: &Context<'_>) -> Outcome {
    context.need(Features::MULTIPLEXING)?;
    let (event, other) = (context.undisturbed()?, context.exact()?);
    let mut counting = context.open_stopped(&event)?;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(context.open_stopped(&other)?);
    }
    context.count(&mut *counting, &event, 8)?;
    ensure_eq!(
        context.reading(&mut *counting)?.count().exact(),
        Some(8),
        "the group that counted"
    );
    for group in &mut idle {
        ensure_eq!(
            context.reading(&mut **group)?.value,
            0,
            "a group that did not"
        );
    }
    Ok(())
}

fn toggled_often(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    let toggles = 1_000 / context.fixture().calls_in_one();
    for round in 0..toggles {
        let work = match round % 10 {
            0 => Some(context.workload(&event, 1)?),
            _ => None,
        };
        group.enable()?;
        if let Some(work) = work {
            work();
        }
        group.disable()?;
    }
    ensure_eq!(
        context.reading(&mut *group)?.count().exact(),
        Some(u128::from(toggles / 10)),
        "what was counted"
    );
    Ok(())
}
