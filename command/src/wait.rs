//! Waits for a child, with and without a timeout.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::Pid;

/// Interval of polling on systems that do not report the end of a child.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Calls wait4(2): returns the raw status and the usage, or `None` if the child is still running.
pub(crate) fn wait4(pid: i32, flags: libc::c_int) -> io::Result<Option<(i32, libc::rusage)>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live locals, which the kernel fills in. An rusage is integers only,
    // and was zeroed before.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(pid, &raw mut status, flags, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    match waited {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some((status, usage))),
    }
}

/// Sleeps until the child ends (it can still be waited for), a signal arrives, or the time is over; on
/// systems that do not report the end of a child, for the polling interval.
pub(crate) fn sleep_until_exit(pid: i32, timeout: Duration) {
    if Pid::from_raw(pid)
        .and_then(|pid| poll_exit(pid, timeout))
        .is_none()
    {
        std::thread::sleep(POLL_INTERVAL.min(timeout));
    }
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use rustix::process::{PidfdFlags, pidfd_open};

        /// Sleeps until the child ends, a signal arrives or the time is over (pidfd_open(2), Linux 5.3);
        /// returns `None` if this kernel has no pidfds.
        fn poll_exit(pid: Pid, timeout: Duration) -> Option<()> {
            let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // Longer than a timespec holds is without end.
            let timeout = Timespec::try_from(timeout).ok();
            let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
            // It fails only when a signal arrives, which ends the sleep as well.
            let _ = poll(&mut polled, timeout.as_ref());
            Some(())
        }
    } else if #[cfg(any(
        target_os = "openbsd",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "dragonfly",
        target_vendor = "apple"
    ))] {
        use rustix::event::kqueue::{
            Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue,
        };
        use rustix::io::Errno;

        /// The longest timeout: some systems refuse longer ones that others accept.
        const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

        /// Sleeps until the child ends, a signal arrives or the time is over (kqueue(2), `NOTE_EXIT`);
        /// returns `None` if the system does not report it, as of a child that is just ending (`ESRCH`).
        fn poll_exit(pid: Pid, timeout: Duration) -> Option<()> {
            let queue = kqueue().ok()?;
            let flags = ProcessEvents::EXIT;
            let exit = Event::new(
                EventFilter::Proc { pid, flags },
                EventFlags::ADD | EventFlags::ONESHOT,
                std::ptr::null_mut(),
            );
            let mut room = [MaybeUninit::<Event>::uninit()];
            // SAFETY: the event is about a process, and refers to no descriptor that could be closed.
            let waited = unsafe { kevent(&queue, &[exit], &mut room, Some(timeout.min(LONGEST))) };
            let refused = match waited {
                Err(error) => error != Errno::INTR,
                // An error of a change is reported as an event.
                Ok((events, _)) => events.iter().any(|e| e.flags().contains(EventFlags::ERROR)),
            };
            (!refused).then_some(())
        }
    } else {
        /// Returns `None`: this system does not report the end of a child.
        fn poll_exit(_: Pid, _: Duration) -> Option<()> {
            None
        }
    }
}
