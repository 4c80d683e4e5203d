//! Everything that is taken is given back.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use quipu_hal::{Features, GroupSpec, Reading, Target};

use crate::context::{Context, pinned, stopped};
use crate::verdict::{Outcome, Stop, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "resources.close-gives-back",
        requires: "A group that is closed holds nothing any more, whatever its size and state.",
        source: "close(2); perf_event_open(2), file descriptors",
        run: close_gives_back,
    },
    Check {
        id: "resources.refusal-holds-nothing",
        requires: "A group that is refused holds nothing, whichever member is to blame.",
        source: "quipu_hal::Backend::open",
        run: refusal_holds_nothing,
    },
    Check {
        id: "resources.refused-target-holds-nothing",
        requires: "A target that is refused in one part holds nothing in the others.",
        source: "quipu_hal::Backend::open",
        run: refused_target_holds_nothing,
    },
    Check {
        id: "resources.panic-gives-back",
        requires: "A panic while groups count leaves nothing held.",
        source: "quipu_pmu::Pmu::release",
        run: panic_gives_back,
    },
    Check {
        id: "resources.use-takes-nothing",
        requires: "Enabling, reading, resetting and disabling take nothing that is not there already.",
        source: "docs/architecture.md, \"Reading\"",
        run: use_takes_nothing,
    },
    Check {
        id: "resources.error-state-gives-back",
        requires: "A pinned group in the error state gives back what it held like any other.",
        source: "perf_event_open(2), attr.pinned",
        run: error_state_gives_back,
    },
    Check {
        id: "resources.all-parts-give-back",
        requires: "A target of many parts gives back what it held in each.",
        source: "quipu_hal::Target::AllCpus",
        run: all_parts_give_back,
    },
    Check {
        id: "resources.slots-come-free",
        requires: "The slots of a closed group are free for the next.",
        source: "docs/architecture.md, \"Bare registers\"",
        run: slots_come_free,
    },
    Check {
        id: "resources.registers-put-back",
        requires: "Registers hold what they held before once the last group is closed.",
        source: "quipu_pmu::Pmu::release",
        run: registers_put_back,
    },
    Check {
        id: "resources.closed-on-exec",
        requires: "A program that is started while groups are open inherits nothing of them.",
        source: "perf_event_open(2), PERF_FLAG_FD_CLOEXEC",
        run: closed_on_exec,
    },
    Check {
        id: "resources.every-fault-gives-back",
        requires: "Whichever operation of the device fails, nothing stays held and the backend goes on working.",
        source: "quipu_pmu::Pmu::release",
        run: every_fault_gives_back,
    },
];

fn close_gives_back(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let before = context.resources()?;
    for members in 1..=context.room(4) {
        let mut group = context.open(&stopped(vec![event.clone(); members]))?;
        if members % 2 == 1 {
            group.enable()?;
        }
        ensure!(context.resources()? > before, "an open group holds nothing");
        drop(group);
        ensure_eq!(
            context.resources()?,
            before,
            "held after closing a group of {members}"
        );
    }
    Ok(())
}

fn refusal_holds_nothing(context: &Context<'_>) -> Outcome {
    let (good, bad) = (context.exact()?, context.unsupported()?);
    let before = context.resources()?;
    let size = context.room(4);
    for position in 0..size {
        let mut members = vec![good.clone(); size];
        members[position] = bad.clone();
        context.refusal(&GroupSpec::new(members), &context.fixture().target())?;
        ensure_eq!(
            context.resources()?,
            before,
            "held after member {position} was refused"
        );
    }
    Ok(())
}

fn refused_target_holds_nothing(context: &Context<'_>) -> Outcome {
    let target = Target::Cpus(vec![0, 1 << 20]);
    context.need_target(target.kind())?;
    let event = context.exact()?;
    let before = context.resources()?;
    context.refusal(&GroupSpec::single(event), &target)?;
    ensure_eq!(
        context.resources()?,
        before,
        "held after the second CPU was refused"
    );
    Ok(())
}

fn panic_gives_back(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_room(2)?;
    let before = context.resources()?;
    let unwound = catch_unwind(AssertUnwindSafe(|| -> Outcome {
        let mut group = context.open(&GroupSpec::single(event.clone()))?;
        group.enable()?;
        let _second = context.open(&GroupSpec::single(event.clone()))?;
        resume_unwind(Box::new("deliberate"));
    }));
    if let Ok(outcome) = unwound {
        return outcome;
    }
    ensure_eq!(context.resources()?, before, "held after a panic");
    let mut group = context.measure(&event, 3)?;
    ensure_eq!(
        context.read(&mut *group)?[0][0].value,
        3,
        "a count after the panic"
    );
    Ok(())
}

