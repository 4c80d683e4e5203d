//! The kernel's interface, as thin as it can be: one module for each thing the kernel knows.

mod again;
mod attr;
mod calls;
mod clock;
mod counter_fd;
mod mapping;
mod open;
mod process;
mod read_call;
#[cfg(feature = "sampling")]
mod readiness;

pub(crate) use attr::{AttrFlags, PerfEventAttr};
pub(crate) use calls::{
    current_cpu, directory_entries, has_time_stamps, link_target, page_size, set_own_counters,
};
pub(crate) use clock::monotonic_raw;
pub(crate) use counter_fd::CounterFd;
pub(crate) use mapping::{Access, CounterPage, Mapping};
#[cfg(feature = "sampling")]
pub(crate) use open::attr_size;
pub(crate) use open::{Attach, OpenFailure, perf_event_open};

pub(crate) use process::{MarkedProcess, Process};
#[cfg(feature = "sampling")]
pub(crate) use readiness::{Readiness, poll};

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

/// The error number of the system call that just failed on this thread. nix's `Errno` makes 0 of those without a name, such as
/// the 524 (`ENOTSUPP`) of some drivers.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}
