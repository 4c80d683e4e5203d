//! The options of `quipu stat`, as people know them from perf-stat(1).

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::names::NameOptions;
use crate::regions::RegionOptions;
use crate::simulated::Simulated;
use quipu_shell::control::ControlFiles;
use quipu_shell::numbers;
use quipu_shell::target::TargetOptions;

const EXAMPLES: &str = "\
Examples:
  quipu stat -- make -j8                     what a build costs
  quipu stat -r 10 -- ./bench                ten runs: means and their standard errors
  quipu stat -e cycles:u,instructions:u ls   chosen events, in user mode only
  quipu stat -e '{branches,branch-misses}' ls   a group: counted at the same times
  quipu stat -e PAPI_L2_TCM -- ./bench       a preset: counted event by event, reported as one
  quipu stat --events my.toml -e MINE ls     an event from your own file
  quipu stat --topdown -a -- ./bench         where the slots of the pipeline go
  quipu stat -d -- ./bench                   cache events as well (-dd, -ddd: more)
  quipu stat -p 1234                         a running process, until it ends or Ctrl-C
  quipu stat -p 1234 -- sleep 5              the same, for five seconds
  quipu stat -a -A -I 1000                   every CPU, a line each, every second
  quipu stat -a -A -I 100 --plot out.svg     the same as a picture
  quipu stat -j -o counts.json -- make       one JSON object a line, for programs
  quipu stat --regions -- ./solver           and what the parts cost that the program names
  quipu stat record -- make                  the counts in perf.data too; quipu stat report shows them

The report goes to standard error, so the command's output stays as it is. Numbers marked ~
are estimates: their counters shared the hardware with others and ran part of the time.

Exit status:
  that of the command (128 + n when signal n ended it; with -r the first that is not 0);
  126 when it cannot be executed, 127 when it does not exist; 125 when quipu itself fails,
  or the command succeeded and not one of the events was counted; 2 when the command line is
  wrong; 0 when there is no command.";

/// The options of what has a line of its own in a report.
#[derive(Debug, Clone, Default, Args)]
pub struct PlaceOptions {
    /// Report a line for each CPU
    #[arg(short = 'A', long, group = "aggregation", help_heading = "How")]
    pub no_aggr: bool,
    /// Report a line for each core
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_core: bool,
    /// Report a line for each cluster of cores
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_cluster: bool,
    /// Report a line for each cache of this level, such as L2; the last one unless named
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
          default_missing_value = "", group = "aggregation", help_heading = "How")]
    pub per_cache: Option<String>,
    /// Report a line for each die
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_die: bool,
    /// Report a line for each socket
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_socket: bool,
    /// Report a line for each NUMA node
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_node: bool,
    /// Report a line for each thread of -p or -t, or with -a of every thread that runs
    #[arg(long, group = "aggregation", help_heading = "How")]
    pub per_thread: bool,
}

/// The options of the form of a report.
#[derive(Debug, Clone, Default, Args)]
pub struct FormOptions {
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
    /// Write one JSON object a line, with perf's keys
    #[arg(
        short,
        long,
        visible_alias = "json-output",
        group = "format",
        help_heading = "Report"
    )]
    pub json: bool,
    /// Group digits by threes, which is the default
    #[arg(short = 'B', long, help_heading = "Report", hide = true)]
    pub big_num: bool,
    /// Leave digits without commas
    #[arg(long, overrides_with = "big_num", help_heading = "Report")]
    pub no_big_num: bool,
    /// Report the metrics alone (insn per cycle, misses of all branches), a column each
    #[arg(long, help_heading = "Report")]
    pub metric_only: bool,
    /// Draw the intervals of -I into FILE too, an SVG picture: a line an event, a heat map of several CPUs or threads (-A)
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub plot: Option<PathBuf>,
}

