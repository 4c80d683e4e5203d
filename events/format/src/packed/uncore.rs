//! The binary table of uncore events, apart from the others, and compressed: programs that count on cores alone never
//! inflate it.
//!
//! The bytes are raw deflate (RFC 1951) of what follows. All numbers are little-endian. After the words of `header` come the CPUs, the events (each that several CPUs have in
//! common once), the lists of the CPUs (16-bit numbers of events, sorted by name), and strings as in the other table.
//! A name is kept as event and mask, because events share their masks.

use std::cmp::Ordering;
use std::collections::HashMap;

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::descriptions::{LARGEST_TEXT, LEVEL};
use crate::descriptions::DescriptionFiles;
use crate::uncore::{Uncore, UncoreEntry, split_scale};

/// The first word: `QPU1`.
const MAGIC: u32 = u32::from_le_bytes(*b"QPU1");

/// Words of the header.
mod header {
    pub(super) const MAGIC: usize = 0;
    pub(super) const CPUS: usize = 1;
    /// The byte where the events begin.
    pub(super) const EVENTS: usize = 2;
    /// The byte where the index of strings begins, and their number.
    pub(super) const STRINGS: usize = 3;
    pub(super) const STRING_COUNT: usize = 4;
    pub(super) const WORDS: usize = 5;
}

/// Words of a CPU: its id and the source of its events, and the byte and length of its list.
const CPU_WORDS: usize = 4;
/// Halves of an event: the strings of its event, mask, PMU, terms, and scale with unit, and the number of its
/// description plus one, or 0.
const EVENT_HALVES: usize = 6;
const DESCRIBED: usize = 5;

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

/// A table of uncore events.
///
/// A number or string that is not there reads as 0 or empty, so that no table can make reading panic.
#[derive(Debug, Clone)]
pub struct UncoreTable {
    bytes: Vec<u8>,
}

impl UncoreTable {
    /// Inflates a table; bytes of another kind have no CPUs.
    pub fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: decompress_to_vec_with_limit(bytes, LARGEST_TEXT).unwrap_or_default(),
        }
    }

    fn number<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn word(&self, word: usize) -> usize {
        self.number(word * 4)
            .map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn half(&self, at: usize) -> usize {
        self.number(at).map_or(0, u16::from_le_bytes).into()
    }

    fn string(&self, number: usize) -> &str {
        let index = self.word(header::STRINGS) / 4;
        let count = self.word(header::STRING_COUNT);
        if number >= count {
            return "";
        }
        let text = (index + count) * 4;
        let start = match number {
            0 => 0,
            _ => self.word(index + number - 1),
        };
        let end = self.word(index + number);
        let bytes = self.bytes.get(text + start..text + end);
        bytes
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default()
    }

    /// Returns the uncore events of a CPU entry, if it has any.
    pub fn cpu(&self, id: &str) -> Option<UncoreView<'_>> {
        let valid = self.word(header::MAGIC) == MAGIC as usize;
        let count = if valid { self.word(header::CPUS) } else { 0 };
        let mut records = (0..count).map(|cpu| header::WORDS + cpu * CPU_WORDS);
        let record = records.find(|record| self.string(self.word(*record)) == id)?;
        Some(UncoreView {
            table: self,
            record,
        })
    }
}

/// The uncore events of a CPU entry.
#[derive(Debug, Clone, Copy)]
pub struct UncoreView<'t> {
    table: &'t UncoreTable,
    record: usize,
}

impl<'t> UncoreView<'t> {
    /// Returns the source of the facts.
    pub fn source(&self) -> &'t str {
        self.table.string(self.table.word(self.record + 1))
    }

    fn len(&self) -> usize {
        self.table.word(self.record + 3)
    }

    fn event(&self, at: usize) -> UncoreEventView<'t> {
        let list = self.table.word(self.record + 2);
        let number = self.table.half(list + at * 2);
        UncoreEventView {
            table: self.table,
            start: self.table.word(header::EVENTS) + number * EVENT_HALVES * 2,
        }
    }

    /// Returns the events, sorted by name.
    pub fn events(&self) -> impl ExactSizeIterator<Item = UncoreEventView<'t>> + use<'t> {
        let view = *self;
        (0..view.len()).map(move |at| view.event(at))
    }

    /// Returns the event of this name, `EVENT.MASK`, in any letter case.
    pub fn find(&self, name: &str) -> Option<UncoreEventView<'t>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let event = self.event(middle);
            match folded(&event.name(), name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(event),
            }
        }
        None
    }
}

/// An uncore event in a table.
#[derive(Debug, Clone, Copy)]
pub struct UncoreEventView<'t> {
    table: &'t UncoreTable,
    start: usize,
}

impl<'t> UncoreEventView<'t> {
    fn string(&self, half: usize) -> &'t str {
        self.table.string(self.table.half(self.start + half * 2))
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        crate::join(self.string(0), self.string(1))
    }

    /// Returns the PMU that Linux has for the unit, without the number of an instance: `uncore_imc`.
    pub fn pmu(&self) -> &'t str {
        self.string(2)
    }

    /// Returns the terms: `event=0x04,umask=0x03`.
    pub fn terms(&self) -> &'t str {
        self.string(3)
    }

    /// Returns the number of its description among the [`Descriptions`](super::Descriptions) of the embedded tables.
    pub fn described(&self) -> Option<u32> {
        let number = self.table.half(self.start + DESCRIBED * 2);
        number.checked_sub(1).map(|number| number as u32)
    }

    /// Returns the factor of its values and the unit of the products, if they are no plain counts.
    pub fn scale(&self) -> Option<(f64, &'t str)> {
        split_scale(self.string(4))
    }
}

/// Compares names, letter case aside.
fn folded(a: &str, b: &str) -> Ordering {
    let upper = |text: &str| {
        text.bytes()
            .map(|b| b.to_ascii_uppercase())
            .collect::<Vec<_>>()
    };
    upper(a).cmp(&upper(b))
}
