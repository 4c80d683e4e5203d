//! Waiting for descriptors: poll(2).

use std::time::Duration;

use nix::errno::Errno;

use super::errno::last_errno;

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// A descriptor is ready.
    Ready,
    TimedOut,
    Interrupted,
}

/// Waits for one of the descriptors, at most so long (rounded up to milliseconds). nix's descriptors borrow from their owners,
/// beside which they could not be kept.
pub(crate) fn poll(
    descriptors: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> Result<Readiness, i32> {
    let milliseconds = timeout.map_or(-1, |timeout| {
        let up = timeout.as_nanos().div_ceil(1_000_000);
        i32::try_from(up).unwrap_or(i32::MAX)
    });
    // A slice has no more elements than fit an nfds_t.
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the kernel reads and writes as many entries as the slice has.
    let ready = unsafe { libc::poll(descriptors.as_mut_ptr(), count, milliseconds) };
    match Errno::result(ready) {
        Ok(0) => Ok(Readiness::TimedOut),
        Ok(_) => Ok(Readiness::Ready),
        Err(Errno::EINTR) => Ok(Readiness::Interrupted),
        Err(_) => Err(last_errno()),
    }
}
