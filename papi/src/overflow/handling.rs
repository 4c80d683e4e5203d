//! The installation of handlers of signals, and the error number that they leave alone.

use std::ffi::{c_int, c_void};

use crate::code::{ESYS, Outcome};

/// A handler of a signal.
pub(super) type OnSignal = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Installs the handler of a signal.
pub(super) fn install(signal: c_int, handler: OnSignal) -> Outcome {
    // SAFETY: zeros are a value of the struct; the handler has the type that the flags say.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    match installed {
        0 => Ok(()),
        _ => Err(ESYS),
    }
}

/// Runs something that leaves the thread's error number as it was.
pub(super) fn keeping_errno(body: impl FnOnce()) {
    // SAFETY: the address of the thread's own number.
    let errno = unsafe { *libc::__errno_location() };
    body();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
