//! `quipu stat`: count what a command, a process or the whole machine does.

pub mod aggregate;
pub mod backend;
pub(crate) mod command;
pub mod derived;
pub mod events;
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

pub use aggregate::{AggregateBy, Aggregation};
pub use backend::Backends;
pub use notes::{Note, notes};
pub use options::Options;
pub use plan::Plan;
pub use report::Output;
pub use rows::{Row, rows};
pub use run::Session;
pub use sets::{Sets, Snapshot};
#[cfg(target_os = "linux")]
pub(crate) use system::{any_alive, raise_open_file_limit};

use crate::failure::Failure;
use crate::terminal;

/// Counts and reports; the exit status is the measured command's.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if options.overhead {
        return overhead::run(options);
    }
    let plan = Plan::new(options)?;
    let output = Output::open(options)?;
    let backends = Backends::of(&plan)?;
    let status = Session::new(&plan, &backends, output)?.run()?;
    for line in plan.restore_warnings(&backends) {
        terminal::warn(line);
    }
    Ok(status)
}
