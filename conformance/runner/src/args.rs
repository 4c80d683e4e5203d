//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::subjects::BackendName;

/// Run the conformance suite over a backend.
#[derive(Debug, Parser)]
#[command(name = "quipu-conform", version)]
pub(crate) struct Args {
    /// The backend to test: linux, msr, pctr, posix, sim, or a simulated device: sim-msr:GENERATION,
    /// sim-pctr:ERA:CPU
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub(crate) backend: Option<BackendName>,

    /// The device of `--backend pctr`, if not /dev/pctr
    #[arg(long, value_name = "PATH")]
    pub(crate) device: Option<PathBuf>,

    /// Only checks whose id contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Vec<String>,

    /// Print the checks and what they require, and run none
    #[arg(long, conflicts_with_all = ["format", "output"])]
    pub(crate) list: bool,

    /// How to print what came of it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write it to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How a report is printed.
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
}
