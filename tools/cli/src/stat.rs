//! `quipu stat`: count what a command, a process or the whole machine does.

pub mod aggregate;
pub mod backend;
mod clock;
pub(crate) mod command;
pub mod derived;
pub mod events;
mod file;
pub mod lines;
pub mod metrics;
pub mod notes;
pub mod options;
pub mod overhead;
pub mod plan;
pub mod repeat;
pub mod report;
pub mod rows;
pub mod run;
pub mod sets;
pub(crate) mod signals;
pub mod simulated;
mod system;
pub mod tool_events;

use std::process::ExitCode;

pub(crate) use file::Stat;
use file::{Keep, OfFile};

pub use aggregate::{AggregateBy, Aggregation};
pub use backend::Backends;
pub use lines::Lines;
pub use notes::{Note, notes};
pub use options::{FormOptions, Options, PlaceOptions};
pub use plan::Plan;
pub use report::Output;
pub use rows::Row;
pub use run::Session;
pub use sets::{Sets, Snapshot};
#[cfg(target_os = "linux")]
pub(crate) use system::{any_alive, raise_open_file_limit};

use crate::failure::Failure;
use crate::terminal;

/// Counts and reports; the exit status is the measured command's.
pub(crate) fn run(stat: &Stat) -> Result<ExitCode, Failure> {
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
    if options.overhead {
        return overhead::run(options);
    }
    let plan = Plan::new(options)?;
    // With a keeper, what is named is its file.
    let file = options.output.clone().filter(|_| keeper.is_none());
    let output = Output::open_to(options, file)?;
    let backends = Backends::of(&plan)?;
    let mut session = Session::new(&plan, &backends, output)?;
    session.keeper = keeper;
    let status = session.run()?;
    for line in plan.restore_warnings(&backends) {
        terminal::warn(line);
    }
    Ok(status)
}
