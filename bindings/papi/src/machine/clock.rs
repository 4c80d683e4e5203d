//! Clocks: real and of the calling thread, in nanoseconds, microseconds and cycles.

use std::ffi::c_longlong;

use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

use crate::boundary::call::call_or;
use crate::machine::hardware::max_mhz;

fn nanoseconds(clock: ClockId) -> c_longlong {
    clock_gettime(clock).map_or(0, |time| time.num_nanoseconds())
}

fn real() -> c_longlong {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

fn of_thread() -> c_longlong {
    nanoseconds(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns cycles at the rate that the library says the CPU has.
fn cycles(nanoseconds: c_longlong) -> c_longlong {
    let cycles = i128::from(nanoseconds) * i128::from(max_mhz()) / 1000;
    c_longlong::try_from(cycles).unwrap_or(c_longlong::MAX)
}

/// Returns the real time in cycles: the time stamp counter where there is one.
pub(crate) fn real_cycles() -> c_longlong {
    let ticks = quipu::time_stamp().filter(|_| cfg!(target_arch = "x86_64"));
    ticks.map_or_else(|| cycles(real()), u64::cast_signed)
}

/// Returns seconds of real time and of the calling thread's.
pub(crate) fn seconds() -> (f64, f64) {
    (real() as f64 / 1e9, of_thread() as f64 / 1e9)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_real_cyc() -> c_longlong {
    real_cycles()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_real_nsec() -> c_longlong {
    real()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_real_usec() -> c_longlong {
    real() / 1000
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_virt_cyc() -> c_longlong {
    call_or(0, || cycles(of_thread()))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_virt_nsec() -> c_longlong {
    of_thread()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_virt_usec() -> c_longlong {
    of_thread() / 1000
}
