//! Many threads and many groups at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quipu_hal::{ErrorKind, Features, GroupSpec, ReadBuf, Reading};

use crate::Check;
use crate::context::{Context, need_atomic, stopped};
use crate::verdict::{Missing, Outcome, Stop, ensure, ensure_eq};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "concurrency.open-and-close",
        requires: "Any number of threads may open, read and close groups at the same time.",
        source: "quipu_hal::Backend: Sync",
        run: open_and_close,
    },
    Check {
        id: "concurrency.readers-see-sense",
        requires: "Groups that are read on several threads while events occur never run backwards.",
        source: "quipu_hal::Group: Send",
        run: readers_see_sense,
    },
    Check {
        id: "concurrency.snapshot-holds",
        requires: "An atomic group is one snapshot also while events occur on another thread.",
        source: "tools/perf/design.txt, counter groups",
        run: snapshot_holds,
    },
    Check {
        id: "concurrency.readers-share-a-group",
        requires: "A group's reader reads on many threads at once what the group reads, also when that is closed.",
        source: "quipu_hal::GroupReader",
        run: readers_share_a_group,
    },
    Check {
        id: "concurrency.moves-between-threads",
        requires: "A group that any thread may use counts on when another thread uses it.",
        source: "quipu_hal::Features::ANY_THREAD",
        run: moves_between_threads,
    },
    Check {
        id: "concurrency.wrong-thread-is-said",
        requires: "A group tied to its thread says so on another, and works on its own afterwards.",
        source: "quipu_hal::ErrorKind::WrongThread",
        run: wrong_thread_is_said,
    },
    Check {
        id: "concurrency.dropped-elsewhere",
        requires: "A group that is dropped on another thread gives back what it held.",
        source: "quipu_hal::Group: Send",
        run: dropped_elsewhere,
    },
    Check {
        id: "concurrency.exact-in-a-storm",
        requires: "A count is exact while other threads open and close groups of the same event.",
        source: "perf_event_tests, multiple threads",
        run: exact_in_a_storm,
    },
];

const THREADS: usize = 6;

fn join<T>(handle: thread::ScopedJoinHandle<'_, Outcome<T>>) -> Outcome<T> {
    match handle.join() {
        Ok(outcome) => outcome,
        Err(_) => Err(Stop::Fail("a thread panicked".into())),
    }
}

fn open_and_close(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need(Features::ANY_THREAD.union(Features::MULTIPLEXING))?;
    thread::scope(|scope| {
        let storm = || -> Outcome {
            for _ in 0..25 / context.fixture().calls_in_one() {
                let mut group = context.open(&GroupSpec::single(event.clone()))?;
                context.reading(&mut *group)?;
                group.disable()?;
                group.reset()?;
                context.ensure_value(&mut *group, 0, "the value after a reset")?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(storm)).collect();
        threads.into_iter().try_for_each(join)
    })
}

/// Reads again and again until it is over: no reading is behind the one before it.
fn see_sense_until(over: &AtomicBool, mut reading: impl FnMut() -> Outcome<Reading>) -> Outcome {
    let mut last = reading()?;
    while !over.load(Ordering::Relaxed) {
        let now = reading()?;
        ensure!(
            now.checked_since(&last).is_some(),
            "{now:?} came after {last:?}"
        );
        last = now;
    }
    Ok(())
}

fn readers_see_sense(context: &Context<'_>) -> Outcome {
    context.need(Features::ANY_THREAD)?;
    let event = context.undisturbed()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..context.room(3) {
            let mut group = context.open(&GroupSpec::single(event.clone()))?;
            let over = &over;
            let reading = move || context.reading(&mut *group);
            readers.push(scope.spawn(move || see_sense_until(over, reading)));
        }
        let worked = (0..300).try_for_each(|_| context.cause(&event, 3));
        over.store(true, Ordering::Relaxed);
        readers.into_iter().try_for_each(join)?;
        worked
    })
}

fn snapshot_holds(context: &Context<'_>) -> Outcome {
    context.need(Features::ANY_THREAD)?;
    let event = context.undisturbed()?;
    context.need_room(2)?;
    let mut group = context.open(&stopped(vec![event.clone(); 2]))?;
    need_atomic(context, &*group)?;
    group.enable()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| -> Outcome {
            while !over.load(Ordering::Relaxed) {
                let seen = context.values(&mut *group)?;
                ensure_eq!(seen[1], seen[0], "one snapshot of one event");
            }
            Ok(())
        });
        let worked = (0..300).try_for_each(|_| context.cause(&event, 1));
        over.store(true, Ordering::Relaxed);
        join(reader)?;
        worked
    })
}

