//! The side of the library that a thread is on. Handlers of overflows keep out while it is inside of a function of the library:
//! an overflow that arrives meanwhile is handled when the thread leaves.

use std::cell::Cell;
use std::ffi::c_int;
use std::panic::{self, AssertUnwindSafe};

use nix::sys::signal::SigSet;

use crate::sys::contains;
#[cfg(target_os = "linux")]
use crate::sys::raise;

/// The side that a thread is on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Outside,
    Inside,
    /// Inside, and overflows are to be handled outside.
    InsideDeferring,
}

thread_local! {
    /// The side that the thread is on.
    static SIDE: Cell<Side> = const { Cell::new(Side::Outside) };
    /// The signal whose handler calls the program's handler of overflows, which may have interrupted an allocation; else 0.
    static HANDLING: Cell<c_int> = const { Cell::new(0) };
}

/// Runs something inside of the library. A panic ends here.
pub(crate) fn inside<T>(body: impl FnOnce() -> T) -> std::thread::Result<T> {
    SIDE.with(|side| {
        let outer = side.replace(Side::Inside);
        let outcome = panic::catch_unwind(AssertUnwindSafe(body));
        leave(side, outer);
        outcome
    })
}

/// Returns true while this thread handles an overflow: nothing may be allocated or freed.
pub(crate) fn is_handling() -> bool {
    match HANDLING.with(Cell::get) {
        0 => false,
        signal if is_blocked(signal) => true,
        // The program's handler was left by siglongjmp(3), which restores what was blocked before.
        _ => {
            HANDLING.with(|handling| handling.set(0));
            false
        }
    }
}

/// Returns true if this thread gets no signals of a number, as in the handler of that.
fn is_blocked(signal: c_int) -> bool {
    SigSet::thread_get_mask().is_ok_and(|blocked| contains(&blocked, signal))
}

/// Calls the program's handler of overflows in the handler of a signal.
#[cfg(target_os = "linux")]
pub(crate) fn handling(signal: c_int, handler: impl FnOnce()) {
    HANDLING.with(|handling| handling.set(signal));
    handler();
    HANDLING.with(|handling| handling.set(0));
}

/// Returns true while this thread is inside of a function of the library.
#[cfg(target_os = "linux")]
pub(crate) fn is_inside() -> bool {
    SIDE.with(Cell::get) != Side::Outside
}

/// Returns true if this thread is inside of a function of the library: overflows are then handled when it leaves.
#[cfg(target_os = "linux")]
pub(crate) fn defer() -> bool {
    let inside = is_inside();
    if inside {
        SIDE.with(|side| side.set(Side::InsideDeferring));
    }
    inside
}

/// Leaves a function of the library, and has the overflows handled that came inside.
fn leave(side: &Cell<Side>, outer: Side) {
    let inner = side.replace(outer);
    if inner == Side::InsideDeferring {
        leave_deferring(outer);
    }
}

fn leave_deferring(outer: Side) {
    match outer {
        #[cfg(target_os = "linux")]
        Side::Outside => send_again(),
        _ => SIDE.with(|side| side.set(Side::InsideDeferring)),
    }
}

/// Returns the signal of overflows, PAPI's.
#[cfg(target_os = "linux")]
pub(crate) fn overflow_signal() -> c_int {
    libc::SIGRTMIN() + 2
}

/// Sends the signal that came while the thread was inside of the library once more, to be handled outside.
#[cfg(target_os = "linux")]
fn send_again() {
    // Handlers of both signals are installed, as one came before. Where too many are pending, only the plain one is sent.
    if raise(overflow_signal()).is_err() {
        let _ = raise(libc::SIGIO);
    }
}
