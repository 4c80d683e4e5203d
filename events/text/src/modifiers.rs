//! The letters after an event or a group that say where and how it is counted.

use std::ops::Range;

use quipu_hal::words::is_word;
use quipu_hal::{EventSpec, Filter, Precision};

use crate::cursor::{Cursor, Fault};
use crate::settings::Settings;

const EXPECTED: &str = "expected u, k, h (levels), I (not idle), G, H (guest, host), \
    p, P (precision), D (pinned), e (exclusive), W (weak), S (sampled by the leader) or b";

/// Modifiers as they were written, not yet applied to an event, and what else is written beside it.
#[derive(Debug)]
pub(crate) struct Modifiers {
    /// Their position in the text; `None` when there are none.
    pub(crate) at: Option<usize>,
    /// The place of the letters; `None` when there are none.
    pub(crate) letters: Option<Range<usize>>,
    /// The levels and worlds that are named.
    counted: Filter,
    /// The levels and worlds that are named after `-`.
    left_out: Filter,
    not_idle: bool,
    precise: u8,
    best: bool,
    pub(crate) pinned: bool,
    pub(crate) exclusive: bool,
    pub(crate) weak: bool,
    pub(crate) sampled_by_leader: bool,
    /// `b`, by which perf shares counters with other users: nothing else is counted for it.
    shared: bool,
    /// The condition on a tracepoint, which stands before the letters.
    pub(crate) condition: Option<String>,
    /// The settings between the slashes.
    pub(crate) settings: Settings,
}

impl Modifiers {
    /// No modifiers.
    pub(crate) const NONE: Self = Self {
        at: None,
        letters: None,
        counted: Filter::empty(),
        left_out: Filter::empty(),
        not_idle: false,
        precise: 0,
        best: false,
        pinned: false,
        exclusive: false,
        weak: false,
        sampled_by_leader: false,
        shared: false,
        condition: None,
        settings: Settings::NONE,
    };

    /// Reads `:` and letters, or nothing.
    pub(crate) fn after_colon(cursor: &mut Cursor<'_, '_>) -> Result<Self, Fault> {
        if cursor.eat(':') {
            let at = cursor.at();
            Self::read(cursor.take_word(), at)
        } else {
            Ok(Self::NONE)
        }
    }

    /// Reads letters with or without `:` before them, or nothing.
    pub(crate) fn after_slash(cursor: &mut Cursor<'_, '_>) -> Result<Self, Fault> {
        match cursor.peek() {
            Some(c) if is_word(c) && c != ':' => {
                let at = cursor.at();
                Self::read(cursor.take_word(), at)
            }
            _ => Self::after_colon(cursor),
        }
    }

    /// Reads letters that stand `at` this place.
    pub(crate) fn read(letters: &str, at: usize) -> Result<Self, Fault> {
        let mut all = Self {
            at: Some(at),
            letters: Some(at..at + letters.len()),
            ..Self::NONE
        };
        let mut minus = false;
        for (offset, letter) in letters.char_indices() {
            let at = at + offset;
            if minus {
                all.leave_out(letter, at)?;
            } else if letter == '-' {
                minus = true;
            } else {
                all.add(letter, at)?;
            }
        }
        if letters.is_empty() {
            return Err(Fault::new(at, format!("no modifier: {EXPECTED}")));
        }
        if letters.ends_with('-') {
            let end = at + letters.len();
            return Err(Fault::new(end, "expected u, k, h, G or H after '-'"));
        }
        Ok(all)
    }

    /// Takes one of libpfm4's modifiers, `key=value`, that stands at this place.
    pub(crate) fn assign(&mut self, key: &str, value: &str, at: usize) -> Result<(), Fault> {
        let key = key.to_ascii_lowercase();
        let number = || {
            let number = value.parse::<u64>().ok();
            number.ok_or_else(|| Fault::new(at, format!("{key} takes a number")))
        };
        let flag = || match value {
            "1" | "y" => Ok(true),
            "0" | "n" => Ok(false),
            _ => Err(Fault::new(at, format!("{key} takes 0 or 1"))),
        };
        self.at = self.at.or(Some(at));
        let axis = match key.as_str() {
            "u" | "k" | "h" => Filter::LEVELS,
            "mg" | "mh" => Filter::WORLDS,
            "pinned" => {
                self.pinned = flag()?;
                return Ok(());
            }
            "excl" => {
                self.exclusive = flag()?;
                return Ok(());
            }
            "precise" => {
                let precise = u8::try_from(number()?).ok().filter(|precise| *precise <= 3);
                self.precise =
                    precise.ok_or_else(|| Fault::new(at, "precise takes a number up to 3"))?;
                return Ok(());
            }
            "period" => {
                self.settings.period = Some(number()?);
                return Ok(());
            }
            _ => {
                self.settings.frequency = Some(number()?);
                return Ok(());
            }
        };
        let place = match key.as_str() {
            "u" => Filter::USER,
            "k" => Filter::KERNEL,
            "h" => Filter::HYPERVISOR,
            "mg" => Filter::GUEST,
            _ => Filter::HOST,
        };
        // Where all that are named are 0, nothing is left.
        match flag()? {
            true => {
                self.counted |= place;
                self.left_out -= axis;
            }
            false => {
                self.counted -= place;
                if !self.counted.intersects(axis) {
                    self.left_out |= axis;
                }
            }
        }
        Ok(())
    }

