//! Stopping and starting everything the calling thread counts, in one system call each.

use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Result};

use crate::sys::last_errno;

/// Stops every counter that the calling thread has created, whatever it counts and whoever holds
/// it now: also those of other libraries in this thread. Counters that other threads created to
/// count this one go on (prctl(2), `PR_TASK_PERF_EVENTS_DISABLE`).
///
/// For leaving a stretch of code out of all measurements at once. A group that was stopped this way
/// starts again with [`start_own_counters`] or its own `enable`.
///
/// # Errors
/// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the kernel has no perf_event_open.
pub fn stop_own_counters() -> Result<()> {
    prctl(
        libc::PR_TASK_PERF_EVENTS_DISABLE,
        "stop this thread's counters",
    )
}

/// Starts every counter that the calling thread has created, also those that were opened without
/// counting or stopped by `disable` (prctl(2), `PR_TASK_PERF_EVENTS_ENABLE`).
///
/// It sleeps for an instant (some 100 microseconds): the kernel starts the members of a group one by
/// one, and puts those that follow a leader that counts already onto the PMU at the next context
/// switch only.
///
/// # Errors
/// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the kernel has no perf_event_open.
pub fn start_own_counters() -> Result<()> {
    prctl(
        libc::PR_TASK_PERF_EVENTS_ENABLE,
        "start this thread's counters",
    )?;
    std::thread::sleep(Duration::from_micros(50));
    Ok(())
}

fn prctl(operation: libc::c_int, attempted: &str) -> Result<()> {
    // SAFETY: these operations take no further argument and touch no memory of ours.
    if unsafe { libc::prctl(operation) } == 0 {
        return Ok(());
    }
    let errno = last_errno();
    let kind = match errno {
        libc::EINVAL => ErrorKind::NoSuchDevice,
        _ => ErrorKind::Os,
    };
    Err(Error::new(kind, attempted).with_errno(errno))
}
