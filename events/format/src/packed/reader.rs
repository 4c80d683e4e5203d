//! Reads a table in place: nothing is decoded before it is asked for.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{MAGIC, backend, cpu, detail, entry, event, header, mapping, rule};
use crate::bits::{Bits, Counters, SCHEMES, flag, folded};
use quipu_hal::Scheme;

/// A layer's table.
///
/// A word or string that is not there reads as 0 or empty, so that no table can make reading panic.
#[derive(Debug, Clone)]
pub struct Table {
    bytes: Cow<'static, [u8]>,
}

impl Table {
    /// Makes a table of its bytes; bytes of another kind have no CPUs.
    pub fn new(bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        Self {
            bytes: bytes.into(),
        }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = at
            .checked_mul(4)
            .and_then(|start| self.bytes.get(start..start.checked_add(4)?));
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    }

    /// Returns a word of a record of those that the header says the first word of.
    fn record(&self, first: usize, number: u32, words: usize, at: usize) -> u32 {
        let start = (number as usize).saturating_mul(words);
        let first = self.word(first) as usize;
        self.word(first.saturating_add(start).saturating_add(at))
    }

    fn string(&self, number: u32) -> &str {
        let index = self.word(header::STRINGS) as usize;
        let count = self.word(header::STRING_COUNT) as usize;
        let number = number as usize;
        if number >= count {
            return "";
        }
        let text = (index + count) * 4;
        let start = match number {
            0 => 0,
            _ => self.word(index + number - 1) as usize,
        };
        let end = self.word(index + number) as usize;
        self.bytes
            .get(text.saturating_add(start)..text.saturating_add(end))
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default()
    }

    /// Returns the CPU entries, in order.
    pub fn cpus(&self) -> impl ExactSizeIterator<Item = CpuView<'_>> {
        let valid = self.word(header::MAGIC) == MAGIC;
        let count = if valid { self.word(header::CPUS) } else { 0 };
        (0..count as usize).map(|at| CpuView::new(self, at))
    }

    fn entry_words(&self) -> usize {
        self.word(header::ENTRY_WORDS) as usize
    }

    /// Returns the CPU entry at a position among [`cpus`](Self::cpus).
    pub fn cpu(&self, at: usize) -> Option<CpuView<'_>> {
        (at < self.cpus().len()).then(|| CpuView::new(self, at))
    }
}

/// A CPU entry in a table.
#[derive(Debug, Clone, Copy)]
pub struct CpuView<'t> {
    table: &'t Table,
    start: usize,
    /// The word that says where its entries are: the events' or the aliases'.
    entries: usize,
}

impl<'t> CpuView<'t> {
    fn new(table: &'t Table, at: usize) -> Self {
        Self {
            table,
            start: header::WORDS + at * cpu::WORDS,
            entries: cpu::ENTRIES,
        }
    }

    /// Returns the same CPU with its aliases in the place of its events.
    pub fn aliases(self) -> Self {
        Self {
            entries: cpu::ALIASES,
            ..self
        }
    }

