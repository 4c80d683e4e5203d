//! The modifiers of events and groups, as letters.

use crate::{Attributes, EventSpec, Filter, Precision};

/// The filters that letters name, in the order they are written.
const FILTERS: [(char, Filter); 5] = [
    ('u', Filter::USER),
    ('k', Filter::KERNEL),
    ('h', Filter::HYPERVISOR),
    ('G', Filter::GUEST),
    ('H', Filter::HOST),
];

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

fn letters_p(precision: Precision) -> u8 {
    match precision {
        Precision::Any | Precision::Best => 0,
        Precision::Constant => 1,
        Precision::RequestedZero => 2,
        Precision::RequiredZero => 3,
    }
}
