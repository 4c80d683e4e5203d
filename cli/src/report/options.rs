//! The options of `quipu report`, as people know them from perf-report(1).

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  quipu report                              hot functions of perf.data
  quipu report -g                           and who called them
  quipu report --children                   with the time of what they called
  quipu report --flamegraph out.svg         the same as a picture
  quipu report --inline -i other.data       inlined functions, from debug information
  quipu report --json                       one JSON object a line, for programs
  perf record -o - ls | quipu report -i -   what is being recorded

Reads what quipu record and perf record wrote. Overhead is the share of the events, or of the time of a
clock. A function without a name is [unknown]: the file has no symbols for it, is gone, or is another one
by now.";

/// Show what was recorded, function by function
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Read FILE; - is standard input
    #[arg(short, long, value_name = "FILE", default_value = super::DEFAULT_FILE,
          help_heading = "What")]
    pub(crate) input: PathBuf,
    /// Report this event alone
    #[arg(short, long, value_name = "EVENT", help_heading = "What")]
    pub(crate) event: Option<String>,
    /// Tell inlined functions apart, where there is debug information
    #[arg(long, help_heading = "What")]
    pub(crate) inline: bool,

    /// Show the callers of each function
    #[arg(short = 'g', long, help_heading = "Report")]
    pub(crate) call_graph: bool,
    /// Add to each function what it called, and sort by that
    #[arg(long, help_heading = "Report")]
    pub(crate) children: bool,
    /// Leave out what is below PERCENT
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.0,
        help_heading = "Report"
    )]
    pub(crate) percent_limit: f64,
    /// Draw a flame graph into FILE instead
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) flamegraph: Option<PathBuf>,
    /// One JSON object a line
    #[arg(
        short,
        long,
        group = "format",
        conflicts_with = "flamegraph",
        help_heading = "Report"
    )]
    pub(crate) json: bool,
    /// Comma-separated values, with a heading
    #[arg(
        long,
        group = "format",
        conflicts_with = "flamegraph",
        help_heading = "Report"
    )]
    pub(crate) csv: bool,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Separated,
}

impl Options {
    pub(super) fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Separated,
            _ => Format::Text,
        }
    }
}