    /// Returns the source of the aliases.
    pub fn alias_source(&self) -> &'t str {
        self.string(cpu::ALIAS_SOURCE)
    }

    fn word(&self, at: usize) -> u32 {
        self.table.word(self.start + at)
    }

    fn string(&self, at: usize) -> &'t str {
        self.table.string(self.word(at))
    }

    /// Returns the first words of the records of a list.
    fn list(
        &self,
        at: usize,
        words: usize,
    ) -> impl ExactSizeIterator<Item = usize> + DoubleEndedIterator + use<> {
        let start = self.word(at) as usize;
        let count = self.word(at + 1) as usize;
        (0..count).map(move |record| start + record * words)
    }

    /// Returns the id: `intel-p5`.
    pub fn id(&self) -> &'t str {
        self.string(cpu::ID)
    }

    /// Returns the name.
    pub fn name(&self) -> &'t str {
        self.string(cpu::NAME)
    }

    /// Returns the scheme, if the entry gives one.
    pub fn scheme(&self) -> Option<Scheme> {
        let at = self.word(cpu::SCHEME).checked_sub(1)?;
        SCHEMES.get(at as usize).map(|(_, scheme)| *scheme)
    }

    /// Returns the id of the base, or nothing.
    pub fn base(&self) -> &'t str {
        self.string(cpu::BASE)
    }

    /// Returns the source of the facts.
    pub fn source(&self) -> &'t str {
        self.string(cpu::SOURCE)
    }

    /// Returns the name of the file that the entry is in.
    pub fn file(&self) -> &'t str {
        self.string(cpu::FILE)
    }

    /// Returns true if the entry is considered only when no ordinary entry matches.
    pub fn is_fallback(&self) -> bool {
        self.word(cpu::FALLBACK) != 0
    }

    /// Returns the general counters, if the entry gives them.
    pub fn general(&self) -> Option<Counters> {
        counters(self.word(cpu::GENERAL))
    }

    /// Returns the fixed counters, if the entry gives them.
    pub fn fixed(&self) -> Option<Counters> {
        counters(self.word(cpu::FIXED))
    }

    /// Returns the rules that recognise the CPU.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleView<'t>> + use<'t> {
        let table = self.table;
        self.list(cpu::RULES, rule::WORDS)
            .map(move |start| RuleView { table, start })
    }

    /// Returns the backends for an operating system, in order of preference.
    pub fn backends(&self, os: &str) -> impl Iterator<Item = &'t str> {
        let table = self.table;
        self.list(cpu::BACKENDS, backend::WORDS)
            .filter(move |start| table.string(table.word(start + backend::OS)) == os)
            .map(move |start| table.string(table.word(start + backend::NAME)))
    }

    /// Returns the entries, sorted by name.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = EntryView<'t>> + use<'t> {
        let table = self.table;
        self.list(self.entries, table.entry_words())
            .map(move |start| EntryView { table, start })
    }

    /// Returns the entry of this name, in any letter case.
    pub fn find(&self, event: &str, mask: &str) -> Option<EntryView<'t>> {
        let found = self.position(event, mask);
        let view = self.entry_at(found)?;
        (compare(view.name(), event, mask) == Ordering::Equal).then_some(view)
    }

    /// Returns the masks of an event that are taken when none is named.
    pub fn default_masks(&self, event: &str) -> Vec<EntryView<'t>> {
        let mut at = self.position(event, "");
        let mut masks = Vec::new();
        while let Some(view) = self.entry_at(at)
            && view.event().len() >= event.len()
            && view
                .name()
                .get(..event.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(event))
        {
            let is_default = view.bits().flags & flag::DEFAULT != 0;
            if is_default && view.event().len() == event.len() {
                masks.push(view);
            }
            at += 1;
        }
        masks
    }

    fn entry_at(&self, at: usize) -> Option<EntryView<'t>> {
        let count = self.word(self.entries + 1) as usize;
        (at < count).then(|| EntryView {
            table: self.table,
            start: self.word(self.entries) as usize + at * self.table.entry_words(),
        })
    }

    /// Returns the position of the first entry whose name is not before this one.
    fn position(&self, event: &str, mask: &str) -> usize {
        let (mut low, mut high) = (0, self.word(self.entries + 1) as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            let before = self
                .entry_at(middle)
                .is_some_and(|view| compare(view.name(), event, mask) == Ordering::Less);
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the generalized events, sorted by name.
    pub fn generalized(&self) -> impl ExactSizeIterator<Item = MappingView<'t>> + use<'t> {
        self.mappings(cpu::GENERALIZED)
    }

    /// Returns the presets, sorted by name.
    pub fn presets(&self) -> impl ExactSizeIterator<Item = MappingView<'t>> + use<'t> {
        self.mappings(cpu::PRESETS)
    }

    fn mappings(&self, at: usize) -> impl ExactSizeIterator<Item = MappingView<'t>> + use<'t> {
        let table = self.table;
        self.list(at, mapping::WORDS)
            .map(move |start| MappingView { table, start })
    }
}

/// Compares a name with `event` or `event.mask`, letter case aside.
pub(crate) fn compare(name: &str, event: &str, mask: &str) -> Ordering {
    let (start, rest) = name.as_bytes().split_at(name.len().min(event.len()));
    folded(start, event.as_bytes()).then_with(|| match rest {
        [] if mask.is_empty() => Ordering::Equal,
        [] => Ordering::Less,
        _ if mask.is_empty() => Ordering::Greater,
        [joint, rest @ ..] => joint.cmp(&b'.').then_with(|| folded(rest, mask.as_bytes())),
    })
}

fn counters(word: u32) -> Option<Counters> {
    let [number, width, ..] = word.to_le_bytes();
    (width > 0).then_some(Counters { number, width })
}

/// A rule that recognises a CPU, in a table: one range of models.
#[derive(Debug, Clone, Copy)]
pub struct RuleView<'t> {
    table: &'t Table,
    start: usize,
}

