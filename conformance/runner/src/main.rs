#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod comparison;
mod fixtures;
mod machine;
mod output;
mod page;
mod record;
mod runs;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use quipu_conformance::{Check, all, run};

use crate::args::{Args, Command, Format, PageFormat};
use crate::fixtures::BackendName;
use crate::machine::Platform;
use crate::record::Record;
use crate::runs::{Outcome, Runs};
use crate::table::Table;

/// The status for a suite that could not be run; clap's for arguments it does not understand.
const NOT_RUN: u8 = 2;
/// The status for a run of skips only.
const UNPROVEN: u8 = 3;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.command {
        Some(command) => reports(command).map(|good| match good {
            true => Outcome::Passed,
            false => Outcome::Failed,
        }),
        None => conform(&args),
    };
    match done {
        Ok(Outcome::Passed) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Ok(Outcome::Unproven) => ExitCode::from(UNPROVEN),
        Err(error) => {
            say(format_args!("{}", in_full(&error)));
            let own = error.downcast_ref::<quipu_hal::Error>();
            if let Some(hint) = own.and_then(quipu_hal::Error::hint) {
                say(format_args!("hint: {hint}"));
            }
            ExitCode::from(NOT_RUN)
        }
    }
}

/// Returns an error with its causes, of which one of Quipu's own says its.
fn in_full(error: &anyhow::Error) -> String {
    match error.downcast_ref::<quipu_hal::Error>() {
        Some(own) => own.to_string(),
        None => format!("{error:#}"),
    }
}

/// Writes a message to standard error, unless that cannot be written to.
fn say(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "quipu-conform: {message}");
}

/// Runs the suite over backends, and writes the report.
fn conform(args: &Args) -> Result<Outcome> {
    let checks: Vec<&'static Check> = all().filter(|check| is_wanted(check, args)).collect();
    if checks.is_empty() {
        bail!("no check has {} in its id", args.filter.join(" or "));
    }
    if args.list {
        output::list(&checks, &mut io::stdout().lock())?;
        return Ok(Outcome::Passed);
    }
    if args.format == Format::Record && args.backend.len() != 1 {
        bail!("a record is of one backend: name it with --backend");
    }
    let runs = Runs::of(args, &checks)?;
    let write = |out: &mut dyn Write| output::write(args.format, &runs, out);
    match &args.output {
        None => write(&mut io::stdout().lock())?,
        Some(path) => into_file(path, write)?,
    }
    for run in runs.done.iter().filter(|run| run.report.passed() == 0) {
        say(format_args!(
            "{}: nothing is proven, since none of {} checks passed",
            run.backend,
            run.report.findings.len()
        ));
    }
    Ok(runs.outcome())
}

fn is_wanted(check: &Check, args: &Args) -> bool {
    args.filter.is_empty() || args.filter.iter().any(|text| check.id.contains(text))
}

/// Writes a file.
fn into_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let written = || {
        #[cfg(unix)]
        let file = quipu_shell::output_file::open(path, false)?;
        #[cfg(not(unix))]
        let file = std::fs::File::create(path)?;
        let mut file = io::BufWriter::new(file);
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
            // So that a page that is kept beside the table is always of it.
            if let Some(page) = page_beside(table) {
                into_file(&page, |out| output::markdown(&kept.page(), out))?;
            }
            Ok(true)
        }
        Command::Page { table, format } => {
            let page = Table::read(table)?.page();
            match format {
                PageFormat::Markdown => output::markdown(&page, &mut out)?,
                PageFormat::Html => output::html(&page, &mut out)?,
            }
            Ok(true)
        }
        Command::Compare { table, directory } => {
            let (kept, now) = (Table::read(table)?, read_records(directory)?);
            let good = comparison::write(&kept, &now, &mut out)?;
            Ok(is_page_current(table, &kept, &mut out)? && good)
        }
    }
}

/// Returns the page that is kept beside a table, if there is one: `conformance-results.md` of `conformance.tsv`.
fn page_beside(table: &Path) -> Option<PathBuf> {
    let stem = table.file_stem().unwrap_or_default();
    let page = table.with_file_name(format!("{}-results.md", stem.to_string_lossy()));
    page.exists().then_some(page)
}

/// Returns true if the page beside a table is the one that is made of it, or there is none; writes a line if it is not.
fn is_page_current(table: &Path, kept: &Table, out: &mut dyn Write) -> Result<bool> {
    let Some(page) = page_beside(table) else {
        return Ok(true);
    };
    let mut made = Vec::new();
    output::markdown(&kept.page(), &mut made)?;
    let current =
        std::fs::read(&page).with_context(|| format!("cannot read {}", page.display()))? == made;
    if !current {
        let (page, table) = (page.display(), table.display());
        writeln!(
            out,
            "FAIL {page}: it is not the page of {table}, which `quipu-conform page {table}` prints"
        )?;
    }
    Ok(current)
}

/// Reads the records of a directory, of which there is at least one.
fn read_records(directory: &Path) -> Result<BTreeMap<String, Record>> {
    let records = Record::read_all(directory)?;
    if records.is_empty() {
        bail!("{} has no records", directory.display());
    }
    Ok(records)
}
