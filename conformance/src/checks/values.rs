//! Values: exact where the fixture has an exact workload.

use quipu_hal::{GroupSpec, ValueKind};

use crate::context::{Context, stopped};
use crate::verdict::{Outcome, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "values.exact",
        requires: "An event that occurred n times between enable and disable reads n.",
        source: "perf_event_tests, validation of exact events; tools/perf/tests/openat-syscall.c",
        run: exact,
    },
    Check {
        id: "values.every-exact-event",
        requires: "Every event the fixture can cause is counted exactly.",
        source: "perf_event_tests, validation of exact events",
        run: every_exact_event,
    },
    Check {
        id: "values.counted-loop",
        requires: "Every round of a loop adds the same number of instructions, and no round is lost.",
        source: "perf_event_tests, validation of instruction counts; Weaver 2013, \"Non-determinism and overcount\"",
        run: counted_loop,
    },
    Check {
        id: "values.nothing-happened",
        requires: "An event that did not occur reads 0, as a fact.",
        source: "perf_event_open(2), reading results",
        run: nothing_happened,
    },
    Check {
        id: "values.add-up",
        requires: "Values accumulate over any number of enables and reads.",
        source: "tools/perf/design.txt",
        run: add_up,
    },
    Check {
        id: "values.outside-is-not-counted",
        requires: "What happens before enable and after disable is not in the value.",
        source: "perf_event_open(2), PERF_EVENT_IOC_ENABLE and _DISABLE",
        run: outside_is_not_counted,
    },
    Check {
        id: "values.reading-loses-nothing",
        requires: "Reading a counter while it counts neither stops nor clears it.",
        source: "perf_event_open(2), reading results",
        run: reading_loses_nothing,
    },
    Check {
        id: "values.never-backwards",
        requires: "Successive readings of a counter never run backwards.",
        source: "tools/testing/selftests/perf_events; perf_event_tests",
        run: never_backwards,
    },
    Check {
        id: "values.observers-agree",
        requires: "Two counters of one event over the same stretch read the same.",
        source: "perf_event_tests, two counters on one event",
        run: observers_agree,
    },
    Check {
        id: "values.events-apart",
        requires: "Each member counts its own event and nothing of the others'.",
        source: "perf_event_open(2), PERF_FORMAT_GROUP",
        run: events_apart,
    },
    Check {
        id: "values.differences",
        requires: "The difference of two readings is what happened in between.",
        source: "quipu_hal::Reading::since",
        run: differences,
    },
    Check {
        id: "values.wrap",
        requires: "A register that wraps between two readings costs nothing.",
        source: "Intel SDM vol. 3, counter width; pctr(4), 40-bit counters",
        run: wrap,
    },
    Check {
        id: "values.wrap-boundary",
        requires: "A count is right just below, at, and just above the width of its register.",
        source: "Intel SDM vol. 3, counter width",
        run: wrap_boundary,
    },
    Check {
        id: "values.wrap-across-disable",
        requires: "A register that wraps while its group is stopped and started in turns costs nothing.",
        source: "Intel SDM vol. 3, counter width",
        run: wrap_across_disable,
    },
    Check {
        id: "values.hidden-wrap",
        requires: "A register that may have wrapped more often than could be seen gives an error, not a wrong number.",
        source: "quipu_hal::EventInfo::max_rate",
        run: hidden_wrap,
    },
    Check {
        id: "values.beyond-32-bits",
        requires: "Values are 64 bits wide, however narrow the register.",
        source: "tools/perf/design.txt: counters are 64 bits wide",
        run: beyond_32_bits,
    },
    Check {
        id: "values.info",
        requires: "Every member has a name, a finite non-zero scale, and counts up unless it is a gauge.",
        source: "quipu_hal::EventInfo",
        run: info,
    },
];

