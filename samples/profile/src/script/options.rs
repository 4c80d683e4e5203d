//! The options of `quipu script`, as people know them from perf-script(1).

use std::path::PathBuf;

use clap::Args;

use crate::recording::{SelectionOptions, SymbolOptions};
use quipu_shell::numbers;

const EXAMPLES: &str = "\
Examples:
  quipu script                              every sample of perf.data
  quipu script -F comm,tid,time,event,ip,sym   these fields
  quipu script -F +srcline                  and source lines, where there is debug information
  quipu script --inline | inferno-collapse-perf   stacks with inlined functions
  quipu script -G --comms make --time 12.5,13   without call chains, of make, in this half of a second
  quipu script -j                           one JSON object a line, for programs
  perf record -o - ls | quipu script -i -   what is being recorded

Fields: comm tid pid time cpu event ip sym symoff dso addr data_src weight ins_lat period srcline
trace brstack brstacksym. They can be chosen for a type of events (sw:comm,ip), added (-F +cpu) and
left out (-F -dso); types are hw, sw, trace and raw.
A line is what perf script prints. Tracepoints are printed as the kernel describes them in the file.";

/// Print every sample, a line each
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Read FILE; - is standard input
    #[arg(short, long, value_name = "FILE", default_value = crate::DEFAULT_FILE,
          help_heading = "What")]
    pub(crate) input: PathBuf,
    /// Read files that belong to other users
    #[arg(short, long, help_heading = "What")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolOptions,

    #[command(flatten)]
    pub(crate) selection: SelectionOptions,

    /// Print these fields: +FIELD adds one, -FIELD leaves one out, TYPE:FIELDS are those of a type of events
    #[arg(
        short = 'F',
        long,
        value_name = "FIELDS",
        allow_hyphen_values = true,
        help_heading = "How"
    )]
    pub(crate) fields: Vec<String>,
    /// Print no call chains, only the instruction
    #[arg(short = 'G', long, help_heading = "How")]
    pub(crate) hide_call_graph: bool,
    /// Print at most N functions of a call chain
    #[arg(long, value_name = "N", default_value_t = 127, value_parser = numbers::whole::<usize>, allow_negative_numbers = true, help_heading = "How")]
    pub(crate) max_stack: usize,
    /// Print the functions that were inlined in call chains, where there is debug information
    #[arg(long, help_heading = "How")]
    pub(crate) inline: bool,
    /// Print times in nanoseconds
    #[arg(long, help_heading = "How")]
    pub(crate) ns: bool,
    /// One JSON object a line
    #[arg(short, long, conflicts_with_all = ["fields", "ns"], help_heading = "How")]
    pub(crate) json: bool,
    /// Do not page on a terminal
    #[arg(long, help_heading = "How")]
    pub(crate) no_pager: bool,
}
