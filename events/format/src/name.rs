//! Resolves a written event name: event, unit masks, modifiers.
//!
//! Both usual spellings are read: Intel's `EVENT.MASK` and libpfm4's `EVENT:MASK:MASK:modifier=value`.
//! Letter case does not matter. A part that is both a unit mask of the event and a modifier is the mask.

use quipu_hal::Filter;

use crate::bits::{Bits, flag};
use crate::printable::shortened;

/// A table in which names are looked up.
pub trait Names {
    /// Returns the entry `event` (with an empty `mask`) or `event.mask`.
    fn find(&self, event: &str, mask: &str) -> Option<Bits>;

    /// Returns the masks of an event that are taken when none is named.
    fn default_masks(&self, event: &str) -> Vec<Bits>;
}

/// A name that has been looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedEvent {
    /// Event, masks and modifiers put together.
    pub bits: Bits,
    /// The privilege levels named as modifiers, if any were.
    pub levels: Option<Filter>,
}

/// The reason why a name cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// There is no such event.
    UnknownEvent,
    /// A part is neither a mask of the event nor a modifier.
    UnknownMask {
        /// The event.
        event: String,
        /// The part of the name.
        part: String,
    },
    /// The event alone cannot be counted.
    NeedsMask {
        /// The event.
        event: String,
    },
    /// Two masks do not go together.
    DoNotCombine {
        /// The event.
        event: String,
        /// The second mask.
        part: String,
    },
    /// The value of a modifier cannot be used.
    BadModifier {
        /// The part of the name.
        part: String,
        /// The value that the modifier takes.
        wanted: String,
    },
    /// The event does not have the modifier.
    NotAllowed {
        /// The part of the name.
        part: String,
    },
}

impl NameError {
    /// Returns the error as a phrase.
    pub fn reason(&self) -> String {
        match self {
            Self::UnknownEvent => "there is no such event".to_owned(),
            Self::UnknownMask { event, part } => format!(
                "`{}` is neither a unit mask of {} nor a modifier",
                shortened(part),
                shortened(event)
            ),
            Self::NeedsMask { event } => format!("{} needs a unit mask", shortened(event)),
            Self::DoNotCombine { event, part } => format!(
                "unit mask `{}` of {} cannot be combined with another",
                shortened(part),
                shortened(event)
            ),
            Self::BadModifier { part, wanted } => {
                format!("modifier `{}` wants {wanted}", shortened(part))
            }
            Self::NotAllowed { part } => {
                format!("this event has no modifier `{}`", shortened(part))
            }
        }
    }
}

/// Looks up a written name.
///
/// # Errors
/// The first part that cannot be resolved.
pub fn select(names: &impl Names, text: &str) -> Result<SelectedEvent, NameError> {
    let mut parts = text.split(':');
    let head = parts.next().unwrap_or_default();
    let (event, mask) = head.split_once('.').unwrap_or((head, ""));
    let (event, mask) = match names.find(event, "") {
        Some(bits) if mask.is_empty() => {
            (event, (bits.flags & flag::NEEDS_MASK == 0).then_some(bits))
        }
        Some(_) => match names.find(event, mask) {
            Some(bits) => (event, Some(bits)),
            None => {
                return Err(NameError::UnknownMask {
                    event: event.to_owned(),
                    part: mask.to_owned(),
                });
            }
        },
        // An event with a point in its name.
        None => match names.find(head, "") {
            Some(bits) => (head, Some(bits)),
            None => return Err(NameError::UnknownEvent),
        },
    };
    let mut choice = SplitName {
        names,
        event,
        bits: mask,
        masks: usize::from(mask.is_some() && event.len() != head.len()),
        groups: Groups::default(),
        levels: None,
        changes: Changes::default(),
    };
    if let Some(bits) = mask
        && choice.masks > 0
    {
        choice.groups.add(bits);
    }
    let rest: Vec<&str> = parts.collect();
    let mut at = 0;
    while at < rest.len() {
        at += choice.take(&rest[at..])?;
    }
    choice.finish()
}

