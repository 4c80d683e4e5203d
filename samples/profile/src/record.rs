//! `quipu record`: take samples of what a command, a process or the whole machine does, and write them
//! to a `perf.data` file.

mod call_graph;
mod cut_chains;
mod kept_names;
mod messages;
mod name_cache;
#[cfg_attr(
    target_os = "freebsd",
    allow(
        dead_code,
        reason = "it refuses what Linux alone has, whatever the value is"
    )
)]
mod options;
#[cfg_attr(
    target_os = "freebsd",
    allow(dead_code, reason = "a recording has one file there")
)]
mod output;
mod second_signal;
#[cfg_attr(
    target_os = "freebsd",
    allow(dead_code, reason = "a recording has one file there")
)]
mod switch;

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod chains;
        mod copies;
        mod ended;
        mod events;
        mod existing;
        mod live;
        mod machine;
        mod mapped_files;
        mod off_cpu;
        mod opening;
        mod plan;
        mod recorder;
        mod session;
        mod statistics;
        mod tracepoints;
        mod users;

        pub(crate) use live::Live;
        pub use machine::features;
        pub(crate) use options::Frequency;
        use recorder::record;
    } else {
        mod hwpmc;

        #[cfg(feature = "commands")]
        pub(crate) use hwpmc::Live;
        use hwpmc::record;
    }
}

use std::path::Path;
use std::process::ExitCode;

pub use options::Options;
pub(crate) use options::SamplingOptions;
pub use output::{Destination, Output, StandardOutput};

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
    let status = record(options)?;
    if is_for_viewers {
        let viewers = options.viewers.clone();
        report::run(&report::Options::for_viewers(&options.output, viewers))?;
    }
    Ok(status)
}
