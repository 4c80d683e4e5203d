//! Reads the tables of uncore events: those of units outside of the cores, by the PMU that Linux has for the unit.

use std::cell::RefCell;
use std::collections::HashSet;
use std::mem;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::descriptions::DescriptionFiles;
use crate::diagnostics::{Diagnostic, Findings, Source};
use crate::fields::{Checked, Node, Reading};
use crate::packed::{split_scale, write_uncore};
use crate::printable::shortened;
use crate::strings::Strings;

/// The keys of a table of uncore events.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct UncoreKeys {
    cpus: Checked<Vec<Checked<String>>>,
    source: Checked<String>,
    #[serde(rename = "pmus")]
    _pmus: IgnoredAny,
}

/// The keys of an event whose values have a unit.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table or the terms")]
struct EventKeys {
    terms: Checked<String>,
    scale_unit: Checked<String>,
}

/// The uncore events of some CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Uncore {
    pub(crate) cpus: Vec<String>,
    pub(crate) source: String,
    pub(crate) events: Vec<UncoreEntry>,
}

/// An uncore event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct UncoreEntry {
    pub(crate) name: String,
    pub(crate) pmu: String,
    /// As they are written in `PMU/terms/`.
    pub(crate) terms: String,
    /// A factor and the unit of its products, `64Bytes`; empty for a plain count.
    pub(crate) scale_unit: String,
}

/// Reads and checks tables of uncore events, `(name, text)` each, for the CPU entries with these ids, and returns
/// their binary table.
///
/// # Errors
/// Every finding in every file, by location.
pub fn compile_uncore(
    files: &[(&str, &str)],
    ids: &[String],
    descriptions: &DescriptionFiles,
) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let mut tables = Vec::new();
    let mut taken = Vec::new();
    for (index, (file, text)) in files.iter().enumerate() {
        let source = Source::new(file, text);
        let reading = Reading {
            source: &source,
            file: index as u32,
            findings: RefCell::new(mem::take(&mut findings)),
            strings: RefCell::new(Strings::new()),
        };
        read_file(&reading, ids, &mut taken, &mut tables);
        findings = reading.findings.into_inner();
    }
    let table = write_uncore(&tables, descriptions);
    if table.is_none() {
        let message = "there are more than 65535 different events or strings".to_owned();
        findings.add_at_line("uncore", 1, message);
    }
    match table {
        Some(table) if findings.is_empty() => Ok(table),
        _ => Err(findings.into_sorted()),
    }
}

fn read_file(
    reading: &Reading<'_>,
    ids: &[String],
    taken: &mut Vec<String>,
    tables: &mut Vec<Uncore>,
) {
    reading.each_table("uncore", |table| {
        tables.extend(read_table(reading, table, ids, taken));
    });
}

fn read_table(
    reading: &Reading<'_>,
    node: Node<'_, '_>,
    ids: &[String],
    taken: &mut Vec<String>,
) -> Option<Uncore> {
    let keys: UncoreKeys = reading.read(node)?;
    let mut cpus = Vec::new();
    for (id, at) in keys.cpus.items() {
        if !ids.contains(&id) {
            reading.note(&at, format!("there is no CPU `{}`", shortened(&id)));
        } else if taken.contains(&id) {
            reading.note(&at, format!("`{id}` has its uncore events already"));
        } else {
            taken.push(id.clone());
            cpus.push(id);
        }
    }
    if cpus.is_empty() {
        reading.note(&node.1.span(), "these uncore events are of no CPU");
    }
    let mut events: Vec<UncoreEntry> = Vec::new();
    let mut names: HashSet<String> = HashSet::new();
    let pmus = node.1.get_ref().get("pmus");
    let pmus = pmus.and_then(|pmus| reading.table(("pmus", pmus)));
    for (pmu, list) in pmus.into_iter().flatten() {
        let pmu_name: &str = pmu.get_ref();
        if !is_word(pmu_name, "_") {
            let message = format!("`{}` is no name of a PMU", shortened(pmu_name));
            reading.note(&pmu.span(), message);
        }
        let list = reading.table((pmu_name, list));
        for (name, value) in list.into_iter().flatten() {
            let at = name.span();
            let name: &str = name.get_ref();
            let Some((terms, scale_unit)) = read_event(reading, (name, value)) else {
                continue;
            };
            if !is_word(name, "_-.") {
                reading.note(&at, format!("`{}` is no name", shortened(name)));
            }
            if !names.insert(name.to_ascii_uppercase()) {
                reading.note(&at, format!("`{}` is there twice", shortened(name)));
            }
            check_terms(reading, &value.span(), &terms);
            if !scale_unit.is_empty() && split_scale(&scale_unit).is_none() {
                let message = format!("`{}` is no number and unit", shortened(&scale_unit));
                reading.note(&value.span(), message);
            }
            events.push(UncoreEntry {
                name: name.to_owned(),
                pmu: pmu_name.to_owned(),
                terms,
                scale_unit,
            });
        }
    }
    Some(Uncore {
        cpus,
        source: keys.source.value().unwrap_or_default(),
        events,
    })
}

