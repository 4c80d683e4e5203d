//! Threads that get to every CPU, where a program cannot choose its CPUs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{hint, thread};

use crate::sys::{nice_value, set_nice_value};

/// The longest time to wait for a CPU that no thread gets to.
const LONGEST: Duration = Duration::from_secs(2);

/// The number of threads for each CPU. With as many as CPUs, one can wait behind another for a CPU that is busy.
const THREADS: usize = 2;

/// The number of looks after which a thread lets others run: a command that has every CPU shall go on.
const LOOKS: u32 = 64;

/// The nice value of this process meanwhile, if it may have it: a thread that waits for a CPU that another program keeps busy
/// gets there at once, and not after that program's share of a tenth of a second.
const URGENT: i32 = -20;

/// Little is called in them.
const STACK: usize = 64 << 10;

/// Calls `visit` here, and then in threads that take all CPUs, until it returns true. One thread after the other is
/// started, no more than that takes. Before the first, `take_turn` waits until no other process has such threads:
/// they would keep each other from the CPUs.
///
/// The scheduler puts new threads on idle CPUs, and moves waiting ones to a CPU that becomes idle. A thread that
/// slept would stay where it is, so they spin.
pub(crate) fn visit_cpus<T>(
    cpus: usize,
    take_turn: impl FnOnce() -> T,
    visit: &(dyn Fn() -> bool + Sync),
) {
    if visit() || cpus < 2 {
        return;
    }
    let _turn = take_turn();
    let _urgent = Urgent::new();
    let (done, end) = (AtomicBool::new(false), Instant::now() + LONGEST);
    let look = || {
        // It gives an emulated CPU's time to the next, on which a thread may be just about to look.
        hint::spin_loop();
        let seen = (0..LOOKS).any(|_| visit());
        if seen || Instant::now() > end {
            done.store(true, Ordering::Relaxed);
        }
        done.load(Ordering::Relaxed)
    };
    thread::scope(|scope| {
        for _ in 0..THREADS * cpus {
            // With fewer threads it may take longer.
            let thread = thread::Builder::new().stack_size(STACK);
            let _ = thread.spawn_scoped(scope, || {
                while !look() {
                    thread::yield_now();
                }
            });
            // Most often the first thread got to the last CPU.
            if look() {
                return;
            }
        }
        while !look() {
            thread::yield_now();
        }
    });
}

/// The urgency of this process, which ends with this value.
struct Urgent(Option<i32>);

impl Urgent {
    fn new() -> Self {
        let before = nice_value().ok();
        Self(before.filter(|_| set_nice_value(URGENT).is_ok()))
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // Being less urgent is always permitted.
            let _ = set_nice_value(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn it_ends_when_all_is_seen_and_starts_no_thread_for_one_cpu() {
        let seen = Mutex::new(BTreeSet::new());
        let visit = |wanted: usize| {
            let mut seen = seen.lock().unwrap();
            seen.insert(format!("{:?}", thread::current().id()));
            seen.len() >= wanted
        };
        visit_cpus(1, || (), &|| visit(2));
        assert_eq!(seen.lock().unwrap().len(), 1);
        let before = nice_value().unwrap();
        visit_cpus(2, || (), &|| visit(3));
        assert!((3..=1 + 2 * THREADS).contains(&seen.lock().unwrap().len()));
        assert_eq!(nice_value().unwrap(), before);
    }
}
