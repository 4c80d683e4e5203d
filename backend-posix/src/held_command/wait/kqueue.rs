//! The BSDs and macOS: kqueue(2), `EVFILT_PROC` with `NOTE_EXIT`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Sleeps until the child ends, a signal arrives or the time is over; `None` when the system does not
/// tell, as of a child that is just ending (`ESRCH`).
#[allow(
    clippy::cast_lossless,
    clippy::unnecessary_cast,
    reason = "the types of these fields and constants differ from system to system"
)]
pub(super) fn of_exit(pid: i32, timeout: Duration) -> Option<()> {
    // SAFETY: the call takes nothing and returns a new descriptor or -1.
    let queue = unsafe { libc::kqueue() };
    if queue < 0 {
        return None;
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let queue = unsafe { OwnedFd::from_raw_fd(queue) };
    // SAFETY: a kevent is integers and a pointer, for which all zeros are valid.
    let mut exit: libc::kevent = unsafe { MaybeUninit::zeroed().assume_init() };
    exit.ident = usize::try_from(pid).ok()?;
    exit.filter = libc::EVFILT_PROC as _;
    exit.flags = (libc::EV_ADD | libc::EV_ONESHOT) as _;
    exit.fflags = libc::NOTE_EXIT as _;
    let mut happened = exit;
    let timeout = libc::timespec {
        // Capped, because some systems refuse what others wait for.
        tv_sec: timeout.as_secs().min(24 * 60 * 60) as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as libc::c_long,
    };
    // SAFETY: one change and room for one event, both live, and a live timeout, over a descriptor that
    // is open.
    let events = unsafe {
        libc::kevent(
            queue.as_raw_fd(),
            &raw const exit,
            1,
            &raw mut happened,
            1,
            &raw const timeout,
        )
    };
    let refused = match events {
        -1 => io::Error::last_os_error().raw_os_error() != Some(libc::EINTR),
        // What is wrong with a change is told as an event.
        1 => happened.flags as u64 & libc::EV_ERROR as u64 != 0,
        _ => false,
    };
    (!refused).then_some(())
}