/// Reads the terms of an event, and its scale and unit.
fn read_event(reading: &Reading<'_>, node: Node<'_, '_>) -> Option<(String, String)> {
    if !node.1.get_ref().is_table() {
        return Some((reading.read(node)?, String::new()));
    }
    let keys: EventKeys = reading.read(node)?;
    let unit = keys.scale_unit.value().unwrap_or_default();
    match keys.terms.value() {
        Some(terms) => Some((terms, unit)),
        None => {
            let message = format!("`{}` has no `terms`", shortened(node.0));
            reading.note(&node.1.span(), message);
            None
        }
    }
}

/// Notes terms that are no list of fields with numbers, and fields that are there twice.
fn check_terms(reading: &Reading<'_>, at: &Range<usize>, terms: &str) {
    let mut fields = Vec::new();
    for term in terms.split(',') {
        let (field, value) = term.split_once('=').unwrap_or((term, ""));
        let number = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).is_ok(),
            None => value.parse::<u64>().is_ok(),
        };
        if !is_word(field, "_") || !number || fields.contains(&field) {
            let terms = shortened(terms);
            reading.note(
                at,
                format!("`{terms}` is no list of fields, each with a number"),
            );
            return;
        }
        fields.push(field);
    }
}

/// Returns true if a text is a word of letters, digits and these others.
fn is_word(text: &str, others: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !text.is_empty() && text.len() <= 128 && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::UncoreTable;

    const FILE: &str = "[[uncore]]\ncpus = [\"x-a\", \"x-b\"]\nsource = \"a list\"\n\
        [uncore.pmus.uncore_imc]\n\"UNC_M_CAS_COUNT.RD\" = \"event=0x04,umask=0x03\"\n\
        \"LLC.MEM\" = { terms = \"event=0x04\", scale-unit = \"64Bytes\" }\n\
        [uncore.pmus.uncore_cha]\nUNC_CHA_CLOCKTICKS = \"event=0x00\"\n";

    fn ids() -> Vec<String> {
        ["x-a", "x-b", "x-c"].map(str::to_owned).to_vec()
    }

    #[test]
    fn an_event_is_found_in_any_case_on_its_cpus_alone() {
        let table = compile_uncore(&[("u.toml", FILE)], &ids(), &DescriptionFiles::default());
        let table = UncoreTable::new(&table.unwrap());
        for id in ["x-a", "x-b"] {
            let cpu = table.cpu(id).unwrap();
            let event = cpu.find("unc_m_cas_count.rd").unwrap();
            assert_eq!(event.name(), "UNC_M_CAS_COUNT.RD");
            assert_eq!(
                (event.pmu(), event.terms()),
                ("uncore_imc", "event=0x04,umask=0x03")
            );
            assert_eq!(event.scale(), None);
            assert_eq!(cpu.find("LLC.MEM").unwrap().scale(), Some((64.0, "Bytes")));
            assert!(cpu.find("UNC_M_CAS_COUNT").is_none());
            let names: Vec<_> = cpu.events().map(|event| event.name()).collect();
            assert_eq!(
                names,
                ["LLC.MEM", "UNC_CHA_CLOCKTICKS", "UNC_M_CAS_COUNT.RD"]
            );
            assert_eq!(cpu.source(), "a list");
        }
        assert!(table.cpu("x-c").is_none());
        assert!(UncoreTable::new(&[]).cpu("x-a").is_none());
    }

    #[test]
    fn faults_are_told_where_they_are() {
        let found = |text: &str| -> Vec<String> {
            let findings =
                compile_uncore(&[("u.toml", text)], &ids(), &DescriptionFiles::default())
                    .unwrap_err();
            findings.iter().map(ToString::to_string).collect()
        };
        for (from, to, wanted) in [
            ("\"x-b\"", "\"x-d\"", "u.toml:2:16: there is no CPU `x-d`"),
            (
                "\"x-b\"",
                "\"x-a\"",
                "u.toml:2:16: `x-a` has its uncore events already",
            ),
            (
                "UNC_CHA_CLOCKTICKS",
                "\"llc.mem\"",
                "u.toml:6:1: `LLC.MEM` is there twice",
            ),
            (
                "\"event=0x00\"",
                "\"event=x\"",
                "u.toml:8:22: `event=x` is no list of fields, each with a number",
            ),
            (
                "64Bytes",
                "Bytes",
                "u.toml:6:13: `Bytes` is no number and unit",
            ),
            (
                "uncore_cha",
                "\"cha/1\"",
                "u.toml:7:14: `cha/1` is no name of a PMU",
            ),
        ] {
            assert!(FILE.contains(from), "{from}");
            let findings = found(&FILE.replacen(from, to, 1));
            assert!(
                findings.iter().any(|finding| finding == wanted),
                "{findings:?}"
            );
        }
    }

    #[test]
    fn scales_are_numbers_and_units() {
        assert_eq!(
            split_scale("6.103515625E-5MiB/sec"),
            Some((6.103515625E-5, "MiB/sec"))
        );
        assert_eq!(split_scale("64Bytes"), Some((64.0, "Bytes")));
        assert_eq!(split_scale("64"), None);
        assert_eq!(split_scale("Bytes"), None);
    }
}
