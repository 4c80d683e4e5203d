#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod attached;
mod check;
mod collector;
mod config;
mod events;
mod http;
mod instances;
mod options;
mod otlp;
mod outcomes;
mod privileges;
mod reader;
mod retired;
mod series;
mod service;
mod subject;
mod text;
mod textfile;

use std::process::ExitCode;

use quipu_shell::{Failure, tasks};

use collector::Collector;
use config::Config;
pub use options::Options;

/// Counts until it is asked to end, and gives what it counted to those who ask for it and to those it is asked to send it to.
///
/// # Errors
/// If the command line or the file cannot be meant, an address or folder cannot be used, or privileges cannot be dropped.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.check {
        return check::run(options);
    }
    let config = Config::of(options)?;
    let outlets = service::Outlets::open(options)?;
    tasks::raise_open_file_limit();
    let mut collector = Collector::new(config);
    collector.collect();
    privileges::drop_to(options.user.as_deref())?;
    service::run(options, collector, outlets)
}
