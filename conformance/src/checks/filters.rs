//! Filters: user and kernel mode, and honesty about what cannot be filtered.

use quipu_hal::{ErrorKind, EventSpec, Filter, Group};

use crate::context::{Context, count_prepared, stopped};
use crate::verdict::{Missing, Outcome, Stop, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "filters.user",
        requires: "An event filtered to user mode counts what occurs there, and nothing of the kernel's.",
        source: "perf_event_open(2), attr.exclude_kernel",
        run: user,
    },
    Check {
        id: "filters.kernel",
        requires: "An event filtered to kernel mode counts what occurs there, and nothing of user mode.",
        source: "perf_event_open(2), attr.exclude_user",
        run: kernel,
    },
    Check {
        id: "filters.everywhere",
        requires: "Without a filter an event counts at every level.",
        source: "perf_event_open(2), attr.exclude_user and exclude_kernel",
        run: everywhere,
    },
    Check {
        id: "filters.each-member-its-own",
        requires: "Members of one group may have different filters, and each keeps to its own.",
        source: "perf_event_open(2), attr is per event",
        run: each_member_its_own,
    },
    Check {
        id: "filters.refused-or-honoured",
        requires: "A level that an event cannot be filtered by is refused, or the event says that it does not honour it.",
        source: "quipu_hal::EventInfo::honours; poop issue 42",
        run: refused_or_honoured,
    },
    Check {
        id: "filters.claimed-are-honoured",
        requires: "Events of the PMU can be filtered by the levels that the backend claims, and honour them.",
        source: "quipu_hal::Capabilities::filters",
        run: claimed_are_honoured,
    },
    Check {
        id: "filters.nowhere",
        requires: "A filter that leaves no privilege level is refused, or counts nothing.",
        source: "perf_event_open(2), attr.exclude_user with exclude_kernel and exclude_hv",
        run: nowhere,
    },
];

