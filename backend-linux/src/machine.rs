//! The machine as the kernel's files describe it: PMUs, tracepoints, CPUs, and what this process may do.

pub mod cgroups;
#[cfg(feature = "names")]
pub(crate) mod hint;
#[cfg_attr(not(feature = "names"), allow(dead_code))]
pub(crate) mod kernel_file;
pub mod privileges;
pub mod sysfs;
pub mod topology;
#[cfg(feature = "names")]
pub mod tracefs;
