//! The contents of an event file: CPUs and their events.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::strings::{Strings, Text};
use quipu_hal::{Scheme, Software};

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
    pub(crate) entries: Vec<Entry>,
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
    pub(crate) entries: Vec<Entry>,
}

/// A number of counters of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The number of counters.
    pub number: u8,
    /// The width of each, in bits.
    pub width: u8,
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
pub(crate) struct Entry {
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

impl Entry {
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
pub(crate) fn by_name<'e>(entries: &'e [Entry], strings: &Strings) -> Vec<&'e Entry> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    let name = |entry: &Entry| strings.get(entry.name).as_bytes();
    sorted.sort_by(|a, b| folded(name(a), name(b)));
    sorted
}

/// Compares bytes, letter case aside.
pub(crate) fn folded(a: &[u8], b: &[u8]) -> Ordering {
    let different = a
        .iter()
        .zip(b)
        .map(|(a, b)| a.to_ascii_uppercase().cmp(&b.to_ascii_uppercase()))
        .find(|order| order.is_ne());
    different.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Joins the parts of a name: `EVENT` or `EVENT.MASK`.
pub fn join(event: &str, mask: &str) -> String {
    if mask.is_empty() {
        event.to_owned()
    } else {
        format!("{event}.{mask}")
    }
}

/// The numbers of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits {
    /// The event number.
    pub code: u16,
    /// The unit mask.
    pub unit_mask: u8,
    /// Intel's second unit mask.
    pub second_mask: u8,
    /// The counter mask.
    pub counter_mask: u8,
    /// The fixed counter that counts it, plus one; 0 for none.
    pub fixed: u8,
    /// Flags of the select word and properties of the entry; constants of [`flag`].
    pub flags: u32,
    /// The modifiers that a name may have; constants of [`flag`].
    pub modifiers: u32,
    /// The general counters that can count it; 0 for all.
    pub counters: u32,
    /// An extra register to write, or 0.
    pub register: u32,
    /// The value for the extra register; with [`flag::WIDE`] the event number.
    pub value: u64,
    /// The most by which the counter grows in a cycle; 0 where the file does not say.
    pub max_increment: u8,
}

impl Bits {
    /// Returns the event number, which has up to 64 bits where it is the config word of a Linux driver.
    pub const fn config(self) -> u64 {
        match self.flags & flag::WIDE {
            0 => self.code as u64,
            _ => self.value,
        }
    }

    /// Sets the event number.
    #[must_use]
    pub const fn with_config(mut self, config: u64) -> Self {
        if self.flags & flag::WIDE != 0 {
            self.value = 0;
            self.flags &= !flag::WIDE;
        }
        self.code = config as u16;
        if config > 0xffff {
            self.value = config;
            self.flags |= flag::WIDE;
        }
        self
    }
}

/// The flags of [`Bits`].
pub mod flag {
    /// Count rising edges.
    pub const EDGE: u32 = 1;
    /// Invert the comparison with the counter mask.
    pub const INVERT: u32 = 1 << 1;
    /// Count all threads of the core.
    pub const ANY_THREAD: u32 = 1 << 2;
    /// In transactional regions.
    pub const IN_TX: u32 = 1 << 3;
    /// Without what aborted transactions counted.
    pub const IN_TX_CP: u32 = 1 << 4;
    /// Compare with the counter mask for equality.
    pub const EQUAL: u32 = 1 << 5;
    /// P5: count clocks, not events.
    pub const CLOCKS: u32 = 1 << 6;
    /// As a modifier: the counter mask may be given.
    pub const COUNTER_MASK: u32 = 1 << 7;
    /// The flags that are part of the encoding.
    pub const ENCODED: u32 = (1 << 7) - 1;
    /// The mask may be combined with others of its event.
    pub const COMBINES: u32 = 1 << 8;
    /// The mask is taken when none is named.
    pub const DEFAULT: u32 = 1 << 9;
    /// The vendor advises against it.
    pub const DEPRECATED: u32 = 1 << 10;
    /// The event alone cannot be counted; it needs a mask.
    pub const NEEDS_MASK: u32 = 1 << 11;
    /// The value of the extra register may be given.
    pub const REGISTER_VALUE: u32 = 1 << 12;
    /// The entry has a unit or errata.
    pub const HAS_WORDS: u32 = 1 << 13;

    /// No general counter counts it, only its fixed one.
    pub const FIXED_ONLY: u32 = 1 << 16;
    /// No mask of a later group goes with it, and no default of one is added.
    pub const CLOSES: u32 = 1 << 17;

    /// The event number has more than 16 bits: the value is the whole of it, and the code its low 16.
    pub const WIDE: u32 = 1 << 18;

    /// The group of a mask among those of its event, from 1; 0 for none.
    pub const GROUP: u32 = 3 << GROUP_SHIFT;
    const GROUP_SHIFT: u32 = 14;

    /// Returns the flags that put a mask into a group.
    pub const fn of_group(group: u8) -> u32 {
        (group as u32) << GROUP_SHIFT & GROUP
    }

    /// Returns the group of a mask that has these flags.
    pub const fn group(flags: u32) -> u8 {
        ((flags & GROUP) >> GROUP_SHIFT) as u8
    }

    /// The flags that a file may set, with their keys.
    pub const KEYS: [(&str, u32); 7] = [
        ("edge", EDGE),
        ("invert", INVERT),
        ("any-thread", ANY_THREAD),
        ("in-tx", IN_TX),
        ("in-tx-cp", IN_TX_CP),
        ("equal", EQUAL),
        ("clocks", CLOCKS),
    ];
}

/// The schemes by their names in files.
pub const SCHEMES: [(&str, Scheme); 7] = [
    ("p5", Scheme::P5),
    ("p6", Scheme::P6),
    ("intel-core", Scheme::IntelArchitectural),
    ("amd-k7", Scheme::AmdK7),
    ("amd-10h", Scheme::Amd10h),
    ("armv8", Scheme::Armv8),
    ("perf", Scheme::Perf),
];

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

/// Returns true if a name is that of an event that the operating system counts, on every CPU.
pub fn is_software(name: &str) -> bool {
    Software::ALL.iter().any(|event| event.name() == name)
}
