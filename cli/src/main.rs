//! The `quipu` command.
#![forbid(unsafe_code)]

mod args;
mod failure;
mod info;
mod list;
#[cfg(unix)]
mod msr;
#[cfg(target_os = "linux")]
mod stat;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        #[cfg(target_os = "linux")]
        Command::Stat(options) => stat::run(&options),
        Command::List(options) => list::run(&options),
        Command::Info(options) => info::run(&options),
        #[cfg(unix)]
        Command::Msr(options) => msr::run(&options),
    };
    outcome.unwrap_or_else(|failure| failure.report())
}
