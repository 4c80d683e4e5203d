//! The options of `quipu stat`, as people know them from perf-stat(1).

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::names::NameOptions;
use crate::pctr::simulate::Simulated;
use crate::target::TargetOptions;

const EXAMPLES: &str = "\
Examples:
  quipu stat -- make -j8                     what a build costs
  quipu stat -r 10 -- ./bench                ten runs: means and their standard errors
  quipu stat -e cycles:u,instructions:u ls   chosen events, in user mode only
  quipu stat -e '{branches,branch-misses}' ls   a group: counted at the same times
  quipu stat -e PAPI_L2_TCM -- ./bench       a preset: counted event by event, reported as one
  quipu stat --events my.toml -e MINE ls     an event from your own file
  quipu stat -d -- ./bench                   cache events as well (-dd, -ddd: more)
  quipu stat -p 1234                         a running process, until it ends or Ctrl-C
  quipu stat -p 1234 -- sleep 5              the same, for five seconds
  quipu stat -a -A -I 1000                   every CPU, a line each, every second
  quipu stat -j -o counts.json -- make       one JSON object a line, for programs

The report goes to standard error, so the command's output stays as it is. Numbers marked ~
are estimates: their counters shared the hardware with others and ran part of the time.

Exit status:
  that of the command (128 + n when signal n ended it; with -r the first that is not 0);
  126 when it cannot be executed, 127 when it does not exist; 125 when quipu itself fails,
  or the command succeeded and not one of the events was counted; 2 when the command line is
  wrong; 0 when there is no command.";

/// Count what a command, a process or the whole machine does
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "quipu stat [OPTIONS] [--] COMMAND [ARGUMENT]...\n       \
        quipu stat [OPTIONS] -p PID | -t TID | -a | -C CPUS [[--] COMMAND [ARGUMENT]...]"
)]
pub struct Options {
    /// Events to count: names, groups {a,b}, modifiers :u :k; see `quipu list`
    #[arg(short, long = "event", value_name = "EVENTS", help_heading = "What")]
    pub event: Vec<String>,
    /// Add cache events; twice adds instruction cache and TLBs, three times prefetches
    #[arg(short, long, action = ArgAction::Count, help_heading = "What")]
    pub detailed: u8,
    #[command(flatten)]
    pub names: NameOptions,
    /// Count no events, only time the command
    #[arg(short, long, conflicts_with_all = ["event", "detailed"], help_heading = "What")]
    pub null: bool,

    /// Measure no command, but what starting, reading and stopping these events adds to their own
    /// counts, on the thread that does it
    #[arg(long, conflicts_with_all = ["command", "null", "pid", "tid", "all_cpus", "cpus", "cgroup",
          "backend", "simulate", "repeat", "interval_print", "timeout"], help_heading = "What")]
    pub overhead: bool,

    #[command(flatten)]
    pub target: TargetOptions,
    /// Count the tasks of these control groups, every event in each of them
    #[arg(short = 'G', long, visible_alias = "for-each-cgroup", value_name = "NAME,..",
          value_delimiter = ',', conflicts_with_all = ["pid", "tid"], help_heading = "Where")]
    pub cgroup: Vec<PathBuf>,
    /// Count with these backends only, tried in this order; `msr` writes raw counter registers and
    /// counts whole CPUs only
    #[arg(
        long,
        value_name = "NAME,..",
        value_delimiter = ',',
        help_heading = "Where"
    )]
    pub backend: Vec<String>,
    /// Count as on OpenBSD, with a simulated pctr(4) of a driver's era and a CPU, such as
    /// amd64-2019:core. Every counted event then occurs 1000 times in user mode and 10 times in the
    /// kernel
    #[arg(
        long,
        value_name = "ERA:CPU",
        conflicts_with = "backend",
        help_heading = "Where"
    )]
    pub simulate: Option<Simulated>,
    /// With --backend msr: also take counters that other programs use, which then cannot count with
    /// them; the report names them
    #[arg(long, help_heading = "Where")]
    pub take_busy: bool,

    /// Report a line for each CPU
    #[arg(short = 'A', long, group = "aggregation", help_heading = "How")]
    pub no_aggr: bool,
    /// Report a line for each core
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_core: bool,
    /// Report a line for each socket
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_socket: bool,
    /// Report a line for each thread of -p or -t
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_thread: bool,
    /// Run the command N times; report means, and the standard error of the mean in percent
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
          conflicts_with = "interval_print", help_heading = "How")]
    pub repeat: Option<u32>,
    /// Report every MS milliseconds what was counted since the last time
    #[arg(short = 'I', long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = "How")]
    pub interval_print: Option<u64>,
    /// With -I, report the totals at the end too
    #[arg(long, requires = "interval_print", help_heading = "How")]
    pub summary: bool,
    /// Stop after MS milliseconds; a command is ended with SIGTERM
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = "How")]
    pub timeout: Option<u64>,

    /// Write comma-separated values, in perf's order of columns; the same as `-x ,`
    #[arg(long, group = "format", help_heading = "Report")]
    pub csv: bool,
    /// Separate values with SEP, in perf's order of columns
    #[arg(
        short = 'x',
        long,
        value_name = "SEP",
        group = "format",
        help_heading = "Report"
    )]
    pub field_separator: Option<String>,
    /// Write one JSON object a line, with perf's field names
    #[arg(
        short,
        long,
        visible_alias = "json-output",
        group = "format",
        help_heading = "Report"
    )]
    pub json: bool,
    /// Write the report to FILE
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    pub output: Option<PathBuf>,
    /// Append to the file of -o
    #[arg(long, requires = "output", help_heading = "Report")]
    pub append: bool,
    /// Show how each event was opened and for how long it counted
    #[arg(short, long, help_heading = "Report")]
    pub verbose: bool,
}
