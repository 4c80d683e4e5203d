//! One JSON object, for programs.

use std::io::{self, Write};

use quipu_conformance::{Finding, Report};
use serde::Serialize;

use crate::machine::Platform;

#[derive(Serialize)]
struct Document<'a> {
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

pub(super) fn write(report: &Report, platform: &Platform, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        backend: report.backend,
        platform,
        passed: report.passed(),
        failed: report.failed().count(),
        skipped: report.skipped().count(),
        checks: report.findings.iter().map(entry).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
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
