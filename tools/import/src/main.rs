//! `quipu-import`: writes the files of the event database; docs/event-database.md has its commands.

#![forbid(unsafe_code)]

mod c_tables;
mod descriptions;
mod libpfm4;
mod metrics;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use quipu_import::{lists, pack};

/// The package of the event database.
const EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events");

/// Makes the tables of Quipu's event database from the lists that vendors publish
#[derive(Debug, Parser)]
#[command(name = "quipu-import", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the events of a vendor's list as the part of an event file
    Events {
        /// The form of the list: intel-perfmon, linux-pmu-events or linux-uncore
        #[arg(long, value_name = "FORMAT", value_parser = format)]
        from: lists::Format,
        /// The files of one CPU
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Write libpfm4's names as aliases, for those that a CPU's own table does not lead to the same bits
    Aliases {
        /// A source tree of libpfm4
        libpfm4: PathBuf,
    },
    /// Print one of libpfm4's tables as the part of an event file
    Table {
        /// A source tree of libpfm4
        libpfm4: PathBuf,
        /// The header in its lib/events
        header: String,
        /// The array in the header
        array: String,
    },
    /// Write the tables of Arm CPUs
    Arm {
        /// A source tree of libpfm4
        libpfm4: PathBuf,
        /// A source tree of github.com/ARM-software/data
        data: PathBuf,
    },
    /// Add PAPI's presets to the tables
    Presets {
        /// PAPI's papi_events.csv
        file: PathBuf,
    },
    /// Write the metrics of Intel's CPUs
    Metrics {
        /// A source tree of github.com/intel/perfmon
        perfmon: PathBuf,
    },
    /// Write the sentences that say what events count
    Descriptions {
        /// A source tree of github.com/intel/perfmon
        perfmon: PathBuf,
        /// A source tree of libpfm4
        libpfm4: PathBuf,
        /// A source tree of github.com/ARM-software/data
        data: PathBuf,
    },
    /// Pack the event files into the tables that programs embed
    Pack,
}

fn main() -> ExitCode {
    match run(Options::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quipu-import: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn Error>> {
    let events = Path::new(EVENTS);
    let db = events.join("db");
    match command {
        Command::Events { from, files } => print_events(from, &files),
        Command::Aliases { libpfm4 } => libpfm4::write_aliases(&libpfm4, &db.join("aliases")),
        Command::Table {
            libpfm4,
            header,
            array,
        } => {
            print!("{}", libpfm4::table(&libpfm4, &header, &array)?);
            Ok(())
        }
        Command::Arm { libpfm4, data } => libpfm4::write_arm(&libpfm4, &data, &db),
        Command::Presets { file } => libpfm4::add_presets(&fs::read_to_string(file)?, &db),
        Command::Metrics { perfmon } => metrics::write(&perfmon, &db.join("metrics/intel.toml")),
        Command::Descriptions {
            perfmon,
            libpfm4,
            data,
        } => descriptions::write(&perfmon, &libpfm4, &data, &db.join("descriptions")),
        Command::Pack => {
            for (name, table) in pack::tables(events)? {
                fs::write(events.join("tables").join(name), table)?;
            }
            Ok(())
        }
    }
}

fn format(name: &str) -> Result<lists::Format, String> {
    lists::Format::ALL
        .iter()
        .copied()
        .find(|format| format.name() == name)
        .ok_or_else(|| "expected intel-perfmon, linux-pmu-events or linux-uncore".to_owned())
}

fn print_events(from: lists::Format, files: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let mut texts = Vec::new();
    for file in files {
        let text = fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        texts.push((file.display().to_string(), text));
    }
    let borrowed: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let imported = lists::import(from, &borrowed)?;
    for left_out in &imported.left_out {
        eprintln!("quipu-import: not imported: {left_out}");
    }
    print!("{}", imported.text);
    Ok(())
}
