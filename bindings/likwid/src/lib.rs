#![doc = include_str!("../README.md")]
#![cfg(unix)]
// C's names are what the library is for, and what a C caller promises is the same everywhere: a pointer is null
// or good for what it is of, as long as the call lasts.
#![allow(non_snake_case)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cpu;
mod events;
mod file;
mod fortran;
mod markers;
mod session;
