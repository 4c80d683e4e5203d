#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod comparison;
mod fixtures;
mod machine;
mod output;
mod record;
mod table;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use quipu_conformance::{Check, all, run};

use crate::args::{Args, Command, Format};
use crate::fixtures::BackendName;
use crate::machine::Platform;
use crate::record::Record;
use crate::table::Table;

/// The status for a suite that could not be run; clap's for arguments it does not understand.
const NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Some(command) => reports(command),
        None => conform(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(format_args!("{error:#}"));
            let own = error.downcast_ref::<quipu_hal::Error>();
            if let Some(hint) = own.and_then(quipu_hal::Error::hint) {
                say(format_args!("hint: {hint}"));
            }
            ExitCode::from(NOT_RUN)
        }
    }
}

/// Writes a message to standard error, unless that cannot be written to.
fn say(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "quipu-conform: {message}");
}

/// Runs the suite over a backend. Returns true if no check failed.
fn conform(args: &Args) -> Result<bool> {
    let checks: Vec<&'static Check> = all().filter(|check| is_wanted(check, args)).collect();
    if checks.is_empty() {
        bail!("no check has {} in its id", args.filter.join(" or "));
    }
    let Some(backend) = args.backend.filter(|_| !args.list) else {
        output::list(&checks, &mut io::stdout().lock())?;
        return Ok(true);
    };
    let tested = backend.fixture(args.device.as_deref())?;
    let report = run(&tested.fixture, checks);
    let platform = if backend.is_simulated() && args.format == Format::Record {
        Platform::simulated(tested.pmu.as_deref().unwrap_or_default())
    } else {
        Platform::of(&tested).called(args.machine.as_deref(), args.cpu.as_deref())
    };
    let write = |out: &mut dyn Write| {
        output::write(args.format, &report, &backend.to_string(), &platform, out)
    };
    match &args.output {
        None => write(&mut io::stdout().lock())?,
        Some(path) => into_file(path, write)?,
    }
    Ok(report.failed().next().is_none())
}

fn is_wanted(check: &Check, args: &Args) -> bool {
    args.filter.is_empty() || args.filter.iter().any(|text| check.id.contains(text))
}

/// Writes a file.
fn into_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let written = || {
        let mut file = io::BufWriter::new(File::create(path)?);
        write(&mut file)?;
        file.flush()
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

/// Makes, keeps or compares records. Returns true if nothing is wrong with them.
fn reports(command: &Command) -> Result<bool> {
    let mut out = io::stdout().lock();
    match command {
        Command::Simulated { directory } => {
            let mut good = true;
            for backend in BackendName::simulated() {
                let tested = backend.fixture(None)?;
                let report = run(&tested.fixture, all());
                good &= report.failed().next().is_none();
                let platform = Platform::simulated(tested.pmu.as_deref().unwrap_or_default());
                let record = Record::new(&report, &backend.to_string(), &platform);
                let name = format!("{}.json", record.backend.replace(':', "-"));
                into_file(&directory.join(name), |out| output::record(&record, out))?;
            }
            Ok(good)
        }
        Command::Record { table, directory } => {
            let mut kept = Table::read(table)?;
            kept.put(&read_records(directory)?);
            into_file(table, |out| kept.write(out))?;
            Ok(true)
        }
        Command::Compare { table, directory } => {
            let (kept, now) = (Table::read(table)?, read_records(directory)?);
            Ok(comparison::write(&kept, &now, &mut out)?)
        }
    }
}

/// Reads the records of a directory, of which there is at least one.
fn read_records(directory: &Path) -> Result<BTreeMap<String, Record>> {
    let records = Record::read_all(directory)?;
    if records.is_empty() {
        bail!("{} has no records", directory.display());
    }
    Ok(records)
}