fn exact(context: &Context<'_>) -> Outcome {
    let event = context.exact_for(1, 1_000)?;
    for times in [0, 1, 2, 3, 10, 100, 1_000] {
        let mut group = context.measure(&event, times)?;
        let seen = context.reading(&mut *group)?;
        ensure_eq!(
            seen.count().exact(),
            Some(times.into()),
            "{times} occurrences"
        );
    }
    Ok(())
}

fn every_exact_event(context: &Context<'_>) -> Outcome {
    context.exact()?;
    for event in context.fixture().exact_events() {
        let mut group = context.measure(&event, 123)?;
        let seen = context.reading(&mut *group)?;
        ensure_eq!(seen.count().exact(), Some(123), "123 x {:?}", event.event);
    }
    Ok(())
}

fn counted_loop(context: &Context<'_>) -> Outcome {
    const ROUNDS: u64 = 10_000;
    let mut counted = [0; 3];
    for (times, counted) in (1..).zip(&mut counted) {
        *counted = context.counted_loop(times * ROUNDS)?;
    }
    let [once, twice, thrice] = counted;
    ensure!(
        twice.checked_sub(once).is_some_and(|more| more >= ROUNDS),
        "{ROUNDS} rounds more, and {twice} after {once}"
    );
    ensure_eq!(
        thrice.checked_sub(twice),
        Some(twice - once),
        "what as many rounds add again"
    );
    Ok(())
}

fn nothing_happened(context: &Context<'_>) -> Outcome {
    let [quiet, busy] = context.exact_pair()?;
    let mut group = context.open_stopped(&quiet)?;
    context.count(&mut *group, &busy, 50)?;
    ensure_eq!(
        context.reading(&mut *group)?.count().exact(),
        Some(0),
        "the event that did not occur"
    );
    Ok(())
}

fn add_up(context: &Context<'_>) -> Outcome {
    let event = context.exact_for(1, 400)?;
    let mut group = context.open_stopped(&event)?;
    let mut sum = 0;
    for times in [1, 20, 3, 400, 5] {
        context.count(&mut *group, &event, times)?;
        sum += times;
        context.ensure_value(&mut *group, sum, "the running sum")?;
    }
    Ok(())
}

fn outside_is_not_counted(context: &Context<'_>) -> Outcome {
    let event = context.exact_for(1, 1_000)?;
    let mut group = context.open_stopped(&event)?;
    context.cause(&event, 1_000)?;
    context.count(&mut *group, &event, 11)?;
    context.cause(&event, 1_000)?;
    context.ensure_value(&mut *group, 11, "the value")?;
    Ok(())
}

fn reading_loses_nothing(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    let mut buf = group.read_buf();
    group.enable()?;
    let reads = 50 / context.fixture().calls_in_one();
    for _ in 0..reads {
        context.cause(&event, 7)?;
        group.read(&mut buf)?;
    }
    group.disable()?;
    context.ensure_value(&mut *group, 7 * reads, "the value after the reads")?;
    Ok(())
}

fn never_backwards(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open(&GroupSpec::single(event.clone()))?;
    let mut last = context.reading(&mut *group)?;
    for step in 0..200 / context.fixture().calls_in_one() {
        context.cause(&event, step % 3)?;
        let now = context.reading(&mut *group)?;
        ensure!(
            now.checked_since(&last).is_some(),
            "{now:?} came after {last:?}"
        );
        last = now;
    }
    Ok(())
}

fn observers_agree(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_room(2)?;
    let mut first = context.open_stopped(&event)?;
    let mut second = context.open_stopped(&event)?;
    first.enable()?;
    context.count(&mut *second, &event, 77)?;
    first.disable()?;
    context.ensure_value(&mut *first, 77, "the first counter")?;
    context.ensure_value(&mut *second, 77, "the second counter")?;
    Ok(())
}

fn events_apart(context: &Context<'_>) -> Outcome {
    let [a, b] = context.exact_pair()?;
    let mut group = context.open(&stopped([a.clone(), b.clone()]))?;
    context.count_all(&mut *group, [(&a, 30), (&b, 4), (&a, 1)])?;
    ensure_eq!(context.values(&mut *group)?, [31, 4], "the values");
    Ok(())
}

