//! The `quipu` command as a library: [`run`] does all that the command does.
//!
//! ```
//! quipu_cli::run(["quipu", "decode", "0x413f24", "--cpu", "intel-skl"]);
//! ```
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod complete;
mod encode;
mod events;
mod generate;
mod help;
mod info;
#[doc(hidden)]
pub mod list;
#[cfg(unix)]
mod msr;
#[cfg(unix)]
mod pctr;
mod perf;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use quipu::NativeEvents;

use quipu_profile::{annotate, archive, diff, report, script};
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
use quipu_profile::{record, top};
use quipu_shell::Failure;
use quipu_shell::event_files::warn_of_files_left_out;
use quipu_shell::terminal::{self, Layout};
#[cfg(unix)]
use quipu_stat as stat;

use args::{Cli, Command};

/// Runs the command line `args`, whose first word is the name of the program, and returns its exit
/// status. Writes to standard output and standard error.
pub fn run<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item: Into<OsString> + Clone>,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let command = match Cli::try_parse_from(&args) {
        Ok(cli) => {
            cli.color.write_global();
            cli.command
        }
        Err(error) => {
            if let Some(advice) = perf::advice(&error, &args) {
                return Failure::usage(advice).report();
            }
            // Help and version are errors of this kind too, and a reader may be gone.
            let _ = match error.kind() {
                ErrorKind::DisplayHelp => help::print(&error.render(), Layout::of_stdout()),
                _ => error.print(),
            };
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Failure::USAGE));
        }
    };
    let outcome = match command {
        #[cfg(unix)]
        Command::Stat(options) => stat::run(&options),
        #[cfg(unix)]
        Command::Compare(options) => quipu_compare::run(&options),
        #[cfg(all(feature = "export", target_os = "linux"))]
        Command::Export(options) => quipu_export::run(&options),
        #[cfg(any(target_os = "linux", target_os = "freebsd"))]
        Command::Record(options) => record::run(&options),
        #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
        Command::Record(_) => Err(Failure::usage(
            "record samples with perf_event_open or hwpmc(4), which only Linux has, and FreeBSD; \
             report shows what was recorded there, from the file and the programs it names",
        )),
        #[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
        Command::Top(_) => Err(Failure::usage(
            "top samples with perf_event_open or hwpmc(4), which only Linux has, and FreeBSD; report shows what was recorded",
        )),
        Command::Report(options) => report::run(&options),
        Command::Script(options) => script::run(&options),
        Command::Annotate(options) => annotate::run(&options),
        Command::Diff(options) => diff::run(&options),
        Command::Archive(options) => archive::run(&options),
        #[cfg(any(target_os = "linux", target_os = "freebsd"))]
        Command::Top(options) => top::run(&options),
        Command::List(options) => list::run(&options),
        Command::Info(options) => info::run(&options),
        #[cfg(unix)]
        Command::Msr(options) => msr::run(&options),
        Command::Encode(options) => encode::encode(&options),
        Command::Decode(options) => encode::decode(&options),
        Command::Events(options) => events::run(&options),
        #[cfg(unix)]
        Command::Pctr(options) => pctr::run(&options),
        Command::Help(options) => help::run(&options, Cli::command()),
        Command::Generate(options) => generate::run(&options, Cli::command()),
        Command::Complete(options) => complete::run(&options, Cli::command()),
        Command::Version => {
            let version = format!("quipu {}\n", env!("CARGO_PKG_VERSION"));
            let printed = terminal::print(&version).map_err(Failure::new);
            printed.map(|()| ExitCode::SUCCESS)
        }
    };
    warn_of_files_left_out(NativeEvents::this().skipped_files());
    outcome.unwrap_or_else(|failure| failure.report())
}
