//! Reads the files of metrics: formulas over the events of some CPUs, with what their values mean.

use std::cell::RefCell;
use std::mem;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::diagnostics::{Diagnostic, Findings, Source};
use crate::fields::{Checked, Node, Reading};
use crate::formula::Formula;
use crate::packed::write_descriptions;
use crate::printable::shortened;
use crate::revisions::Revisions;
use crate::strings::Strings;
use crate::threshold::Threshold;

/// The keys of a table of metrics.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct TableKeys {
    cpus: Checked<Vec<Checked<String>>>,
    revisions: Checked<String>,
    #[serde(rename = "formulas")]
    _formulas: IgnoredAny,
}

/// The keys of a metric.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table")]
struct MetricKeys {
    formula: Checked<String>,
    smt_formula: Checked<String>,
    unit: Checked<String>,
    groups: Checked<Vec<Checked<String>>>,
    threshold: Checked<String>,
    description: Checked<String>,
}

/// Reads and checks files of metrics, `(name, text)` each, for the CPU entries with these ids, and returns them
/// compressed: a line for each metric, with a tab between CPUs, revisions, name, groups, unit, threshold, both formulas
/// and description.
///
/// # Errors
/// Every finding in every file, by location.
pub fn compile_metrics(files: &[(&str, &str)], ids: &[String]) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let mut lines = Vec::new();
    for (index, (file, text)) in files.iter().enumerate() {
        let source = Source::new(file, text);
        let reading = Reading {
            source: &source,
            file: index as u32,
            findings: RefCell::new(mem::take(&mut findings)),
            strings: RefCell::new(Strings::new()),
        };
        read_file(&reading, ids, &mut lines);
        findings = reading.findings.into_inner();
    }
    let packed = write_descriptions(&lines);
    if packed.is_none() {
        findings.add_at_line("metrics", 1, "they are too long".to_owned());
    }
    match packed {
        Some(packed) if findings.is_empty() => Ok(packed),
        _ => Err(findings.into_sorted()),
    }
}

fn read_file(reading: &Reading<'_>, ids: &[String], lines: &mut Vec<String>) {
    reading.each_table("metrics", |table| {
        read_table(reading, table, ids, lines);
    });
}

fn read_table(
    reading: &Reading<'_>,
    node: Node<'_, '_>,
    ids: &[String],
    lines: &mut Vec<String>,
) -> Option<()> {
    let keys: TableKeys = reading.read(node)?;
    let mut cpus = Vec::new();
    for (id, at) in keys.cpus.items() {
        if !ids.contains(&id) {
            reading.note(&at, format!("there is no CPU `{}`", shortened(&id)));
        }
        cpus.push(id);
    }
    let revisions = keys.revisions.value().unwrap_or_default();
    if !revisions.is_empty() && Revisions::parse(&revisions).is_none() {
        let shown = shortened(&revisions);
        reading.note(
            &node.1.span(),
            format!("`{shown}` are no revisions such as `< r0p3` or `>= r0p3`"),
        );
    }
    let formulas = node.1.get_ref().get("formulas")?;
    for (name, value) in reading.table(("formulas", formulas)).into_iter().flatten() {
        let name: &str = name.get_ref();
        let Some(keys) = reading.read::<MetricKeys>((name, value)) else {
            continue;
        };
        let at = value.span();
        let formula = keys.formula.value().unwrap_or_default();
        let with_smt = keys.smt_formula.value().unwrap_or_default();
        for text in [&formula, &with_smt] {
            let needed = !text.is_empty() || std::ptr::eq(text, &formula);
            if let Some(error) = Formula::parse(text).err().filter(|_| needed) {
                reading.note(&at, format!("the formula of {name}: {error}"));
            }
        }
        let threshold = keys.threshold.value().unwrap_or_default();
        if !threshold.is_empty() && Threshold::parse(&threshold).is_none() {
            reading.note(&at, format!("`{}` is no threshold", shortened(&threshold)));
        }
        let groups: Vec<String> = keys.groups.items().map(|(group, _)| group).collect();
        let fields = [
            cpus.join(","),
            revisions.clone(),
            name.to_owned(),
            groups.join(";"),
            keys.unit.value().unwrap_or_default(),
            threshold,
            formula,
            with_smt,
            keys.description.value().unwrap_or_default(),
        ];
        if fields.iter().any(|field| field.contains(char::is_control)) {
            reading.note(&at, format!("{name} has a control character"));
        }
        lines.push(fields.join("\t"));
    }
    Some(())
}
#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[[metrics]]\ncpus = [\"x-a\"]\n[metrics.formulas.share]\nformula = \"A / B\"\n\
        unit = \"%\"\ngroups = [\"Shares\"]\nthreshold = \"share > 10\"\ndescription = \"The share\"\n";

    #[test]
    fn what_is_wrong_is_told() {
        let ids = ["x-a".to_owned()];
        assert!(compile_metrics(&[("m.toml", FILE)], &ids).is_ok());
        for (from, to, wanted) in [
            ("x-a", "x-b", "m.toml:2:9: there is no CPU `x-b`"),
            (
                "A / B",
                "A /",
                "m.toml:3:1: the formula of share: at character 4: the formula ends where something is missing",
            ),
            (
                "share > 10",
                "share = 10",
                "m.toml:3:1: `share = 10` is no threshold",
            ),
            (
                "[metrics.formulas",
                "revisions = \"from r0p3\"\n[metrics.formulas",
                "m.toml:1:1: `from r0p3` are no revisions such as `< r0p3` or `>= r0p3`",
            ),
        ] {
            let findings = compile_metrics(&[("m.toml", &FILE.replacen(from, to, 1))], &ids);
            let findings: Vec<String> = findings
                .expect_err("it is wrong")
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(findings, [wanted]);
        }
    }
}
