//! Errors: the right kind, and words that help.

use quipu_hal::{Error, ErrorKind, Event, GroupSpec, Target};

use crate::context::Context;
use crate::verdict::{Missing, Outcome, Stop, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "errors.unsupported-event",
        requires: "Every event that does not exist is refused as such, or as malformed.",
        source: "perf_event_open(2), ENOENT and EOPNOTSUPP",
        run: unsupported_event,
    },
    Check {
        id: "errors.says-why",
        requires: "A refusal says more than its kind: a reason, an errno or a hint.",
        source: "perf-event issues on bare \"Invalid argument\"; quipu_hal::Error",
        run: says_why,
    },
    Check {
        id: "errors.names-what-was-attempted",
        requires: "A refusal of an event names the event.",
        source: "quipu_hal::Error::attempted",
        run: names_what_was_attempted,
    },
    Check {
        id: "errors.member-only-when-to-blame",
        requires: "An error blames a member only when it was the member's fault.",
        source: "quipu_hal::Error::member",
        run: member_only_when_to_blame,
    },
    Check {
        id: "errors.same-again",
        requires: "The same request is refused in the same way again.",
        source: "quipu_hal::Backend::open",
        run: same_again,
    },
    Check {
        id: "errors.busy",
        requires: "A device that another process holds is refused as busy.",
        source: "pctr(4), one owner; Linux msr(4) with perf_event",
        run: busy,
    },
    Check {
        id: "errors.device-errno-is-kept",
        requires: "An error of the device keeps its number.",
        source: "perfcnt: ioctl errors that were swallowed",
        run: device_errno_is_kept,
    },
    Check {
        id: "errors.interference",
        requires: "Registers changed by another process give an error or are left out of the count, never a wrong number.",
        source: "quipu_hal::ErrorKind::Interference",
        run: interference,
    },
    Check {
        id: "errors.permission-has-a-way-out",
        requires: "What is not permitted is refused as such, with a hint.",
        source: "perf_event_open(2), EACCES and perf_event_paranoid; poop issue 17",
        run: permission_has_a_way_out,
    },
];

fn refusals(context: &Context<'_>) -> Outcome<Vec<(Event, Error)>> {
    context.unsupported()?;
    let target = context.fixture().target();
    context.need_target(target.kind())?;
    let refuse = |event: Event| {
        let error = context.refusal(&GroupSpec::single(event.clone()), &target)?;
        Ok((event, error))
    };
    context
        .fixture()
        .unsupported_events()
        .into_iter()
        .map(refuse)
        .collect()
}

fn unsupported_event(context: &Context<'_>) -> Outcome {
    for (event, error) in refusals(context)? {
        ensure_eq!(
            error.kind(),
            ErrorKind::UnsupportedEvent,
            "the kind of \"{error}\" for {event:?}"
        );
    }
    Ok(())
}

fn says_why(context: &Context<'_>) -> Outcome {
    for (event, error) in refusals(context)? {
        let more = error
            .reason()
            .or(error.hint())
            .is_some_and(|t| !t.is_empty());
        ensure!(more || error.errno().is_some(), "\"{error}\" for {event:?}");
        ensure!(
            !error.attempted().is_empty(),
            "nothing was attempted: {error:?}"
        );
    }
    Ok(())
}

fn names_what_was_attempted(context: &Context<'_>) -> Outcome {
    for (event, error) in refusals(context)? {
        let text = format!("{error:#}");
        if let Event::Named(name) = &event {
            ensure!(
                text.contains(name.as_str()),
                "\"{text}\" does not name {name}"
            );
        }
    }
    Ok(())
}

fn member_only_when_to_blame(context: &Context<'_>) -> Outcome {
    let target = context.fixture().target();
    context.need_target(target.kind())?;
    let empty = context.refusal(&GroupSpec::default(), &target)?;
    ensure_eq!(empty.member(), None, "the member to blame for \"{empty}\"");
    let nowhere = Target::Cpu(1 << 20);
    if context.need_target(nowhere.kind()).is_ok() {
        let error = context.refusal(&GroupSpec::single(context.exact()?), &nowhere)?;
        ensure_eq!(
            error.kind(),
            ErrorKind::NoSuchTarget,
            "the kind of \"{error}\""
        );
    }
    Ok(())
}

fn same_again(context: &Context<'_>) -> Outcome {
    let (first, second) = (refusals(context)?, refusals(context)?);
    for ((_, first), (_, second)) in first.iter().zip(&second) {
        ensure_eq!(second, first, "the second refusal");
    }
    Ok(())
}

fn busy(context: &Context<'_>) -> Outcome {
    let group = context.open(&GroupSpec::single(context.exact()?))?;
    let second = context
        .fixture()
        .second_owner()
        .ok_or(Ability::SecondOwner)?;
    let Err(error) = second else {
        return Err(Stop::Fail("the device was taken twice".into()));
    };
    ensure_eq!(error.kind(), ErrorKind::Busy, "the kind of \"{error}\"");
    drop(group);
    if let Some(Err(error)) = context.fixture().second_owner() {
        return Err(Stop::Fail(format!("the device is free, and: {error:#}")));
    }
    Ok(())
}

fn device_errno_is_kept(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    for errno in [5, 6, 16] {
        if !context.fixture().inject(0, errno) {
            return Err(Ability::FaultInjection.into());
        }
        let opened = context.fixture().backend().open(
            &GroupSpec::single(event.clone()),
            &context.fixture().target(),
        );
        context.fixture().withdraw();
        let Err(error) = opened else {
            return Err(Stop::Fail(
                "the first operation failed, and the group is open".into(),
            ));
        };
        ensure_eq!(error.errno(), Some(errno), "the errno of \"{error}\"");
    }
    Ok(())
}

fn interference(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    group.disable()?;
    group.reset()?;
    group.enable()?;
    context.cause(&event, 10)?;
    if !context.fixture().interfere() {
        return Err(Ability::Interference.into());
    }
    context.cause(&event, 10)?;
    let mut buf = group.read_buf();
    match group.read(&mut buf) {
        Err(error) => {
            ensure_eq!(
                error.kind(),
                ErrorKind::Interference,
                "the kind of \"{error}\""
            );
        }
        Ok(()) => {
            let seen = buf[0][0];
            let exact = seen.count().exact();
            ensure!(seen.value <= 20, "20 occurred, {} were counted", seen.value);
            ensure!(
                exact.is_none_or(|v| v == 20),
                "20 occurred, {exact:?} is called exact"
            );
        }
    }
    drop(group);
    let mut group = context.measure(&event, 6)?;
    ensure_eq!(
        context.read(&mut *group)?[0][0].value,
        6,
        "a count afterwards"
    );
    Ok(())
}

fn permission_has_a_way_out(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    for target in [Target::Cpu(0), Target::AllCpus, Target::Thread(1)] {
        match context
            .fixture()
            .backend()
            .open(&GroupSpec::single(event.clone()), &target)
        {
            Err(error) if error.kind() == ErrorKind::NoPermission => {
                let hint = error.hint().unwrap_or_default();
                ensure!(!hint.is_empty(), "\"{error}\" has no hint");
                return Ok(());
            }
            Ok(_) | Err(_) => {}
        }
    }
    Err(Missing::Inapplicable("this user may do everything").into())
}
