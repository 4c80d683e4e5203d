//! The options of `quipu report`, as people know them from perf-report(1).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::recording::{Input, SampleSelection, SelectionOptions, SymbolOptions};
use quipu_shell::Failure;
use quipu_shell::numbers;

use super::sort::Key;
use super::viewers::ViewerOptions;

const EXAMPLES: &str = "\
Examples:
  quipu report                              hot functions of perf.data
  quipu report -g                           and who called them
  quipu report --children                   with the time of what they called
  quipu report --sort dso,cpu               files, by CPU
  quipu report -F overhead,period,sym       these columns
  quipu report --comms make --time 12.5,13  of make, in this half of a second
  quipu report --flamegraph out.svg         the same as a picture
  quipu report --folded                     the stacks of the picture, a line each
  quipu report --firefox out.json.gz        for profiler.firefox.com; also --pprof, --speedscope
  quipu report --inline -i other.data       inlined functions, from debug information
  quipu report --json                       one JSON object a line, for programs
  perf record -o - ls | quipu report -i -   what is being recorded

Reads what quipu record and perf record wrote. Overhead is the share of the events, or of the time
of a clock. Names are those that were kept with the recording, then those of the files: here, under
--symfs, in ~/.debug (quipu archive, perf buildid-cache -a FILE), in the cache of debuginfod-find.
What has no name is shown by its place (app+0x118c), with the reason on standard error.";

/// The options of what of a recording is shown, which `report` and `diff` share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShownOptions {
    /// Read files that belong to other users
    #[arg(short, long, help_heading = "What")]
    pub(crate) force: bool,
    /// Show this event alone
    #[arg(short, long, value_name = "EVENT", help_heading = "What")]
    pub(crate) event: Option<String>,
    #[command(flatten)]
    pub(crate) symbols: SymbolOptions,
    #[command(flatten)]
    pub(crate) selection: SelectionOptions,

    /// Take shares of all samples (absolute), or of those that --comms, --pid, --tid, --dsos, -S and --symbol-filter choose
    /// (relative)
    #[arg(
        long,
        value_name = "HOW",
        value_enum,
        default_value_t,
        help_heading = "Which samples"
    )]
    pub(crate) percentage: Percentage,
    /// Tell samples apart by these: comm, pid, tid, dso, sym, cpu, srcline; comm,dso,sym unless named; branches by symbol_from,
    /// symbol_to, dso_from, dso_to, mispredict, cycles
    #[arg(
        short,
        long,
        value_name = "KEY,..",
        value_delimiter = ',',
        help_heading = "Report"
    )]
    pub(crate) sort: Vec<String>,
}

/// Options of a report's text, which files for viewers do not have.
const NOT_FOR_VIEWERS: [&str; 12] = [
    "branch_stack",
    "column_widths",
    "csv",
    "field_separator",
    "fields",
    "flamegraph",
    "folded",
    "header",
    "header_only",
    "json",
    "show_info",
    "threads",
];

