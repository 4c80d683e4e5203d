//! `quipu record`: take samples of what a command, a process or the whole machine does, and write them
//! to a `perf.data` file.

mod call_graph;
mod copies;
mod cut_chains;
mod ended;
mod events;
mod existing;
mod kept_names;
mod live;
mod machine;
mod mapped_files;
mod name_cache;
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
pub(crate) use options::{Frequency, SamplingOptions};
pub use output::{Destination, Output, StandardOutput};

use std::path::Path;

use crate::report;
use quipu_shell::Failure;

/// Records, and writes the files for viewers; the exit status is the command's.
///
/// # Errors
/// If nothing can be sampled, the command cannot be executed, or a file cannot be written.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let is_for_viewers = !options.viewers.is_empty();
    if is_for_viewers && options.output == Path::new("-") {
        return Err(Failure::usage(
            "files for viewers are made from the recording: -o must name a file",
        ));
    }
    let plan = plan::RecordPlan::new(options)?;
    let status = recorder::Recorder::new(&plan)?.run()?;
    if is_for_viewers {
        let viewers = options.viewers.clone();
        report::run(&report::Options::for_viewers(&options.output, viewers))?;
    }
    Ok(status)
}
