//! Reports in several formats.

mod json;
mod junit;
mod text;

use std::io::{self, Write};

use quipu_conformance::{Check, Report};

use crate::args::Format;
use crate::machine::Platform;
use crate::record::Record;

/// Writes a report.
pub(crate) fn write(
    format: Format,
    report: &Report,
    backend: &str,
    platform: &Platform,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => text::table(report, platform, out),
        Format::Tap => text::tap(report, platform, out),
        Format::Junit => junit::write(report, platform, out),
        Format::Json => json::write(report, platform, out),
        Format::Record => record(&Record::new(report, backend, platform), out),
    }
}

/// Writes what is kept of a report.
pub(crate) fn record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, record)?;
    writeln!(out)
}

/// Writes what the checks require, and whose word that is.
pub(crate) fn list(checks: &[&Check], out: &mut dyn Write) -> io::Result<()> {
    for check in checks {
        writeln!(out, "{}", check.id)?;
        writeln!(out, "    {}", check.requires)?;
        writeln!(out, "    source: {}", check.source)?;
    }
    writeln!(out, "{} checks", checks.len())
}
