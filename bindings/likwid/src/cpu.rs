//! The CPUs of threads.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The CPU on which each thread was when it came first, by its number.
static CPUS: Mutex<BTreeMap<u64, i32>> = Mutex::new(BTreeMap::new());

thread_local! {
    static IS_NOTED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Notes on which CPU the calling thread is, once.
pub(crate) fn note() {
    if !IS_NOTED.replace(true)
        && let Some(thread) = thread()
    {
        let mut cpus = CPUS.lock().unwrap_or_else(PoisonError::into_inner);
        cpus.insert(thread, current());
    }
}

/// Returns the CPU that was noted of a thread, or -1.
pub(crate) fn of_thread(thread: u64) -> i32 {
    let cpus = CPUS.lock().unwrap_or_else(PoisonError::into_inner);
    cpus.get(&thread).copied().unwrap_or(-1)
}

/// Returns the CPU that the calling thread is on, or -1.
pub(crate) fn current() -> i32 {
    #[cfg(target_os = "linux")]
    {
        nix::sched::sched_getcpu()
            .ok()
            .and_then(|cpu| i32::try_from(cpu).ok())
            .unwrap_or(-1)
    }
    #[cfg(not(target_os = "linux"))]
    {
        -1
    }
}

/// Returns the number of the calling thread, where reports have the system's.
fn thread() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        u64::try_from(nix::unistd::gettid().as_raw()).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        None
    }
}

/// Binds the calling thread to a CPU; returns false if it cannot be.
pub(crate) fn bind(cpu: i32) -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut cpus = nix::sched::CpuSet::new();
        let set = usize::try_from(cpu).is_ok_and(|cpu| cpus.set(cpu).is_ok());
        let this_thread = nix::unistd::Pid::from_raw(0);
        set && nix::sched::sched_setaffinity(this_thread, &cpus).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = cpu;
        false
    }
}