fn differences(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.measure(&event, 5)?;
    let first = context.reading(&mut *group)?;
    context.count(&mut *group, &event, 60)?;
    let second = context.reading(&mut *group)?;
    let between = second.checked_since(&first);
    ensure_eq!(
        between.map(|r| r.count().exact()),
        Some(Some(60)),
        "the difference"
    );
    Ok(())
}

fn wrap(context: &Context<'_>) -> Outcome {
    let (event, wrap) = narrow(context)?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    let step = wrap / 8 * 5;
    for round in 1..=12 {
        context.cause(&event, step)?;
        ensure_eq!(
            context.reading(&mut *group)?.value,
            step * round,
            "the value after {round} steps"
        );
    }
    Ok(())
}

fn wrap_boundary(context: &Context<'_>) -> Outcome {
    let (event, wrap) = narrow(context)?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    context.cause(&event, wrap / 2)?;
    context.ensure_value(&mut *group, wrap / 2, "the value half way")?;
    context.cause(&event, wrap - wrap / 2 - 1)?;
    for wanted in [wrap - 1, wrap, wrap + 1, wrap + 2] {
        context.ensure_value(&mut *group, wanted, "the value")?;
        context.cause(&event, 1)?;
    }
    Ok(())
}

fn wrap_across_disable(context: &Context<'_>) -> Outcome {
    let (event, wrap) = narrow(context)?;
    let mut group = context.open_stopped(&event)?;
    let step = wrap / 4 * 3;
    for round in 1..=6 {
        context.count(&mut *group, &event, step)?;
        context.cause(&event, wrap / 2)?;
        ensure_eq!(
            context.reading(&mut *group)?.value,
            step * round,
            "the value after {round} rounds"
        );
    }
    Ok(())
}

fn hidden_wrap(context: &Context<'_>) -> Outcome {
    let hidden = context.fixture().hidden_wrap().ok_or(Ability::HiddenWrap)?;
    let (event, times, work) = hidden;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    work();
    let mut buf = group.read_buf();
    if group.read(&mut buf).is_ok() {
        ensure_eq!(buf[0][0].value, times, "the value");
    }
    group.disable()?;
    group.reset()?;
    group.enable()?;
    context.cause(&event, 9)?;
    context.ensure_value(&mut *group, 9, "the value counted since a reset")?;
    Ok(())
}

fn beyond_32_bits(context: &Context<'_>) -> Outcome {
    let (event, wrap) = narrow(context)?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    let step = (1 << 30).min(wrap / 2);
    let mut sum = 0u64;
    while sum <= 1 << 33 {
        context.cause(&event, step)?;
        sum += step;
        context.reading(&mut *group)?;
    }
    context.ensure_value(&mut *group, sum, "the value")?;
    Ok(())
}

fn narrow(context: &Context<'_>) -> Outcome<(quipu_hal::EventSpec, u64)> {
    let event = context.exact()?;
    let wrap = context.fixture().wraps_after(&event);
    // Fewer bits than 32 no counter has, and the suite would take long over it.
    let wrap = wrap
        .filter(|&w| w >= 1 << 24)
        .ok_or(Ability::NarrowRegister)?;
    Ok((event, wrap))
}

fn info(context: &Context<'_>) -> Outcome {
    context.exact()?;
    for event in context.fixture().exact_events() {
        let group = context.open_stopped(&event)?;
        for info in group.members() {
            ensure!(!info.name.is_empty(), "{:?} has no name", event.event);
            ensure!(
                info.scale.is_finite() && info.scale != 0.0,
                "{} has scale {}",
                info.name,
                info.scale
            );
            ensure_eq!(info.kind, ValueKind::Counter, "what {} is", info.name);
        }
    }
    Ok(())
}
