#![doc = include_str!("../README.md")]
#![cfg(unix)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

mod backend;
mod child;
mod events;
mod group;
mod meter;
mod process;
mod process_counts;
mod sys;
mod time_stamp;
mod usage;

pub use backend::PosixBackend;
pub use events::Quantity;
pub use group::PosixGroup;
pub use process::{around_forks, at_exit, forks};
pub use time_stamp::time_stamp;
