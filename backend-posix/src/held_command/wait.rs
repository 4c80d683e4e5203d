//! Waiting for a child, and not longer than asked.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod pidfd;
        use pidfd as notice;
    } else if #[cfg(any(
        target_os = "openbsd",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "dragonfly",
        target_vendor = "apple"
    ))] {
        mod kqueue;
        use kqueue as notice;
    } else {
        mod elsewhere;
        use elsewhere as notice;
    }
}

/// How often a child is looked at where nothing tells of its end.
const LOOK: Duration = Duration::from_millis(1);

/// wait4(2): the raw status and what was used, or `None` when the child is still running.
pub(super) fn wait4(pid: i32, flags: libc::c_int) -> io::Result<Option<(i32, libc::rusage)>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live locals, which the kernel fills in.
    let waited = unsafe { libc::wait4(pid, &raw mut status, flags, usage.as_mut_ptr()) };
    match waited {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        // SAFETY: rusage is integers only, and was zeroed before the kernel filled it in.
        _ => Ok(Some((status, unsafe { usage.assume_init() }))),
    }
}

/// Sleeps until the child ends (it stays to be waited for), a signal arrives, or the time is over;
/// where the system tells of no end, for a moment.
pub(super) fn sleep_until_exit(pid: i32, timeout: Duration) {
    if notice::of_exit(pid, timeout).is_none() {
        std::thread::sleep(LOOK.min(timeout));
    }
}
