#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod annotate;
pub mod archive;
pub mod diff;
mod fitted;
mod hit_files;
mod progress;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub mod record;
pub mod recording;
pub mod report;
#[cfg(target_os = "linux")]
pub mod sampling;
pub mod script;
#[cfg(target_os = "linux")]
pub mod top;

/// The file that is read and written unless another one is named.
pub const DEFAULT_FILE: &str = "perf.data";
