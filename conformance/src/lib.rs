#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bench;
mod check;
mod checks;
mod child;
mod report;
mod subject;
pub mod subjects;
mod verdict;

pub use check::Check;
pub use checks::all;
pub use report::{Finding, Report, run};
pub use subject::{Subject, Workload};
pub use verdict::{Ability, Missing, Verdict};
