//! Waiting for descriptors: poll(2).

use std::time::Duration;

use super::calls::{Call, call};
use super::last_errno;

/// The end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// A descriptor is ready.
    Ready,
    TimedOut,
    Interrupted,
}

/// Waits for one of the descriptors, at most so long (rounded up to milliseconds).
pub(crate) fn poll(
    descriptors: &mut [libc::pollfd],
    timeout: Option<Duration>,
) -> Result<Readiness, i32> {
    let milliseconds = timeout.map_or(-1, |timeout| {
        let up = timeout.as_nanos().div_ceil(1_000_000);
        i32::try_from(up).unwrap_or(i32::MAX)
    });
    match call(Call::Poll(descriptors, milliseconds)) {
        0 => Ok(Readiness::TimedOut),
        1.. => Ok(Readiness::Ready),
        _ => match last_errno() {
            libc::EINTR => Ok(Readiness::Interrupted),
            errno => Err(errno),
        },
    }
}
