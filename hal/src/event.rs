//! Events: what can be counted, by portable name, by bits, or by a name to be resolved later.
//!
//! An [`Event`] stays symbolic. Backends turn it into an [`Encoding`](crate::Encoding) when a group
//! is opened, with the help of the operating system or of an [`EventMap`](crate::EventMap).

mod breakpoint;
mod cache;
mod hardware;
mod names;
mod pmu;
mod probe;
mod raw;
mod software;

pub use breakpoint::{Breakpoint, BreakpointAccess};
pub use cache::{Cache, CacheEvent, CacheOp, CacheResult};
pub use hardware::Hardware;
pub use pmu::{PmuEvent, Term, TermValue};
pub use probe::Probe;
pub use raw::RawEvent;
pub use software::Software;

use crate::Filter;

/// Something that can be counted.
///
/// `Display` writes it as people know it from `perf list`: `cycles`, `r01c0`, `cpu/event=0xc0/`. The crate `quipu-text` reads
/// that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A generalized hardware event.
    Hardware(Hardware),
    /// An event that the operating system counts without a PMU.
    Software(Software),
    /// A generalized cache event.
    Cache(CacheEvent),
    /// The bits for the CPU's own PMU, as its manual gives them.
    Raw(RawEvent),
    /// Accesses to, or execution of, an address.
    Breakpoint(Breakpoint),
    /// An event of a PMU the operating system names, with its terms: `cpu/event=0xc0,umask=1/`.
    Pmu(PmuEvent),
    /// A static tracepoint of the kernel.
    Tracepoint {
        /// The subsystem: `sched`.
        system: String,
        /// The name within it: `sched_switch`.
        name: String,
    },
    /// A place in the code of the kernel or of a program.
    Probe(Probe),
    /// A name for a database to resolve: a native event, a preset, or a tracepoint `a:b`.
    Named(String),
}

impl Event {
    /// The [name](Self::Named) of the time stamp counter of x86, with every backend that reaches it.
    pub const TIME_STAMP: &str = "tsc";

    /// A tracepoint by system and name.
    pub fn tracepoint(system: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Tracepoint {
            system: system.into(),
            name: name.into(),
        }
    }

    /// The privilege levels at which the event can occur at all. Context switches, migrations,
    /// tracepoints and probes of the kernel occur in the kernel only: counted in user mode they
    /// would read 0. Probes of programs occur in user mode only.
    pub const fn levels(&self) -> Filter {
        match self {
            Self::Software(
                Software::ContextSwitches | Software::CpuMigrations | Software::CgroupSwitches,
            )
            | Self::Tracepoint { .. } => Filter::KERNEL,
            Self::Probe(probe) if probe.object.is_some() => Filter::USER,
            Self::Probe(_) => Filter::KERNEL,
            _ => Filter::LEVELS,
        }
    }
}

macro_rules! into_event {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Event {
            fn from(event: $from) -> Self {
                Self::$variant(event)
            }
        }
    )*};
}

into_event! {
    Hardware => Hardware,
    Software => Software,
    CacheEvent => Cache,
    RawEvent => Raw,
    Breakpoint => Breakpoint,
    PmuEvent => Pmu,
    Probe => Probe,
}