/// Returns true if the last part of a name, after its last `:`, is a unit mask of the event that it begins with.
pub fn ends_in_mask(names: &impl Names, text: &str) -> bool {
    let mut parts = text.split(':');
    let head = parts.next().unwrap_or_default();
    let event = head.split('.').next().unwrap_or(head);
    let parts: Vec<&str> = parts.collect();
    // A mask may have points in its name, written with colons.
    let first = parts.len().saturating_sub(LONGEST_MASK);
    (first..parts.len()).any(|at| names.find(event, &parts[at..].join(".")).is_some())
}

/// The most parts of a mask that has points in its name.
const LONGEST_MASK: usize = 8;

/// A name half taken apart.
struct SplitName<'n, N> {
    names: &'n N,
    event: &'n str,
    /// The masks so far, or the event alone.
    bits: Option<Bits>,
    /// The number of masks that were named.
    masks: usize,
    /// The groups that they are in.
    groups: Groups,
    levels: Option<Filter>,
    changes: Changes,
}

/// The changes that modifiers ask for; applied once the masks are known.
#[derive(Default)]
struct Changes {
    set: u32,
    clear: u32,
    counter_mask: Option<u8>,
    unit_mask: Option<u8>,
    value: Option<u64>,
    /// The modifier as it was written, for the message when the event does not have it.
    written: Vec<(u32, String)>,
}

