//! Reports as text: a table for people, and the Test Anything Protocol.

use std::io::{self, Write};

use quipu_conformance::{Finding, Verdict};

use crate::runs::Runs;

/// Writes a table for each backend, with the facts of the machine above it, and what was not proven.
pub(super) fn table(runs: &Runs, out: &mut dyn Write) -> io::Result<()> {
    for run in &runs.done {
        for (name, fact) in run.platform.facts() {
            writeln!(out, "{name:8}{fact}")?;
        }
        writeln!(out, "\n{}\n", run.report)?;
    }
    for run in &runs.done {
        let unproven = run.unproven();
        if !unproven.is_empty() {
            writeln!(out, "not proven of {}, by what was missing:", run.backend)?;
        }
        for (reason, number) in unproven {
            writeln!(out, "{number:6}  {reason}")?;
        }
    }
    for not_run in &runs.not_run {
        writeln!(out, "not run: {}: {}", not_run.backend, not_run.reason)?;
    }
    Ok(())
}

/// Writes the Test Anything Protocol, version 13 (testanything.org). The ids of several backends follow their names.
pub(super) fn tap(runs: &Runs, out: &mut dyn Write) -> io::Result<()> {
    let checks = runs.done.iter().map(|run| run.report.findings.len());
    writeln!(out, "TAP version 13")?;
    writeln!(out, "1..{}", checks.sum::<usize>())?;
    let mut number = 0;
    for run in &runs.done {
        writeln!(out, "# backend: {}", run.backend)?;
        for (name, fact) in run.platform.facts() {
            writeln!(out, "# {name}: {}", one_line(fact))?;
        }
        let backend = match &*runs.done {
            [_] => String::new(),
            _ => format!("{} ", run.backend),
        };
        for finding in &run.report.findings {
            number += 1;
            let name = format!("{number} - {backend}{}", finding.check.id);
            tap_line(&name, finding, out)?;
        }
    }
    for not_run in &runs.not_run {
        let reason = one_line(&not_run.reason);
        writeln!(out, "# not run: {}: {reason}", not_run.backend)?;
    }
    Ok(())
}

fn tap_line(name: &str, finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let check = finding.check;
    match &finding.verdict {
        Verdict::Pass => writeln!(out, "ok {name}"),
        Verdict::Skip(missing) => {
            writeln!(out, "ok {name} # SKIP {}", one_line(&missing.to_string()))
        }
        Verdict::Fail(reason) => {
            writeln!(out, "not ok {name}")?;
            writeln!(out, "  ---")?;
            // JSON strings are YAML.
            for (key, value) in [
                ("message", reason.as_str()),
                ("required", check.requires),
                ("source", check.source),
            ] {
                writeln!(out, "  {key}: {}", serde_json::Value::from(value))?;
            }
            writeln!(out, "  ...")
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
