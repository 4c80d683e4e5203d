//! Writes checked CPU entries as a table.

use std::collections::HashMap;

use super::{MAGIC, backend, cpu, entry, header, mapping, rule};
use crate::model::{Aliases, Counters, Cpu, Entry, Mapping, Rule, SCHEMES};

/// Returns the table of these CPU entries; `files` are the names that their places refer to.
pub(crate) fn write(cpus: &[Cpu], aliases: &[Aliases], files: &[&str]) -> Vec<u8> {
    let mut table = Writer::default();
    table.string("");
    table.words = vec![0; header::WORDS + cpus.len() * cpu::WORDS];
    let aliases: Vec<[u32; 3]> = aliases.iter().map(|from| table.aliases(from)).collect();
    for (at, cpu) in cpus.iter().enumerate() {
        let mut record = table.cpu(cpu, files);
        if let Some(aliases) = cpu.aliases.and_then(|at| aliases.get(at)) {
            record[cpu::ALIAS_SOURCE..cpu::WORDS].copy_from_slice(aliases);
        }
        let start = header::WORDS + at * cpu::WORDS;
        table.words[start..start + cpu::WORDS].copy_from_slice(&record);
    }
    table.finish(cpus.len())
}

#[derive(Default)]
struct Writer {
    words: Vec<u32>,
    strings: HashMap<String, u32>,
    ends: Vec<u32>,
    text: String,
}

