//! Reads the files of descriptions: a sentence for each event of some CPUs, and what else is said of it, apart from the events'
//! numbers.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::mem;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::diagnostics::{Diagnostic, Findings, Source};
use crate::fields::{Checked, Node, Reading};
use crate::packed::{Table, UncoreTable, write_descriptions};
use crate::printable::shortened;
use crate::strings::Strings;

/// The longest sentence, and the most that is said after it.
const LONGEST: [usize; 2] = [1024, 8192];

/// The keys of a table of descriptions.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct Keys {
    cpus: Checked<Vec<Checked<String>>>,
    #[serde(rename = "events")]
    _events: IgnoredAny,
}

/// The descriptions of the events of some CPUs.
#[derive(Debug, Default)]
pub struct DescriptionFiles {
    /// By the id of the CPU, then by name in upper case: the number of a sentence.
    numbers: HashMap<String, HashMap<String, u32>>,
    /// With a tab before what else is said, in the order of the alphabet: neighbours have beginnings in common.
    sentences: Vec<String>,
}

/// A sentence where it stands.
struct Found {
    cpus: Vec<String>,
    name: String,
    sentence: String,
}

impl DescriptionFiles {
    /// Reads and checks files of descriptions, `(name, text)` each.
    ///
    /// # Errors
    /// Every finding in every file, by location.
    pub fn read(files: &[(&str, &str)]) -> Result<Self, Vec<Diagnostic>> {
        let mut findings = Findings::default();
        let mut found = Vec::new();
        for (index, (file, text)) in files.iter().enumerate() {
            let source = Source::new(file, text);
            let reading = Reading {
                source: &source,
                file: index as u32,
                findings: RefCell::new(mem::take(&mut findings)),
                strings: RefCell::new(Strings::new()),
            };
            read_file(&reading, &mut found);
            findings = reading.findings.into_inner();
        }
        let sentences: BTreeSet<&str> = found.iter().map(|found| found.sentence.as_str()).collect();
        let sentences: Vec<String> = sentences.into_iter().map(str::to_owned).collect();
        let mut numbers: HashMap<String, HashMap<String, u32>> = HashMap::new();
        for Found {
            cpus,
            name,
            sentence,
        } in found
        {
            let number = sentences.partition_point(|other| *other < sentence) as u32;
            for cpu in cpus {
                let of_cpu = numbers.entry(cpu.clone()).or_default();
                if of_cpu.insert(name.to_ascii_uppercase(), number).is_some() {
                    let message = format!("`{name}` of {cpu} has two descriptions");
                    findings.add_at_line("descriptions", 1, message);
                }
            }
        }
        match findings.is_empty() {
            true => Ok(Self { numbers, sentences }),
            false => Err(findings.into_sorted()),
        }
    }

    /// Returns the number of the sentence for an event of a CPU.
    pub(crate) fn number(&self, cpu: &str, name: &str) -> Option<u32> {
        let of_cpu = self.numbers.get(cpu)?;
        of_cpu.get(&name.to_ascii_uppercase()).copied()
    }

    /// Returns the compressed sentences, for [`Descriptions`](crate::packed::Descriptions); `None` where there are more
    /// of them than it has room for.
    pub fn write(&self) -> Option<Vec<u8>> {
        write_descriptions(&self.sentences)
    }

    /// Returns the descriptions of which no table has the event, as `CPU NAME`, sorted.
    pub fn without_event(&self, table: &Table, uncore: &UncoreTable) -> Vec<String> {
        let mut unknown = Vec::new();
        for (cpu, names) in &self.numbers {
            let core = table.cpus().find(|view| view.id() == cpu);
            let uncore = uncore.cpu(cpu);
            for name in names.keys() {
                let (event, mask) = name.split_once('.').unwrap_or((name, ""));
                let is_event = core.is_some_and(|core| core.find(event, mask).is_some())
                    || uncore.is_some_and(|uncore| uncore.find(name).is_some());
                if !is_event {
                    unknown.push(format!("{cpu} {name}"));
                }
            }
        }
        unknown.sort();
        unknown
    }
}

fn read_file(reading: &Reading<'_>, found: &mut Vec<Found>) {
    reading.each_table("descriptions", |table| {
        read_table(reading, table, found);
    });
}

