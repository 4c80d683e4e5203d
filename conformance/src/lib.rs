#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod checks;
mod child;
mod context;
mod fixture;
pub mod fixtures;
mod report;
mod verdict;

pub use check::Check;
pub use checks::all;
pub use fixture::{Fixture, WorkingCounters, Workload};
pub use report::{Finding, Report, run};
pub use verdict::{Ability, Missing, Verdict};
