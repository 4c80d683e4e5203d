//! The options of `quipu top`, as people know them from perf-top(1).

use std::time::Duration;

use clap::Args;

use crate::numbers;
use crate::record;
use crate::target::TargetOptions;

const EXAMPLES: &str = "\
Examples:
  quipu top                      the whole machine
  quipu top -p 1234              a process
  quipu top -e page-faults -c 1  where memory is touched for the first time
  quipu top --stdio -d 5         a table every five seconds

Keys: q ends; h shows all keys; Enter shows the instructions of a function; s sorts; / filters; p pauses.
What was sampled before weighs 7/8 after each interval, so that what is hot now is on top.";

/// Show the functions that are hot now
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Events to sample, with modifiers :u :k :p; cycles unless named, cpu-clock without a PMU
    #[arg(short, long = "event", value_name = "EVENTS", help_heading = "What")]
    event: Vec<String>,
    /// Take N samples a second; max: as many as the kernel allows
    #[arg(
        short = 'F',
        long = "freq",
        value_name = "N",
        conflicts_with = "count",
        allow_negative_numbers = true,
        help_heading = "What"
    )]
    frequency: Option<record::Frequency>,
    /// Take a sample every N events
    #[arg(short, long, value_name = "N", value_parser = numbers::positive::<u64>, allow_negative_numbers = true,
          help_heading = "What")]
    count: Option<u64>,
    /// Sample these processes, with all their threads
    #[arg(short, long, value_name = "PID,..", value_parser = numbers::id, allow_negative_numbers = true,
          value_delimiter = ',', help_heading = "Where")]
    pid: Vec<i32>,
    /// Sample these threads
    #[arg(short, long, value_name = "TID,..", value_parser = numbers::id, allow_negative_numbers = true,
          value_delimiter = ',', help_heading = "Where")]
    tid: Vec<i32>,
    /// Sample every CPU, as is done unless something else is named
    #[arg(short, long, conflicts_with_all = ["pid", "tid", "cpus"], help_heading = "Where")]
    all_cpus: bool,
    /// Sample these CPUs (0-3,8)
    #[arg(short = 'C', long, visible_alias = "cpu", value_name = "LIST", conflicts_with_all = ["pid", "tid"],
          help_heading = "Where")]
    cpus: Option<String>,
    /// Leave out the threads and processes that the target starts
    #[arg(short = 'i', long, help_heading = "Where")]
    no_inherit: bool,
    /// Pages of each ring buffer, a power of two; with more, fewer samples are lost
    #[arg(short, long, value_name = "PAGES", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..=1 << 20), help_heading = "How")]
    mmap_pages: u32,
    /// Show what is hot every N seconds
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = numbers::positive::<u32>,
          allow_negative_numbers = true, help_heading = "How")]
    delay: u32,
    /// Begin anew after each interval
    #[arg(short, long, help_heading = "How")]
    pub(super) zero: bool,
    /// Print at most N functions in a table
    #[arg(
        short = 'E',
        long,
        value_name = "N",
        default_value_t = 20,
        help_heading = "How"
    )]
    pub(super) entries: usize,
    /// Leave out functions with less than PERCENT
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.1,
        help_heading = "How"
    )]
    pub(super) percent_limit: f64,
    /// Print tables, as is done without a terminal too
    #[arg(long, help_heading = "How")]
    pub(super) stdio: bool,
}

impl Options {
    /// Returns the time between two tables.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(self.delay.into())
    }

    /// Returns the options of a recording of the same.
    pub(super) fn recording(&self) -> record::Options {
        let is_all = self.pid.is_empty() && self.tid.is_empty() && self.cpus.is_none();
        record::Options {
            event: self.event.clone(),
            frequency: self.frequency,
            count: self.count,
            mmap_pages: self.mmap_pages,
            target: TargetOptions {
                pid: self.pid.clone(),
                tid: self.tid.clone(),
                all_cpus: is_all,
                cpus: self.cpus.clone(),
                no_inherit: self.no_inherit,
                command: Vec::new(),
            },
            ..record::Options::default()
        }
    }
}