/// An exact event whose work can be put at either level, and the levels.
fn filterable(context: &Context<'_>) -> Outcome<EventSpec> {
    let wanted = Filter::USER.union(Filter::KERNEL);
    for event in context.fixture().exact_events() {
        let works = |level| context.fixture().workload_at(&event, level, 1).is_some();
        if !works(Filter::USER) || !works(Filter::KERNEL) {
            continue;
        }
        for level in [Filter::USER, Filter::KERNEL] {
            let filtered = event.clone().with_filter(Filter::all().with_levels(level));
            match context
                .fixture()
                .backend()
                .open(&stopped([filtered]), &context.fixture().target())
            {
                Ok(group) if group.members()[0].honours.contains(wanted) => {}
                Err(error) if error.kind() == ErrorKind::NoPermission => {
                    return Err(Missing::Inapplicable("this user may not count the kernel").into());
                }
                Err(error) if error.kind() != ErrorKind::UnsupportedFeature => {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => return Err(Missing::Filter(level).into()),
            }
        }
        return Ok(event.with_filter(Filter::all()));
    }
    Err(Ability::WorkAtLevel.into())
}

/// Counts while an event occurs so many times in user mode, and then in the kernel. Both is prepared before the group counts.
fn count_at_both(
    context: &Context<'_>,
    group: &mut dyn Group,
    event: &EventSpec,
    [user, kernel]: [u64; 2],
) -> Outcome {
    let prepare = |level, times| {
        let workload = context.fixture().workload_at(event, level, times);
        workload.ok_or(Ability::WorkAtLevel)
    };
    let works = [
        prepare(Filter::USER, user)?,
        prepare(Filter::KERNEL, kernel)?,
    ];
    count_prepared(group, works)
}

fn count(
    context: &Context<'_>,
    event: &EventSpec,
    filter: Filter,
    user: u64,
    kernel: u64,
) -> Outcome<u64> {
    let mut group = context.open_stopped(&event.clone().with_filter(filter))?;
    count_at_both(context, &mut *group, event, [user, kernel])?;
    Ok(context.reading(&mut *group)?.value)
}

fn user(context: &Context<'_>) -> Outcome {
    let event = filterable(context)?;
    let seen = count(context, &event, Filter::USER_ONLY, 60, 7)?;
    ensure_eq!(seen, 60, "60 in user mode and 7 in the kernel");
    Ok(())
}

fn kernel(context: &Context<'_>) -> Outcome {
    let event = filterable(context)?;
    let filter = Filter::all().with_levels(Filter::KERNEL);
    let seen = count(context, &event, filter, 60, 7)?;
    ensure_eq!(seen, 7, "60 in user mode and 7 in the kernel");
    Ok(())
}

fn everywhere(context: &Context<'_>) -> Outcome {
    let event = filterable(context)?;
    let seen = count(context, &event, Filter::all(), 60, 7)?;
    ensure_eq!(seen, 67, "60 in user mode and 7 in the kernel");
    Ok(())
}

fn each_member_its_own(context: &Context<'_>) -> Outcome {
    let event = filterable(context)?;
    context.need_room(3)?;
    let with = |levels| event.clone().with_filter(Filter::all().with_levels(levels));
    let members = [
        with(Filter::KERNEL),
        with(Filter::LEVELS),
        with(Filter::USER),
    ];
    let mut group = context.open(&stopped(members))?;
    count_at_both(context, &mut *group, &event, [20, 3])?;
    ensure_eq!(
        context.values(&mut *group)?,
        [3, 23, 20],
        "kernel, both, user"
    );
    Ok(())
}

fn refused_or_honoured(context: &Context<'_>) -> Outcome {
    context.exact()?;
    let target = context.fixture().target();
    context.need_target(target.kind())?;
    for event in context.fixture().exact_events() {
        for level in [Filter::USER, Filter::KERNEL] {
            let filter = Filter::all().with_levels(level);
            let spec = stopped([event.clone().with_filter(filter)]);
            let mut group = match context.fixture().backend().open(&spec, &target) {
                Ok(group) => group,
                Err(error) => {
                    ensure!(
                        matches!(
                            error.kind(),
                            ErrorKind::UnsupportedFeature
                                | ErrorKind::NoPermission
                                | ErrorKind::InvalidConfiguration
                        ),
                        "refused for another reason than its filter: {error:#}"
                    );
                    continue;
                }
            };
            let other = Filter::USER.union(Filter::KERNEL).difference(level);
            let Some(workload) = context.fixture().workload_at(&event, other, 5) else {
                continue;
            };
            if group.members()[0].honours.contains(other) {
                group.enable()?;
                workload();
                group.disable()?;
                let seen = context.reading(&mut *group)?.value;
                ensure_eq!(seen, 0, "{level:?} only, and 5 at {other:?}");
            }
        }
    }
    Ok(())
}

fn claimed_are_honoured(context: &Context<'_>) -> Outcome {
    let event = context.slot_event()?;
    let both = Filter::USER.union(Filter::KERNEL);
    if !context.capabilities().filters.contains(both) {
        return Err(Missing::Filter(both).into());
    }
    for level in [Filter::USER, Filter::KERNEL] {
        let filter = Filter::all().with_levels(level);
        let filtered = stopped([event.clone().with_filter(filter)]);
        let opened = context
            .fixture()
            .backend()
            .open(&filtered, &context.fixture().target());
        match opened {
            Ok(group) => {
                let honours = group.members()[0].honours;
                ensure!(
                    honours.contains(both),
                    "{level:?} only, and it honours {honours:?}"
                );
            }
            Err(error) => {
                ensure_eq!(
                    error.kind(),
                    ErrorKind::NoPermission,
                    "the kind of \"{error}\""
                );
            }
        }
    }
    Ok(())
}

fn nowhere(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let target = context.fixture().target();
    context.need_target(target.kind())?;
    let nowhere = event
        .clone()
        .with_filter(Filter::all().with_levels(Filter::empty()));
    match context
        .fixture()
        .backend()
        .open(&stopped([nowhere]), &target)
    {
        Err(error) => {
            let kind = error.kind();
            if matches!(
                kind,
                ErrorKind::InvalidConfiguration | ErrorKind::UnsupportedFeature
            ) {
                Ok(())
            } else {
                Err(Stop::Fail(format!(
                    "refused for another reason than its filter: {error:#}"
                )))
            }
        }
        Ok(mut group) => {
            context.count(&mut *group, &event, 33)?;
            context.ensure_value(&mut *group, 0, "an event counted nowhere")?;
            Ok(())
        }
    }
}
