//! The page that shows where every backend stands: docs/conformance.md.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::record::{Ending, Record};

/// Systems with a backend that no test machine runs, and those backends.
const REAL_SYSTEMS: [(&str, &[&str]); 4] = [
    ("openbsd", &["pctr", "posix"]),
    ("freebsd", &["msr", "posix"]),
    ("netbsd", &["posix"]),
    ("dragonfly", &["msr", "posix"]),
];

const INTRODUCTION: &str = "\
# Conformance

Where every backend stands in the [suite](../conformance/README.md) that all of them have to pass, on every
machine that it was run on. `quipu-conform --list` says what each check requires and whose word that is.

This page is made of the reports in [conformance](conformance): `quipu-conform page docs/conformance`. Reports of
simulated machines come from `quipu-conform simulated docs/conformance`, those of kernels under an emulator from
`ci/guests/*`, those of a BSD from `ci/bsd/report` (`ci/bsd/package` makes an archive of it and what it runs), and any
other from `quipu-conform --format record`. The gate makes those anew that can be made where it runs, and fails when a
check that passed does not any more.
";

/// Writes the page about reports.
pub(crate) fn write(records: &BTreeMap<String, Record>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{INTRODUCTION}")?;
    machines(records, out)?;
    checks(records, out)?;
    exceptions(records, out)
}

/// Text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn machines(records: &BTreeMap<String, Record>, out: &mut dyn Write) -> io::Result<()> {
    let (simulated, real): (Vec<_>, Vec<_>) = records
        .iter()
        .partition(|(_, record)| record.platform.is_simulated());
    writeln!(out, "\n## Machines\n")?;
    writeln!(
        out,
        "| report | backend | machine | kernel | CPU | PMU | user | pass | fail | skip |"
    )?;
    writeln!(
        out,
        "| --- | --- | --- | --- | --- | --- | --- | ---: | ---: | ---: |"
    )?;
    for (name, record) in real {
        let facts = record.platform.facts().map(|(_, fact)| cell(fact));
        let (facts, sums) = (facts.join(" | "), sums(record));
        writeln!(out, "| {name} | {} | {facts} | {sums} |", record.backend)?;
    }
    for (system, backends) in REAL_SYSTEMS {
        for backend in backends {
            let is_it =
                |record: &Record| record.backend == *backend && record.platform.is_of(system);
            if !records.values().any(is_it) {
                let never = "never run on the real system: `ci/bsd/report`";
                writeln!(out, "| | {backend} | {system} | {never} | | | | | | |")?;
            }
        }
    }
    writeln!(out, "\nSimulated PMUs, the same everywhere:\n")?;
    writeln!(out, "| report | PMU | pass | fail | skip |")?;
    writeln!(out, "| --- | --- | ---: | ---: | ---: |")?;
    for (name, record) in simulated {
        let pmu = cell(&record.platform.pmu);
        writeln!(out, "| {name} | {pmu} | {} |", sums(record))?;
    }
    Ok(())
}

/// How many checks passed, failed and were skipped.
fn sums(record: &Record) -> String {
    let (passed, failed) = (record.passed.len(), record.failed.len());
    format!("{passed} | {failed} | {}", record.number_skipped())
}

/// The part of a backend's name that says which code runs: `sim-msr` of `sim-msr:p6`.
fn family(backend: &str) -> &str {
    backend
        .split_once(':')
        .map_or(backend, |(family, _)| family)
}

/// A row for each check, a column for each backend, all its machines together.
fn checks(records: &BTreeMap<String, Record>, out: &mut dyn Write) -> io::Result<()> {
    let mut columns: BTreeMap<&str, Vec<BTreeMap<&str, Ending<'_>>>> = BTreeMap::new();
    for record in records.values() {
        let column = columns.entry(family(&record.backend)).or_default();
        column.push(record.endings());
    }
    let ids: BTreeSet<&str> = columns
        .values()
        .flatten()
        .flat_map(|endings| endings.keys().copied())
        .collect();
    let ids: Vec<_> = ids.into_iter().collect();
    writeln!(out, "\n## Checks\n")?;
    writeln!(
        out,
        "`pass` is a pass on every machine the backend was run on, `5 of 8` on that many of them, and `skip` on \
         none.\nWhat did not pass was skipped, and [below](#what-was-skipped-and-why) is why."
    )?;
    for area in ids.chunk_by(|a, b| area(a) == area(b)) {
        let names: Vec<_> = columns.keys().copied().collect();
        writeln!(out, "\n| {} | {} |", self::area(area[0]), names.join(" | "))?;
        writeln!(out, "| --- |{}", " --- |".repeat(names.len()))?;
        for id in area {
            let row: Vec<_> = columns.values().map(|runs| summary(runs, id)).collect();
            let subject = id.split_once('.').map_or(*id, |(_, subject)| subject);
            writeln!(out, "| {subject} | {} |", row.join(" | "))?;
        }
    }
    Ok(())
}

