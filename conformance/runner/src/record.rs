//! A report in the form that is kept: verdicts and reasons, with the machine's facts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use quipu_conformance::{Report, Verdict};
use serde::{Deserialize, Serialize};

use crate::machine::Platform;

/// The verdicts of one run of the suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The argument of `--backend`.
    pub(crate) backend: String,
    #[serde(flatten)]
    pub(crate) platform: Platform,
    pub(crate) passed: Vec<String>,
    /// The reasons of failures, by check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) failed: BTreeMap<String, String>,
    /// The checks, by the reason of the skip.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) skipped: BTreeMap<String, Vec<String>>,
}

/// The verdict of a check in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending<'a> {
    Passed,
    Failed(&'a str),
    Skipped(&'a str),
}

impl Record {
    pub(crate) fn new(report: &Report, backend: &str, platform: &Platform) -> Self {
        let mut record = Self {
            backend: backend.into(),
            platform: platform.clone(),
            passed: Vec::new(),
            failed: BTreeMap::new(),
            skipped: BTreeMap::new(),
        };
        for finding in &report.findings {
            let id = finding.check.id.to_owned();
            match &finding.verdict {
                Verdict::Pass => record.passed.push(id),
                Verdict::Fail(seen) => {
                    record.failed.insert(id, seen.clone());
                }
                Verdict::Skip(missing) => {
                    let reason = missing.to_string();
                    record.skipped.entry(reason).or_default().push(id);
                }
            }
        }
        record
    }

    /// Reads the records of a directory, by the names of their files.
    pub(crate) fn read_all(directory: &Path) -> Result<BTreeMap<String, Self>> {
        let what = || format!("cannot read {}", directory.display());
        let mut records = BTreeMap::new();
        for entry in fs::read_dir(directory).with_context(what)? {
            let path = entry.with_context(what)?.path();
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                let what = || format!("cannot read {}", path.display());
                let text = fs::read_to_string(&path).with_context(what)?;
                let record = serde_json::from_str(&text).with_context(what)?;
                records.insert(name.to_owned(), record);
            }
        }
        Ok(records)
    }

    /// Returns every check with its verdict.
    pub(crate) fn endings(&self) -> BTreeMap<&str, Ending<'_>> {
        let passed = self.passed.iter().map(|id| (id.as_str(), Ending::Passed));
        let failed = self
            .failed
            .iter()
            .map(|(id, seen)| (id.as_str(), Ending::Failed(seen)));
        let skipped = self.skipped.iter().flat_map(|(reason, ids)| {
            ids.iter()
                .map(move |id| (id.as_str(), Ending::Skipped(reason)))
        });
        passed.chain(failed).chain(skipped).collect()
    }

    pub(crate) fn number_skipped(&self) -> usize {
        self.skipped.values().map(Vec::len).sum()
    }
}
