//! Opening, starting, stopping, closing.

use quipu_hal::{GroupSpec, Reading};

use crate::Check;
use crate::context::{Context, stopped};
use crate::verdict::{Outcome, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.counts-from-open",
        requires: "A group counts from the moment it is opened, unless asked otherwise.",
        source: "perf_event_open(2), attr.disabled",
        run: counts_from_open,
    },
    Check {
        id: "lifecycle.disabled-is-silent",
        requires: "A group opened disabled counts nothing and no time before it is enabled.",
        source: "perf_event_open(2), attr.disabled",
        run: disabled_is_silent,
    },
    Check {
        id: "lifecycle.starts-at-zero",
        requires: "A new group's values and times, the raw ones too, are zero, whoever counted before.",
        source: "tools/perf/design.txt; perf_event_open(2), read_format",
        run: starts_at_zero,
    },
    Check {
        id: "lifecycle.enable-starts",
        requires: "Enabling a group starts every member.",
        source: "perf_event_open(2), PERF_EVENT_IOC_ENABLE",
        run: enable_starts,
    },
    Check {
        id: "lifecycle.disable-stops",
        requires: "A disabled group counts nothing.",
        source: "perf_event_open(2), PERF_EVENT_IOC_DISABLE",
        run: disable_stops,
    },
    Check {
        id: "lifecycle.disable-keeps-value",
        requires: "Disabling a group keeps its values, for any number of reads.",
        source: "tools/perf/design.txt, enabling and disabling; docs/architecture.md, \"Reading\"",
        run: disable_keeps_value,
    },
    Check {
        id: "lifecycle.resumes",
        requires: "A group that is enabled again counts on from where it stopped.",
        source: "perf_event_open(2), PERF_EVENT_IOC_ENABLE",
        run: resumes,
    },
    Check {
        id: "lifecycle.buffer-shape",
        requires: "A group's buffer has a reading for each part and each member asked for.",
        source: "quipu_hal::Group::read_buf",
        run: buffer_shape,
    },
    Check {
        id: "lifecycle.buffer-reusable",
        requires: "A buffer can be read into again; nothing of the earlier reading stays.",
        source: "quipu_hal::ReadBuf",
        run: buffer_reusable,
    },
    Check {
        id: "lifecycle.independent-groups",
        requires: "Groups of the same event on the same target are enabled, disabled and closed independently.",
        source: "perf_event_open(2), group_fd",
        run: independent_groups,
    },
    Check {
        id: "lifecycle.reopen",
        requires: "What was closed can be opened again, a hundred times over.",
        source: "tools/testing/selftests/perf_events",
        run: reopen,
    },
    Check {
        id: "lifecycle.capabilities-hold-still",
        requires: "Name and capabilities are the same before, during and after counting.",
        source: "quipu_hal::Backend::capabilities",
        run: capabilities_hold_still,
    },
];

fn counts_from_open(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    let before = context.reading(&mut *group)?.value;
    context.cause(&event, 5)?;
    let after = context.reading(&mut *group)?.value;
    ensure!(
        after >= before + 5,
        "5 occurrences moved the count from {before} to {after}"
    );
    Ok(())
}

fn disabled_is_silent(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    context.cause(&event, 9)?;
    context.pass_turns(1)?;
    let before = context.reading(&mut *group)?;
    ensure_eq!(before, nothing(&before), "before enabling");
    Ok(())
}

fn starts_at_zero(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut earlier = context.open(&GroupSpec::single(event.clone()))?;
    context.cause(&event, 3)?;
    context.reading(&mut *earlier)?;
    drop(earlier);
    let mut group = context.open_stopped(&event)?;
    let new = context.reading(&mut *group)?;
    ensure_eq!(new, nothing(&new), "a new group");
    Ok(())
}

/// Returns the reading of a counter like this one that counted nothing yet.
fn nothing(of: &Reading) -> Reading {
    Reading::default().with_max_rate(of.max_rate)
}

