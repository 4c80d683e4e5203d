//! Writes checked CPU entries as a table.

use super::{MAGIC, backend, cpu, detail, entry, event, header, mapping, rule};
use crate::bits::{Counters, SCHEMES};
use crate::descriptions::DescriptionFiles;
use crate::model::{Aliases, Cpu, EventEntry, Mapping, Rule, by_name};
use crate::numbers::Numbers;
use crate::strings::Strings;

/// Returns the table of these CPU entries; `files` are the names that their places refer to, and `descriptions` the
/// sentences for entries that have none.
pub(crate) fn write(
    cpus: &[Cpu],
    aliases: &[Aliases],
    strings: Strings,
    files: &[&str],
    descriptions: &DescriptionFiles,
) -> Vec<u8> {
    let mut table = Writer {
        descriptions,
        has_short_lines: has_short_lines(cpus, aliases),
        words: vec![0; header::WORDS + cpus.len() * cpu::WORDS],
        strings,
        events: Distinct::new(),
        details: Distinct::new(),
    };
    // Every rule is looked at when a CPU is identified: side by side they are few pages.
    let rules: Vec<[u32; 2]> = cpus.iter().map(|cpu| table.rules(&cpu.rules)).collect();
    let aliases: Vec<[u32; 3]> = aliases.iter().map(|from| table.aliases(from)).collect();
    for (at, (cpu, rules)) in cpus.iter().zip(rules).enumerate() {
        let mut record = table.cpu(cpu, files);
        record[cpu::RULES..cpu::RULES + 2].copy_from_slice(&rules);
        if let Some(aliases) = cpu.aliases.and_then(|at| aliases.get(at)) {
            record[cpu::ALIAS_SOURCE..cpu::WORDS].copy_from_slice(aliases);
        }
        let start = header::WORDS + at * cpu::WORDS;
        table.words[start..start + cpu::WORDS].copy_from_slice(&record);
    }
    table.finish(cpus.len())
}

fn has_short_lines(cpus: &[Cpu], aliases: &[Aliases]) -> bool {
    let entries = cpus.iter().map(|cpu| &cpu.entries);
    let mut all = entries.chain(aliases.iter().map(|aliases| &aliases.entries));
    all.all(|entries| {
        let mut lines = entries.iter().map(|entry| entry.location.line);
        lines.all(|line| line >> (u32::BITS - entry::EVENT_BITS) == 0)
    })
}

struct Writer<'d> {
    descriptions: &'d DescriptionFiles,
    /// True if the line of an entry has room beside the number of its event.
    has_short_lines: bool,
    words: Vec<u32>,
    strings: Strings,
    events: Distinct<{ event::WORDS }>,
    details: Distinct<{ detail::WORDS }>,
}

/// Records that are kept once each.
struct Distinct<const N: usize> {
    records: Vec<[u32; N]>,
    numbers: Numbers,
}

impl<const N: usize> Distinct<N> {
    fn new() -> Self {
        Self {
            records: Vec::new(),
            numbers: Numbers::new(),
        }
    }

    /// Returns the number of a record.
    fn number(&mut self, record: [u32; N]) -> u32 {
        let records = &self.records;
        let (number, is_new) = self
            .numbers
            .number(&record, |number| &records[number as usize]);
        if is_new {
            self.records.push(record);
        }
        number
    }
}

