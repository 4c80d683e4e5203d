#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]
// Some of what they share is called by these commands alone.
#![cfg_attr(not(feature = "commands"), allow(dead_code, unused_imports))]

#[cfg(feature = "commands")]
pub mod annotate;
#[cfg(feature = "commands")]
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
#[cfg(all(any(target_os = "linux", target_os = "freebsd"), feature = "commands"))]
pub mod top;

/// The file that is read and written unless another one is named.
pub const DEFAULT_FILE: &str = "perf.data";
