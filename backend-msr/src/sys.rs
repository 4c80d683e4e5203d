//! What the system says about this process.

use quipu_hal::{Error, ErrorKind, Result};

/// Whether this process is the superuser's.
pub(crate) fn is_root() -> bool {
    user() == 0
}

/// The user this process acts as.
pub(crate) fn user() -> u32 {
    // SAFETY: geteuid(2) takes nothing, touches no memory and cannot fail.
    unsafe { libc::geteuid() }
}

/// The CPU the calling thread is on.
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
pub(crate) fn current_cpu() -> Result<u32> {
    // SAFETY: sched_getcpu(3) takes nothing and touches no memory of this process.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| {
        let error = Error::new(ErrorKind::Os, "find out which CPU this thread is on");
        match std::io::Error::last_os_error().raw_os_error() {
            Some(errno) => error.with_errno(errno),
            None => error,
        }
    })
}

/// The CPU the calling thread is on.
#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
pub(crate) fn current_cpu() -> Result<u32> {
    Err(Error::new(
        ErrorKind::UnsupportedFeature,
        "find out which CPU this thread is on",
    ))
}

/// Locks a file for this open of it, or fails with `WouldBlock` at once.
pub(crate) fn lock(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open for as long as `file` is borrowed; flock(2) touches no memory.
    let done = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if done == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}