impl Writer<'_> {
    /// Returns the number of a string.
    fn string(&mut self, text: &str) -> u32 {
        self.strings.add(text).0
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
            (cpu::BACKENDS, self.list(&backends)),
            (cpu::ENTRIES, self.entries(&from.id, &from.entries)),
            (cpu::GENERALIZED, self.list(&generalized)),
            (cpu::PRESETS, self.list(&presets)),
        ] {
            record[at] = start;
            record[at + 1] = count;
        }
        record
    }

    fn entry_words(&self) -> usize {
        match self.has_short_lines {
            true => 1,
            false => entry::WORDS,
        }
    }

    /// Writes entries, sorted by name.
    fn entries(&mut self, cpu: &str, from: &[EventEntry]) -> [u32; 2] {
        let start = self.words.len() as u32;
        self.words.reserve_exact(from.len() * self.entry_words());
        for from in by_name(from, &self.strings) {
            let (event, line) = (self.event(cpu, from), from.location.line);
            match self.has_short_lines {
                true => self.words.push(event | line << entry::EVENT_BITS),
                false => self.words.extend([event, line]),
            }
        }
        [start, from.len() as u32]
    }

    fn aliases(&mut self, from: &Aliases) -> [u32; 3] {
        let source = self.string(&from.source);
        let [start, count] = self.entries("", &from.entries);
        [source, start, count]
    }

    fn rules(&mut self, from: &[Rule]) -> [u32; 2] {
        let rules: Vec<_> = from.iter().flat_map(|rule| self.rule(rule)).collect();
        self.list(&rules)
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
            Rule::Other { isa, id } => {
                record[rule::KIND] = 3;
                record[rule::VENDOR] = self.string(isa);
                record[rule::CORE_TYPE] = self.string(id);
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

    /// Returns the number of an entry's event.
    fn event(&mut self, cpu: &str, from: &EventEntry) -> u32 {
        let bits = from.bits;
        let mut record = [0; event::WORDS];
        record[event::NAME] = from.name.0;
        record[event::CODE] = u32::from(bits.code)
            | (from.event(&self.strings).len() as u32 & 0xff) << 16
            | (bits.flags >> 16) << 24;
        record[event::MASKS] = u32::from_le_bytes([
            bits.unit_mask,
            bits.second_mask,
            bits.counter_mask,
            bits.fixed,
        ]);
        let shared = || self.descriptions.number(cpu, self.strings.get(from.name));
        record[event::DESCRIPTION] = match from.description.is_empty().then(shared).flatten() {
            Some(number) => number | event::SHARED,
            None => from.description.0,
        };
        record[event::DETAIL] = self.detail(from);
        self.events.number(record)
    }

    /// Returns the number of an entry's details.
    fn detail(&mut self, from: &EventEntry) -> u32 {
        let bits = from.bits;
        let mut record = [0; detail::WORDS];
        record[detail::FLAGS] = bits.flags & 0xffff
            | (bits.modifiers & 0xff) << 16
            | u32::from(bits.max_increment) << 24;
        record[detail::COUNTERS] = bits.counters;
        record[detail::REGISTER] = bits.register;
        record[detail::VALUE] = bits.value as u32;
        record[detail::VALUE + 1] = (bits.value >> 32) as u32;
        record[detail::SAME_AS] = from.same_as.0;
        record[detail::ERRATA] = from.errata.0;
        record[detail::INSTEAD] = from.instead.0;
        record[detail::UNIT] = from.unit.0;
        self.details.number(record)
    }

    fn mappings(&self, from: &[Mapping]) -> Vec<[u32; mapping::WORDS]> {
        let mut sorted: Vec<&Mapping> = from.iter().collect();
        sorted.sort_by_key(|mapping| self.strings.get(mapping.name));
        sorted
            .into_iter()
            .map(|from| {
                let mut record = [0; mapping::WORDS];
                record[mapping::NAME] = from.name.0;
                record[mapping::TEXT] = match from.text {
                    Ok(text) | Err(text) => text.0,
                };
                record[mapping::ABSENT] = u32::from(from.text.is_err());
                record[mapping::LINE] = from.location.line;
                record
            })
            .collect()
    }

    fn finish(mut self, cpus: usize) -> Vec<u8> {
        self.words[header::MAGIC] = MAGIC;
        self.words[header::CPUS] = cpus as u32;
        self.words[header::ENTRY_WORDS] = self.entry_words() as u32;
        self.words[header::EVENTS] = self.words.len() as u32;
        self.words.extend(self.events.records.as_flattened());
        self.words[header::DETAILS] = self.words.len() as u32;
        self.words.extend(self.details.records.as_flattened());
        self.words[header::STRINGS] = self.words.len() as u32;
        self.words[header::STRING_COUNT] = self.strings.ends.len() as u32;
        let words = self.words.len() + self.strings.ends.len();
        let mut bytes = Vec::with_capacity(words * 4 + self.strings.text.len());
        for word in self.words.iter().chain(&self.strings.ends) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.strings.text.as_bytes());
        bytes
    }
}

fn counters(from: Counters) -> u32 {
    u32::from(from.number) | u32::from(from.width) << 8
}
