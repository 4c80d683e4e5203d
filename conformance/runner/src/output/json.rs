//! One JSON object, for programs.

use std::io::{self, Write};

use quipu_conformance::Finding;
use serde::Serialize;

use crate::machine::Platform;
use crate::runs::{Run, Runs};

#[derive(Serialize)]
struct Document<'a> {
    runs: Vec<Suite<'a>>,
    not_run: Vec<Unused<'a>>,
}

/// A backend that the suite was not run over.
#[derive(Serialize)]
struct Unused<'a> {
    backend: &'a str,
    reason: &'a str,
}

/// The suite over one backend.
#[derive(Serialize)]
struct Suite<'a> {
    backend: &'a str,
    #[serde(flatten)]
    platform: &'a Platform,
    passed: usize,
    failed: usize,
    skipped: usize,
    checks: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    area: &'a str,
    requires: &'a str,
    source: &'a str,
    /// `pass`, `fail` or `skip`.
    verdict: &'a str,
    /// The reason of a failure or skip; absent for a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(super) fn write(runs: &Runs, out: &mut dyn Write) -> io::Result<()> {
    let not_run = runs.not_run.iter().map(|not_run| Unused {
        backend: &not_run.backend,
        reason: &not_run.reason,
    });
    let document = Document {
        runs: runs.done.iter().map(suite).collect(),
        not_run: not_run.collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn suite(run: &Run) -> Suite<'_> {
    Suite {
        backend: &run.backend,
        platform: &run.platform,
        passed: run.report.passed(),
        failed: run.failed(),
        skipped: run.report.skipped().count(),
        checks: run.report.findings.iter().map(entry).collect(),
    }
}

fn entry(finding: &Finding) -> Entry<'_> {
    Entry {
        id: finding.check.id,
        area: finding.check.area(),
        requires: finding.check.requires,
        source: finding.check.source,
        verdict: finding.verdict.word(),
        reason: finding.verdict.reason(),
    }
}