/// The options that do not go with regions, whose programs begin here and whose reports are not perf's.
const NOT_OF_REGIONS: [&str; 7] = [
    "csv",
    "field_separator",
    "pid",
    "tid",
    "cgroup",
    "simulate",
    "overhead",
];

/// Count what a command, a process or the whole machine does
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("regions", |regions| regions.requires("command").conflicts_with_all(NOT_OF_REGIONS)),
    mut_arg("plot", |plot| plot.requires("interval_print").conflicts_with("repeat")),
    override_usage = "quipu stat [OPTIONS] [--] COMMAND [ARGUMENT]...\n       \
        quipu stat [OPTIONS] -p PID | -t TID | -a | -C CPUS [COMMAND...]"
)]
pub struct Options {
    /// Events to count: names, groups {a,b}, modifiers :u :k; see `quipu list`
    #[arg(short, long = "event", value_name = "EVENTS", help_heading = "What")]
    pub event: Vec<String>,
    /// Add cache events; twice adds instruction cache and TLBs, three times prefetches
    #[arg(short, long, action = ArgAction::Count, help_heading = "What")]
    pub detailed: u8,
    /// Measure metrics of this CPU, or groups of them (TopdownL1): see `quipu list metrics`
    #[arg(
        short = 'M',
        long,
        value_name = "NAME,..",
        value_delimiter = ',',
        help_heading = "What"
    )]
    pub metrics: Vec<String>,
    /// Measure where the slots of the pipeline go: the metrics of level 1 of top-down analysis
    #[arg(long, help_heading = "What")]
    pub topdown: bool,
    /// With --topdown: the levels to measure, 1 or 2
    #[arg(long, value_name = "N", requires = "topdown", value_parser = numbers::level_of_topdown,
          allow_negative_numbers = true, help_heading = "What")]
    pub td_level: Option<u8>,
    #[command(flatten)]
    pub names: NameOptions,
    /// Count no events, only time the command
    #[arg(short, long, conflicts_with_all = ["event", "detailed", "metrics", "topdown"], help_heading = "What")]
    pub null: bool,

    /// Measure what starting, reading and stopping these events adds to their own counts, on the thread
    /// that does it or the CPUs it is on; then the command, if there is one
    #[arg(long, conflicts_with_all = ["null", "pid", "tid", "cgroup", "repeat", "interval_print",
          "timeout"], help_heading = "What")]
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
    /// Count with simulated counters: those of OpenBSD, by a driver's era and a CPU, such as
    /// amd64-2019:core, or raw registers, by their generation, such as msr:intel-v5. Every counted event
    /// then occurs 1000 times in user mode and 10 times in the kernel; -v shows what was written
    #[arg(
        long,
        value_name = "MACHINE",
        conflicts_with = "backend",
        help_heading = "Where"
    )]
    pub simulate: Option<Simulated>,
    /// With --backend msr: also take counters that other programs use, which then cannot count with
    /// them; the report names them
    #[arg(long, help_heading = "Where")]
    pub take_busy: bool,

    /// Count in user mode only: every event that can, unless it has a mode of its own
    #[arg(long, conflicts_with = "all_kernel", help_heading = "What")]
    pub all_user: bool,
    /// Count in the kernel only: every event that can, unless it has a mode of its own
    #[arg(long, help_heading = "What")]
    pub all_kernel: bool,

    #[command(flatten)]
    pub places: PlaceOptions,
    /// Report a line for each instance of a unit outside of the cores (uncore_imc_0, uncore_imc_1),
    /// not the sum of them
    #[arg(long, help_heading = "How")]
    pub no_merge: bool,
    /// Run the command N times; report means, and the standard error of the mean in percent. 0 runs
    /// it until Ctrl-C, with a report of each run
    #[arg(short, long, value_name = "N", value_parser = numbers::times, allow_negative_numbers = true,
          help_heading = "How")]
    pub repeat: Option<u32>,
    /// Run COMMAND by the shell before each run of the measured command
    #[arg(long, value_name = "COMMAND", help_heading = "How")]
    pub pre: Option<OsString>,
    /// Run COMMAND by the shell after each run of the measured command
    #[arg(long, value_name = "COMMAND", help_heading = "How")]
    pub post: Option<OsString>,
    /// Start counting MS milliseconds later than the command; -1: not until --control says so
    #[arg(short = 'D', long, value_name = "MS", value_parser = numbers::delay,
          allow_negative_numbers = true, help_heading = "How")]
    pub delay: Option<i64>,
    /// Start and stop counting when `enable` or `disable` is read from a descriptor (`fd:CONTROL[,ACK]`) or a
    /// named pipe (`fifo:CONTROL[,ACK]`); `ack` is written when it is done
    #[arg(long, value_name = "FILES", help_heading = "How")]
    pub control: Option<ControlFiles>,
    /// Report every MS milliseconds what was counted since the last time
    #[arg(short = 'I', long, value_name = "MS", value_parser = numbers::milliseconds, allow_negative_numbers = true,
          help_heading = "How")]
    pub interval_print: Option<u64>,
    /// With -I, report so many intervals; without a command, end after them
    #[arg(long, value_name = "N", requires = "interval_print",
          value_parser = numbers::positive::<u32>, allow_negative_numbers = true, help_heading = "How")]
    pub interval_count: Option<u32>,
    /// With -I, report the totals at the end too
    #[arg(long, requires = "interval_print", help_heading = "How")]
    pub summary: bool,
    /// Stop after MS milliseconds; a command is ended with SIGTERM
    #[arg(long, value_name = "MS", value_parser = numbers::milliseconds, allow_negative_numbers = true,
          help_heading = "How")]
    pub timeout: Option<u64>,

    #[command(flatten)]
    pub form: FormOptions,
    #[command(flatten)]
    pub regions: RegionOptions,
    /// Write the report to FILE; - is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Report")]
    pub output: Option<PathBuf>,
    /// Append to the file of -o
    #[arg(long, requires = "output", help_heading = "Report")]
    pub append: bool,
    /// Write the report to this descriptor
    #[arg(
        long,
        value_name = "FD",
        value_parser = numbers::whole::<u32>,
        allow_negative_numbers = true,
        conflicts_with = "output",
        help_heading = "Report"
    )]
    pub log_fd: Option<u32>,
    /// Write no report
    #[arg(long, help_heading = "Report")]
    pub quiet: bool,
    /// Show how each event was opened and for how long it counted; twice also each part of the target
    #[arg(short, long, action = ArgAction::Count, help_heading = "Report")]
    pub verbose: u8,
    /// With -j or -x: also what perf does not say, as -v: the backend, the reason of each missing count,
    /// the parts of presets, elapsed, user and system time and peak memory of each run
    #[arg(long, help_heading = "Report")]
    pub json_extra: bool,
    /// With -x, -I and --summary: leave the column `summary` out of the totals
    #[arg(long, requires = "summary", help_heading = "Report")]
    pub no_csv_summary: bool,
    /// With -I on a terminal: clear the screen before each interval
    #[arg(long, requires = "interval_print", help_heading = "Report")]
    pub interval_clear: bool,
    /// With -r: show the time of each run
    #[arg(long, requires = "repeat", help_heading = "Report")]
    pub table: bool,
}

impl Options {
    /// Returns true if the report is for programs.
    pub fn is_for_programs(&self) -> bool {
        let FormOptions {
            json,
            csv,
            field_separator,
            ..
        } = &self.form;
        *json || *csv || field_separator.is_some()
    }

    /// Returns true if metrics of the CPU are measured.
    pub fn measures_metrics(&self) -> bool {
        self.topdown || !self.metrics.is_empty()
    }

    /// Returns true if reports for programs have what those of perf do not.
    pub fn adds_to_perf(&self) -> bool {
        self.json_extra || self.verbose > 0
    }
}
