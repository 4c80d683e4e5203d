#![doc = include_str!("../README.md")]
// The types and constants of this crate are C's, under the names C has for them.
#![allow(
    non_camel_case_types,
    clippy::enum_variant_names,
    clippy::upper_case_acronyms
)]
// What a C caller promises is the same everywhere and said once, at the top of the header: a pointer is
// null or good for what it is of, as long as the call lasts.
#![allow(clippy::missing_safety_doc)]

mod boundary;
mod config;
mod cpu;
mod cpu_info;
mod database;
mod encoding;
mod failure;
mod handle;
mod last_error;
mod machine;
mod names;
mod reading;
#[cfg(unix)]
mod regions;
mod sampler;
mod set;
mod sim;
mod status;
mod time_stamp;

pub use config::*;
pub use cpu::*;
pub use cpu_info::*;
pub use database::*;
pub use encoding::*;
pub use last_error::{quipu_error, quipu_last_error, quipu_perror};
pub use machine::*;
pub use names::*;
pub use reading::*;
#[cfg(unix)]
pub use regions::*;
pub use sampler::*;
pub use set::*;
pub use sim::*;
pub use status::*;
pub use time_stamp::*;
