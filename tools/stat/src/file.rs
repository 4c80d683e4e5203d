//! `quipu stat record` and `quipu stat report`: counts that are kept in a file, as perf-stat(1) has them.

#[cfg(target_os = "linux")]
mod record;
mod report;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(super) use report::run as report;

use quipu_shell::Failure;

use super::aggregate::AggregateBy;
use super::options::{FormOptions, Options, PlaceOptions};
use super::plan::Plan;
use super::sets::{Sets, Snapshot};

const EXAMPLES: &str = "\
Examples:
  quipu stat record -- make             counts make, and keeps the counts in perf.data
  quipu stat record -a -o all.data -- sleep 5
  quipu stat report -i all.data -A      a line for each CPU
  quipu stat report -j                  one JSON object a line
  quipu stat record -o - -- make | quipu stat report -i -

Reads what quipu stat record and perf stat record wrote.";

/// Count what a command, a process or the whole machine does
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "record|report",
    subcommand_help_heading = "Counts in files"
)]
pub struct Stat {
    #[command(subcommand)]
    pub(super) file: Option<OfFile>,
    #[command(flatten)]
    pub(super) counting: Options,
}

/// Subcommands of `quipu stat` on a file.
#[derive(Debug, Subcommand)]
pub(super) enum OfFile {
    /// Count, and keep the counts in a file
    #[command(
        mut_arg("output", |output| output.help("Write the counts to FILE; perf.data unless named; - is a stream on standard output")),
        override_usage = "quipu stat record [OPTIONS] [--] COMMAND [ARGUMENT]...\n       \
            quipu stat record [OPTIONS] -p PID | -t TID | -a | -C CPUS [COMMAND...]"
    )]
    Record(Box<Options>),
    /// Report the counts that a file has
    Report(ReportOptions),
}

/// The options of a report of counts in a file.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportOptions {
    /// Read FILE; - is standard input
    #[arg(short, long, value_name = "FILE", default_value = quipu_profile::DEFAULT_FILE, help_heading = "What")]
    pub(super) input: PathBuf,
    /// Read files that belong to other users
    #[arg(short, long, help_heading = "What")]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) places: PlaceOptions,
    #[command(flatten)]
    pub(super) form: FormOptions,
    /// Write the report to FILE; - is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    pub(super) output: Option<PathBuf>,
}

/// Keeper of the counts of one run.
pub(super) trait Keep {
    /// Begins when the counters are open, and nothing has been counted; `command` is the process of the command.
    fn begin(&mut self, plan: &Plan, sets: &Sets, command: Option<i32>) -> Result<(), Failure>;
    /// Takes the counts at the end of an interval, so many seconds after the start.
    fn interval(&mut self, sets: &Sets, snapshot: &Snapshot, seconds: f64);
    /// Takes the counts of it all, and ends.
    fn finish(&mut self, sets: &Sets, snapshot: &Snapshot, seconds: f64) -> Result<(), Failure>;
}

/// Returns the keeper that writes the file that options name, if they can be kept.
pub(super) fn keeper(options: &Options) -> Result<Box<dyn Keep>, Failure> {
    check(options)?;
    cfg_if::cfg_if! {
        if #[cfg(target_os = "linux")] {
            let path = options.output.as_deref();
            let path = path.unwrap_or(std::path::Path::new(quipu_profile::DEFAULT_FILE));
            Ok(Box::new(record::CountWriter::new(path)?))
        } else {
            Err(Failure::usage(
                "stat record keeps what perf_event_open counts, which only Linux has; stat report shows such a file",
            ))
        }
    }
}

/// Returns true if counts are kept in a stream, whose reader reports them.
pub(super) fn is_stream(options: &Options) -> bool {
    options
        .output
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-")
}

/// Units of aggregation by their numbers in files, which differ between versions of perf (`enum aggr_mode`,
/// `tools/perf/util/stat.h`): those of Linux 6.1, from 6.5 on with caches, and from 6.9 on with clusters.
const UNITS: [&[Option<AggregateBy>]; 3] = {
    use AggregateBy as A;
    const GLOBAL: Option<A> = Some(A::Target);
    const NONE: Option<A> = Some(A::Cpu);
    const SOCKET: Option<A> = Some(A::Socket);
    const DIE: Option<A> = Some(A::Die);
    const CLUSTER: Option<A> = Some(A::Cluster);
    const CACHE: Option<A> = Some(A::Cache(None));
    const CORE: Option<A> = Some(A::Core);
    const THREAD: Option<A> = Some(A::Thread);
    const NODE: Option<A> = Some(A::Node);
    [
        &[NONE, GLOBAL, SOCKET, DIE, CORE, THREAD, None, NODE],
        &[NONE, GLOBAL, SOCKET, DIE, CACHE, CORE, THREAD, None, NODE],
        &[
            NONE, GLOBAL, SOCKET, DIE, CLUSTER, CACHE, CORE, THREAD, None, NODE,
        ],
    ]
};

/// Refuses what a file of counts cannot hold.
fn check(options: &Options) -> Result<(), Failure> {
    let refusals = [
        (
            options.repeat.is_some_and(|runs| runs != 1),
            "-r: a file has the counts of one run, as that of perf; give each run a file",
        ),
        (
            options.measures_metrics(),
            "-M and --topdown: a file has counts; name the events that the metric is made of (quipu list metrics)",
        ),
        (
            options.append || options.log_fd.is_some(),
            "--append and --log-fd: -o names the file of the counts, which begins anew; the report is on standard error",
        ),
        (
            !options.backend.is_empty() || options.simulate.is_some() || options.overhead,
            "--backend, --simulate and --overhead: a file has what perf_event_open(2) counts",
        ),
        (
            !options.cgroup.is_empty(),
            "-G: a file does not tell control groups apart",
        ),
    ];
    match refusals.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, why)) => Err(Failure::usage(format_args!("stat record {why}"))),
        None => Ok(()),
    }
}
