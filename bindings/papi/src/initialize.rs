//! Initialization of the library, and its end.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::abi::VERSIONS;
use crate::boundary::call::{call, call_or};
use crate::code::{EINVAL, Outcome};
use crate::event::user_events;
use crate::event_set::sets::SETS;
use crate::library::{LIBRARY, LOW_LEVEL, NOT_INITED, lock};
use crate::thread::THREADS;

/// Initializes what is not in this process, for a program that asks for a version, or for none.
///
/// # Errors
/// The structs of a version are written into the program's memory: it has one.
pub(crate) fn initialize(version: Option<c_int>) -> Outcome {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = lock(&ONE_AT_A_TIME);
    let process = std::process::id();
    let is_initialized =
        LIBRARY.is_initialized() && LIBRARY.process.load(Ordering::Relaxed) == process;
    let before = LIBRARY.version.load(Ordering::Relaxed);
    let version = version.unwrap_or(before);
    if is_initialized && before != 0 && before != version {
        return Err(EINVAL);
    }
    LIBRARY.version.store(version, Ordering::Relaxed);
    if !is_initialized {
        clear();
        THREADS.start();
        LIBRARY.process.store(process, Ordering::Relaxed);
        user_events::read();
        LIBRARY.level.store(LOW_LEVEL, Ordering::Release);
    }
    Ok(())
}

fn clear() {
    SETS.clear();
    THREADS.clear();
    LIBRARY.level.store(NOT_INITED, Ordering::Release);
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_library_init(version: c_int) -> c_int {
    call(|| {
        if !VERSIONS.contains(&version) {
            return Err(EINVAL);
        }
        initialize(Some(version))?;
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
        clear();
        Ok(0)
    });
}
