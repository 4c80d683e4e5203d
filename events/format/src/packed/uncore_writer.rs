//! Writes the binary table of uncore events.

use std::collections::HashMap;

use miniz_oxide::deflate::compress_to_vec;

use super::descriptions::{LARGEST_TEXT, LEVEL};
use super::uncore::{CPU_WORDS, EVENT_HALVES, MAGIC, folded, header};
use crate::descriptions::DescriptionFiles;
use crate::uncore::{Uncore, UncoreEntry};

/// Returns the table of these events, or `None` where there are more of them than it has room for.
pub(crate) fn write_uncore(tables: &[Uncore], descriptions: &DescriptionFiles) -> Option<Vec<u8>> {
    let mut writer = Writer::default();
    writer.string("");
    let mut lists: Vec<u16> = Vec::new();
    let mut cpus: Vec<[u32; CPU_WORDS]> = Vec::new();
    for table in tables {
        let mut sorted: Vec<&UncoreEntry> = table.events.iter().collect();
        sorted.sort_by(|a, b| folded(&a.name, &b.name));
        let source = u32::from(writer.string(&table.source));
        for cpu in &table.cpus {
            let start = lists.len() as u32;
            let described = |entry: &&UncoreEntry| descriptions.number(cpu, &entry.name);
            let events = sorted
                .iter()
                .map(|entry| writer.event(entry, described(entry)));
            lists.extend(events);
            let id = u32::from(writer.string(cpu));
            cpus.push([id, source, start, sorted.len() as u32]);
        }
    }
    let events_at = (header::WORDS + cpus.len() * CPU_WORDS) * 4;
    let lists_at = events_at + writer.events.len() * EVENT_HALVES * 2;
    let strings_at = (lists_at + lists.len() * 2).next_multiple_of(4);
    let mut bytes: Vec<u8> = Vec::with_capacity(strings_at);
    let header = [
        MAGIC,
        cpus.len() as u32,
        events_at as u32,
        strings_at as u32,
    ];
    let words = header.into_iter().chain([writer.ends.len() as u32]);
    let cpus = cpus
        .iter()
        .flat_map(|[id, source, start, count]| [*id, *source, lists_at as u32 + start * 2, *count]);
    bytes.extend(words.chain(cpus).flat_map(u32::to_le_bytes));
    let halves = writer.events.as_flattened().iter().chain(&lists);
    bytes.extend(halves.flat_map(|half| half.to_le_bytes()));
    bytes.resize(strings_at, 0);
    bytes.extend(writer.ends.iter().flat_map(|end| end.to_le_bytes()));
    bytes.extend(writer.text.as_bytes());
    let fits = bytes.len() <= LARGEST_TEXT
        && writer.ends.len().max(writer.events.len()) <= usize::from(u16::MAX)
        && writer.largest < u16::MAX;
    fits.then(|| compress_to_vec(&bytes, LEVEL))
}

#[derive(Default)]
struct Writer {
    /// The largest number of a description, plus one.
    largest: u16,
    events: Vec<[u16; EVENT_HALVES]>,
    numbers: HashMap<[u16; EVENT_HALVES], u16>,
    strings: HashMap<String, u16>,
    ends: Vec<u32>,
    text: String,
}

impl Writer {
    /// Returns the number of a string, each kept once.
    fn string(&mut self, text: &str) -> u16 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let number = half(self.ends.len());
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        self.strings.insert(text.to_owned(), number);
        number
    }

    /// Returns the number of an event, each kept once.
    fn event(&mut self, from: &UncoreEntry, described: Option<u32>) -> u16 {
        let (event, mask) = from.name.split_once('.').unwrap_or((&from.name, ""));
        let strings = [event, mask, &from.pmu, &from.terms, &from.scale_unit];
        let [event, mask, pmu, terms, scale] = strings.map(|text| self.string(text));
        let described = described.map_or(0, |number| half(number as usize + 1));
        self.largest = self.largest.max(described);
        let record = [event, mask, pmu, terms, scale, described];
        let next = half(self.events.len());
        let number = *self.numbers.entry(record).or_insert(next);
        if number == next {
            self.events.push(record);
        }
        number
    }
}

/// Returns a number of an event or string in 16 bits; one that does not fit is found at the end.
fn half(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
