//! The committed table: a column for each machine, its facts, and a row for each check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use quipu_conformance::all;

use crate::machine::Platform;
use crate::page::{Cell, Page, Section};
use crate::record::{Ending, Record};

/// The words of a column for how a check ended.
const WORDS: [&str; 4] = ["pass", "fail", "skip", NOT_RUN];
const NOT_RUN: &str = "-";

/// A machine with the verdict of each check that was run on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The backend, as `--backend` takes it.
    backend: String,
    pub(crate) platform: Platform,
    verdicts: BTreeMap<String, String>,
}

impl Column {
    fn new(record: &Record) -> Self {
        let verdicts = record.endings().into_iter().map(|(id, ending)| {
            let word = match ending {
                Ending::Passed => "pass",
                Ending::Failed(_) => "fail",
                Ending::Skipped(_) => "skip",
            };
            (id.to_owned(), word.to_owned())
        });
        Self {
            backend: record.backend.clone(),
            platform: record.platform.clone(),
            verdicts: verdicts.collect(),
        }
    }

    /// Returns the checks that passed.
    pub(crate) fn passed(&self) -> impl Iterator<Item = &str> {
        let passes = self.verdicts.iter().filter(|(_, word)| *word == "pass");
        passes.map(|(id, _)| id.as_str())
    }

    /// Returns the fact or the verdict of a row.
    fn cell(&self, row: &str) -> &str {
        let facts = self.platform.facts();
        match facts.iter().find(|(name, _)| *name == row) {
            _ if row == "backend" => &self.backend,
            Some((_, fact)) => fact,
            None => self.verdicts.get(row).map_or(NOT_RUN, String::as_str),
        }
    }

    fn set(&mut self, row: &str, cell: &str) -> Result<()> {
        let fact = match row {
            "backend" => &mut self.backend,
            "machine" => &mut self.platform.machine,
            "kernel" => &mut self.platform.kernel,
            "cpu" => &mut self.platform.cpu,
            "pmu" => &mut self.platform.pmu,
            "user" => &mut self.platform.user,
            check => {
                if !WORDS.contains(&cell) {
                    bail!("{check} has the verdict \"{cell}\"");
                }
                if cell != NOT_RUN {
                    self.verdicts.insert(check.to_owned(), cell.to_owned());
                }
                return Ok(());
            }
        };
        cell.clone_into(fact);
        Ok(())
    }
}

/// The columns by the names of their machines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table(pub(crate) BTreeMap<String, Column>);

impl Table {
    /// Reads a table; one that is not there yet is empty.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        Self::parse(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines().map(|line| line.split('\t'));
        let names: Vec<_> = lines.next().into_iter().flatten().skip(1).collect();
        let empty = Column {
            backend: String::new(),
            platform: Platform::simulated(""),
            verdicts: BTreeMap::new(),
        };
        let mut columns = vec![empty; names.len()];
        for mut cells in lines {
            let row = cells.next().unwrap_or_default();
            let cells: Vec<_> = cells.collect();
            if cells.len() != columns.len() {
                bail!(
                    "{row} has {} cells for {} machines",
                    cells.len(),
                    columns.len()
                );
            }
            for (column, cell) in columns.iter_mut().zip(cells) {
                column.set(row, cell)?;
            }
        }
        let names = names.into_iter().map(str::to_owned);
        Ok(Self(names.zip(columns).collect()))
    }

    /// Puts records in, each in the place of an earlier one of its name.
    pub(crate) fn put(&mut self, records: &BTreeMap<String, Record>) {
        let columns = records
            .iter()
            .map(|(name, record)| (name.clone(), Column::new(record)));
        self.0.extend(columns);
    }

    /// Returns a page of the machines with their sums, and of the number of them on which each check passed.
    pub(crate) fn page(&self) -> Page {
        let mut machines = Section::new(
            "Machines",
            "Runs on record. A check that was skipped proves nothing.",
            &[
                "record", "backend", "machine", "kernel", "CPU", "PMU", "user", "passed", "failed",
                "skipped",
            ],
        );
        for (name, column) in &self.0 {
            let mut row = vec![Cell::text(name), Cell::text(&*column.backend)];
            row.extend(column.platform.facts().map(|(_, fact)| Cell::text(fact)));
            let of = |word| column.verdicts.values().filter(|v| *v == word).count();
            row.extend([
                Cell::number(of("pass")),
                Cell::failures(of("fail")),
                Cell::number(of("skip")),
            ]);
            machines.rows.push(row);
        }
        let mut checks = Section::new(
            "Checks",
            "The number of records in which each check passed, by backend.",
            &["check"],
        );
        let backends: BTreeSet<_> = self.0.values().map(|column| &*column.backend).collect();
        for &backend in &backends {
            let records = self.0.values().filter(|column| column.backend == backend);
            checks
                .columns
                .push(format!("{backend}, of {}", records.count()));
        }
        for check in all() {
            let passes = |column: &&Column| column.passed().any(|id| id == check.id);
            let mut row = vec![Cell::text(check.id)];
            row.extend(backends.iter().map(|&backend| {
                let records = self.0.values().filter(|column| column.backend == backend);
                Cell::number(records.filter(passes).count())
            }));
            checks.rows.push(row);
        }
        Page {
            title: "Conformance results",
            sections: vec![machines, checks],
        }
    }

    /// Writes the table, in the order of the suite.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let facts = Platform::simulated("").facts().map(|(name, _)| name);
        let checks = all().map(|check| check.id);
        write!(out, "check")?;
        for name in self.0.keys() {
            write!(out, "\t{name}")?;
        }
        writeln!(out)?;
        for row in ["backend"].into_iter().chain(facts).chain(checks) {
            write!(out, "{row}")?;
            for column in self.0.values() {
                write!(out, "\t{}", column.cell(row).replace(['\t', '\n'], " "))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let record = Record {
            backend: "sim:a".into(),
            platform: Platform::simulated("four\tcounters"),
            passed: vec!["values.exact".into()],
            failed: BTreeMap::from([("values.wrap".into(), "2 instead of 1".into())]),
            skipped: BTreeMap::from([("it lacks it".into(), vec!["reset.twice".into()])]),
        };
        let mut table = Table::default();
        table.put(&BTreeMap::from([
            ("one".to_owned(), record.clone()),
            ("two".to_owned(), record),
        ]));
        let mut text = Vec::new();
        table.write(&mut text).expect("memory");
        let text = String::from_utf8(text).expect("UTF-8");
        assert_eq!(text.lines().count(), 7 + all().count());
        assert!(text.starts_with("check\tone\ttwo\nbackend\tsim:a\tsim:a\nmachine\tany"));
        assert!(text.contains("\npmu\tfour counters\tfour counters\n"));
        assert!(text.contains("\nvalues.exact\tpass\tpass\n"));
        assert!(text.contains("\nvalues.wrap\tfail\tfail\n"));
        assert!(text.contains("\nvalues.info\t-\t-\n"));
        let again = Table::parse(&text).expect("a table");
        assert_eq!(
            again.0["two"].passed().collect::<Vec<_>>(),
            ["values.exact"]
        );
        let mut rewritten = Vec::new();
        again.write(&mut rewritten).expect("memory");
        assert_eq!(rewritten, text.as_bytes());
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for (text, reason) in [
            (
                "check\ta\nvalues.exact\tpass\tpass\n",
                "2 cells for 1 machines",
            ),
            ("check\ta\nvalues.exact\tgood\n", "the verdict \"good\""),
        ] {
            let error = Table::parse(text).expect_err("it is wrong");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
