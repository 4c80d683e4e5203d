//! The options of `quipu top`, as people know them from perf-top(1).

use std::time::Duration;

use clap::Args;

use crate::failure::Failure;
use crate::numbers;
use crate::record::{self, SamplingOptions};
use crate::recording::{NameOptions, Selection};
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
#[command(
    after_help = EXAMPLES,
    override_usage = "quipu top [OPTIONS]",
    mut_arg("command", |command| command.hide(true)),
    mut_arg("cpus", |cpus| cpus.visible_alias("cpu"))
)]
pub(crate) struct Options {
    #[command(flatten)]
    sampling: SamplingOptions,
    #[command(flatten)]
    target: TargetOptions,

    #[command(flatten)]
    names: NameOptions,
    /// Leave out samples of the kernel
    #[arg(
        short = 'K',
        long = "hide_kernel_symbols",
        help_heading = "Which samples"
    )]
    hide_kernel: bool,
    /// Leave out samples of user mode
    #[arg(
        short = 'U',
        long = "hide_user_symbols",
        help_heading = "Which samples"
    )]
    hide_user: bool,

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
    /// Show the number of samples of each function
    #[arg(short = 'n', long, help_heading = "How")]
    pub(super) show_nr_samples: bool,
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

    /// Returns the samples that are shown.
    pub(super) fn selection(&self) -> Selection {
        let named = self.names.selection();
        named.with_hidden(self.hide_kernel, self.hide_user)
    }

    /// Returns the options of a recording of the same.
    pub(super) fn recording(&self) -> Result<record::Options, Failure> {
        let mut target = self.target.clone();
        if !target.command.is_empty() {
            return Err(Failure::usage(
                "top samples what runs already: name processes (-p), threads (-t) or CPUs (-C); quipu record samples a command",
            ));
        }
        target.all_cpus |= target.pid.is_empty() && target.tid.is_empty() && target.cpus.is_none();
        Ok(record::Options {
            sampling: self.sampling.clone(),
            target,
            ..record::Options::default()
        })
    }
}