fn readers_share_a_group(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    let reader = match group.reader() {
        Ok(reader) => reader,
        Err(error) => {
            let kind = error.kind();
            ensure_eq!(
                kind,
                ErrorKind::UnsupportedFeature,
                "the kind of \"{error}\""
            );
            return Err(Missing::Inapplicable("groups are read on one thread at a time").into());
        }
    };
    let reading = |buf: &mut ReadBuf| -> Outcome<Reading> {
        reader.read(buf)?;
        Ok(buf[0][0])
    };
    group.enable()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..3 {
            let (mut buf, over) = (group.read_buf(), &over);
            readers.push(scope.spawn(move || see_sense_until(over, || reading(&mut buf))));
        }
        let worked = (0..300).try_for_each(|_| context.cause(&event, 3));
        over.store(true, Ordering::Relaxed);
        readers.into_iter().try_for_each(join)?;
        worked
    })?;
    group.disable()?;
    let (mut buf, own) = (group.read_buf(), context.reading(&mut *group)?);
    ensure_eq!(
        reading(&mut buf)?,
        own,
        "the reader's reading of a stopped group"
    );
    drop(group);
    ensure_eq!(
        reading(&mut buf)?,
        own,
        "the reader's reading of a closed group"
    );
    Ok(())
}

fn moves_between_threads(context: &Context<'_>) -> Outcome {
    context.need(Features::ANY_THREAD)?;
    let event = context.undisturbed()?;
    let mut group = context.open_stopped(&event)?;
    for round in 1..=5u64 {
        group = thread::scope(|scope| {
            join(scope.spawn(move || group.enable().map(|()| group).map_err(Stop::from)))
        })?;
        context.cause(&event, 4)?;
        group = thread::scope(|scope| {
            join(scope.spawn(move || group.disable().map(|()| group).map_err(Stop::from)))
        })?;
        ensure_eq!(
            context.reading(&mut *group)?.value,
            4 * round,
            "the value after {round} rounds"
        );
    }
    Ok(())
}

fn wrong_thread_is_said(context: &Context<'_>) -> Outcome {
    if context
        .capabilities()
        .features
        .contains(Features::ANY_THREAD)
    {
        return Err(Missing::Inapplicable("groups can be used from any thread").into());
    }
    let event = context.exact()?;
    let mut group = context.open_stopped(&event)?;
    group.enable()?;
    let (elsewhere, mut group) = thread::scope(|scope| {
        let moved = scope.spawn(move || {
            let mut buf = group.read_buf();
            Ok((group.read(&mut buf), group))
        });
        join(moved)
    })?;
    // On another CPU it must be refused; the other thread may have run on this one.
    if let Err(error) = elsewhere {
        ensure_eq!(
            error.kind(),
            ErrorKind::WrongThread,
            "the kind of \"{error}\""
        );
    }
    context.read_after_other_threads(&mut *group)
}

fn dropped_elsewhere(context: &Context<'_>) -> Outcome {
    context.need(Features::ANY_THREAD)?;
    let event = context.exact()?;
    let before = context.resources()?;
    for _ in 0..10 {
        let group = context.open(&GroupSpec::single(event.clone()))?;
        thread::scope(|scope| {
            join(scope.spawn(move || {
                drop(group);
                Ok(())
            }))
        })?;
    }
    ensure_eq!(context.resources()?, before, "what the backend holds");
    Ok(())
}

fn exact_in_a_storm(context: &Context<'_>) -> Outcome {
    context.need(Features::ANY_THREAD)?;
    let event = context.undisturbed()?;
    context.need_room(4)?;
    let mut group = context.open_stopped(&event)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let storm = || -> Outcome {
            while !over.load(Ordering::Relaxed) {
                let mut other = context.open(&GroupSpec::single(event.clone()))?;
                other.disable()?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(storm)).collect();
        let counted = (|| {
            group.enable()?;
            (0..100).try_for_each(|_| context.cause(&event, 5))?;
            group.disable()?;
            context.reading(&mut *group)
        })();
        over.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(join)?;
        ensure_eq!(counted?.count().exact(), Some(500), "what was counted");
        Ok(())
    })
}