/// Show what was recorded, function by function
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("firefox", |option| option.conflicts_with_all(NOT_FOR_VIEWERS)),
    mut_arg("pprof", |option| option.conflicts_with_all(NOT_FOR_VIEWERS)),
    mut_arg("speedscope", |option| option.conflicts_with_all(NOT_FOR_VIEWERS))
)]
pub struct Options {
    /// Read FILE; - is standard input
    #[arg(short, long, value_name = "FILE", default_value = crate::DEFAULT_FILE,
          help_heading = "What")]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) shown: ShownOptions,
    /// Report the branches of samples in place of their instructions, as keys of branches do too; comm, dso_from, symbol_from,
    /// symbol_to, cycles unless others are named
    #[arg(short, long, conflicts_with_all = ["children", "call_graph", "flamegraph", "csv"], help_heading = "What")]
    pub(crate) branch_stack: bool,
    /// Tell inlined functions apart, where there is debug information
    #[arg(long, help_heading = "What")]
    pub(crate) inline: bool,

    /// Only functions with TEXT in their names
    #[arg(long, value_name = "TEXT", help_heading = "Which samples")]
    pub(crate) symbol_filter: Option<String>,
    /// Only samples whose function has a name
    #[arg(short = 'U', long, help_heading = "Which samples")]
    pub(crate) hide_unresolved: bool,

    /// Show these columns: overhead, overhead_children, sample, period and keys of --sort; rows are in their order
    #[arg(
        short = 'F',
        long,
        value_name = "COLUMN,..",
        value_delimiter = ',',
        conflicts_with_all = ["json", "csv", "flamegraph"],
        help_heading = "Report"
    )]
    pub(crate) fields: Vec<String>,
    /// Show the callers of each function, or from the outermost caller on (caller); parts below 0.5 % are left out, or
    /// below another limit: graph,2,caller
    #[arg(short = 'g', long, value_name = "HOW", num_args = 0..=1, default_missing_value = "graph",
          help_heading = "Report")]
    pub(crate) call_graph: Option<String>,
    /// Follow call chains for COUNT frames at most, the sampled function included
    #[arg(long, value_name = "COUNT", value_parser = numbers::whole::<usize>, allow_negative_numbers = true, help_heading = "Report")]
    pub(crate) max_stack: Option<usize>,
    /// Add to each function what it called, and sort by that
    #[arg(long, help_heading = "Report")]
    pub(crate) children: bool,
    /// Sort by the functions alone, as is done without it too
    #[arg(long, conflicts_with = "children", help_heading = "Report")]
    pub(crate) no_children: bool,
    /// Show the number of samples, as is done without it too
    #[arg(short = 'n', long, help_heading = "Report")]
    pub(crate) show_nr_samples: bool,
    /// Print text, as is done without it too
    #[arg(long, conflicts_with_all = ["json", "csv"], help_heading = "Report")]
    pub(crate) stdio: bool,
    /// Put SEPARATOR between the columns, in place of blanks; a point stands for it in their text
    #[arg(short = 't', long, value_name = "SEPARATOR", conflicts_with_all = ["call_graph", "flamegraph", "json", "csv"],
          help_heading = "Report")]
    pub(crate) field_separator: Option<String>,
    /// Make columns as wide as these numbers, in their order, and cut what is longer; 0: as wide as their texts
    #[arg(short = 'w', long, value_name = "WIDTH,..", value_delimiter = ',', value_parser = numbers::whole::<usize>,
          conflicts_with_all = ["field_separator", "flamegraph", "json", "csv"], help_heading = "Report")]
    pub(crate) column_widths: Vec<usize>,
    /// Leave out what is below PERCENT; 0.1 on a terminal unless named, else 0
    #[arg(long, value_name = "PERCENT", value_parser = numbers::percent, allow_negative_numbers = true, help_heading = "Report")]
    pub(crate) percent_limit: Option<f64>,
    /// Show what each event counted in each thread too, if the file has that (record -s)
    #[arg(short = 'T', long, conflicts_with_all = ["csv", "flamegraph"], help_heading = "Report")]
    pub(crate) threads: bool,
    /// Begin with what the file says of the machine, the command and the events
    #[arg(long, conflicts_with_all = ["json", "csv", "flamegraph"], help_heading = "Report")]
    pub(crate) header: bool,
    /// Begin with that and the places of CPUs, caches and memory
    #[arg(short = 'I', long, conflicts_with_all = ["json", "csv", "flamegraph"], help_heading = "Report")]
    pub(crate) show_info: bool,
    /// Show that alone
    #[arg(long, conflicts_with_all = ["json", "csv", "flamegraph"], help_heading = "Report")]
    pub(crate) header_only: bool,
    /// Do not page on a terminal
    #[arg(long, help_heading = "Report")]
    pub(crate) no_pager: bool,
    /// Draw a flame graph of one event into FILE instead: of the first with samples, unless -e names another
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    pub(crate) flamegraph: Option<PathBuf>,
    /// Print the stacks of that event instead, in the folded form that inferno-flamegraph and flamegraph.pl read
    #[arg(long, conflicts_with_all = ["branch_stack", "fields", "field_separator", "column_widths", "threads", "header", "show_info",
          "header_only", "flamegraph", "json", "csv"], help_heading = "Report")]
    pub(crate) folded: bool,
    #[command(flatten)]
    pub(crate) viewers: ViewerOptions,
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
        conflicts_with_all = ["flamegraph", "sort"],
        help_heading = "Report"
    )]
    pub(crate) csv: bool,
}

