#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod file;
pub mod firefox;
pub mod pprof;
mod recording;
pub mod speedscope;
mod stacks;

pub use recording::{Event, Frame, Marker, OFF_CPU, Recording, Sample, Task, Unit};
pub use stacks::{StackId, Stacks};
