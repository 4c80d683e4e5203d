//! The installation of handlers of signals, and the error number that they leave alone.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use super::signal;
use crate::code::{ESYS, Outcome};
use crate::option::ITIMER;

/// A handler of a signal.
pub(super) type OnSignal = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Installs the handler of a signal. While it runs, no other handler of overflows is called on its thread.
pub(super) fn install(signal: c_int, handler: OnSignal) -> Outcome {
    // SAFETY: zeros are a value of the struct; the set in it is made empty before signals are added; the handler has the
    // type that the flags say.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        let timer = ITIMER[1].load(Ordering::Relaxed);
        for other in [signal::number(), libc::SIGIO, timer] {
            libc::sigaddset(&mut action.sa_mask, other);
        }
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    match installed {
        0 => Ok(()),
        _ => Err(ESYS),
    }
}

/// Returns true if nobody handles a signal, so that it would end the process.
pub(super) fn is_unhandled(signal: c_int) -> bool {
    // SAFETY: zeros are a value of the struct, which is written to.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_DFL
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
