#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

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
