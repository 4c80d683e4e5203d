#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod backend;
mod capabilities;
mod clock;
mod cpu_model;
mod encoding;
mod error;
mod event;
mod event_map;
mod filter;
mod pmu;
mod reading;
mod scale;
mod sequence;
mod sim;
mod spec;
mod table_map;
mod target;
pub mod text;
mod virtual_pmu;

pub use backend::{Backend, DynBackend, Group, UserReads};
pub use capabilities::{Capabilities, Features, Simultaneity};
pub use clock::{Clock, ManualClock, MonotonicClock};
pub use cpu_model::{CounterBank, CpuIdentity, CpuModel, Scheme, SlotClass};
pub use encoding::{
    Armv8Event, Encoding, ExtraRegister, FixedCounter, P5Function, PerfConfig, X86Select,
};
pub use error::{Error, ErrorKind, Result};
pub use event::{
    Breakpoint, BreakpointAccess, Cache, CacheEvent, CacheOp, CacheResult, Event, Hardware,
    PmuEvent, Probe, RawEvent, Software, Term, TermValue,
};
pub use event_map::{EventInfo, EventMap, ResolvedEvent, SlotSet, ValueKind};
pub use filter::Filter;
pub use pmu::{Access, Gating, Pmu, Slot};
pub use reading::{Part, ReadBuf, Reading};
pub use scale::{Scaled, Total, scale, total};
pub use sim::{Rate, Script, SimEvent, SimModel, SimOperation, SimPmu, SimRegister, SimSelect};
pub use spec::{Attributes, EventSpec, GroupSpec, Precision};
pub use table_map::TableMap;
pub use target::{Cgroup, Target, TargetKinds};
pub use virtual_pmu::{Rotation, Scheduling, VirtualGroup, VirtualPmu};
