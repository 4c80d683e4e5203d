//! The time stamp counter, read in user space.

use crate::boundary::{self, guarded};
use crate::failure::Failure;
use crate::quipu_status;

/// Reads the time stamp counter of the CPU that the calling thread is on, without a system call: RDTSC of x86, CNTVCT_EL0
/// of 64-bit ARM.
///
/// It counts time at a rate of its own on today's CPUs, not the CPU's cycles, which the event "cycles" counts; it counts for
/// the CPU, also while the thread is not running; the CPU may execute it before or after instructions beside it, a
/// hypervisor may intercept it; and in a process that has disabled it (prctl(2), PR_SET_TSC) it ends the program.
/// Counters of events are read without a system call by quipu_set_read() where QUIPU_EVENT_USER_READ says so.
///
/// Returns QUIPU_EFEATURE on other CPUs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_time_stamp(out: *mut u64) -> quipu_status {
    guarded(|| {
        boundary::check_pointer(out, "out")?;
        let ticks = quipu::time_stamp().ok_or_else(|| {
            let error = quipu::Error::new(
                quipu::ErrorKind::UnsupportedFeature,
                "read the time stamp counter",
            );
            Failure::from(error.with_reason("this CPU has none that is known"))
        })?;
        // SAFETY: the caller's promise.
        unsafe { boundary::write(out, ticks, "out") }
    })
}
