//! The options of `quipu compare`, many as people know them from hyperfine(1).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use quipu_shell::numbers;

const EXAMPLES: &str = "\
Examples:
  quipu compare -- ./old --size 9 ::: ./new --size 9   words as they are, between them :::
  quipu compare './old --size 9' './new --size 9'      each command quoted, as for hyperfine
  quipu compare -L n 1,2,4 './bench --threads {n}'     each value against the first
  quipu compare -e instructions:u,page-faults A B      chosen events; with elapsed and CPU time
  quipu compare --time 30 A B                          for half a minute
  quipu compare --until 1 A B                          until the interval is narrower than 1 %
  quipu compare --cpu 2 --shuffle-env A B              on one CPU, the stack at random places
  quipu compare --markdown A B                         a table for a pull request
  quipu compare --fail-if 'instructions > +2 %' A B    a gate: exit status 1 if it is more, surely
  quipu compare --save base.json -- ./bench            now, and after a change:
  quipu compare --baseline base.json -- ./bench
  quipu compare --cargo main..HEAD --bench parse       builds both, and compares them

How it is done: the commands run in pairs, in random order within each pair, because whatever
drifts or beats on a machine then meets both alike. The change is the mean of the ratios of
pairs; its interval is Student's on their logarithms, and where values tie or are zero that of
Wilcoxon's signed ranks. Verdicts are corrected for the number of metrics shown (Holm):
  more, less            they differ
  no difference found   one of 3 % (--resolution) would have been seen
  inconclusive          a difference may be there: more pairs would help, and it says what these
                        would see. It is not the answer `no difference`
Commands read /dev/null and write there, unless --input or --show-output says otherwise.

Exit status:
  0 when it was measured, whatever the answer; 1 when a --fail-if is true; 3 with
  --fail-inconclusive when one is open; 4 when runs ended differently, by a signal or a time-out;
  125 when quipu itself fails, 126 and 127 when a command cannot be executed; 2 when the command
  line is wrong; 128 + n when signal n ended it, after a report of what was measured.";

/// The way in which the text of a command is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Shell {
    /// Split into words and executed directly
    #[default]
    None,
    /// Given to `sh -c`, whose start is in all numbers
    Sh,
}

/// Find which of two commands is cheaper, by how much, and how sure that is
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "quipu compare [OPTIONS] -- A... ::: B...\n       \
        quipu compare [OPTIONS] 'A' 'B'..."
)]
pub struct Options {
    /// Commands as text, a word each; the first is what the others are compared with
    #[arg(value_name = "COMMAND")]
    pub texts: Vec<String>,
    /// Commands as words, with ::: between them
    #[arg(last = true, value_name = "WORDS")]
    pub words: Vec<OsString>,

    /// Events to compare, beside elapsed and CPU time: names, modifiers :u :k; see `quipu list`
    #[arg(short, long = "event", value_name = "EVENTS", help_heading = "What")]
    pub event: Vec<String>,
    /// Run each command for each of the values, in place of {NAME}
    #[arg(short = 'L', long, value_names = ["NAME", "VALUES"], num_args = 2, action = clap::ArgAction::Append,
          help_heading = "What")]
    pub parameter_list: Vec<String>,
    /// Name a command in the report; the first time the first
    #[arg(long, value_name = "NAME", help_heading = "What")]
    pub name: Vec<String>,
    /// Execute commands given as text by a shell
    #[arg(long, value_name = "SHELL", value_enum, default_value_t = Shell::None, help_heading = "What",
          hide_default_value = true)]
    pub shell: Shell,
    /// Compare the program of two revisions, built in work trees of their own; WORDS are its arguments
    #[arg(long, value_name = "BASE..HEAD", conflicts_with_all = ["texts", "parameter_list", "baseline"],
          help_heading = "What")]
    pub cargo: Option<String>,
    /// With --cargo: this benchmark
    #[arg(
        long,
        value_name = "NAME",
        requires = "cargo",
        conflicts_with = "bin",
        help_heading = "What"
    )]
    pub bench: Option<String>,
    /// With --cargo: this program
    #[arg(long, value_name = "NAME", requires = "cargo", help_heading = "What")]
    pub bin: Option<String>,

    /// Measure N pairs; 20 unless --time or --until says when to end
    #[arg(short = 'n', long, value_name = "N", value_parser = numbers::positive::<u32>, allow_negative_numbers = true,
          help_heading = "How long")]
    pub pairs: Option<u32>,
    /// Begin no pair after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, help_heading = "How long")]
    pub time: Option<Duration>,
    /// Measure until the interval of the first metric is narrower than this, 10 pairs at least
    #[arg(long, value_name = "PERCENT", value_parser = numbers::percent, allow_negative_numbers = true,
          help_heading = "How long")]
    pub until: Option<f64>,
    /// Run all commands N times before; 1 by default
    #[arg(short, long, value_name = "N", value_parser = numbers::whole::<u32>, allow_negative_numbers = true,
          help_heading = "How long")]
    pub warmup: Option<u32>,

    /// Draw the orders of pairs from this seed; it is in every report
    #[arg(long, value_name = "SEED", value_parser = numbers::whole::<u64>, allow_negative_numbers = true,
          help_heading = "How")]
    pub seed: Option<u64>,
    /// Read standard input from FILE, from its beginning for each run
    #[arg(long, value_name = "FILE", help_heading = "How")]
    pub input: Option<PathBuf>,
    /// Run the commands in this directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "How")]
    pub directory: Option<PathBuf>,
    /// Keep the commands on these CPUs (2, 0-3)
    #[arg(long, value_name = "LIST", help_heading = "How")]
    pub cpu: Option<String>,
    /// Lengthen the environment of each run at random: the place of the stack moves results
    #[arg(long, help_heading = "How")]
    pub shuffle_env: bool,
    /// Run COMMAND by the shell before each run
    #[arg(long, value_name = "COMMAND", help_heading = "How")]
    pub prepare: Option<OsString>,
    /// Run COMMAND by the shell after each run
    #[arg(long, value_name = "COMMAND", help_heading = "How")]
    pub conclude: Option<OsString>,
    /// Run COMMAND by the shell at the end
    #[arg(long, value_name = "COMMAND", help_heading = "How")]
    pub cleanup: Option<OsString>,
    /// Kill a run that takes longer, which ends the comparison
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, help_heading = "How")]
    pub timeout: Option<Duration>,
    /// Count runs that fail too, whatever their exit status
    #[arg(short, long, help_heading = "How")]
    pub ignore_failure: bool,
    /// Let the commands write to standard output and standard error
    #[arg(long, help_heading = "How")]
    pub show_output: bool,

    /// The levels of the statistics
    #[command(flatten)]
    pub levels: Levels,
    /// The forms of the report
    #[command(flatten)]
    pub forms: Forms,
    /// Gates and baselines
    #[command(flatten)]
    pub gates: Gates,
}

