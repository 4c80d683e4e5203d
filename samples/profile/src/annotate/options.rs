//! The options of `quipu annotate`, as people know them from perf-annotate(1).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::recording::{SelectionOptions, SymbolOptions};
use quipu_shell::numbers;

const EXAMPLES: &str = "\
Examples:
  quipu annotate                    the hot functions of perf.data, instruction by instruction
  quipu annotate qsort_r            this function
  quipu annotate histogram          wordcount::histogram, by the last part of its path
  quipu annotate -l -s main         main, with the source line behind each hot instruction
  quipu annotate -d libc.so.6       the functions of this file
  quipu annotate -M intel           in Intel's syntax

Shares are of the function's samples. The instruction that a sample names may be one or a few behind the one that took
the time, unless the event is precise (:P). Shows x86 and 64-bit Arm. The kernel's instructions are not shown: what runs
is patched, and differs from its file.";

/// Show the hot instructions of functions, beside their source lines
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Show this function: its name, the last part of its path, or a part that no other has
    #[arg(value_name = "SYMBOL", conflicts_with = "symbol")]
    pub(crate) function: Option<String>,
    /// Show this function
    #[arg(short, long, value_name = "SYMBOL", help_heading = "What")]
    pub(crate) symbol: Option<String>,
    /// Only functions in these files
    #[arg(
        short = 'd',
        value_name = "FILE,..",
        value_delimiter = ',',
        help_heading = "What"
    )]
    pub(crate) objects: Vec<String>,
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

    /// Leave out functions with less than PERCENT of the samples; 1 unless a function is named
    #[arg(long, value_name = "PERCENT", value_parser = numbers::percent, allow_negative_numbers = true, help_heading = "How")]
    pub(crate) percent_limit: Option<f64>,
    /// Print the source line behind each hot instruction, and the lines by their shares
    #[arg(short = 'l', long, help_heading = "How")]
    pub(crate) print_line: bool,
    /// The syntax of x86 instructions
    #[arg(
        short = 'M',
        long,
        value_name = "SYNTAX",
        value_enum,
        default_value_t,
        help_heading = "How"
    )]
    pub(crate) disassembler_style: Syntax,
    /// Print text, as is done without it too
    #[arg(long, help_heading = "How")]
    pub(crate) stdio: bool,
    /// Do not page on a terminal
    #[arg(long, help_heading = "How")]
    pub(crate) no_pager: bool,
}

/// A syntax of x86 instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Syntax {
    /// Source before destination, as objdump and perf print
    #[default]
    Att,
    /// Destination before source, as in Intel's manuals
    Intel,
}
