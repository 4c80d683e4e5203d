#![doc = include_str!("../README.md")]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod abi;
mod backend;
mod driver;
mod events;
mod group;
mod sampling;
#[cfg(target_os = "freebsd")]
mod sys;
mod watch;

pub use abi::Class;
pub use backend::HwpmcBackend;
pub use driver::{
    ClassOfCounters, Driver, Forks, Held, Machine, PmcId, Request, Row, Sampling, State, Task,
};
pub use group::HwpmcGroup;
pub use sampling::{HwpmcSampler, LogRecord, Program, Sample, SamplerSpec};
#[cfg(target_os = "freebsd")]
pub use sys::{
    Hwpmc, KernelFile, MappedFile, command_name, has_ended, kernel_files, kernel_symbol,
    mapped_files,
};
