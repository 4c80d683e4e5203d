//! The kernel's clock.

use nix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of `CLOCK_MONOTONIC_RAW`, which goes on evenly (clock_gettime(2)).
pub(crate) fn monotonic_raw() -> u64 {
    let nanoseconds = |time: nix::sys::time::TimeSpec| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    };
    // Every Linux has the clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC_RAW).map_or(0, nanoseconds)
}
