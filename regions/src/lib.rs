#![doc = include_str!("../README.md")]
#![cfg(unix)]
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod events;
mod exit;
mod region;
mod report;
mod table;
mod thread;
mod tree;

pub use events::choose_events;
pub use exit::{EVENTS_VARIABLE, REPORT_VARIABLE, is_on, turn_on};
pub use region::{Entered, Region};
pub use report::{
    Apart, Counted, EventOfRegion, RegionReport, Report, ThreadReport, folded, totals,
};
pub use table::table;
