//! The `quipu` command.
#![forbid(unsafe_code)]

mod args;
mod encode;
mod events;
mod failure;
mod info;
mod list;
#[cfg(unix)]
mod msr;
mod names;
#[cfg(unix)]
mod pctr;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod report;
#[cfg(unix)]
mod stat;
#[cfg(unix)]
mod targets;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use quipu::NativeEvents;

use args::{Cli, Command};

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let outcome = match command {
        #[cfg(unix)]
        Command::Stat(options) => stat::run(&options),
        #[cfg(target_os = "linux")]
        Command::Record(options) => record::run(&options),
        #[cfg(target_os = "linux")]
        Command::Report(options) => report::run(&options),
        Command::List(options) => list::run(&options),
        Command::Info(options) => info::run(&options),
        #[cfg(unix)]
        Command::Msr(options) => msr::run(&options),
        Command::Encode(options) => encode::encode(&options),
        Command::Decode(options) => encode::decode(&options),
        Command::Events(options) => events::run(&options),
        #[cfg(unix)]
        Command::Pctr(options) => pctr::run(&options),
    };
    events::warn_of_files_left_out(NativeEvents::this().left_out());
    outcome.unwrap_or_else(|failure| failure.report())
}
