#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod additive;
mod counter;
mod counting;
mod folder;
mod note;
#[cfg(target_os = "linux")]
mod recorder;
mod units;

pub use counter::{Counter, Start, Value};
pub use counting::{Counting, counting};
#[cfg(target_os = "linux")]
pub use recorder::Recorder;

/// The examples of the project's page are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/measure-from.md")]
struct ProjectPage;