fn read_table(reading: &Reading<'_>, node: Node<'_, '_>, found: &mut Vec<Found>) -> Option<()> {
    let keys: Keys = reading.read(node)?;
    let cpus: Vec<String> = keys.cpus.items().map(|(id, _)| id).collect();
    if cpus.is_empty() {
        reading.note(&node.1.span(), "these descriptions are of no CPU");
    }
    let events = node.1.get_ref().get("events")?;
    for (name, value) in reading.table(("events", events)).into_iter().flatten() {
        let node = (name.get_ref().as_ref(), value);
        let texts: Option<Vec<String>> = match value.get_ref().as_array() {
            Some(_) => reading.read(node),
            None => reading.read(node).map(|text| vec![text]),
        };
        let Some(texts) = texts else { continue };
        let is_line = |(text, longest): (&String, usize)| {
            let words = text.len() <= longest && !text.split(' ').any(str::is_empty);
            words && !text.chars().any(char::is_control)
        };
        let are_lines = texts.iter().zip(LONGEST).all(is_line);
        if !are_lines || texts.is_empty() || texts.len() > LONGEST.len() {
            let message = format!(
                "the description of `{}` is no line of words",
                shortened(name.get_ref())
            );
            reading.note(&value.span(), message);
        }
        found.push(Found {
            cpus: cpus.clone(),
            name: name.get_ref().to_string(),
            sentence: texts.join("\t"),
        });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::Descriptions;
    use crate::{Layer, NoBase, compile_uncore};

    const EVENTS: &str =
        "[[cpu]]\nid = \"x-a\"\nscheme = \"perf\"\n[cpu.events]\nLOADS = 0x43\nSTORES = 0x44\n";
    const UNCORE: &str = "[[uncore]]\ncpus = [\"x-a\"]\n[uncore.pmus.u]\nREADS = \"event=0x04\"\n";
    const TEXT: &str = "[[descriptions]]\ncpus = [\"x-a\"]\n[descriptions.events]\n\
        loads = \"Counts loads\"\nREADS = \"Counts reads of memory\"\n";

    #[test]
    fn tables_have_the_numbers_of_sentences() {
        let files = DescriptionFiles::read(&[("d.toml", TEXT)]).expect("it is right");
        let layer = Layer::read(&[("e.toml", EVENTS)], &NoBase).expect("it is right");
        let table = Table::new(layer.write_described(&["e.toml"], &files));
        let uncore = compile_uncore(&[("u.toml", UNCORE)], &["x-a".to_owned()], &files);
        let uncore = UncoreTable::new(&uncore.expect("it is right"));
        let sentences = Descriptions::embedded(files.write().expect("it is short").leak());
        let cpu = table.cpus().next().expect("it is there");
        let described = |event| sentences.get(cpu.find(event, "")?.described()?);
        assert_eq!(described("LOADS"), Some("Counts loads"));
        assert_eq!(described("STORES"), None);
        assert_eq!(
            cpu.find("LOADS", "").map(|entry| entry.description()),
            Some("")
        );
        let reads = uncore.cpu("x-a").and_then(|cpu| cpu.find("READS"));
        let reads = reads.and_then(|event| sentences.get(event.described()?));
        assert_eq!(reads, Some("Counts reads of memory"));
        assert!(files.without_event(&table, &uncore).is_empty());
        let longer = TEXT.replacen("\"Counts loads\"", "[\"Counts loads\", \"Not stores\"]", 1);
        let files = DescriptionFiles::read(&[("d.toml", &longer)]).expect("it is right");
        assert_eq!(files.sentences[0], "Counts loads\tNot stores");
    }

    #[test]
    fn what_is_wrong_is_told() {
        let found = |text: &str| -> Vec<String> {
            let findings = DescriptionFiles::read(&[("d.toml", text)]).expect_err("it is wrong");
            findings.iter().map(ToString::to_string).collect()
        };
        for (from, to, wanted) in [
            (
                "Counts loads",
                "Counts\\tloads",
                "d.toml:4:9: the description of `loads` is no line of words",
            ),
            (
                "Counts loads",
                "Counts  loads",
                "d.toml:4:9: the description of `loads` is no line of words",
            ),
            (
                "\"Counts loads\"",
                "[\"Counts\", \"loads\", \"only\"]",
                "d.toml:4:9: the description of `loads` is no line of words",
            ),
            (
                "\"Counts loads\"",
                "[]",
                "d.toml:4:9: the description of `loads` is no line of words",
            ),
            (
                "[\"x-a\"]",
                "[]",
                "d.toml:1:1: these descriptions are of no CPU",
            ),
            (
                "READS",
                "LOADS",
                "descriptions:1:1: `loads` of x-a has two descriptions",
            ),
        ] {
            assert_eq!(found(&TEXT.replacen(from, to, 1)), [wanted], "{to}");
        }
        let files = DescriptionFiles::read(&[("d.toml", TEXT)]).expect("it is right");
        let none = (Table::new(Vec::new()), UncoreTable::new(&[]));
        assert_eq!(
            files.without_event(&none.0, &none.1),
            ["x-a LOADS", "x-a READS"]
        );
    }
}