/// Samples that shares are parts of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Percentage {
    /// All samples
    #[default]
    Absolute,
    /// The chosen ones
    Relative,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Separated,
}

impl Options {
    /// Returns the options of files for viewers of a recording.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn for_viewers(input: &Path, viewers: ViewerOptions) -> Self {
        Self {
            input: input.to_owned(),
            viewers,
            ..Self::default()
        }
    }

    /// Returns the options of a report of a recording with callers.
    pub(crate) fn with_callers_of(input: &Path) -> Self {
        Self {
            input: input.to_owned(),
            children: true,
            ..Self::default()
        }
    }

    /// Replaces the names of functions that are chosen by those that are meant.
    ///
    /// # Errors
    /// If one means none.
    pub(super) fn find_functions(&mut self) -> Result<(), Failure> {
        let mut names = std::mem::take(&mut self.shown.selection.names.symbols);
        if !self.header_only {
            self.input_of_names().find_functions(&mut names)?;
        }
        self.shown.selection.names.symbols = names;
        Ok(())
    }

    /// Does so for one of several files, which may lack some of the functions.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn find_functions_of_several(&mut self) -> Result<(), Failure> {
        let mut names = std::mem::take(&mut self.shown.selection.names.symbols);
        self.input_of_names()
            .find_functions_of_several(&mut names)?;
        self.shown.selection.names.symbols = names;
        Ok(())
    }

    /// Returns the file in which functions are looked for.
    fn input_of_names(&self) -> Input<'_> {
        Input {
            path: &self.input,
            force: self.shown.force,
            lines: self.inline || !self.viewers.is_empty(),
            parameters: true,
            symbols: Some(&self.shown.symbols),
            keeping: false,
            copies: None,
        }
    }

    /// Returns the samples that the options choose, as far as names of functions do not.
    pub(super) fn selection(&self) -> Result<SampleSelection, Failure> {
        let selection = self.shown.selection.selection()?;
        Ok(selection.with_named_only(self.hide_unresolved))
    }

    /// Returns true if not every sample is chosen.
    ///
    /// # Errors
    /// If an option cannot be read.
    pub(crate) fn chooses(&self) -> Result<bool, Failure> {
        Ok(self.symbol_filter.is_some() || !self.selection()?.is_empty())
    }

    /// Returns true if the weight of callers is asked for.
    pub(super) fn with_children(&self) -> bool {
        self.children || self.fields.iter().any(|name| name == "overhead_children")
    }

    /// Returns true if stacks are shown with all their functions.
    pub(super) fn draws_stacks(&self) -> bool {
        self.folded || self.flamegraph.is_some() || !self.viewers.is_empty()
    }

    /// Returns true if branches are reported in place of instructions, by the keys too.
    pub(super) fn reports_branches(&self, keys: &[Key]) -> bool {
        self.branch_stack || keys.iter().any(|key| key.is_of_branches())
    }

    /// Returns true if a report begins with what the file says of the machine.
    pub(super) fn shows_header(&self) -> bool {
        self.header || self.header_only || self.show_info
    }

    pub(super) fn format(&self) -> Format {
        match (self.json, self.csv) {
            (true, _) => Format::Json,
            (_, true) => Format::Separated,
            _ => Format::Text,
        }
    }
}