impl<'t> RuleView<'t> {
    fn word(&self, at: usize) -> u32 {
        self.table.word(self.start + at)
    }

    /// Returns true for a rule of x86 CPUs.
    pub fn is_x86(&self) -> bool {
        self.word(rule::KIND) == 1
    }

    /// Returns true for a rule of ARM CPUs.
    pub fn is_arm(&self) -> bool {
        self.word(rule::KIND) == 2
    }

    /// Returns the architecture and the pattern of the identification, for a rule of other CPUs.
    pub fn other(&self) -> Option<(&'t str, &'t str)> {
        let text = |word| self.table.string(self.word(word));
        (self.word(rule::KIND) == 3).then(|| (text(rule::VENDOR), text(rule::CORE_TYPE)))
    }

    /// Returns the vendor in CPUID leaf 0.
    pub fn vendor(&self) -> &'t str {
        self.table.string(self.word(rule::VENDOR))
    }

    /// Returns the family.
    pub fn family(&self) -> u32 {
        self.word(rule::FAMILY)
    }

    /// Returns true if the rule takes a model.
    pub fn has_model(&self, model: u32) -> bool {
        within(model, self.word(rule::MODELS))
    }

    /// Returns true if the rule takes a stepping.
    pub fn has_stepping(&self, stepping: u32) -> bool {
        within(stepping, self.word(rule::STEPPINGS))
    }

    /// Returns the first model and the last.
    pub fn models(&self) -> (u32, u32) {
        ends(self.word(rule::MODELS))
    }

    /// Returns the first stepping and the last.
    pub fn steppings(&self) -> (u32, u32) {
        ends(self.word(rule::STEPPINGS))
    }

    /// Returns the core type it takes; empty for any.
    pub fn core_type(&self) -> &'t str {
        self.table.string(self.word(rule::CORE_TYPE))
    }

    /// Returns the native model id, or `None` for any.
    pub fn native_model(&self) -> Option<u32> {
        self.word(rule::NATIVE_MODEL).checked_sub(1)
    }

    /// Returns the implementer, or `None` for any.
    pub fn implementer(&self) -> Option<u32> {
        self.word(rule::IMPLEMENTER).checked_sub(1)
    }

    /// Returns the part number, or `None` for any.
    pub fn part(&self) -> Option<u32> {
        self.word(rule::PART).checked_sub(1)
    }
}

fn within(number: u32, range: u32) -> bool {
    let (first, last) = ends(range);
    (first..=last).contains(&number)
}

fn ends(range: u32) -> (u32, u32) {
    (range & 0xffff, range >> 16)
}

/// An entry in a table.
#[derive(Debug, Clone, Copy)]
pub struct EntryView<'t> {
    table: &'t Table,
    start: usize,
}

impl<'t> EntryView<'t> {
    fn event_word(&self, at: usize) -> u32 {
        let number = self.table.word(self.start + entry::EVENT) & entry::EVENT_MASK;
        self.table.record(header::EVENTS, number, event::WORDS, at)
    }