fn enable_starts(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&stopped(vec![event.clone(); context.room(3)]))?;
    context.count(&mut *group, &event, 4)?;
    let seen = context.values(&mut *group)?;
    ensure!(
        seen.iter().all(|&v| v == 4),
        "4 occurrences were counted as {seen:?}"
    );
    Ok(())
}

fn disable_stops(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    group.disable()?;
    let before = context.reading(&mut *group)?.value;
    context.cause(&event, 8)?;
    context.ensure_value(&mut *group, before, "the value while disabled")?;
    Ok(())
}

fn disable_keeps_value(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.measure(&event, 6)?;
    let first = context.reading(&mut *group)?;
    ensure_eq!(first.value, 6, "the value after disabling");
    context.pass_turns(2)?;
    ensure_eq!(
        context.reading(&mut *group)?,
        first,
        "the same reading later"
    );
    Ok(())
}

fn resumes(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    for round in 1..=5u64 {
        context.count(&mut *group, &event, 2)?;
        context.cause(&event, 100)?;
        ensure_eq!(
            context.reading(&mut *group)?.value,
            2 * round,
            "the value after round {round}"
        );
    }
    Ok(())
}

fn buffer_shape(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    for members in 1..=context.room(2) {
        let group = context.open(&stopped(vec![event.clone(); members]))?;
        ensure_eq!(group.members().len(), members, "members");
        let buf = group.read_buf();
        ensure_eq!(buf.members(), members, "members in the buffer");
        ensure_eq!(buf.parts(), group.parts(), "parts in the buffer");
        ensure_eq!(buf.parts().len(), 1, "parts of the usual target");
    }
    Ok(())
}

fn buffer_reusable(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    let mut buf = group.read_buf();
    for wanted in 1..=4 {
        context.count(&mut *group, &event, 1)?;
        group.read(&mut buf)?;
        ensure_eq!(buf[0][0].value, wanted, "the value in the reused buffer");
        ensure_eq!(
            buf,
            context.read(&mut *group)?,
            "the reused buffer against a new one"
        );
    }
    group.reset()?;
    group.read(&mut buf)?;
    ensure_eq!(
        buf[0][0].value,
        0,
        "the value in the reused buffer after a reset"
    );
    Ok(())
}

fn independent_groups(context: &Context<'_>) -> Outcome {
    let event = context.exact_for(3, 4)?;
    let mut stays = context.open_stopped(&event)?;
    let mut stops = context.open_stopped(&event)?;
    let mut closes = context.open_stopped(&event)?;
    for group in [&mut stays, &mut stops, &mut closes] {
        group.enable()?;
    }
    context.cause(&event, 3)?;
    stops.disable()?;
    closes.reset()?;
    drop(closes);
    context.cause(&event, 4)?;
    stays.disable()?;
    context.ensure_value(&mut *stays, 7, "the group that was left alone")?;
    context.ensure_value(&mut *stops, 3, "the group that was disabled")?;
    Ok(())
}

fn reopen(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    for round in 0..100 {
        let mut group = context.measure(&event, 1)?;
        ensure_eq!(
            context.reading(&mut *group)?.value,
            1,
            "the value in round {round}"
        );
    }
    Ok(())
}

fn capabilities_hold_still(context: &Context<'_>) -> Outcome {
    let backend = context.fixture().backend();
    let (name, before) = (backend.name(), backend.capabilities().clone());
    ensure!(!name.is_empty(), "the backend has no name");
    let group = context.open_stopped(&context.exact()?)?;
    ensure_eq!(
        backend.capabilities(),
        &before,
        "capabilities while a group is open"
    );
    drop(group);
    ensure_eq!(
        backend.capabilities(),
        &before,
        "capabilities after closing"
    );
    ensure_eq!(backend.name(), name, "the name");
    Ok(())
}
