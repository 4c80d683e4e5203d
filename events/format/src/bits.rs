//! The bits of an event, and what counts them.

use std::cmp::Ordering;

use quipu_hal::{Scheme, Software};

/// A number of counters of one width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The number of counters.
    pub number: u8,
    /// The width of each, in bits.
    pub width: u8,
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

/// The architectures whose CPUs have an identification of their own, as text.
pub const ISAS: [&str; 4] = ["loongarch", "powerpc", "riscv", "s390"];

/// Returns the name of an architecture as identities have it (`riscv`), if it has one.
pub fn isa_of(name: &str) -> Option<&'static str> {
    ISAS.into_iter().find(|isa| *isa == name)
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

/// Returns true if a name is that of an event that the operating system counts, on every CPU.
pub fn is_software(name: &str) -> bool {
    Software::ALL.iter().any(|event| event.name() == name)
}
