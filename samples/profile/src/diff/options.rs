//! The options of `quipu diff`, as people know them from perf-diff(1).

use std::path::PathBuf;

use clap::Args;

use crate::report::ShownOptions;
use quipu_shell::numbers;

use super::compute::Compute;

const EXAMPLES: &str = "\
Examples:
  quipu diff                    the last two recordings: perf.data.old, perf.data
  quipu diff old.data new.data  two others; of more, each beside the first
  quipu diff -s sym -c ratio    by function alone, as a multiple of the events
  quipu diff -s comm -p         by program, with the events
  quipu diff --flamegraph out.svg   the stacks of the second file: red has a larger share than in the first
  quipu diff --json             one JSON object a line, for programs

The baseline is the share of the events in the first file, the delta that of
another file less the baseline, in percentage points. Rows that one of the files
does not have are shown without a baseline or without a delta. A program of
another file name is another row by dso: -s sym compares its functions.";

/// Show what differs between recordings, function by function
#[derive(Debug, Clone, Default, Args)]
// Its short options are those of perf diff.
#[command(
    after_help = EXAMPLES,
    mut_arg("cpu", |cpu| cpu.short(None)),
    mut_arg("comms", |comms| comms.short('C')),
    mut_arg("dsos", |dsos| dsos.short('d')),
    mut_arg("sort", |sort| sort.default_value("dso,sym"))
)]
pub struct Options {
    /// The baseline and what is compared with it; perf.data.old and perf.data unless named. One file is compared with
    /// perf.data.old
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) shown: ShownOptions,

    /// Compare rows by delta-abs and delta (difference of shares, the largest first without or with its sign),
    /// ratio (events of the one by those of the other), wdiff:OLD,NEW (difference of events, each times its weight)
    #[arg(
        short,
        long,
        value_name = "HOW",
        default_value = "delta-abs",
        value_parser = Compute::parse,
        help_heading = "Report"
    )]
    pub(super) compute: Compute,
    /// Sort by the comparison with this file, counted from 1; 0 sorts by the baseline
    #[arg(short, long, value_name = "N", value_parser = numbers::whole::<usize>, allow_negative_numbers = true, help_heading = "Report")]
    pub(super) order: Option<usize>,
    /// Leave out rows that only one file has
    #[arg(short, long, help_heading = "Report")]
    pub(super) baseline_only: bool,
    /// Show the events of each row
    #[arg(short, long, help_heading = "Report")]
    pub(super) period: bool,
    /// Show how each comparison is computed
    #[arg(short = 'F', long, help_heading = "Report")]
    pub(super) formula: bool,
    /// Print SEPARATOR between columns, and no spaces
    #[arg(
        short = 't',
        long,
        value_name = "SEPARATOR",
        conflicts_with = "json",
        help_heading = "Report"
    )]
    pub(super) field_separator: Option<String>,
    /// Draw a flame graph of one event in the second of two files into FILE instead, in red where its share is larger than in the
    /// first, and in blue where it is smaller; of the first event with samples, unless -e names another
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["baseline_only", "field_separator", "formula", "json", "order", "period"], help_heading = "Report")]
    pub(super) flamegraph: Option<PathBuf>,
    /// One JSON object a line
    #[arg(short, long, help_heading = "Report")]
    pub(super) json: bool,
    /// Do not page on a terminal
    #[arg(long, help_heading = "Report")]
    pub(super) no_pager: bool,
}

impl Options {
    /// Returns the files, the baseline first.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let usual = PathBuf::from(crate::DEFAULT_FILE);
        let old = PathBuf::from(format!("{}.old", crate::DEFAULT_FILE));
        match self.files.as_slice() {
            [] => vec![old, usual],
            [new] => vec![old, new.clone()],
            all => all.to_vec(),
        }
    }
}
