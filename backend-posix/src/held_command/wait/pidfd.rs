//! Linux: pidfd_open(2), since 5.3.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Sleeps until the child ends, a signal arrives or the time is over; `None` when this kernel cannot
/// tell.
pub(super) fn of_exit(pid: i32, timeout: Duration) -> Option<()> {
    // SAFETY: the call takes integers and returns a new descriptor or -1, which fit an int.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as RawFd;
    if fd < 0 {
        return None;
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut poll = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // Rounded up, so that it does not spin through the last millisecond.
    let milliseconds = timeout.as_nanos().div_ceil(1_000_000);
    let milliseconds = i32::try_from(milliseconds).unwrap_or(i32::MAX);
    // SAFETY: one pollfd, live and exclusively borrowed, over a descriptor that is open.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
    Some(())
}
