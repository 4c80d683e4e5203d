#![doc = include_str!("../README.md")]
// C's names are what the library is for, and what a C caller promises is the same everywhere: a pointer is null
// or good for what it is of, as long as the call lasts.
#![allow(non_snake_case)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod abi;
mod clock;
mod code;
mod component;
mod device;
mod enumerate;
mod event_info;
mod event_set;
mod executable;
mod fortran;
mod generalized;
mod hardware;
mod high_level;
mod library;
mod memory;
mod native;
mod option;
mod overflow;
mod pmu_names;
mod preset;
// What looks for overflows is a timer of Linux: elsewhere every profile is refused.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod profile;
mod rate;
mod sets;
mod standard;
mod sys;
mod thread;
mod user_events;
