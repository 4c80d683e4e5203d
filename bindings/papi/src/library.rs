//! The state of the library: initialized or not, and for which version of the interface.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::V7_0;
use crate::code::{ENOINIT, Outcome};

pub(crate) const NOT_INITED: c_int = 0;
pub(crate) const LOW_LEVEL: c_int = 1;
pub(crate) const HIGH_LEVEL: c_int = 2;
pub(crate) const THREAD_LEVEL: c_int = 4;

/// The state of initialization: the levels, the process, and the version of the interface.
pub(crate) struct Library {
    /// The levels that are initialized, as bits.
    pub(crate) level: AtomicI32,
    /// The version of the interface that the program asked for; 0 before.
    pub(crate) version: AtomicI32,
    /// The process that initialized it; a forked child has to do that again.
    pub(crate) process: AtomicU32,
}

pub(crate) static LIBRARY: Library = Library {
    level: AtomicI32::new(NOT_INITED),
    version: AtomicI32::new(0),
    process: AtomicU32::new(0),
};

/// The interval timer that software uses: its number, signal and nanoseconds.
pub(crate) static ITIMER: [AtomicI32; 3] = [
    AtomicI32::new(libc::ITIMER_PROF as c_int),
    AtomicI32::new(libc::SIGPROF),
    AtomicI32::new(10_000_000),
];

/// Locks what a panic elsewhere may have poisoned: nothing is kept there that it could have left half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Library {
    /// Returns a code if the library is not initialized.
    pub(crate) fn require(&self) -> Outcome {
        match self.level.load(Ordering::Acquire) {
            NOT_INITED => Err(ENOINIT),
            _ => Ok(()),
        }
    }

    /// Returns true if `PAPI_library_init` succeeded.
    pub(crate) fn is_initialized(&self) -> bool {
        self.require().is_ok()
    }

    /// Returns the version of the interface that the program was built for.
    pub(crate) fn version(&self) -> c_int {
        match self.version.load(Ordering::Relaxed) {
            0 => V7_0,
            version => version,
        }
    }

    /// Notes that another level is initialized.
    pub(crate) fn add_level(&self, level: c_int) {
        self.level.fetch_or(level, Ordering::AcqRel);
    }

    /// Returns true if a level is initialized.
    pub(crate) fn has_level(&self, level: c_int) -> bool {
        self.level.load(Ordering::Acquire) & level != 0
    }
}

/// Returns the pointer that a function of the initialized library makes; else null.
pub(crate) fn if_initialized<T>(make: impl FnOnce() -> *const T) -> *const T {
    match LIBRARY.is_initialized() {
        true => make(),
        false => std::ptr::null(),
    }
}
