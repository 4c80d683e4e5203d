//! The installation of handlers of signals, and the error number that they leave alone.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use nix::errno::Errno;

use crate::boundary::inside::overflow_signal;
use crate::code::{ESYS, Outcome};
use crate::library::ITIMER;
use crate::sys::{OnSignal, set_handler};

/// Installs the handler of a signal. While it runs, no other handler of overflows is called on its thread.
pub(super) fn install(signal: c_int, handler: OnSignal) -> Outcome {
    let timer = ITIMER[1].load(Ordering::Relaxed);
    let blocked = [overflow_signal(), libc::SIGIO, timer];
    set_handler(signal, handler, &blocked).map_err(|_| ESYS)
}

/// Runs something that leaves the thread's error number as it was.
pub(super) fn keeping_errno(body: impl FnOnce()) {
    let errno = Errno::last_raw();
    body();
    Errno::set_raw(errno);
}
