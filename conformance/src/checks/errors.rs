//! Errors: the right kind, and words that help.

use quipu_hal::{Error, ErrorKind, Event, GroupSpec, Target};

use crate::bench::{Bench, read};
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
        requires: "A device that somebody else holds is refused as busy.",
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
        requires: "Registers changed by somebody else give an error or are left out of the count, never a wrong number.",
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

fn refusals(bench: &Bench<'_>) -> Outcome<Vec<(Event, Error)>> {
    bench.unsupported()?;
    let target = bench.subject().target();
    bench.need_target(target.kind())?;
    let refuse = |event: Event| {
        let error = bench.refusal(&GroupSpec::single(event.clone()), &target)?;
        Ok((event, error))
    };
    bench
        .subject()
        .unsupported_events()
        .into_iter()
        .map(refuse)
        .collect()
}

fn unsupported_event(bench: &Bench<'_>) -> Outcome {
    for (event, error) in refusals(bench)? {
        ensure_eq!(
            error.kind(),
            ErrorKind::UnsupportedEvent,
            "the kind of \"{error}\" for {event:?}"
        );
    }
    Ok(())
}

fn says_why(bench: &Bench<'_>) -> Outcome {
    for (event, error) in refusals(bench)? {
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

fn names_what_was_attempted(bench: &Bench<'_>) -> Outcome {
    for (event, error) in refusals(bench)? {
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

fn member_only_when_to_blame(bench: &Bench<'_>) -> Outcome {
    let target = bench.subject().target();
    bench.need_target(target.kind())?;
    let empty = bench.refusal(&GroupSpec::default(), &target)?;
    ensure_eq!(empty.member(), None, "the member to blame for \"{empty}\"");
    let nowhere = Target::Cpu(1 << 20);
    if bench.need_target(nowhere.kind()).is_ok() {
        let error = bench.refusal(&GroupSpec::single(bench.exact()?), &nowhere)?;
        ensure_eq!(
            error.kind(),
            ErrorKind::NoSuchTarget,
            "the kind of \"{error}\""
        );
    }
    Ok(())
}

fn same_again(bench: &Bench<'_>) -> Outcome {
    let (first, second) = (refusals(bench)?, refusals(bench)?);
    for ((_, first), (_, second)) in first.iter().zip(&second) {
        ensure_eq!(second, first, "the second refusal");
    }
    Ok(())
}

fn busy(bench: &Bench<'_>) -> Outcome {
    let group = bench.open(&GroupSpec::single(bench.exact()?))?;
    let second = bench.subject().second_owner().ok_or(Ability::SecondOwner)?;
    let Err(error) = second else {
        return Err(Stop::Fail("the device was taken twice".into()));
    };
    ensure_eq!(error.kind(), ErrorKind::Busy, "the kind of \"{error}\"");
    drop(group);
    if let Some(Err(error)) = bench.subject().second_owner() {
        return Err(Stop::Fail(format!("the device is free, and: {error:#}")));
    }
    Ok(())
}

fn device_errno_is_kept(bench: &Bench<'_>) -> Outcome {
    let event = bench.exact()?;
    for errno in [5, 6, 16] {
        if !bench.subject().inject(0, errno) {
            return Err(Ability::FaultInjection.into());
        }
        let opened = bench
            .subject()
            .backend()
            .open(&GroupSpec::single(event.clone()), &bench.subject().target());
        bench.subject().withdraw();
        let Err(error) = opened else {
            return Err(Stop::Fail(
                "the first operation failed, and the group is open".into(),
            ));
        };
        ensure_eq!(error.errno(), Some(errno), "the errno of \"{error}\"");
    }
    Ok(())
}

fn interference(bench: &Bench<'_>) -> Outcome {
    let event = bench.exact()?;
    let mut group = bench.open(&GroupSpec::single(event.clone()))?;
    group.disable()?;
    group.reset()?;
    group.enable()?;
    bench.cause(&event, 10)?;
    if !bench.subject().interfere() {
        return Err(Ability::Interference.into());
    }
    bench.cause(&event, 10)?;
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
            let seen = buf.get(0, 0);
            let exact = seen.scaled().exact();
            ensure!(seen.value <= 20, "20 occurred, {} were counted", seen.value);
            ensure!(
                exact.is_none_or(|v| v == 20),
                "20 occurred, {exact:?} is called exact"
            );
        }
    }
    drop(group);
    let mut group = bench.open_stopped(&event)?;
    group.enable()?;
    bench.cause(&event, 6)?;
    group.disable()?;
    ensure_eq!(read(&mut *group)?.get(0, 0).value, 6, "a count afterwards");
    Ok(())
}

fn permission_has_a_way_out(bench: &Bench<'_>) -> Outcome {
    let event = bench.exact()?;
    for target in [Target::Cpu(0), Target::AllCpus, Target::Thread(1)] {
        match bench
            .subject()
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
