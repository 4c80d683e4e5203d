//! Many threads and many groups at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use quipu_hal::{ErrorKind, Features, GroupSpec};

use crate::Check;
use crate::bench::{Bench, need_atomic, read, reading, stopped, values};
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

fn open_and_close(bench: &Bench<'_>) -> Outcome {
    let event = bench.exact()?;
    bench.need(Features::ANY_THREAD.union(Features::MULTIPLEXING))?;
    thread::scope(|scope| {
        let storm = || -> Outcome {
            for _ in 0..25 {
                let mut group = bench.open(&GroupSpec::single(event.clone()))?;
                reading(&mut *group)?;
                group.disable()?;
                group.reset()?;
                ensure_eq!(reading(&mut *group)?.value, 0, "the value after a reset");
            }
            Ok(())
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(storm)).collect();
        threads.into_iter().try_for_each(join)
    })
}

fn readers_see_sense(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::ANY_THREAD)?;
    let event = bench.undisturbed()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..bench.room(3) {
            let mut group = bench.open(&GroupSpec::single(event.clone()))?;
            let over = &over;
            readers.push(scope.spawn(move || -> Outcome {
                let mut last = reading(&mut *group)?;
                while !over.load(Ordering::Relaxed) {
                    let now = reading(&mut *group)?;
                    ensure!(
                        now.checked_since(&last).is_some(),
                        "{now:?} came after {last:?}"
                    );
                    last = now;
                }
                Ok(())
            }));
        }
        let worked = (0..300).try_for_each(|_| bench.cause(&event, 3));
        over.store(true, Ordering::Relaxed);
        readers.into_iter().try_for_each(join)?;
        worked
    })
}

fn snapshot_holds(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::ANY_THREAD)?;
    let event = bench.undisturbed()?;
    bench.need_room(2)?;
    let mut group = bench.open(&stopped(vec![event.clone(); 2]))?;
    need_atomic(bench, &*group)?;
    group.enable()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| -> Outcome {
            while !over.load(Ordering::Relaxed) {
                let seen = values(&mut *group)?;
                ensure_eq!(seen[1], seen[0], "one snapshot of one event");
            }
            Ok(())
        });
        let worked = (0..300).try_for_each(|_| bench.cause(&event, 1));
        over.store(true, Ordering::Relaxed);
        join(reader)?;
        worked
    })
}

fn moves_between_threads(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::ANY_THREAD)?;
    let event = bench.undisturbed()?;
    let mut group = bench.open_stopped(&event)?;
    for round in 1..=5u64 {
        group = thread::scope(|scope| {
            join(scope.spawn(move || group.enable().map(|()| group).map_err(Stop::from)))
        })?;
        bench.cause(&event, 4)?;
        group = thread::scope(|scope| {
            join(scope.spawn(move || group.disable().map(|()| group).map_err(Stop::from)))
        })?;
        ensure_eq!(
            reading(&mut *group)?.value,
            4 * round,
            "the value after {round} rounds"
        );
    }
    Ok(())
}

fn wrong_thread_is_said(bench: &Bench<'_>) -> Outcome {
    if bench.capabilities().features.contains(Features::ANY_THREAD) {
        return Err(Missing::Inapplicable("groups can be used from any thread").into());
    }
    let event = bench.exact()?;
    let mut group = bench.open_stopped(&event)?;
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
    read(&mut *group)?;
    Ok(())
}

fn dropped_elsewhere(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::ANY_THREAD)?;
    let event = bench.exact()?;
    let before = bench.resources()?;
    for _ in 0..10 {
        let group = bench.open(&GroupSpec::single(event.clone()))?;
        thread::scope(|scope| {
            join(scope.spawn(move || {
                drop(group);
                Ok(())
            }))
        })?;
    }
    ensure_eq!(bench.resources()?, before, "what the backend holds");
    Ok(())
}

fn exact_in_a_storm(bench: &Bench<'_>) -> Outcome {
    bench.need(Features::ANY_THREAD)?;
    let event = bench.undisturbed()?;
    bench.need_room(4)?;
    let mut group = bench.open_stopped(&event)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let storm = || -> Outcome {
            while !over.load(Ordering::Relaxed) {
                let mut other = bench.open(&GroupSpec::single(event.clone()))?;
                other.disable()?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(storm)).collect();
        let counted = (|| {
            group.enable()?;
            (0..100).try_for_each(|_| bench.cause(&event, 5))?;
            group.disable()?;
            reading(&mut *group)
        })();
        over.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(join)?;
        ensure_eq!(counted?.scaled().exact(), Some(500), "what was counted");
        Ok(())
    })
}