impl<N: Names> SplitName<'_, N> {
    /// Takes the next part, or the next few as one mask, and says how many.
    fn take(&mut self, parts: &[&str]) -> Result<usize, NameError> {
        let part = parts[0];
        if let Some(bits) = self.names.find(self.event, part) {
            // A mask called `ANY` leaves its name to the modifier where another mask has been named.
            let added = self.add_mask(bits, part);
            if added.is_ok() || part.len() == 1 || !self.modifier(part)? {
                added?;
            }
            return Ok(1);
        }
        if self.modifier(part)? {
            return Ok(1);
        }
        // A mask with points in its name, written with colons.
        for count in (2..=parts.len().min(LONGEST_MASK)).rev() {
            let joined = parts[..count].join(".");
            if let Some(bits) = self.names.find(self.event, &joined) {
                self.add_mask(bits, &joined)?;
                return Ok(count);
            }
        }
        Err(NameError::UnknownMask {
            event: self.event.to_owned(),
            part: part.to_owned(),
        })
    }

    fn add_mask(&mut self, mask: Bits, part: &str) -> Result<(), NameError> {
        self.bits = match self.bits {
            Some(bits) if self.masks > 0 => {
                let together = self
                    .groups
                    .take(mask)
                    .then(|| combine(bits, mask))
                    .flatten();
                Some(together.ok_or_else(|| NameError::DoNotCombine {
                    event: self.event.to_owned(),
                    part: part.to_owned(),
                })?)
            }
            _ => Some(mask),
        };
        self.masks += 1;
        self.groups.add(mask);
        Ok(())
    }

    /// Takes a modifier; false when the part is none.
    fn modifier(&mut self, part: &str) -> Result<bool, NameError> {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (part, None),
        };
        if value.is_none() && self.levels(key) {
            return Ok(true);
        }
        if value.is_none() && (key.starts_with("0x") || key.starts_with("0X")) {
            self.changes.unit_mask = Some(number(part, key, 0xff)? as u8);
            return Ok(true);
        }
        let flag = match key.to_ascii_lowercase().as_str() {
            "c" if value.is_none() => flag::CLOCKS,
            "clocks" => flag::CLOCKS,
            "e" | "edge" => flag::EDGE,
            "i" | "inv" | "invert" => flag::INVERT,
            "t" | "any" | "any-thread" => flag::ANY_THREAD,
            "intx" | "in-tx" => flag::IN_TX,
            "intxcp" | "in-tx-cp" => flag::IN_TX_CP,
            "c" | "cmask" | "counter-mask" => {
                let mask = number(part, value.unwrap_or_default(), 0xff)?;
                self.changes.counter_mask = Some(mask as u8);
                self.note(flag::COUNTER_MASK, part);
                return Ok(true);
            }
            "umask" | "unit-mask" => {
                let mask = number(part, value.unwrap_or_default(), 0xff)?;
                self.changes.unit_mask = Some(mask as u8);
                return Ok(true);
            }
            "value" | "offcore_rsp" | "ldlat" | "frontend" => {
                self.changes.value = Some(number(part, value.unwrap_or_default(), u64::MAX)?);
                self.note(flag::REGISTER_VALUE, part);
                return Ok(true);
            }
            _ => return Ok(false),
        };
        match value {
            None | Some("1" | "y" | "true") => self.changes.set |= flag,
            Some("0" | "n" | "false") => self.changes.clear |= flag,
            Some(_) => {
                return Err(NameError::BadModifier {
                    part: part.to_owned(),
                    wanted: "0 or 1".to_owned(),
                });
            }
        }
        self.note(flag, part);
        Ok(true)
    }

    fn note(&mut self, flag: u32, part: &str) {
        self.changes.written.push((flag, part.to_owned()));
    }

    /// Takes privilege levels: any of `u`, `k` and `h` together.
    fn levels(&mut self, letters: &str) -> bool {
        let mut levels = Filter::empty();
        for letter in letters.chars() {
            levels |= match letter {
                'u' => Filter::USER,
                'k' => Filter::KERNEL,
                'h' => Filter::HYPERVISOR,
                _ => return false,
            };
        }
        if levels.is_empty() {
            return false;
        }
        self.levels = Some(self.levels.unwrap_or(Filter::empty()) | levels);
        true
    }

    fn finish(self) -> Result<SelectedEvent, NameError> {
        let mut bits = match self.bits {
            Some(bits) if self.groups.are_none() => bits,
            Some(bits) => self.with_defaults(Some(bits))?.unwrap_or(bits),
            None => self.without_mask()?,
        };
        for (flag, part) in &self.changes.written {
            let allowed = match *flag {
                flag::REGISTER_VALUE => bits.flags & flag::REGISTER_VALUE != 0,
                flag => bits.modifiers & flag != 0,
            };
            if !allowed {
                return Err(NameError::NotAllowed { part: part.clone() });
            }
        }
        bits.flags = (bits.flags | self.changes.set) & !self.changes.clear;
        if let Some(mask) = self.changes.counter_mask {
            bits.counter_mask = mask;
        }
        if let Some(mask) = self.changes.unit_mask {
            bits.unit_mask = mask;
        }
        if let Some(value) = self.changes.value {
            bits.value = value;
        }
        Ok(SelectedEvent {
            bits,
            levels: self.levels,
        })
    }

    /// Returns the masks named, and the default masks of the groups that none was named of.
    fn with_defaults(&self, named: Option<Bits>) -> Result<Option<Bits>, NameError> {
        let mut whole = named;
        let mut groups = self.groups;
        let mut defaults = self.names.default_masks(self.event);
        defaults.sort_by_key(|mask| flag::group(mask.flags));
        for of_one in defaults.chunk_by(|a, b| flag::group(a.flags) == flag::group(b.flags)) {
            if of_one.first().is_some_and(|mask| groups.have(*mask)) {
                continue;
            }
            for mask in of_one {
                groups.add(*mask);
                let together = match whole {
                    None => Some(*mask),
                    Some(bits) => combine(bits, *mask),
                };
                whole = Some(together.ok_or_else(|| NameError::NeedsMask {
                    event: self.event.to_owned(),
                })?);
            }
        }
        Ok(whole)
    }

    /// Returns the event alone: with its default masks, or with a unit mask given as a number.
    fn without_mask(&self) -> Result<Bits, NameError> {
        if let Some(bits) = self.with_defaults(None)? {
            return Ok(bits);
        }
        match self.names.find(self.event, "") {
            Some(bits)
                if bits.flags & flag::WIDE == 0
                    && (self.changes.unit_mask.is_some() || self.changes.value.is_some()) =>
            {
                Ok(Bits {
                    flags: bits.flags & !flag::NEEDS_MASK,
                    ..bits
                })
            }
            _ => Err(NameError::NeedsMask {
                event: self.event.to_owned(),
            }),
        }
    }
}

