//! Stopping and starting everything the calling thread counts, in one system call each.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Result};

use crate::sys::{directory_entries, link_target, set_own_counters};

/// Stops every counter that the calling thread has created, including those of other
/// libraries and those that it has handed to other threads. Counters that other threads created to
/// count this one go on (prctl(2), `PR_TASK_PERF_EVENTS_DISABLE`).
///
/// For leaving a stretch of code out of all measurements at once. A group that was stopped this way
/// starts again with [`start_own_counters`] or its own `enable`.
///
/// # Errors
/// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the kernel has no perf_event_open.
pub fn stop_own_counters() -> Result<()> {
    STOPPED_ONE_BY_ONE.store(true, Ordering::Relaxed);
    set_own_counters(false).map_err(|errno| error(errno, "stop this thread's counters"))
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
    set_own_counters(true).map_err(|errno| error(errno, "start this thread's counters"))?;
    std::thread::sleep(Duration::from_micros(50));
    Ok(())
}

/// Set once members of groups may have been stopped by themselves, without their leaders.
static STOPPED_ONE_BY_ONE: AtomicBool = AtomicBool::new(false);

/// Returns true if members of groups may have been stopped by themselves.
pub(crate) fn were_stopped() -> bool {
    STOPPED_ONE_BY_ONE.load(Ordering::Relaxed)
}

/// Starts counters of the calling thread, which has created so many, in one system call: none of them counts the
/// calls that start the others. Returns false, having done nothing, where this process has other counters,
/// which would be started too.
///
/// To find out, every open descriptor is looked at (`/proc/self/fd`): 4 microseconds each in a virtual machine, where
/// starting one group takes 0.7. It is worth it only where the calls would be counted.
///
/// # Errors
/// When the kernel refuses.
pub fn start_if_alone(counters: usize) -> Result<bool> {
    if were_stopped() || !open_counters(counters).is_ok_and(|open| open == counters) {
        return Ok(false);
    }
    set_own_counters(true).map_err(|errno| error(errno, "start the counters"))?;
    Ok(true)
}

/// Returns the number of descriptors of counters that this process has open, as far as it is not above `most`.
/// Allocates nothing, as starting counters does not.
fn open_counters(most: usize) -> io::Result<usize> {
    let dir = File::open("/proc/self/fd")?;
    let mut entries = [0; 1024];
    let mut counters = 0;
    loop {
        let length = directory_entries(&dir, &mut entries)?;
        let mut rest = &entries[..length];
        if rest.is_empty() {
            return Ok(counters);
        }
        while let Some((name, others)) = first_name(rest) {
            // One byte more, so that a longer name is not cut to it.
            let mut target = [0; COUNTER.len() + 1];
            // Those of the directory itself are no links.
            let length = link_target(&dir, name, &mut target).unwrap_or(0);
            counters += usize::from(&target[..length] == COUNTER);
            if counters > most {
                return Ok(counters);
            }
            rest = others;
        }
    }
}

/// The target of the link to a counter's descriptor in /proc.
const COUNTER: &[u8] = b"anon_inode:[perf_event]";

/// Takes the name out of the first of some directory entries (`struct linux_dirent64`, getdents64(2)).
fn first_name(entries: &[u8]) -> Option<(&CStr, &[u8])> {
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let length = entries.get(LENGTH..)?.first_chunk()?;
    let (entry, others) = entries.split_at_checked(u16::from_ne_bytes(*length).into())?;
    let name = CStr::from_bytes_until_nul(entry.get(NAME..)?).ok()?;
    Some((name, others))
}

fn error(errno: i32, attempted: &str) -> Error {
    let kind = match errno {
        libc::EINVAL => ErrorKind::NoSuchDevice,
        _ => ErrorKind::Os,
    };
    Error::new(kind, attempted).with_errno(errno)
}
