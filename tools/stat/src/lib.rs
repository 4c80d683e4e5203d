//! `quipu stat`: counts what a command, a process or the whole machine does, and reports it.
#![cfg(unix)]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

// `run` is the interface. The other public items are there for the tests of this crate.
#[doc(hidden)]
pub mod aggregate;
#[doc(hidden)]
pub mod backend;
mod command_notes;
#[doc(hidden)]
pub mod derived;
#[doc(hidden)]
pub mod events;
mod file;
mod implausible;
mod intervals;
#[doc(hidden)]
pub mod lines;
#[doc(hidden)]
pub mod metrics;
mod names;
#[doc(hidden)]
pub mod notes;
#[doc(hidden)]
pub mod options;
#[doc(hidden)]
pub mod overhead;
mod picture;
#[doc(hidden)]
pub mod plan;
mod regions;
#[doc(hidden)]
pub mod repeat;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod rows;
#[doc(hidden)]
pub mod run;
mod schedule;
#[doc(hidden)]
pub mod sets;
#[doc(hidden)]
pub mod simulated;
mod system;
#[doc(hidden)]
pub mod tool_events;
mod uncounted;

use std::process::ExitCode;

pub use file::Stat;
use file::{Keep, OfFile};

#[doc(hidden)]
pub use aggregate::{AggregateBy, Aggregation};
#[doc(hidden)]
pub use backend::Backends;
#[doc(hidden)]
pub use lines::Lines;
#[doc(hidden)]
pub use notes::{Note, notes};
#[doc(hidden)]
pub use options::{FormOptions, Options, PlaceOptions};
#[doc(hidden)]
pub use plan::Plan;
#[doc(hidden)]
pub use report::Output;
#[doc(hidden)]
pub use rows::Row;
#[doc(hidden)]
pub use run::Session;
#[doc(hidden)]
pub use sets::{Sets, Snapshot};

use regions::Regions;

use quipu_shell::Failure;
use quipu_shell::terminal;

/// Counts and reports; the exit status is the measured command's.
///
/// # Errors
/// If nothing can be counted, or the command cannot be executed.
pub fn run(stat: &Stat) -> Result<ExitCode, Failure> {
    match &stat.file {
        None => count(&stat.counting, None),
        Some(OfFile::Record(options)) => {
            let keeper = file::keeper(options)?;
            let mut options = (**options).clone();
            options.quiet |= file::is_stream(&options);
            count(&options, Some(keeper))
        }
        Some(OfFile::Report(options)) => file::report(options),
    }
}

fn count(options: &Options, keeper: Option<Box<dyn Keep>>) -> Result<ExitCode, Failure> {
    let plan = Plan::new(options)?;
    // With a keeper, what is named is its file.
    let file = options.output.clone().filter(|_| keeper.is_none());
    let mut output = Output::open_to(options, file)?;
    let backends = Backends::of(&plan)?;
    if options.overhead {
        let status = overhead::report(&plan, &backends, &mut output)?;
        if plan.command.is_empty() {
            output.finish()?;
            return Ok(status);
        }
    }
    let mut session = Session::new(&plan, &backends, output)?;
    session.keeper = keeper;
    session.regions = Regions::new(&options.regions, &options.event)?;
    let status = session.run()?;
    for line in backends.restore_warnings(&plan) {
        terminal::warn(line);
    }
    Ok(status)
}
