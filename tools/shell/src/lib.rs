//! Habits of a command that measures: failures with an exit status, text for terminals, numbers of options, targets,
//! `--control`, signals, the process of the measured command, and reasons why an event has no count.
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]
// A failure is a sentence for a person, and says itself what was wrong.
#![allow(clippy::missing_errors_doc)]

#[cfg(unix)]
pub mod command;
#[cfg(unix)]
pub mod control;
pub mod event_files;
mod failure;
#[cfg(target_os = "linux")]
pub mod left_behind;
pub mod numbers;
#[cfg(unix)]
pub mod output;
#[cfg(unix)]
pub mod output_file;
pub mod pager;
#[cfg(target_os = "linux")]
pub mod processes;
pub mod reasons;
#[cfg(unix)]
pub mod signals;
#[cfg(unix)]
pub mod standard_input;
#[cfg(unix)]
pub mod target;
#[cfg(unix)]
pub mod tasks;
pub mod terminal;
mod tracepoints;

pub use failure::Failure;
pub use tracepoints::WithTracepoints;
