//! The kernel's interface, as thin as it can be: one module for each thing the kernel knows.

mod again;
mod attr;
mod counter_fd;
mod mapping;
mod open;
mod process;
mod read_call;
#[cfg(feature = "sampling")]
mod readiness;

pub(crate) use attr::{AttrFlags, PerfEventAttr};
pub(crate) use counter_fd::CounterFd;
pub(crate) use mapping::{Access, CounterPage, Mapping};
#[cfg(feature = "sampling")]
pub(crate) use open::attr_size;
pub(crate) use open::{Attach, OpenFailure, perf_event_open};

pub(crate) use process::{MarkedProcess, Process};
#[cfg(feature = "sampling")]
pub(crate) use readiness::{Readiness, poll};
pub(crate) use rustix::param::page_size;
use rustix::process::TimeStampCounterReadability;

pub(crate) use quipu_perf_data::ReadFormat;

/// `PERF_TYPE_*`: the kinds of event the kernel numbers itself
/// (`enum perf_type_id`, `include/uapi/linux/perf_event.h`).
pub(crate) mod event_type {
    pub(crate) const HARDWARE: u32 = 0;
    pub(crate) const SOFTWARE: u32 = 1;
    pub(crate) const TRACEPOINT: u32 = 2;
    pub(crate) const HW_CACHE: u32 = 3;
    pub(crate) const RAW: u32 = 4;
    pub(crate) const BREAKPOINT: u32 = 5;
}

/// Returns true if this thread may read the CPU's cycle counter: PR_SET_TSC of prctl(2) takes it away.
/// Architectures without that setting always allow it.
pub(crate) fn has_time_stamps() -> bool {
    let setting = rustix::process::time_stamp_counter_readability();
    setting != Ok(TimeStampCounterReadability::RaiseSIGSEGV)
}

/// The error number of the system call that just failed on this thread.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}
