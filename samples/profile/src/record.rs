//! `quipu record`: take samples of what a command, a process or the whole machine does, and write them
//! to a `perf.data` file.

mod call_graph;
mod cut_chains;
mod ended;
mod events;
mod existing;
mod live;
mod machine;
mod mapped_files;
mod off_cpu;
mod opening;
mod options;
mod output;
mod plan;
mod recorder;
mod second_signal;
mod session;
mod statistics;
mod switch;
mod tracepoints;
mod users;

use std::process::ExitCode;

pub(crate) use live::Live;
pub use machine::features;
pub use options::Options;
pub(crate) use options::SamplingOptions;
pub use output::{Destination, Output, StandardOutput};

use quipu_shell::Failure;

/// Records; the exit status is the command's.
///
/// # Errors
/// If nothing can be sampled, the command cannot be executed, or the file cannot be written.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let plan = plan::RecordPlan::new(options)?;
    recorder::Recorder::new(&plan)?.run()
}
