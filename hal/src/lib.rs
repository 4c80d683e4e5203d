#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod backend;
mod capabilities;
mod count;
mod cpu_model;
mod display;
mod encoding;
mod error;
mod event;
mod event_map;
mod filter;
mod max_rate;
mod overflow;
mod reading;
mod scale;
mod spec;
mod target;
mod woken;
pub mod words;

pub use backend::{Backend, Group, GroupReader, UserReads};
pub use capabilities::{Capabilities, Features, Simultaneity};
pub use count::Count;
pub use cpu_model::{CounterBank, CpuIdentity, CpuModel, Scheme, SlotClass};
pub use encoding::{
    Armv8Event, Encoding, ExtraRegister, FixedCounter, P5Function, PerfConfig, X86Select,
};
pub use error::{Error, ErrorKind, Result};
pub use event::{
    Breakpoint, BreakpointAccess, Cache, CacheEvent, CacheOp, CacheResult, Event, Hardware,
    PmuEvent, Probe, RawEvent, Software, Term, TermValue,
};
pub use event_map::{EventInfo, EventMap, ResolvedEvent, SlotSet, UncoreEvent, ValueKind};
pub use filter::Filter;
pub use max_rate::MaxRate;
pub use overflow::{OverflowSignal, Overflows};
pub use reading::{Part, ReadBuf, Reading};
pub use scale::{scale, total};
pub use spec::{Attributes, EventSpec, GroupSpec, Precision};
pub use target::{Target, TargetKinds};
pub use woken::Woken;
