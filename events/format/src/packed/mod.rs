//! The binary form of a layer: one indexed table, read in place.
//!
//! The embedded database is packed in it, and a user's layer in memory, so
//! that there is one reader and one way to look things up. All numbers are 32-bit little-endian words.
//! A table begins with the words of `header`; records of the kinds below follow, each of a fixed number
//! of words, and strings last, each once.

mod descriptions;
mod reader;
mod uncore;
#[cfg(feature = "files")]
mod uncore_writer;
#[cfg(feature = "files")]
mod writer;

pub use descriptions::Descriptions;
pub use reader::{CpuView, EntryView, MappingView, RuleView, Table};
pub use uncore::{UncoreEventView, UncoreTable, UncoreView};

cfg_if::cfg_if! {
    if #[cfg(feature = "files")] {
        pub(crate) use descriptions::write_descriptions;
        pub(crate) use reader::compare;
        pub(crate) use uncore::split_scale;
        pub(crate) use uncore_writer::write_uncore;
        pub(crate) use writer::write;
    }
}

/// The first word: `QPE3`.
const MAGIC: u32 = u32::from_le_bytes(*b"QPE3");

/// Words of the header.
mod header {
    pub(super) const MAGIC: usize = 0;
    /// The number of CPU records, which follow the header.
    pub(super) const CPUS: usize = 1;
    /// The word where the index of strings begins: the end of each in the text, which begins at 0.
    pub(super) const STRINGS: usize = 2;
    /// The number of strings.
    pub(super) const STRING_COUNT: usize = 3;
    /// The first word of the events of entries.
    pub(super) const EVENTS: usize = 4;
    /// The first word of their details.
    pub(super) const DETAILS: usize = 5;
    /// The words of an entry record.
    pub(super) const ENTRY_WORDS: usize = 6;
    pub(super) const WORDS: usize = 7;
}

/// Words of a CPU record.
mod cpu {
    pub(super) const ID: usize = 0;
    pub(super) const NAME: usize = 1;
    /// The position in the list of schemes plus one, or 0.
    pub(super) const SCHEME: usize = 2;
    pub(super) const BASE: usize = 3;
    pub(super) const SOURCE: usize = 4;
    pub(super) const FILE: usize = 5;
    pub(super) const FALLBACK: usize = 6;
    /// Number, and width in bits 8-15; 0 when nothing is said.
    pub(super) const GENERAL: usize = 7;
    pub(super) const FIXED: usize = 8;
    /// First word and number of records, for each list.
    pub(super) const RULES: usize = 9;
    pub(super) const BACKENDS: usize = 11;
    pub(super) const ENTRIES: usize = 13;
    pub(super) const GENERALIZED: usize = 15;
    pub(super) const PRESETS: usize = 17;
    /// The source of the aliases, and the aliases: entries too. CPUs may share them.
    pub(super) const ALIAS_SOURCE: usize = 19;
    pub(super) const ALIASES: usize = 20;
    pub(super) const WORDS: usize = 22;
}

/// Words of a rule record: one for each range of models.
mod rule {
    /// 1 for x86, 2 for ARM, 3 for others.
    pub(super) const KIND: usize = 0;
    /// The vendor, or the architecture of others.
    pub(super) const VENDOR: usize = 1;
    pub(super) const FAMILY: usize = 2;
    /// First, and last from bit 16.
    pub(super) const MODELS: usize = 3;
    pub(super) const STEPPINGS: usize = 4;
    /// The core type, or the pattern of others.
    pub(super) const CORE_TYPE: usize = 5;
    /// The value plus one, or 0 for any.
    pub(super) const NATIVE_MODEL: usize = 6;
    pub(super) const IMPLEMENTER: usize = 7;
    pub(super) const PART: usize = 8;
    pub(super) const WORDS: usize = 9;
}

/// Words of an entry record; entries are sorted by name in upper case.
mod entry {
    /// The number of its event, and above it the line, where all lines of the table have room there.
    pub(super) const EVENT: usize = 0;
    /// Of the number: there is room for 2^20 events, and a file has at most 131,072.
    pub(super) const EVENT_BITS: u32 = 20;
    pub(super) const EVENT_MASK: u32 = (1 << EVENT_BITS) - 1;
    /// The line, in tables that have this word.
    pub(super) const LINE: usize = 1;
    /// The most words; the least is one.
    pub(super) const WORDS: usize = 2;
}

/// Words of an event record, which the entries of several CPUs may have in common: each kept once.
mod event {
    pub(super) const NAME: usize = 0;
    /// The code, the length of the event's part of the name from bit 16, and flags from bit 16 on in bits 24-31.
    pub(super) const CODE: usize = 1;
    /// Unit mask, second mask, counter mask and fixed counter, 8 bits each.
    pub(super) const MASKS: usize = 2;
    /// A string, or with the bit `SHARED` the number of a sentence that is kept elsewhere.
    pub(super) const DESCRIPTION: usize = 3;
    pub(super) const SHARED: u32 = 1 << 31;
    /// The number of its details.
    pub(super) const DETAIL: usize = 4;
    pub(super) const WORDS: usize = 5;
}

/// Words of the details of events, which many have in common: each kept once.
mod detail {
    /// Flags, modifiers from bit 16, and from bit 24 the most by which the counter grows in a cycle.
    pub(super) const FLAGS: usize = 0;
    pub(super) const COUNTERS: usize = 1;
    pub(super) const REGISTER: usize = 2;
    /// Two words, low first.
    pub(super) const VALUE: usize = 3;
    pub(super) const SAME_AS: usize = 5;
    pub(super) const ERRATA: usize = 6;
    pub(super) const INSTEAD: usize = 7;
    pub(super) const UNIT: usize = 8;
    pub(super) const WORDS: usize = 9;
}

/// Words of a mapping record; mappings are sorted by name.
mod mapping {
    pub(super) const NAME: usize = 0;
    pub(super) const TEXT: usize = 1;
    /// 1 when the text is the reason why there is none.
    pub(super) const ABSENT: usize = 2;
    pub(super) const LINE: usize = 3;
    pub(super) const WORDS: usize = 4;
}

/// Words of a backend record: operating system and backend.
mod backend {
    pub(super) const OS: usize = 0;
    pub(super) const NAME: usize = 1;
    pub(super) const WORDS: usize = 2;
}