impl Writer {
    /// Returns the number of a string, each kept once.
    fn string(&mut self, text: &str) -> u32 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        self.strings.insert(text.to_owned(), number);
        number
    }

    fn list<const N: usize>(&mut self, records: &[[u32; N]]) -> [u32; 2] {
        let start = self.words.len() as u32;
        self.words.extend(records.as_flattened());
        [start, records.len() as u32]
    }

    fn cpu(&mut self, from: &Cpu, files: &[&str]) -> [u32; cpu::WORDS] {
        let mut record = [0; cpu::WORDS];
        record[cpu::ID] = self.string(&from.id);
        record[cpu::NAME] = self.string(from.name.as_deref().unwrap_or_default());
        record[cpu::SCHEME] = from.scheme.map_or(0, |scheme| {
            let at = SCHEMES.iter().position(|(_, known)| *known == scheme);
            at.map_or(0, |at| at as u32 + 1)
        });
        record[cpu::BASE] = self.string(from.base.as_deref().unwrap_or_default());
        record[cpu::SOURCE] = self.string(from.source.as_deref().unwrap_or_default());
        record[cpu::FILE] = self.string(files.get(from.location.file as usize).unwrap_or(&""));
        record[cpu::FALLBACK] = u32::from(from.fallback);
        record[cpu::GENERAL] = from.general.map_or(0, counters);
        record[cpu::FIXED] = from.fixed.map_or(0, counters);

        let rules: Vec<_> = from.rules.iter().flat_map(|rule| self.rule(rule)).collect();
        let backends: Vec<[u32; backend::WORDS]> = from
            .backends
            .iter()
            .flat_map(|(os, names)| names.iter().map(move |name| (os, name)))
            .map(|(os, name)| {
                let mut record = [0; backend::WORDS];
                record[backend::OS] = self.string(os);
                record[backend::NAME] = self.string(name);
                record
            })
            .collect();
        let generalized = self.mappings(&from.generalized);
        let presets = self.mappings(&from.presets);
        for (at, [start, count]) in [
            (cpu::RULES, self.list(&rules)),
            (cpu::BACKENDS, self.list(&backends)),
            (cpu::ENTRIES, self.entries(&from.entries)),
            (cpu::GENERALIZED, self.list(&generalized)),
            (cpu::PRESETS, self.list(&presets)),
        ] {
            record[at] = start;
            record[at + 1] = count;
        }
        record
    }

    /// Writes entries, sorted by name.
    fn entries(&mut self, from: &[Entry]) -> [u32; 2] {
        let mut sorted: Vec<(String, &Entry)> = from
            .iter()
            .map(|entry| (entry.full_name().to_ascii_uppercase(), entry))
            .collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let entries: Vec<_> = sorted.iter().map(|(_, entry)| self.entry(entry)).collect();
        self.list(&entries)
    }

    fn aliases(&mut self, from: &Aliases) -> [u32; 3] {
        let source = self.string(&from.source);
        let [start, count] = self.entries(&from.entries);
        [source, start, count]
    }

    fn rule(&mut self, from: &Rule) -> Vec<[u32; rule::WORDS]> {
        let mut record = [0; rule::WORDS];
        match from {
            Rule::Arm { implementer, part } => {
                record[rule::KIND] = 2;
                record[rule::IMPLEMENTER] = implementer.map_or(0, |n| u32::from(n) + 1);
                record[rule::PART] = part.map_or(0, |n| u32::from(n) + 1);
                vec![record]
            }
            Rule::X86 {
                vendor,
                family,
                models,
                steppings,
                core_type,
                native_model,
            } => {
                record[rule::KIND] = 1;
                record[rule::VENDOR] = self.string(vendor);
                record[rule::FAMILY] = u32::from(*family);
                record[rule::STEPPINGS] =
                    u32::from(*steppings.start()) | u32::from(*steppings.end()) << 16;
                record[rule::CORE_TYPE] = self.string(core_type.as_deref().unwrap_or_default());
                record[rule::NATIVE_MODEL] = native_model.map_or(0, |n| n + 1);
                models
                    .iter()
                    .map(|models| {
                        record[rule::MODELS] =
                            u32::from(*models.start()) | u32::from(*models.end()) << 16;
                        record
                    })
                    .collect()
            }
        }
    }

    fn entry(&mut self, from: &Entry) -> [u32; entry::WORDS] {
        let bits = from.bits;
        let mut record = [0; entry::WORDS];
        record[entry::NAME] = self.string(&from.full_name());
        record[entry::CODE] = u32::from(bits.code)
            | (from.event.len() as u32 & 0xff) << 16
            | (bits.flags >> 16) << 24;
        record[entry::MASKS] = u32::from_le_bytes([
            bits.unit_mask,
            bits.second_mask,
            bits.counter_mask,
            bits.fixed,
        ]);
        record[entry::FLAGS] = bits.flags & 0xffff
            | (bits.modifiers & 0xff) << 16
            | u32::from(bits.max_increment) << 24;
        record[entry::COUNTERS] = bits.counters;
        record[entry::REGISTER] = bits.register;
        record[entry::VALUE] = bits.value as u32;
        record[entry::VALUE + 1] = (bits.value >> 32) as u32;
        record[entry::SAME_AS] = self.string(&from.same_as);
        record[entry::DESCRIPTION] = self.string(&from.description);
        record[entry::ERRATA] = self.string(&from.errata.join("; "));
        record[entry::INSTEAD] = self.string(&from.instead);
        record[entry::UNIT] = self.string(&from.unit);
        record[entry::LINE] = from.location.line;
        record
    }

    fn mappings(&mut self, from: &[Mapping]) -> Vec<[u32; mapping::WORDS]> {
        let mut sorted: Vec<&Mapping> = from.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        sorted
            .into_iter()
            .map(|from| {
                let mut record = [0; mapping::WORDS];
                record[mapping::NAME] = self.string(&from.name);
                record[mapping::TEXT] = self.string(match &from.text {
                    Ok(text) | Err(text) => text,
                });
                record[mapping::ABSENT] = u32::from(from.text.is_err());
                record[mapping::LINE] = from.location.line;
                record
            })
            .collect()
    }

    fn finish(mut self, cpus: usize) -> Vec<u8> {
        self.words[header::MAGIC] = MAGIC;
        self.words[header::CPUS] = cpus as u32;
        self.words[header::STRINGS] = self.words.len() as u32;
        self.words[header::STRING_COUNT] = self.ends.len() as u32;
        self.words.extend(&self.ends);
        let mut bytes: Vec<u8> = self
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        bytes.extend(self.text.as_bytes());
        bytes
    }
}

fn counters(from: Counters) -> u32 {
    u32::from(from.number) | u32::from(from.width) << 8
}
