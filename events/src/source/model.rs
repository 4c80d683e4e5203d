//! What an event file says, once it is read: CPUs and what can be counted on them.

use std::ops::RangeInclusive;

pub(crate) use quipu_hal::Scheme;

/// One CPU entry, or what a file adds to one.
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
    /// Backends in order of preference, per operating system.
    pub(crate) backends: Vec<(String, Vec<String>)>,
    pub(crate) source: Option<String>,
    pub(crate) entries: Vec<Entry>,
    /// Generalized event or cache event, and the native event it stands for.
    pub(crate) generalized: Vec<Mapping>,
    pub(crate) presets: Vec<Mapping>,
    pub(crate) place: Place,
}

/// A number of counters of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) number: u8,
    pub(crate) width: u8,
}

/// Where in the set of files something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// Which file, by position.
    pub(crate) file: u32,
    pub(crate) start: usize,
    pub(crate) line: u32,
}

/// How a CPU is recognised.
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
}

/// Names one thing with another: a generalized event with its native one, a preset with its formula.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mapping {
    pub(crate) name: String,
    /// The event or formula, or why there is none.
    pub(crate) text: Result<String, String>,
    pub(crate) place: Place,
}

/// One thing that can be counted: an event, or an event with one of its unit masks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) event: String,
    /// Empty for the event alone.
    pub(crate) mask: String,
    pub(crate) bits: Bits,
    /// The entry that has the same bits on purpose.
    pub(crate) same_as: String,
    pub(crate) description: String,
    pub(crate) unit: String,
    pub(crate) errata: Vec<String>,
    /// What to use instead, where the entry is deprecated.
    pub(crate) instead: String,
    pub(crate) place: Place,
}

impl Entry {
    /// The name as it is written: `EVENT` or `EVENT.MASK`.
    pub(crate) fn full_name(&self) -> String {
        join(&self.event, &self.mask)
    }
}

/// `EVENT` or `EVENT.MASK`.
pub(crate) fn join(event: &str, mask: &str) -> String {
    if mask.is_empty() {
        event.to_owned()
    } else {
        format!("{event}.{mask}")
    }
}

/// Everything about an entry that is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bits {
    pub(crate) code: u16,
    pub(crate) unit_mask: u8,
    pub(crate) second_mask: u8,
    pub(crate) counter_mask: u8,
    /// The fixed counter that counts it, plus one; 0 for none.
    pub(crate) fixed: u8,
    /// What is set in the select word besides; constants of [`flag`].
    pub(crate) flags: u16,
    /// What a name may change; constants of [`flag`].
    pub(crate) modifiers: u16,
    /// The general counters that can count it; 0 for all.
    pub(crate) counters: u32,
    /// An extra register to write, or 0.
    pub(crate) register: u32,
    pub(crate) value: u64,
}

/// The flags of [`Bits`].
pub(crate) mod flag {
    /// Count rising edges.
    pub(crate) const EDGE: u16 = 1;
    /// Invert the comparison with the counter mask.
    pub(crate) const INVERT: u16 = 1 << 1;
    /// Count all threads of the core.
    pub(crate) const ANY_THREAD: u16 = 1 << 2;
    /// In transactional regions.
    pub(crate) const IN_TX: u16 = 1 << 3;
    /// Without what aborted transactions counted.
    pub(crate) const IN_TX_CP: u16 = 1 << 4;
    /// Compare with the counter mask for equality.
    pub(crate) const EQUAL: u16 = 1 << 5;
    /// P5: count clocks, not events.
    pub(crate) const CLOCKS: u16 = 1 << 6;
    /// As a modifier: the counter mask may be given.
    pub(crate) const COUNTER_MASK: u16 = 1 << 7;
    /// The flags that are part of the encoding.
    pub(crate) const ENCODED: u16 = (1 << 7) - 1;
    /// The mask may be combined with others of its event.
    pub(crate) const COMBINES: u16 = 1 << 8;
    /// The mask is taken when none is named.
    pub(crate) const DEFAULT: u16 = 1 << 9;
    /// The vendor advises against it.
    pub(crate) const DEPRECATED: u16 = 1 << 10;
    /// The event alone cannot be counted; it needs a mask.
    pub(crate) const NEEDS_MASK: u16 = 1 << 11;
    /// The value of the extra register may be given.
    pub(crate) const REGISTER_VALUE: u16 = 1 << 12;

    /// The entry has a unit or errata.
    pub(crate) const HAS_WORDS: u16 = 1 << 13;

    /// The group of a mask among those of its event, from 1; 0 for none.
    pub(crate) const GROUP: u16 = 3 << GROUP_SHIFT;
    const GROUP_SHIFT: u32 = 14;

    /// The flags that say which group a mask is in.
    pub(crate) const fn of_group(group: u8) -> u16 {
        (group as u16) << GROUP_SHIFT & GROUP
    }

    /// The group of a mask that has these flags.
    pub(crate) const fn group(flags: u16) -> u8 {
        (flags >> GROUP_SHIFT) as u8
    }

    /// The flags that a file may set, with their keys.
    pub(crate) const KEYS: [(&str, u16); 7] = [
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
pub(crate) const SCHEMES: [(&str, Scheme); 6] = [
    ("p5", Scheme::P5),
    ("p6", Scheme::P6),
    ("intel-core", Scheme::IntelArchitectural),
    ("amd-k7", Scheme::AmdK7),
    ("amd-10h", Scheme::Amd10h),
    ("armv8", Scheme::Armv8),
];

/// The largest event number a scheme has room for.
pub(crate) fn largest_code(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::P5 => 0x3f,
        Scheme::Amd10h => 0xfff,
        Scheme::Armv8 => 0xffff,
        _ => 0xff,
    }
}

/// Whether a scheme's events have unit masks, counter masks and the flags that go with them.
pub(crate) fn has_unit_masks(scheme: Scheme) -> bool {
    !matches!(scheme, Scheme::P5 | Scheme::Armv8)
}

/// The flags a scheme has bits for.
pub(crate) fn scheme_flags(scheme: Scheme) -> u16 {
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
