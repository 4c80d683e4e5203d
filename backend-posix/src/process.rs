//! The life of this process: its end, and the processes that are forked from it.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Returns the number of forks that lie between this process and the one that called this first: a library that keeps
/// what belongs to a process compares it. It makes no system call (pthread_atfork(3)); children of vfork(2) and of raw
/// system calls are not counted.
///
/// ```
/// let forks = quipu_posix::forks();
/// assert_eq!(quipu_posix::forks(), forks);
/// ```
pub fn forks() -> u32 {
    static COUNTED: Once = Once::new();
    extern "C" fn count() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    extern "C" fn nothing() {}
    COUNTED.call_once(|| sys::at_fork(nothing, nothing, count));
    FORKS.load(Ordering::Relaxed)
}

/// Has functions called around each fork(2), in the thread that forks: one before it, and one behind it, in the process and in
/// its child. A library that takes its locks in the first and gives them back in the second has none that is held for ever
/// in the child.
pub fn around_forks(before: extern "C" fn(), behind: extern "C" fn()) {
    sys::at_fork(before, behind, behind);
}

/// Has a function called when the process ends by exit(3) or returns from `main` (atexit(3)). Returns false if it cannot be.
pub fn at_exit(function: extern "C" fn()) -> bool {
    sys::at_exit(function)
}
