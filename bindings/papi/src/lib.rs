#![doc = include_str!("../README.md")]
// C's names are what the library is for, and what a C caller promises is the same everywhere: a pointer is null
// or good for what it is of, as long as the call lasts.
#![allow(non_snake_case)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod abi;
mod boundary;
mod code;
mod component;
mod event;
mod event_set;
mod fortran;
mod high_level;
mod initialize;
mod library;
mod machine;
mod option;
mod overflow;
// What looks for overflows is a timer of Linux: elsewhere every profile is refused.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod profile;
mod rate;
mod sys;
mod thread;