fn use_takes_nothing(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    let mut buf = group.read_buf();
    let before = context.resources()?;
    for _ in 0..200 {
        group.enable()?;
        group.read(&mut buf)?;
        group.reset()?;
        group.disable()?;
    }
    ensure_eq!(context.resources()?, before, "held after 200 rounds of use");
    Ok(())
}

fn error_state_gives_back(context: &Context<'_>) -> Outcome {
    context.need(Features::PINNED)?;
    let event = context.slot_event()?;
    let slots = context.slots()?;
    let before = context.resources()?;
    for _ in 0..3 {
        let first = context.open(&pinned(vec![event.clone(); slots]))?;
        let second = context.open(&pinned([event.clone()]))?;
        context.pass_turns(2)?;
        drop(first);
        drop(second);
        ensure_eq!(context.resources()?, before, "held after closing both");
    }
    Ok(())
}

fn all_parts_give_back(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let before = context.resources()?;
    for _ in 0..5 {
        let mut group = context.open_on(&GroupSpec::single(event.clone()), &Target::AllCpus)?;
        context.read(&mut *group)?;
        drop(group);
        ensure_eq!(context.resources()?, before, "held after closing all parts");
    }
    Ok(())
}

fn slots_come_free(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    context.need_working_counters()?;
    let slots = context.slots()?;
    for round in 0..20 {
        let mut group = context.open(&GroupSpec::new(vec![event.clone(); slots]))?;
        context.pass_turns(1)?;
        for reading in &context.read(&mut *group)?[0] {
            ensure!(
                reading.count().exact().is_some_and(|v| v > 0),
                "no slot for it in round {round}: {reading:?}"
            );
        }
    }
    Ok(())
}

fn registers_put_back(context: &Context<'_>) -> Outcome {
    let registers = || {
        let seen = context.fixture().registers();
        seen.ok_or(Stop::from(Ability::Registers))
    };
    let event = context.exact()?;
    if !context.fixture().dirty_registers() {
        return Err(Ability::Registers.into());
    }
    let before = registers()?;
    for members in 1..context.room(5) {
        let mut group = context.open(&GroupSpec::new(vec![event.clone(); members]))?;
        let second = context.open(&GroupSpec::single(event.clone()))?;
        context.cause(&event, 5)?;
        drop(second);
        context.read(&mut *group)?;
        drop(group);
        ensure_eq!(
            registers()?,
            before,
            "the registers after a group of {members}"
        );
    }
    Ok(())
}

fn closed_on_exec(context: &Context<'_>) -> Outcome {
    let inheritable = || {
        let seen = context.fixture().inheritable_resources();
        seen.ok_or(Stop::from(Ability::InheritanceProbe))
    };
    let event = context.exact()?;
    let before = inheritable()?;
    let _group = context.open(&GroupSpec::new(vec![event; context.room(3)]))?;
    ensure_eq!(inheritable()?, before, "what a new program would inherit");
    Ok(())
}

fn every_fault_gives_back(context: &Context<'_>) -> Outcome {
    /// `EIO` and where the number of steps surely ends.
    const EIO: i32 = 5;
    const MANY: u64 = 10_000;
    let event = context.exact()?;
    let before = context.resources()?;
    for operations in 0..MANY {
        if !context.fixture().inject(operations, EIO) {
            return Err(Ability::FaultInjection.into());
        }
        let used = use_once(context, &event);
        let reached = !context.fixture().withdraw();
        ensure_eq!(
            context.resources()?,
            before,
            "held after operation {operations} failed"
        );
        // On a busy machine a backend may refuse to vouch for a count. What a fault has left behind is there each time.
        let counted = || context.reading(&mut *context.measure(&event, 2)?);
        let is_right = |seen: &Outcome<Reading>| matches!(seen, Ok(seen) if seen.value == 2);
        let seen = counted();
        let seen = if is_right(&seen) { seen } else { counted() };
        ensure_eq!(
            seen?.value,
            2,
            "a count after operation {operations} failed"
        );
        if !reached {
            return used;
        }
    }
    Err(Stop::Fail(format!(
        "more than {MANY} operations for one group"
    )))
}

fn use_once(context: &Context<'_>, event: &quipu_hal::EventSpec) -> Outcome {
    let mut group = context.open(&GroupSpec::new(vec![event.clone(); context.room(2)]))?;
    context.cause(event, 1)?;
    context.read(&mut *group)?;
    group.disable()?;
    group.reset()?;
    group.enable()?;
    context.read(&mut *group)?;
    Ok(())
}
