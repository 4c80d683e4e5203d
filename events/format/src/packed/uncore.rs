//! The binary table of uncore events, apart from the others, and compressed: programs that count on cores alone never
//! inflate it.
//!
//! The bytes are raw deflate (RFC 1951) of what follows. All numbers are little-endian. After the words of `header` come the CPUs, the events (each that several CPUs have in
//! common once), the lists of the CPUs (16-bit numbers of events, sorted by name), and strings as in the other table.
//! A name is kept as event and mask, because events share their masks.

use std::cmp::Ordering;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::descriptions::LARGEST_TEXT;

/// The first word: `QPU1`.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"QPU1");

/// Words of the header.
pub(super) mod header {
    pub(in crate::packed) const MAGIC: usize = 0;
    pub(in crate::packed) const CPUS: usize = 1;
    /// The byte where the events begin.
    pub(in crate::packed) const EVENTS: usize = 2;
    /// The byte where the index of strings begins, and their number.
    pub(in crate::packed) const STRINGS: usize = 3;
    pub(in crate::packed) const STRING_COUNT: usize = 4;
    pub(in crate::packed) const WORDS: usize = 5;
}

/// Words of a CPU: its id and the source of its events, and the byte and length of its list.
pub(super) const CPU_WORDS: usize = 4;
/// Halves of an event: the strings of its event, mask, PMU, terms, and scale with unit, and the number of its
/// description plus one, or 0.
pub(super) const EVENT_HALVES: usize = 6;
const DESCRIBED: usize = 5;

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
pub(super) fn folded(a: &str, b: &str) -> Ordering {
    let upper = |text: &str| {
        text.bytes()
            .map(|b| b.to_ascii_uppercase())
            .collect::<Vec<_>>()
    };
    upper(a).cmp(&upper(b))
}

/// Returns the factor and the unit of `64Bytes`.
pub(crate) fn split_scale(text: &str) -> Option<(f64, &str)> {
    // The longest start that is a number, as strtod(3) takes it: `6.1E-5MiB`.
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let (factor, end) = ends
        .filter_map(|end| Some((text[..end].parse::<f64>().ok()?, end)))
        .next_back()?;
    (factor.is_finite() && end < text.len()).then(|| (factor, &text[end..]))
}
