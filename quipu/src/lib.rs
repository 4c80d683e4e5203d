#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod backends;
mod builder;
mod calibration;
mod counter_backends;
mod counts;
#[cfg(any(
    all(feature = "msr", unix),
    target_os = "openbsd",
    target_os = "freebsd",
    target_os = "dragonfly",
))]
mod end_of_process;
mod event_set;
mod expansion;
mod measure;
#[cfg(any(
    all(feature = "msr", unix),
    target_os = "freebsd",
    target_os = "dragonfly"
))]
pub mod msr;
mod open;
mod preset;
mod reader;
mod request;
#[cfg(feature = "sampling")]
mod sampler;
mod set_event;
mod table;

cfg_if::cfg_if! {
    if #[cfg(any(
        feature = "events",
        target_os = "openbsd",
        target_os = "freebsd",
        target_os = "dragonfly",
    ))] {
        mod core_terms;
        mod encode;
        mod native;
        mod selection;

        pub use encode::{Encoded, encode};
        pub use native::NativeEvents;
        pub use quipu_events::Interface;
        use native::SharedNativeEvents;
        pub use selection::{BackendChoice, MatchedCpu, Selection};
    } else {
        mod no_native_events;

        use no_native_events::{NativeEvents, SharedNativeEvents};
    }
}

#[cfg(target_os = "freebsd")]
pub use backends::hwpmc_backend;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub use backends::linux_backend;
pub use backends::{BackendStatus, Machine};
pub use builder::EventSetBuilder;
pub use calibration::{Overhead, Spread};
pub use counts::{Counts, EventCount, EventId, MemberIndex};
pub use event_set::EventSet;
pub use measure::{Measurement, measure};
pub use preset::{NoValue, Preset};
#[cfg(feature = "sampling")]
pub use quipu_hal::Woken;
pub use reader::Reader;
pub use request::IntoGroups;
#[cfg(feature = "sampling")]
pub use sampler::{Caller, Sample, SampleRate, Sampler, SamplerBuilder};
pub use set_event::SetEvent;

#[cfg(all(feature = "posix", unix))]
pub use quipu_posix::time_stamp;

pub use quipu_events_format::Formula;
pub use quipu_hal::{
    Attributes, Backend, Capabilities, Count, Error, ErrorKind, Event, EventInfo, EventSpec,
    Filter, Group, GroupSpec, Hardware, OverflowSignal, Overflows, Part, RawEvent, ReadBuf,
    Reading, Result, Simultaneity, Software, Target, TargetKinds,
};
pub use quipu_text as text;

/// Commands whose program waits until counters are attached.
#[cfg(all(feature = "command", unix))]
pub mod command {
    pub use quipu_command::{Exit, Running, Streams, SuspendedCommand};
}

/// The examples of the project's README and of the page for users of other libraries are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
#[doc = include_str!("../../docs/coming-from.md")]
struct ProjectPages;
