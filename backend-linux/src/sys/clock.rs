//! The kernel's clock.

use std::mem::MaybeUninit;

/// Returns the nanoseconds of `CLOCK_MONOTONIC_RAW`, which goes on evenly (clock_gettime(2)).
#[inline(always)]
pub(crate) fn monotonic_raw() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes a time to memory of ours, which is one of zeros before that.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
