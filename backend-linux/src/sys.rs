//! The kernel's interface, as thin as it can be: one module for each thing the kernel knows.

mod again;
mod attr;
mod calls;
mod clock;
mod counter_fd;
mod errno;
mod generation;
mod mapping;
mod open_call;
mod process;
mod read_call;
#[cfg(feature = "sampling")]
mod readiness;
mod rights;

pub(crate) use attr::{AttrFlags, PerfEventAttr, event_type};
pub(crate) use calls::{
    current_cpu, directory_entries, has_time_stamps, link_target, page_size, set_own_counters,
};
pub(crate) use clock::monotonic_raw;
pub(crate) use counter_fd::CounterFd;
pub use generation::inode_generation;
pub(crate) use mapping::{Access, CounterPage, Mapping};
#[cfg(feature = "sampling")]
pub(crate) use open_call::attr_size;
pub(crate) use open_call::{Attach, OpenFailure, perf_event_open};
pub(crate) use process::MarkedProcess;
#[cfg(feature = "sampling")]
pub(crate) use readiness::{Readiness, poll};
pub(crate) use rights::{effective_capabilities, seccomp_mode};

pub(crate) use quipu_perf_data::ReadFormat;