/// The options of the statistics.
#[derive(Debug, Clone, Default, Args)]
pub struct Levels {
    /// The confidence of intervals; 95 by default
    #[arg(long, value_name = "PERCENT", value_parser = confidence, allow_negative_numbers = true,
          help_heading = "Statistics")]
    pub confidence: Option<f64>,
    /// The difference that matters: where one of it could not be seen, the verdict is inconclusive; 3 by default
    #[arg(long, value_name = "PERCENT", value_parser = numbers::percent, allow_negative_numbers = true,
          help_heading = "Statistics")]
    pub resolution: Option<f64>,
}

/// The options of reports beside the table: each into a file, or without one in place of the table.
#[derive(Debug, Clone, Default, Args)]
pub struct Forms {
    /// Write a table in Markdown
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = "Report")]
    pub markdown: Option<PathBuf>,
    /// Write everything in JSON, each value too
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = "Report")]
    pub json: Option<PathBuf>,
    /// Write a line of comma-separated values for each value
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = "Report")]
    pub csv: Option<PathBuf>,
    /// Draw the values, and the changes with their intervals
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = "Report")]
    pub svg: Option<PathBuf>,
    /// Write Bencher's metric format
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = "Report")]
    pub bmf: Option<PathBuf>,
    /// Write what github-action-benchmark reads as customSmallerIsBetter
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-",
          help_heading = "Report")]
    pub github_benchmark: Option<PathBuf>,
    /// Write times as hyperfine does, for scripts that read its files
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub export_json: Option<PathBuf>,
}

/// The options of gates and baselines.
#[derive(Debug, Clone, Default, Args)]
pub struct Gates {
    /// Exit with 1 if this is true with the confidence of the interval: 'instructions > +2 %'
    #[arg(long, value_name = "CONDITION", help_heading = "Gates")]
    pub fail_if: Vec<String>,
    /// Exit with 3 if a --fail-if can neither be said to be true nor false, which else is a warning
    #[arg(long, requires = "fail_if", help_heading = "Gates")]
    pub fail_inconclusive: bool,
    /// Keep the values in FILE, as a baseline
    #[arg(long, value_name = "FILE", help_heading = "Gates")]
    pub save: Option<PathBuf>,
    /// Compare with the first command of a file that --save wrote
    #[arg(long, value_name = "FILE", help_heading = "Gates")]
    pub baseline: Option<PathBuf>,
    /// Compare with a baseline of another machine, kernel or governor too
    #[arg(long, requires = "baseline", help_heading = "Gates")]
    pub allow_other_machine: bool,
}

/// Reads a time in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .trim()
        .parse()
        .ok()
        .filter(|seconds: &f64| *seconds > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

/// Reads a confidence in percent.
fn confidence(text: &str) -> Result<f64, String> {
    let percent = text
        .trim()
        .parse()
        .ok()
        .filter(|percent: &f64| (50.0..=99.999).contains(percent));
    percent.ok_or_else(|| "expected a number of percent from 50 to 99.999".to_owned())
}
