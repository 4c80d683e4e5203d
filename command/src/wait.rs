//! Waits for a child, with and without a timeout.

use std::time::Duration;

/// Interval of polling on systems that do not report the end of a child.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Sleeps until the child ends (it can still be waited for), a signal arrives, or the time is over; on
/// systems that do not report the end of a child, for the polling interval.
pub(crate) fn sleep_until_exit(pid: i32, timeout: Duration) {
    if poll_exit(pid, timeout).is_none() {
        std::thread::sleep(POLL_INTERVAL.min(timeout));
    }
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        use std::os::fd::AsFd as _;

        use nix::poll::{PollFd, PollFlags, ppoll};
        use nix::sys::time::TimeSpec;

        use crate::sys::pidfd_open;

        /// Sleeps until the child ends, a signal arrives or the time is over (pidfd_open(2), Linux 5.3);
        /// returns `None` if this kernel has no pidfds.
        fn poll_exit(pid: i32, timeout: Duration) -> Option<()> {
            let pidfd = pidfd_open(pid).ok()?;
            // Longer than a timespec of 32 bits holds is without end.
            let fits = i32::try_from(timeout.as_secs()).is_ok();
            let timeout = fits.then(|| TimeSpec::from(timeout));
            let mut polled = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            // It fails only when a signal arrives, which ends the sleep as well.
            let _ = ppoll(&mut polled, timeout, None);
            Some(())
        }
    } else if #[cfg(any(
        target_os = "openbsd",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "dragonfly",
        target_vendor = "apple"
    ))] {
        use nix::errno::Errno;
        use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
        use nix::sys::time::TimeSpec;

        /// The longest timeout: some systems refuse longer ones that others accept.
        const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

        /// Sleeps until the child ends, a signal arrives or the time is over (kqueue(2), `NOTE_EXIT`);
        /// returns `None` if the system does not report it, as of a child that is just ending (`ESRCH`).
        fn poll_exit(pid: i32, timeout: Duration) -> Option<()> {
            let queue = Kqueue::new().ok()?;
            let of_process = usize::try_from(pid).ok()?;
            let filter = EventFilter::EVFILT_PROC;
            let flags = EvFlags::EV_ADD | EvFlags::EV_ONESHOT;
            let mut events = [KEvent::new(of_process, filter, flags, FilterFlag::NOTE_EXIT, 0, 0)];
            let exit = events;
            let timeout = TimeSpec::from_duration(timeout.min(LONGEST));
            let refused = match queue.kevent(&exit, &mut events, Some(*timeout.as_ref())) {
                Err(errno) => errno != Errno::EINTR,
                // An error of a change is reported as an event.
                Ok(count) => events[..count].iter().any(|e| e.flags().contains(EvFlags::EV_ERROR)),
            };
            (!refused).then_some(())
        }
    } else {
        /// Returns `None`: this system does not report the end of a child.
        fn poll_exit(_: i32, _: Duration) -> Option<()> {
            None
        }
    }
}
