#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod backends;
mod counts;
mod event_set;
mod measure;
#[cfg(unix)]
pub mod msr;
mod native;
mod open;
mod preset;
mod request;
mod sampler;
mod selection;

#[cfg(target_os = "linux")]
pub use backends::linux_backend;
pub use backends::{BackendStatus, Machine};
pub use counts::{Counts, EventCount, Place};
pub use event_set::{EventSet, EventSetBuilder, SetEvent};
pub use measure::{Measurement, measure};
pub use native::NativeEvents;
pub use preset::{Evaluation, Preset};
pub use request::IntoGroups;
pub use sampler::{Caller, Sample, SampleRate, Sampler, SamplerBuilder};
pub use selection::{Considered, Recognised, Selection};

pub use quipu_hal as hal;
pub use quipu_hal::{
    Attributes, Error, ErrorKind, Event, EventInfo, EventSpec, Filter, GroupSpec, Hardware, Part,
    Reading, Result, Scaled, Software, Target, Total,
};

/// What Linux alone offers: its backend, sysfs, tracefs.
#[cfg(target_os = "linux")]
pub use quipu_linux as linux;

/// The event database: CPUs, their events by name, and the bits that program them.
pub use quipu_events as events;

/// OpenBSD's pctr(4), and a simulation of it.
#[cfg(unix)]
pub use quipu_pctr as pctr;

/// What every Unix tells of threads, processes and children, and commands held before they execute.
#[cfg(unix)]
pub use quipu_posix as posix;

/// The examples of the project's README are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ProjectReadme;
