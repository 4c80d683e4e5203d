//! The backend against this machine's kernel, and its parts against files and pages as kernels make them.

#![cfg(target_os = "linux")]

mod blocked;
mod breakpoints;
mod event_sources;
mod extending;
mod hardware;
mod inherited_probes;
mod machine;
mod machine_facts;
mod overflows;
mod readers;
mod refusals;
mod sampling;
mod software_events;
mod sysfs;
mod sysfs_properties;
mod targets;
#[cfg(target_pointer_width = "64")]
mod trace_fields;
mod trace_format;
mod user_read;
mod user_read_hardware;
