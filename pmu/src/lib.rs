#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod assign;
mod clock;
mod pmu;
mod sequence;
mod sim;
mod table_map;
mod virtual_pmu;

pub use clock::{Clock, ManualClock, MonotonicClock};
pub use pmu::{Access, InUse, Pmu, Slot};
pub use sim::{Rate, Script, SimEvent, SimModel, SimOperation, SimPmu, SimRegister, SimSelect};
pub use table_map::TableMap;
pub use virtual_pmu::{Rotation, Scheduling, VirtualGroup, VirtualPmu};
