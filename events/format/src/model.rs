//! The contents of an event file: CPUs and their events.

use std::ops::RangeInclusive;

use quipu_hal::Scheme;

use crate::bits::{Bits, Counters, flag, folded, join};
use crate::strings::{Strings, Text};

/// A CPU entry, or a file's additions to one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) scheme: Option<Scheme>,
    /// The entry whose events this one has too.
    pub(crate) base: Option<String>,
    pub(crate) rules: Vec<Rule>,
    /// Considered only when no ordinary entry matches.
    pub(crate) fallback: bool,
    pub(crate) general: Option<Counters>,
    pub(crate) fixed: Option<Counters>,
    /// The modifiers that its events may have, where it does not have all of its scheme.
    pub(crate) modifiers: Option<u32>,
    /// Backends in order of preference, per operating system.
    pub(crate) backends: Vec<(String, Vec<String>)>,
    pub(crate) source: Option<String>,
    pub(crate) entries: Vec<EventEntry>,
    /// Generalized event or cache event, and the native event it stands for.
    pub(crate) generalized: Vec<Mapping>,
    pub(crate) presets: Vec<Mapping>,
    /// The table of further spellings, by position among those of the layer.
    pub(crate) aliases: Option<usize>,
    pub(crate) location: Location,
}

impl Cpu {
    /// Returns an entry that says nothing of its own, for what a layer adds to a CPU.
    pub(crate) fn empty(id: &str, location: Location) -> Self {
        Self {
            id: id.to_owned(),
            name: None,
            scheme: None,
            base: None,
            rules: Vec::new(),
            fallback: false,
            general: None,
            fixed: None,
            backends: Vec::new(),
            source: None,
            entries: Vec::new(),
            generalized: Vec::new(),
            presets: Vec::new(),
            modifiers: None,
            aliases: None,
            location,
        }
    }
}

/// The spellings that another library gives to the events of some CPUs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aliases {
    /// The ids of the CPU entries.
    pub(crate) cpus: Vec<(String, Location)>,
    pub(crate) source: String,
    pub(crate) entries: Vec<EventEntry>,
}

/// A location in the set of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Location {
    /// The file, by position.
    pub(crate) file: u32,
    /// The byte in the file.
    pub(crate) start: u32,
    pub(crate) line: u32,
}

/// A rule that recognises a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    X86 {
        vendor: String,
        family: u16,
        models: Vec<RangeInclusive<u16>>,
        steppings: RangeInclusive<u8>,
        core_type: Option<String>,
        native_model: Option<u32>,
    },
    Arm {
        implementer: Option<u8>,
        part: Option<u16>,
    },
    Other {
        /// `riscv`, `powerpc`, `s390`, `loongarch`.
        isa: String,
        /// A pattern that the identification matches; see [`crate::pattern`].
        id: String,
    },
}

/// Names one thing with another: a generalized event with its native one, a preset with its formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mapping {
    pub(crate) name: Text,
    /// The event or formula, or why there is none.
    pub(crate) text: Result<Text, Text>,
    pub(crate) location: Location,
}

/// An event, or an event with one of its unit masks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EventEntry {
    /// As it is written: `EVENT` or `EVENT.MASK`.
    pub(crate) name: Text,
    /// The length of the event in it.
    event: u32,
    pub(crate) bits: Bits,
    /// The entry that has the same bits on purpose.
    pub(crate) same_as: Text,
    pub(crate) description: Text,
    pub(crate) unit: Text,
    /// Several are joined by semicolons.
    pub(crate) errata: Text,
    /// The event to use instead, where the entry is deprecated.
    pub(crate) instead: Text,
    pub(crate) location: Location,
}

impl EventEntry {
    /// Makes an event without numbers and words.
    pub(crate) fn new(event: &str, strings: &mut Strings, location: Location) -> Self {
        Self {
            name: strings.add(event),
            event: event.len() as u32,
            bits: Bits::default(),
            same_as: Text::default(),
            description: Text::default(),
            unit: Text::default(),
            errata: Text::default(),
            instead: Text::default(),
            location,
        }
    }

    /// Makes a mask of this event, with its numbers and words.
    pub(crate) fn with_mask(&self, mask: &str, strings: &mut Strings, location: Location) -> Self {
        let name = join(self.event(strings), mask);
        Self {
            name: strings.add(&name),
            location,
            ..*self
        }
    }

    /// Returns the event.
    pub(crate) fn event<'s>(&self, strings: &'s Strings) -> &'s str {
        let name = strings.get(self.name);
        name.get(..self.event as usize).unwrap_or(name)
    }

    /// Returns the mask, empty for the event alone.
    pub(crate) fn mask<'s>(&self, strings: &'s Strings) -> &'s str {
        let name = strings.get(self.name);
        name.get(self.event as usize + 1..).unwrap_or_default()
    }
}

/// Returns entries sorted by name, letter case aside; those of the same name stay in order.
pub(crate) fn by_name<'e>(entries: &'e [EventEntry], strings: &Strings) -> Vec<&'e EventEntry> {
    let mut sorted: Vec<&EventEntry> = entries.iter().collect();
    let name = |entry: &EventEntry| strings.get(entry.name).as_bytes();
    sorted.sort_by(|a, b| folded(name(a), name(b)));
    sorted
}

/// Returns the largest event number a scheme has room for.
pub(crate) fn largest_code(scheme: Scheme) -> u64 {
    match scheme {
        Scheme::P5 => 0x3f,
        Scheme::Amd10h => 0xfff,
        Scheme::Armv8 => 0xffff,
        Scheme::Perf => u64::MAX,
        _ => 0xff,
    }
}

/// Returns true if a scheme's events have unit masks, counter masks and the flags that go with them.
pub(crate) fn has_unit_masks(scheme: Scheme) -> bool {
    !matches!(scheme, Scheme::P5 | Scheme::Armv8 | Scheme::Perf)
}

/// Returns the flags a scheme has bits for.
pub(crate) fn scheme_flags(scheme: Scheme) -> u32 {
    match scheme {
        Scheme::P5 => flag::CLOCKS,
        Scheme::P6 | Scheme::AmdK7 | Scheme::Amd10h => {
            flag::EDGE | flag::INVERT | flag::COUNTER_MASK
        }
        Scheme::IntelArchitectural => {
            flag::EDGE
                | flag::INVERT
                | flag::ANY_THREAD
                | flag::IN_TX
                | flag::IN_TX_CP
                | flag::EQUAL
                | flag::COUNTER_MASK
        }
        _ => 0,
    }
}