    fn event_string(&self, at: usize) -> &'t str {
        self.table.string(self.event_word(at))
    }

    fn detail(&self, at: usize) -> u32 {
        let number = self.event_word(event::DETAIL);
        self.table
            .record(header::DETAILS, number, detail::WORDS, at)
    }

    fn detail_string(&self, at: usize) -> &'t str {
        self.table.string(self.detail(at))
    }

    /// Returns the name: `EVENT` or `EVENT.MASK`.
    pub fn name(&self) -> &'t str {
        self.event_string(event::NAME)
    }

    /// Returns the part of the name before the mask.
    pub fn event(&self) -> &'t str {
        let name = self.name();
        name.get(..(self.event_word(event::CODE) >> 16 & 0xff) as usize)
            .unwrap_or(name)
    }

    /// Returns the mask; empty for the event alone.
    pub fn mask(&self) -> &'t str {
        self.name()
            .get(self.event().len() + 1..)
            .unwrap_or_default()
    }

    /// Returns the event number and the register value, which distinguish most entries.
    pub fn code_and_value(&self) -> (u16, u64) {
        (self.event_word(event::CODE) as u16, self.value())
    }

    fn value(&self) -> u64 {
        u64::from(self.detail(detail::VALUE)) | u64::from(self.detail(detail::VALUE + 1)) << 32
    }

    /// Returns the numbers.
    pub fn bits(&self) -> Bits {
        let masks = self.event_word(event::MASKS).to_le_bytes();
        let flags = self.detail(detail::FLAGS);
        Bits {
            code: self.event_word(event::CODE) as u16,
            unit_mask: masks[0],
            second_mask: masks[1],
            counter_mask: masks[2],
            fixed: masks[3],
            flags: (flags & 0xffff) | (self.event_word(event::CODE) >> 24) << 16,
            modifiers: flags >> 16 & 0xff,
            counters: self.detail(detail::COUNTERS),
            register: self.detail(detail::REGISTER),
            value: self.value(),
            max_increment: (flags >> 24) as u8,
        }
    }

    /// Returns the entry that has the same bits on purpose, or nothing.
    pub fn same_as(&self) -> &'t str {
        self.detail_string(detail::SAME_AS)
    }

    /// Returns the description in the table, or nothing.
    pub fn description(&self) -> &'t str {
        self.event_string(event::DESCRIPTION)
    }

    /// Returns the number of its description among the [`Descriptions`](super::Descriptions) of the embedded tables.
    pub fn described(&self) -> Option<u32> {
        let word = self.event_word(event::DESCRIPTION);
        (word & event::SHARED != 0).then_some(word & !event::SHARED)
    }

    /// Returns the numbers of its errata.
    pub fn errata(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        let errata = self.detail_string(detail::ERRATA);
        errata.split("; ").filter(|erratum| !erratum.is_empty())
    }

    /// Returns the event to use instead of a deprecated one, or nothing.
    pub fn instead(&self) -> &'t str {
        self.detail_string(detail::INSTEAD)
    }

    /// Returns the unit, or nothing for a plain count.
    pub fn unit(&self) -> &'t str {
        self.detail_string(detail::UNIT)
    }

    /// Returns the line in its file, from 1.
    pub fn line(&self) -> u32 {
        match self.table.entry_words() {
            entry::WORDS => self.table.word(self.start + entry::LINE),
            _ => self.table.word(self.start + entry::EVENT) >> entry::EVENT_BITS,
        }
    }
}

/// A generalized event or preset in a table.
#[derive(Debug, Clone, Copy)]
pub struct MappingView<'t> {
    table: &'t Table,
    start: usize,
}

impl<'t> MappingView<'t> {
    /// Returns the name.
    pub fn name(&self) -> &'t str {
        self.table
            .string(self.table.word(self.start + mapping::NAME))
    }

    /// Returns the event or formula.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn text(&self) -> Result<&'t str, &'t str> {
        let text = self
            .table
            .string(self.table.word(self.start + mapping::TEXT));
        match self.table.word(self.start + mapping::ABSENT) {
            0 => Ok(text),
            _ => Err(text),
        }
    }

    /// Returns the line in its file, from 1.
    pub fn line(&self) -> u32 {
        self.table.word(self.start + mapping::LINE)
    }
}
