//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::fixtures::BackendName;

/// Run the conformance suite over the backends of this machine.
#[derive(Debug, Parser)]
#[command(
    name = "quipu-conform",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 if no check failed, 1 if one did, 2 if the suite could not be run, 3 if no check \
                  failed and none passed with some backend: nothing is proven then."
)]
pub(crate) struct Args {
    /// Something else than to run the suite here
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The backend to test: hwpmc, linux, msr, pctr, posix, sim, or a simulated device: sim-msr:GENERATION,
    /// sim-pctr:ERA:CPU; may be given several times. Without it each of linux, pctr and posix that can be used here
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Vec<BackendName>,

    /// The device of pctr, if not /dev/pctr
    #[arg(long, value_name = "PATH")]
    pub(crate) device: Option<PathBuf>,

    /// Name of the machine in the report, beside its system and architecture
    #[arg(long, value_name = "TEXT")]
    pub(crate) machine: Option<String>,

    /// Name of its CPU, where that is not known otherwise: on a BSD
    #[arg(long, value_name = "TEXT")]
    pub(crate) cpu: Option<String>,

    /// Only checks whose id contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Vec<String>,

    /// Print the checks and what they require, and run none
    #[arg(long, conflicts_with_all = ["format", "output"])]
    pub(crate) list: bool,

    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write it to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Commands about records of several machines.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the suite over every simulated machine, and write a record of each into a directory
    Simulated {
        /// The directory of the records
        directory: PathBuf,
    },
    /// Put the records in a directory into a table, each in the column of its name, and the page of it
    /// into TABLE-results.md, if that is there
    Record {
        /// The table, docs/conformance.tsv
        table: PathBuf,
        /// The directory of the records
        directory: PathBuf,
    },
    /// Print a page of a table: its machines with their sums, and on how many of them each check passed
    Page {
        /// The table, docs/conformance.tsv
        table: PathBuf,
        /// Format of the page
        #[arg(long, value_enum, default_value_t = PageFormat::Markdown)]
        format: PageFormat,
    },
    /// Compare the records in a directory with the columns of the same names in a table: sums, and which
    /// checks pass no more. The exit status is 1 if there are any, or any that failed, or if TABLE-results.md is there
    /// and is not the page of the table
    Compare {
        /// The table, docs/conformance.tsv
        table: PathBuf,
        /// The directory of the records
        directory: PathBuf,
    },
}

/// Forms of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line for each check, and the sums
    Table,
    /// Test Anything Protocol, version 13
    Tap,
    /// `JUnit` XML
    Junit,
    /// One JSON object
    Json,
    /// One JSON object of one backend, without what the suite says about its checks, to be kept
    Record,
    /// Markdown
    Markdown,
    /// One HTML file that needs no other
    Html,
}

/// Forms of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageFormat {
    /// Markdown
    Markdown,
    /// One HTML file that needs no other
    Html,
}
