//! The options of `quipu top`, as people know them from perf-top(1).

use std::time::Duration;

use clap::Args;

use crate::record::{self, SamplingOptions};
use crate::recording::{NameOptions, SampleSelection};
use crate::report::{self, Key};
use quipu_shell::Failure;
use quipu_shell::numbers;
use quipu_shell::target::TargetOptions;

use super::rows::TopForm;

const EXAMPLES: &str = "\
Examples:
  quipu top                      the whole machine
  quipu top -p 1234              a process
  quipu top -e page-faults -c 1  where memory is touched for the first time
  quipu top --stdio -d 5         a table every five seconds
  quipu top -g                   with the callers of functions: key +
  quipu top -s comm,sym          by command and function

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
pub struct Options {
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

    /// Tell samples apart by these: comm, pid, tid, dso, sym, cpu, srcline; dso,sym unless named
    #[arg(
        short,
        long,
        value_name = "KEY,..",
        value_delimiter = ',',
        help_heading = "How"
    )]
    sort: Vec<String>,
    /// Show what is hot every N seconds
    #[arg(short, long, value_name = "N", default_value_t = 2, value_parser = numbers::positive::<u32>,
          allow_negative_numbers = true, help_heading = "How")]
    delay: u32,
    /// Count from zero after each interval
    #[arg(short, long, help_heading = "How")]
    pub(super) zero: bool,
    /// Print at most N functions in a table
    #[arg(
        short = 'E',
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = numbers::whole::<usize>,
        allow_negative_numbers = true,
        help_heading = "How"
    )]
    pub(super) entries: usize,
    /// Show the number of samples of each function
    #[arg(short = 'n', long, help_heading = "How")]
    show_nr_samples: bool,
    /// Leave out functions with less than PERCENT
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.1,
        value_parser = numbers::percent,
        allow_negative_numbers = true,
        help_heading = "How"
    )]
    percent_limit: f64,
    /// Print tables, as is done without a terminal too
    #[arg(long, help_heading = "How")]
    pub(super) stdio: bool,
}

impl Options {
    /// Returns the time between two tables.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_secs(self.delay.into())
    }

    /// Returns the sentence on the end of what was sampled.
    pub(super) fn ended(&self) -> String {
        let listed = |ids: &[i32]| {
            let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
            ids.join(", ")
        };
        match (&*self.target.pid, &*self.target.tid) {
            ([one], []) => format!("process {one} has ended"),
            ([], [one]) => format!("thread {one} has ended"),
            (pids, []) => format!("processes {} have ended", listed(pids)),
            ([], tids) => format!("threads {} have ended", listed(tids)),
            _ => "what was sampled has ended".to_owned(),
        }
    }

    /// Returns the samples that are shown.
    pub(super) fn selection(&self) -> SampleSelection {
        let named = self.names.selection();
        let named = named.with_last_parts();
        named.with_hidden(self.hide_kernel, self.hide_user)
    }

    /// Returns the columns of rows, and which rows are shown.
    pub(super) fn form(&self) -> Result<TopForm, Failure> {
        let keys = match self.sort.is_empty() {
            true => vec![Key::Object, Key::Symbol],
            false => report::keys(&self.sort)?,
        };
        if let Some(at) = keys.iter().position(|key| key.is_of_branches()) {
            return Err(Failure::usage(format_args!(
                "--sort {}: top samples no branches; quipu record -b does, for quipu report",
                self.sort[at]
            )));
        }
        let with_callers = self.sampling.callchains || self.sampling.call_graph.is_some();
        Ok(TopForm {
            keys,
            report: report::Options {
                call_graph: with_callers.then(String::new),
                ..report::Options::default()
            },
            with_callers,
            with_samples: self.show_nr_samples,
            limit: self.percent_limit,
        })
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
