//! The letters after an event or a group that say where and how it is counted.

use crate::{Attributes, EventSpec, Filter, Precision};

use super::cursor::{Cursor, Fault};
use super::quoted::{consists_of, is_one_of, is_word};

const LETTERS: &str = "ukhIGHpPDe-";

const EXPECTED: &str = "expected u, k, h (levels), I (not idle), G, H (guest, host), \
    p, P (precision), D (pinned), e (exclusive), W (weak), S (sampled by the leader) or b";

/// The filters that letters name, in the order they are written.
const FILTERS: [(char, Filter); 5] = [
    ('u', Filter::USER),
    ('k', Filter::KERNEL),
    ('h', Filter::HYPERVISOR),
    ('G', Filter::GUEST),
    ('H', Filter::HOST),
];

/// Modifiers as they were written, not yet applied to an event.
#[derive(Debug)]
pub(super) struct Modifiers {
    /// Their position in the text; `None` when there are none.
    pub(super) at: Option<usize>,
    /// The levels and worlds that are named.
    counted: Filter,
    /// The levels and worlds that are named after `-`.
    left_out: Filter,
    not_idle: bool,
    precise: u8,
    best: bool,
    pub(super) pinned: bool,
    pub(super) exclusive: bool,
    pub(super) weak: bool,
    pub(super) sampled_by_leader: bool,
    /// `b`, by which perf shares counters with other users: nothing else is counted for it.
    shared: bool,
    /// The condition on a tracepoint, which stands before the letters.
    pub(super) condition: Option<String>,
}

/// Returns true if a last segment of a name is read as modifiers.
pub(super) fn looks_like_modifiers(segment: &str) -> bool {
    consists_of(segment, |c| is_one_of(LETTERS, c))
}

impl Modifiers {
    /// No modifiers.
    pub(super) const NONE: Self = Self {
        at: None,
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
    };

    /// Reads `:` and letters, or nothing.
    pub(super) fn after_colon(cursor: &mut Cursor<'_>) -> Result<Self, Fault> {
        if cursor.eat(':') {
            let at = cursor.at();
            Self::read(cursor.take_word(), at)
        } else {
            Ok(Self::NONE)
        }
    }

    /// Reads letters with or without `:` before them, or nothing.
    pub(super) fn after_slash(cursor: &mut Cursor<'_>) -> Result<Self, Fault> {
        match cursor.peek() {
            Some(c) if is_word(c) && c != ':' => {
                let at = cursor.at();
                Self::read(cursor.take_word(), at)
            }
            _ => Self::after_colon(cursor),
        }
    }

    /// Reads letters that stand `at` this place.
    pub(super) fn read(letters: &str, at: usize) -> Result<Self, Fault> {
        let mut all = Self {
            at: Some(at),
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

    /// Applies them to an event, which may have been given some already: a group's modifiers add
    /// to those of its members, as they do for `perf`.
    pub(super) fn apply(&self, spec: &mut EventSpec) -> Result<(), Fault> {
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
    FILTERS
        .into_iter()
        .find_map(|(l, filter)| (l == letter).then_some(filter))
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

/// The letters of an event, and of its group where it stands for one. Empty when all is default.
pub(super) fn letters(spec: &EventSpec, group: Option<&Attributes>) -> String {
    let mut letters = String::new();
    let mut left_out = String::new();
    name_on(Filter::LEVELS, spec.filter, &mut letters, &mut left_out);
    if !spec.filter.contains(Filter::IDLE) {
        letters.push('I');
    }
    name_on(Filter::WORLDS, spec.filter, &mut letters, &mut left_out);
    if spec.precision == Precision::Best {
        letters.push('P');
    }
    letters += &"ppp"[..usize::from(letters_p(spec.precision))];
    if let Some(group) = group {
        letters += &group_letters(group);
    }
    if !left_out.is_empty() {
        letters.push('-');
        letters += &left_out;
    }
    letters
}

/// The letters of a group.
pub(super) fn group_letters(attributes: &Attributes) -> String {
    let letters = [
        (attributes.pinned, 'D'),
        (attributes.exclusive, 'e'),
        (attributes.weak, 'W'),
        (attributes.sampled_by_leader, 'S'),
    ];
    let mut set = String::new();
    for (is_set, letter) in letters {
        if is_set {
            set.push(letter);
        }
    }
    set
}

/// Adds the letters for what `filter` counts of an axis to `letters`, or all of the axis to `left_out` if it counts nothing
/// of it. Adds nothing when it counts all of it.
fn name_on(axis: Filter, filter: Filter, letters: &mut String, left_out: &mut String) {
    let counted = filter & axis;
    if counted == axis {
        return;
    }
    let (named, to) = match counted.is_empty() {
        true => (axis, left_out),
        false => (counted, letters),
    };
    for (letter, filter) in FILTERS {
        if named.contains(filter) {
            to.push(letter);
        }
    }
}
