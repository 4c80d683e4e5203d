//! A page of results: headed tables, which are written as Markdown or HTML.

use std::borrow::Cow;

use quipu_conformance::{Verdict, all};

use crate::runs::Runs;

pub(crate) struct Page {
    pub(crate) title: &'static str,
    pub(crate) sections: Vec<Section>,
}

/// A heading, a sentence, and a table.
pub(crate) struct Section {
    pub(crate) heading: &'static str,
    pub(crate) sentence: Cow<'static, str>,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// More about it, which a page shows where it can.
    pub(crate) note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Pass,
    Fail,
    Skip,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: Kind::Text,
            note: None,
        }
    }

    pub(crate) fn number(number: usize) -> Self {
        Self {
            kind: Kind::Number,
            ..Self::text(number.to_string())
        }
    }

    /// A number of failed checks.
    pub(crate) fn failures(number: usize) -> Self {
        let kind = if number > 0 { Kind::Fail } else { Kind::Number };
        Self {
            kind,
            ..Self::number(number)
        }
    }

    fn verdict(verdict: &Verdict) -> Self {
        Self {
            text: verdict.word().into(),
            kind: match verdict {
                Verdict::Pass => Kind::Pass,
                Verdict::Fail(_) => Kind::Fail,
                Verdict::Skip(_) => Kind::Skip,
            },
            note: verdict.reason(),
        }
    }
}

impl Section {
    pub(crate) fn new(
        heading: &'static str,
        sentence: impl Into<Cow<'static, str>>,
        columns: &[&str],
    ) -> Self {
        Self {
            heading,
            sentence: sentence.into(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}

impl Page {
    /// Returns the page of some runs.
    pub(crate) fn of(runs: &Runs) -> Self {
        let mut sections = vec![backends(runs)];
        sections.extend([failures(runs), unproven(runs)].into_iter().flatten());
        sections.push(checks(runs));
        Self {
            title: "Conformance of Quipu",
            sections,
        }
    }
}

fn backends(runs: &Runs) -> Section {
    let mut section = Section::new(
        "Backends",
        "A check that was skipped proves nothing. A backend that was not run has its reason.",
        &[
            "backend", "machine", "kernel", "CPU", "PMU", "user", "passed", "failed", "skipped",
        ],
    );
    for run in &runs.done {
        let facts = run.platform.facts();
        let mut row = vec![Cell::text(&*run.backend)];
        row.extend(facts.iter().map(|(_, fact)| Cell::text(*fact)));
        row.push(Cell::number(run.report.passed()));
        row.push(Cell::failures(run.failed()));
        row.push(Cell::number(run.report.skipped().count()));
        section.rows.push(row);
    }
    for not_run in &runs.not_run {
        let mut row = vec![
            Cell::text(&*not_run.backend),
            Cell::text(format!("not run: {}", not_run.reason)),
        ];
        row.resize_with(section.columns.len(), || Cell::text(""));
        section.rows.push(row);
    }
    section
}

fn failures(runs: &Runs) -> Option<Section> {
    let columns = ["backend", "check", "seen", "required", "source"];
    let mut section = Section::new("Failed", "", &columns);
    for run in &runs.done {
        for (check, seen) in run.report.failed() {
            let cells = [&*run.backend, check.id, seen, check.requires, check.source];
            section.rows.push(cells.map(Cell::text).into());
        }
    }
    (!section.rows.is_empty()).then_some(section)
}

fn unproven(runs: &Runs) -> Option<Section> {
    let sentence = "Checks that were skipped, by what was missing.";
    let mut section = Section::new(
        "Not proven here",
        sentence,
        &["backend", "checks", "reason"],
    );
    for run in &runs.done {
        for (reason, number) in run.unproven() {
            section.rows.push(vec![
                Cell::text(&*run.backend),
                Cell::number(number),
                Cell::text(reason),
            ]);
        }
    }
    (!section.rows.is_empty()).then_some(section)
}

fn checks(runs: &Runs) -> Section {
    let mut section = Section::new("Checks", "", &["check"]);
    let backends = runs.done.iter().map(|run| run.backend.clone());
    section.columns.extend(backends);
    section.columns.push("required".into());
    for check in all() {
        let verdicts = runs.done.iter().map(|run| {
            let mut findings = run.report.findings.iter();
            findings.find(|finding| finding.check.id == check.id)
        });
        let verdicts: Option<Vec<_>> = verdicts.collect();
        let Some(verdicts) = verdicts else {
            continue;
        };
        let mut row = vec![Cell::text(check.id)];
        row.extend(
            verdicts
                .iter()
                .map(|finding| Cell::verdict(&finding.verdict)),
        );
        row.push(Cell {
            note: Some(check.source.into()),
            ..Cell::text(check.requires)
        });
        section.rows.push(row);
    }
    section
}
