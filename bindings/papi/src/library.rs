//! The state of the library: initialized or not, its threads, event sets and natively named events.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::abi::{V7_0, VERSIONS};
use crate::code::{EINVAL, ENOINIT, Outcome, call, call_or};
use crate::event_set::Set;
use crate::native::Natives;
use crate::sets::Sets;
use crate::thread::Threads;

const NOT_INITED: c_int = 0;
const LOW_LEVEL: c_int = 1;
pub(crate) const HIGH_LEVEL: c_int = 2;
pub(crate) const THREAD_LEVEL: c_int = 4;

/// Everything that the library remembers between calls.
pub(crate) struct Library {
    level: AtomicI32,
    /// The version of the interface that the program asked for; 0 before.
    version: AtomicI32,
    /// The process that initialized it; a forked child has to do that again.
    process: AtomicU32,
    pub(crate) threads: Threads,
    pub(crate) natives: RwLock<Natives>,
    pub(crate) sets: Sets,
}

pub(crate) static LIBRARY: Library = Library {
    level: AtomicI32::new(NOT_INITED),
    version: AtomicI32::new(0),
    process: AtomicU32::new(0),
    threads: Threads::new(),
    natives: RwLock::new(Natives::new()),
    sets: Sets::new(),
};

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

    /// Initializes what is not in this process, for a program that asks for a version, or for none.
    ///
    /// # Errors
    /// The structs of a version are written into the program's memory: it has one.
    pub(crate) fn initialize(&self, version: Option<c_int>) -> Outcome {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = lock(&ONE_AT_A_TIME);
        let process = std::process::id();
        let is_initialized =
            self.is_initialized() && self.process.load(Ordering::Relaxed) == process;
        let before = self.version.load(Ordering::Relaxed);
        let version = version.unwrap_or(before);
        if is_initialized && before != 0 && before != version {
            return Err(EINVAL);
        }
        self.version.store(version, Ordering::Relaxed);
        if !is_initialized {
            self.clear();
            self.threads.start();
            self.process.store(process, Ordering::Relaxed);
            crate::user_events::read();
            self.level.store(LOW_LEVEL, Ordering::Release);
        }
        Ok(())
    }

    /// Notes that another level is initialized.
    pub(crate) fn add_level(&self, level: c_int) {
        self.level.fetch_or(level, Ordering::AcqRel);
    }

    /// Returns true if a level is initialized.
    pub(crate) fn has_level(&self, level: c_int) -> bool {
        self.level.load(Ordering::Acquire) & level != 0
    }

    /// Runs something on an event set.
    pub(crate) fn with<T>(
        &self,
        number: c_int,
        body: impl FnOnce(&mut Set) -> Outcome<T>,
    ) -> Outcome<T> {
        self.sets.with(number, body)
    }

    fn clear(&self) {
        self.sets.clear();
        self.threads.clear();
        self.level.store(NOT_INITED, Ordering::Release);
    }
}

/// Returns what the initialized library tells; else nothing.
pub(crate) fn if_initialized<T>(tell: impl FnOnce() -> *const T) -> *const T {
    match LIBRARY.is_initialized() {
        true => tell(),
        false => std::ptr::null(),
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_library_init(version: c_int) -> c_int {
    call(|| {
        if !VERSIONS.contains(&version) {
            return Err(EINVAL);
        }
        LIBRARY.initialize(Some(version))?;
        Ok(version)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_is_initialized() -> c_int {
    call_or(NOT_INITED, || LIBRARY.level.load(Ordering::Acquire))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_shutdown() {
    call(|| {
        LIBRARY.require()?;
        LIBRARY.clear();
        Ok(0)
    });
}