/// The groups of masks that a name has one of: a bit for each, the lowest for masks of none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Groups {
    named: u8,
    /// Those with a mask that takes no other of its group beside it.
    alone: u8,
    /// Those that a mask closes.
    closed: u8,
}

impl Groups {
    const UNGROUPED: u8 = 1;

    fn bit(mask: Bits) -> u8 {
        1 << flag::group(mask.flags)
    }

    fn add(&mut self, mask: Bits) {
        let bit = Self::bit(mask);
        self.named |= bit;
        if mask.flags & flag::COMBINES == 0 {
            self.alone |= bit;
        }
        if mask.flags & flag::CLOSES != 0 {
            self.closed |= !(bit | (bit - 1));
        }
    }

    /// Returns true if a mask goes with those that have been named.
    fn take(self, mask: Bits) -> bool {
        let bit = Self::bit(mask);
        let first = bit != Self::UNGROUPED && self.named & bit == 0;
        let closes = mask.flags & flag::CLOSES != 0 && self.named & !(bit | (bit - 1)) != 0;
        let combines = mask.flags & flag::COMBINES != 0 && self.alone & bit == 0;
        self.closed & bit == 0 && !closes && (first || combines)
    }

    /// Returns true if a default mask's group is named, or closed.
    fn have(self, mask: Bits) -> bool {
        (self.named | self.closed) & Self::bit(mask) != 0
    }

    fn are_none(self) -> bool {
        self.named & !Self::UNGROUPED == 0
    }
}

/// Returns two masks of one event as one: bits of the unit mask that neither has of the other, or the same unit
/// mask and what both say of one register, and the rest alike.
fn combine(a: Bits, b: Bits) -> Option<Bits> {
    let beside = |bits: Bits| {
        (
            (bits.code, bits.counter_mask, bits.flags & flag::ENCODED),
            (bits.second_mask, bits.register),
        )
    };
    // A mask without bits says nothing beside another, except that it is the one of its group.
    let disjoint = a.unit_mask & b.unit_mask == 0
        && (a.unit_mask != 0 && b.unit_mask != 0 || (a.flags | b.flags) & flag::GROUP != 0);
    let of_register = a.register != 0 && a.unit_mask == b.unit_mask;
    let of_config = a.flags & b.flags & flag::WIDE != 0;
    let together =
        beside(a) == beside(b) && (of_register || of_config || disjoint && a.value == b.value);
    let counters = match (a.counters, b.counters) {
        (0, counters) | (counters, 0) => counters,
        (a, b) => a & b,
    };
    (together && (counters != 0 || a.counters | b.counters == 0)).then_some(Bits {
        unit_mask: a.unit_mask | b.unit_mask,
        flags: a.flags | b.flags,
        counters,
        value: a.value | b.value,
        ..a
    })
}

fn number(part: &str, digits: &str, largest: u64) -> Result<u64, NameError> {
    let parsed = match digits.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&digits[2..], 16).ok(),
        _ => digits.parse().ok(),
    };
    parsed
        .filter(|number| *number <= largest)
        .ok_or_else(|| NameError::BadModifier {
            part: part.to_owned(),
            wanted: format!("a number to {largest:#x}"),
        })
}
