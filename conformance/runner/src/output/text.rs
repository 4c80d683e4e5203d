//! Reports as text: a table for people, and the Test Anything Protocol.

use std::io::{self, Write};

use quipu_conformance::{Report, Verdict};

use crate::machine::Platform;

/// Writes a table with the facts of the machine above it.
pub(super) fn table(report: &Report, platform: &Platform, out: &mut dyn Write) -> io::Result<()> {
    for (name, fact) in platform.facts() {
        writeln!(out, "{name:8}{fact}")?;
    }
    writeln!(out, "\n{report}")
}

/// Writes the Test Anything Protocol, version 13 (testanything.org).
pub(super) fn tap(report: &Report, platform: &Platform, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "TAP version 13")?;
    writeln!(out, "1..{}", report.findings.len())?;
    writeln!(out, "# backend: {}", report.backend)?;
    for (name, fact) in platform.facts() {
        writeln!(out, "# {name}: {}", one_line(fact))?;
    }
    for (number, finding) in (1..).zip(&report.findings) {
        let check = finding.check;
        match &finding.verdict {
            Verdict::Pass => writeln!(out, "ok {number} - {}", check.id)?,
            Verdict::Skip(missing) => {
                let why = one_line(&missing.to_string());
                writeln!(out, "ok {number} - {} # SKIP {why}", check.id)?;
            }
            Verdict::Fail(reason) => {
                writeln!(out, "not ok {number} - {}", check.id)?;
                writeln!(out, "  ---")?;
                // JSON strings are YAML.
                for (key, value) in [
                    ("message", reason.as_str()),
                    ("required", check.requires),
                    ("source", check.source),
                ] {
                    writeln!(out, "  {key}: {}", serde_json::Value::from(value))?;
                }
                writeln!(out, "  ...")?;
            }
        }
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