fn area(id: &str) -> &str {
    id.split_once('.').map_or(id, |(area, _)| area)
}

/// How a check ended in several runs.
fn summary(runs: &[BTreeMap<&str, Ending<'_>>], id: &str) -> String {
    let endings: Vec<_> = runs.iter().filter_map(|run| run.get(id)).collect();
    let failed = endings.iter().any(|e| matches!(e, Ending::Failed(_)));
    let passed = endings.iter().filter(|e| ***e == Ending::Passed).count();
    match passed {
        _ if endings.is_empty() => "not run".into(),
        _ if failed => "**fail**".into(),
        0 => "skip".into(),
        all if all == endings.len() => "pass".into(),
        some => format!("{some} of {}", endings.len()),
    }
}

/// What was skipped or failed, once for all reports that have it in common.
fn exceptions(records: &BTreeMap<String, Record>, out: &mut dyn Write) -> io::Result<()> {
    let mut groups: Vec<(&Record, Vec<&str>)> = Vec::new();
    for (name, record) in records {
        let same = |(other, _): &&mut (&Record, _)| {
            other.skipped == record.skipped && other.failed == record.failed
        };
        match groups.iter_mut().find(same) {
            Some((_, names)) => names.push(name),
            None => groups.push((record, vec![name])),
        }
    }
    writeln!(out, "\n## What was skipped, and why")?;
    for (record, names) in groups {
        writeln!(out, "\n### {}\n", names.join(", "))?;
        if record.skipped.is_empty() && record.failed.is_empty() {
            writeln!(out, "Nothing.")?;
        }
        for (id, seen) in &record.failed {
            writeln!(out, "- **failed**: {id}: {}", seen.replace('\n', " "))?;
        }
        for (reason, ids) in &record.skipped {
            writeln!(out, "- {reason}: {}", ids.join(", "))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Platform;

    fn record(backend: &str, passed: &[&str], skipped: &[&str]) -> Record {
        let ids = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
        Record {
            backend: backend.into(),
            platform: Platform::simulated("a|b"),
            passed: ids(passed),
            failed: BTreeMap::new(),
            skipped: BTreeMap::from([("it lacks it".into(), ids(skipped))]),
        }
    }

    fn page(records: [Record; 2]) -> String {
        let names = ["one".to_owned(), "two".to_owned()];
        let mut out = Vec::new();
        write(&names.into_iter().zip(records).collect(), &mut out).expect("memory");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn machines_of_one_backend_share_a_column() {
        let page = page([
            record("sim:a", &["x.a", "x.b"], &["x.c"]),
            record("sim:b", &["x.a"], &["x.b", "x.c"]),
        ]);
        assert!(page.contains("| x | sim |\n| --- | --- |\n"), "{page}");
        assert!(
            page.contains("| a | pass |\n| b | 1 of 2 |\n| c | skip |"),
            "{page}"
        );
        assert!(
            page.contains("### two\n\n- it lacks it: x.b, x.c\n"),
            "{page}"
        );
        assert!(page.contains("a\\|b"), "{page}");
    }

    #[test]
    fn one_failure_is_seen_in_the_column_and_said_below() {
        let mut failing = record("sim:a", &[], &[]);
        failing.failed.insert("x.a".into(), "2 instead of 1".into());
        let page = page([failing, record("sim:b", &["x.a"], &[])]);
        assert!(page.contains("| a | **fail** |"), "{page}");
        assert!(page.contains("- **failed**: x.a: 2 instead of 1"), "{page}");
    }

    #[test]
    fn systems_that_it_was_never_run_on_are_named_until_it_was() {
        let mut there = record("pctr", &["x.a"], &[]);
        there.platform.machine = "openbsd x86_64".into();
        let page = page([there, record("sim", &["x.a"], &[])]);
        assert!(!page.contains("| pctr | openbsd | never"), "{page}");
        assert!(page.contains("| posix | openbsd | never run"), "{page}");
    }
}