    /// Returns these with the letters that stand behind the same name.
    pub(crate) fn with_letters(mut self, letters: Self) -> Self {
        if letters.counted.intersects(Filter::LEVELS) {
            self.left_out -= Filter::LEVELS;
        }
        if letters.counted.intersects(Filter::WORLDS) {
            self.left_out -= Filter::WORLDS;
        }
        Self {
            at: letters.at.or(self.at),
            counted: self.counted | letters.counted,
            left_out: self.left_out | letters.left_out,
            precise: self.precise.max(letters.precise),
            pinned: self.pinned || letters.pinned,
            exclusive: self.exclusive || letters.exclusive,
            settings: self.settings,
            ..letters
        }
    }

    /// Returns true if privilege levels are named.
    pub(crate) fn name_levels(&self) -> bool {
        (self.counted | self.left_out).intersects(Filter::LEVELS)
    }

    fn add(&mut self, letter: char, at: usize) -> Result<(), Fault> {
        let flag = match letter {
            'I' => &mut self.not_idle,
            'P' => &mut self.best,
            'D' => &mut self.pinned,
            'e' => &mut self.exclusive,
            'W' => &mut self.weak,
            'S' => &mut self.sampled_by_leader,
            'b' => &mut self.shared,
            'p' => {
                self.precise += 1;
                if self.precise > 3 {
                    return Err(Fault::new(at, "at most three p"));
                }
                return Ok(());
            }
            ':' => return Err(Fault::new(at, "modifiers stand together, as in \":uk\"")),
            letter => {
                let Some(filter) = named(letter) else {
                    return Err(Fault::new(
                        at,
                        format!("{letter:?} is no modifier: {EXPECTED}"),
                    ));
                };
                return name_once(&mut self.counted, letter, filter, at);
            }
        };
        if std::mem::replace(flag, true) {
            return Err(twice(letter, at));
        }
        Ok(())
    }

    fn leave_out(&mut self, letter: char, at: usize) -> Result<(), Fault> {
        let Some(filter) = named(letter) else {
            let reason = format!("{letter:?} after '-': expected u, k, h, G or H");
            return Err(Fault::new(at, reason));
        };
        if self.counted.contains(filter) {
            return Err(twice(letter, at));
        }
        name_once(&mut self.left_out, letter, filter, at)
    }

    /// Returns true if some of them belong to a whole group.
    pub(crate) fn are_of_group(&self) -> bool {
        self.pinned || self.exclusive || self.weak || self.sampled_by_leader
    }

    /// Applies them to an event, which may have been given some already: a group's modifiers add
    /// to those of its members, as they do for `perf`.
    pub(crate) fn apply(&self, spec: &mut EventSpec) -> Result<(), Fault> {
        if self.at.is_none() {
            return Ok(());
        }
        for axis in [Filter::LEVELS, Filter::WORLDS] {
            let (before, named) = (spec.filter & axis, self.counted & axis);
            let counted = match named {
                named if named.is_empty() => before,
                named if before == axis => named,
                named => before | named,
            };
            spec.filter = (spec.filter - axis) | (counted - self.left_out);
        }
        if self.condition.is_some() {
            spec.condition.clone_from(&self.condition);
        }
        if self.not_idle {
            spec.filter.remove(Filter::IDLE);
        }
        spec.precision = match letters_p(spec.precision) + self.precise {
            _ if self.best || spec.precision == Precision::Best => Precision::Best,
            0 => Precision::Any,
            1 => Precision::Constant,
            2 => Precision::RequestedZero,
            3 => Precision::RequiredZero,
            _ => {
                let at = self.at.unwrap_or_default();
                return Err(Fault::new(at, "more than three p with the member's own"));
            }
        };
        Ok(())
    }
}

fn name_once(set: &mut Filter, letter: char, filter: Filter, at: usize) -> Result<(), Fault> {
    if set.contains(filter) {
        return Err(twice(letter, at));
    }
    *set |= filter;
    Ok(())
}

fn named(letter: char) -> Option<Filter> {
    Some(match letter {
        'u' => Filter::USER,
        'k' => Filter::KERNEL,
        'h' => Filter::HYPERVISOR,
        'G' => Filter::GUEST,
        'H' => Filter::HOST,
        _ => return None,
    })
}

fn twice(letter: char, at: usize) -> Fault {
    Fault::new(at, format!("modifier {letter:?} for the second time"))
}

fn letters_p(precision: Precision) -> u8 {
    match precision {
        Precision::Any | Precision::Best => 0,
        Precision::Constant => 1,
        Precision::RequestedZero => 2,
        Precision::RequiredZero => 3,
    }
}
