//! Writes `events/db/descriptions`: one sentence for each event and unit mask, and what else is said of it, from the lists that
//! vendors publish.
//!
//! A name and its sentence are written once for all CPUs that have them in common; `own.toml`, beside them, is written
//! by hand. An event without a sentence of its own takes that of another CPU of its vendor whose event has the same name
//! and the same bits.

mod arm;
mod offcore;
mod perfmon;
mod pfm;
mod sentence;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use quipu_events::Database;

/// The first sentence of a description, and the others; no others where there are none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Description {
    sentence: String,
    others: String,
}

impl Description {
    fn of(text: &str) -> Option<Self> {
        let sentence = sentence::first(text)?;
        let others = sentence::after(text, &sentence);
        Some(Self { sentence, others })
    }
}

/// The descriptions of one CPU's source.
#[derive(Default)]
pub(crate) struct Sentences {
    /// By name in upper case.
    by_name: HashMap<String, Description>,
    /// By event number and unit mask, for sources that have other names.
    by_bits: HashMap<(u64, u8), Description>,
}

impl Sentences {
    /// Adds the description of a name, unless it has one; to one of a single sentence, what this text says more.
    pub(crate) fn name(&mut self, name: &str, text: &str) {
        let found = Description::of(text);
        let Some(found) = found.filter(|found| !sentence::repeats(&found.sentence, name)) else {
            return;
        };
        let key = name.to_ascii_uppercase();
        let known = self.by_name.entry(key).or_insert_with(|| found.clone());
        if known.others.is_empty() {
            known.others = sentence::after(text, &known.sentence);
        }
    }

    /// Adds the sentence of an event number with a unit mask, unless it has one.
    pub(crate) fn bits(&mut self, code: u64, unit_mask: u8, text: &str) {
        if let Some(found) = Description::of(text) {
            self.by_bits.entry((code, unit_mask)).or_insert(found);
        }
    }
}

/// An event of the database to be described.
struct Named {
    cpu: String,
    name: String,
    /// The numbers it stands for: only an event with the same ones takes its sentence.
    bits: String,
    description: Option<Description>,
}

/// Writes the files of a folder from source trees of github.com/intel/perfmon, libpfm4 and github.com/ARM-software/data.
pub(crate) fn write(
    perfmon: &Path,
    libpfm4: &Path,
    data: &Path,
    to: &Path,
) -> Result<(), Box<dyn Error>> {
    let database = Database::embedded();
    let mut events = Vec::new();
    for cpu in database.cpus() {
        let sources = [
            perfmon::sentences(perfmon, &cpu.id)?,
            arm::sentences(&data.join("pmu"), &cpu.id)?,
            pfm::sentences(&libpfm4.join("lib/events"), &cpu.id)?,
        ];
        let by_name = |name: &str| {
            let name = name.to_ascii_uppercase();
            let mut found = sources.iter().map(|source| source.by_name.get(&name));
            found.find_map(Option::<&Description>::cloned)
        };
        let by_bits = |bits: (u64, u8)| {
            let mut found = sources.iter().map(|source| source.by_bits.get(&bits));
            found.find_map(Option::<&Description>::cloned)
        };
        let table = database.cpu(&cpu.id)?;
        for event in table.events() {
            let origins = table.origins(&event.name);
            let mut own = origins.iter().filter(|origin| origin.cpu == cpu.id);
            // Those of its base are described there.
            if !own.any(|origin| origin.name == event.name) {
                continue;
            }
            // AMD's unit masks that the source has no row for are others put together.
            let together = || {
                let event_alone =
                    by_bits((event.code, 0)).filter(|_| cpu.id.starts_with("amd-"))?;
                let mask = event.mask.replace('_', " ");
                (!mask.is_empty()).then(|| Description {
                    sentence: format!("{}: {mask}", event_alone.sentence),
                    others: String::new(),
                })
            };
            let offcore = || Description::of(&offcore::sentence(&event.name)?);
            let description = by_name(&event.name)
                .or_else(|| by_bits((event.code, event.unit_mask)))
                .or_else(together)
                .or_else(offcore);
            let bits = (
                event.code,
                event.unit_mask,
                event.second_mask,
                event.register,
            );
            events.push(Named {
                cpu: cpu.id.clone(),
                bits: format!("{bits:x?} {} {:?}", event.counter_mask, event.flags),
                name: event.name,
                description,
            });
        }
        for event in table.uncore_events() {
            events.push(Named {
                cpu: cpu.id.clone(),
                description: by_name(&event.name),
                bits: event.encoded(),
                name: event.name,
            });
        }
    }
    take_from_relatives(&mut events);
    write_files(&events, to)
}

fn vendor(cpu: &str) -> &str {
    cpu.split('-').next().unwrap_or(cpu)
}

/// Gives events without a sentence that of another CPU of their vendor, for the same name and bits.
fn take_from_relatives(events: &mut [Named]) {
    let key = |event: &Named| {
        let vendor = vendor(&event.cpu).to_owned();
        (vendor, event.name.to_ascii_uppercase(), event.bits.clone())
    };
    let mut known = HashMap::new();
    for event in events.iter() {
        if let Some(description) = &event.description {
            known.insert(key(event), description.clone());
        }
    }
    let without = |event: &&mut Named| event.description.is_none();
    for event in events.iter_mut().filter(without) {
        event.description = known.get(&key(event)).cloned();
    }
}

/// Writes a file for each vendor, with a table for each set of CPUs that have sentences in common.
fn write_files(events: &[Named], to: &Path) -> Result<(), Box<dyn Error>> {
    let mut cpus: BTreeMap<(&str, &str, &Description), BTreeSet<&str>> = BTreeMap::new();
    for event in events {
        if let Some(description) = &event.description {
            let key = (vendor(&event.cpu), event.name.as_str(), description);
            cpus.entry(key).or_default().insert(&event.cpu);
        }
    }
    let mut tables: BTreeMap<(&str, BTreeSet<&str>), String> = BTreeMap::new();
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{text}\"")
    };
    for ((vendor, name, Description { sentence, others }), set) in cpus {
        let table = tables.entry((vendor, set)).or_default();
        let sentence = quoted(sentence);
        let _ = match others.is_empty() {
            true => writeln!(table, "\"{name}\" = {sentence}"),
            false => writeln!(table, "\"{name}\" = [{sentence}, {}]", quoted(others)),
        };
    }
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for ((vendor, set), lines) in tables {
        let file = files.entry(vendor).or_insert_with(|| {
            "# Written by `quipu-import descriptions`; NOTICE names the sources.\n".to_owned()
        });
        let set: Vec<String> = set.iter().map(|cpu| format!("\"{cpu}\"")).collect();
        let set = set.join(", ");
        let _ = write!(
            file,
            "\n[[descriptions]]\ncpus = [{set}]\n[descriptions.events]\n{lines}"
        );
    }
    for (vendor, text) in files {
        fs::write(to.join(format!("{vendor}.toml")), text)?;
    }
    Ok(())
}
