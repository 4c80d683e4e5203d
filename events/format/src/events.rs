//! Reads events and their unit masks.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::de::{DeTable, DeValue};

use crate::bits::flag;
use crate::fields::{Checked, Node, Number, Reading};
use crate::model::EventEntry;
use crate::printable::shortened;
use crate::strings::Text;

/// The keys of an event and of a mask.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table or a number")]
struct EntryKeys {
    code: Checked<Number<0, { u64::MAX }>>,
    bits: Checked<Number<0, 0xff>>,
    unit_mask: Checked<Number<0, 0xff>>,
    second_mask: Checked<Number<0, 0xff>>,
    counter_mask: Checked<Number<0, 0xff>>,
    edge: Checked<bool>,
    invert: Checked<bool>,
    any_thread: Checked<bool>,
    in_tx: Checked<bool>,
    in_tx_cp: Checked<bool>,
    equal: Checked<bool>,
    clocks: Checked<bool>,
    counters: Checked<Vec<Checked<Number<0, 31>>>>,
    fixed: Checked<Number<0, 15>>,
    fixed_only: Checked<bool>,
    register: Checked<Number<1, 0xffff_ffff>>,
    value: Checked<Number<0, { u64::MAX }>>,
    register_value: Checked<bool>,
    modifiers: Checked<Vec<Checked<String>>>,
    same_as: Checked<String>,
    description: Checked<String>,
    unit: Checked<String>,
    errata: Checked<Vec<Checked<String>>>,
    deprecated: Checked<bool>,
    instead: Checked<String>,
    masks: Checked<IgnoredAny>,
    combine: Checked<bool>,
    default: Checked<bool>,
    alone: Checked<bool>,
    closes: Checked<bool>,
    group: Checked<Number<1, 3>>,
    max_increment: Checked<Number<1, 0xff>>,
}

/// The keys that only a mask has.
const OF_MASKS: &[&str] = &["bits", "default", "alone", "closes", "group"];
/// The keys that only an event has.
const OF_EVENTS: &[&str] = &["unit-mask", "modifiers", "masks", "combine"];

const MODIFIERS: [(&str, u32); 7] = [
    ("edge", flag::EDGE),
    ("invert", flag::INVERT),
    ("counter-mask", flag::COUNTER_MASK),
    ("any-thread", flag::ANY_THREAD),
    ("in-tx", flag::IN_TX),
    ("in-tx-cp", flag::IN_TX_CP),
    ("clocks", flag::CLOCKS),
];

/// Modifiers that a file does not restrict; the check narrows them to what the scheme has.
pub(crate) const ALL_MODIFIERS: u32 = flag::ENCODED | flag::COUNTER_MASK;

pub(crate) fn read_events(reading: &Reading<'_>, table: &DeTable<'_>) -> Vec<EventEntry> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let name: &str = key.get_ref();
        check_name(reading, &key.span(), name);
        let mut entry = EventEntry::new(
            name,
            &mut reading.strings.borrow_mut(),
            reading.location(&key.span()),
        );
        entry.bits.modifiers = ALL_MODIFIERS;
        if let DeValue::Integer(_) = value.get_ref() {
            // The short form: a name and its number.
            if let Some(Number(code)) = reading.read::<Number<0, { u64::MAX }>>((name, value)) {
                entry.bits = entry.bits.with_config(code);
                entries.push(entry);
            }
        } else if let Some(keys) = reading.read_except(OF_MASKS, (name, value)) {
            read_event(reading, (name, value), keys, entry, &mut entries);
        }
    }
    entries
}

/// Reads a list of modifiers, if there is one.
pub(crate) fn read_modifiers(
    reading: &Reading<'_>,
    given: Checked<Vec<Checked<String>>>,
) -> Option<u32> {
    if given.is_absent() {
        return None;
    }
    let known = given.items();
    let known = known.filter_map(|name| reading.one_of("modifier", &name, &MODIFIERS));
    Some(known.fold(0, |allowed, flag| allowed | flag))
}

/// Notes a name that could not be resolved when written: one with a colon, comma, slash, quote or space.
fn check_name(reading: &Reading<'_>, at: &Range<usize>, name: &str) {
    let legal = !name.is_empty()
        && name.len() <= 128
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if !legal {
        reading.note(
            at,
            format!(
                "`{}` is no name: letters, digits, `_`, `-` and `.` only, 128 at most",
                shortened(name)
            ),
        );
    }
}

fn read_event(
    reading: &Reading<'_>,
    (name, value): Node<'_, '_>,
    mut keys: EntryKeys,
    mut event: EventEntry,
    entries: &mut Vec<EventEntry>,
) {
    let at = value.span();
    let shown = shortened(name);
    if name.contains('.') && !keys.masks.is_absent() {
        let message = format!("`{shown}` has a point in its name and cannot have masks");
        reading.note(&at, message);
    }
    let code = keys.code.number();
    event.bits = event.bits.with_config(code.unwrap_or(0));
    if let Some(modifiers) = read_modifiers(reading, std::mem::take(&mut keys.modifiers)) {
        event.bits.modifiers = modifiers;
    }
    let unit_mask = keys.unit_mask.number();
    event.bits.unit_mask = unit_mask.unwrap_or(0) as u8;
    let masks = value.get_ref().get("masks").map(|masks| ("masks", masks));
    let masks = masks.and_then(|masks| Some((reading.table(masks)?, masks.1.span())));
    let without_code = keys.code.is_absent();
    let combine = std::mem::take(&mut keys.combine);
    read_common(reading, &at, keys, &mut event);

    let Some((masks, masks_at)) = masks else {
        if without_code {
            reading.note(&at, format!("`{shown}` has no `code`"));
        }
        if !combine.is_absent() {
            reading.note(&at, "`combine` is about masks, and there are none");
        }
        entries.push(event);
        return;
    };
    if masks.is_empty() {
        reading.note(&masks_at, "`masks` is empty");
    }
    let combine = combine.value() == Some(true);
    let mut bare = event;
    let wants_value = bare.bits.flags & flag::REGISTER_VALUE != 0 && bare.bits.value == 0;
    if unit_mask.is_none() || wants_value {
        bare.bits.flags |= flag::NEEDS_MASK;
    }
    entries.push(bare);
    event.same_as = Text::default();
    event.bits.unit_mask = 0;
    for (key, value) in masks {
        check_name(reading, &key.span(), key.get_ref());
        let at = reading.location(&key.span());
        let mut mask = event.with_mask(key.get_ref(), &mut reading.strings.borrow_mut(), at);
        if combine {
            mask.bits.flags |= flag::COMBINES;
        }
        read_mask(reading, (key.get_ref(), value), code.is_some(), &mut mask);
        entries.push(mask);
    }
}

/// Reads one mask over what its event says.
fn read_mask(
    reading: &Reading<'_>,
    node: Node<'_, '_>,
    event_has_code: bool,
    mask: &mut EventEntry,
) {
    const NO_CODE: &str = "neither the mask nor its event has a `code`";
    let at = node.1.span();
    if let DeValue::Integer(_) = node.1.get_ref() {
        if let Some(Number(bits)) = reading.read::<Number<0, 0xff>>(node) {
            mask.bits.unit_mask = bits as u8;
        }
        if !event_has_code {
            reading.note(&at, NO_CODE);
        }
        return;
    }
    let Some(keys) = reading.read_except::<EntryKeys>(OF_EVENTS, node) else {
        return;
    };
    if let Some(bits) = keys.bits.number() {
        mask.bits.unit_mask = bits as u8;
    } else if keys.bits.is_absent() {
        reading.note(&at, "a mask needs its `bits`");
    }
    if let Some(code) = keys.code.number() {
        mask.bits = mask.bits.with_config(code);
    } else if !event_has_code && keys.code.is_absent() {
        reading.note(&at, NO_CODE);
    }
    if let Some(group) = keys.group.number() {
        mask.bits.flags |= flag::of_group(group as u8);
    }
    read_common(reading, &at, keys, mask);
}

/// Reads the numbers, flags and words that events and masks have in common.
fn read_common(reading: &Reading<'_>, at: &Range<usize>, keys: EntryKeys, entry: &mut EventEntry) {
    let bits = &mut entry.bits;
    if let Some(mask) = keys.second_mask.number() {
        bits.second_mask = mask as u8;
    }
    if let Some(mask) = keys.counter_mask.number() {
        bits.counter_mask = mask as u8;
    }
    for (key, flag) in [
        (keys.edge, flag::EDGE),
        (keys.invert, flag::INVERT),
        (keys.any_thread, flag::ANY_THREAD),
        (keys.in_tx, flag::IN_TX),
        (keys.in_tx_cp, flag::IN_TX_CP),
        (keys.equal, flag::EQUAL),
        (keys.clocks, flag::CLOCKS),
        (keys.deprecated, flag::DEPRECATED),
    ] {
        match key.value() {
            Some(true) => bits.flags |= flag,
            Some(false) => bits.flags &= !flag,
            None => {}
        }
    }
    for (key, flag) in [
        (keys.register_value, flag::REGISTER_VALUE),
        (keys.fixed_only, flag::FIXED_ONLY),
        (keys.default, flag::DEFAULT),
        (keys.closes, flag::CLOSES),
    ] {
        if key.value() == Some(true) {
            bits.flags |= flag;
        }
    }
    if keys.alone.value() == Some(true) {
        bits.flags &= !flag::COMBINES;
    }
    if !keys.counters.is_absent() {
        if let Checked::Given(counters, at) = &keys.counters
            && counters.is_empty()
        {
            reading.note(at, "`counters` lists no counter; leave it out to allow all");
        }
        let counters = keys.counters.items();
        bits.counters = counters.fold(0, |mask, (Number(counter), _)| mask | 1 << counter);
    }
    if let Some(index) = keys.fixed.number() {
        bits.fixed = index as u8 + 1;
    }
    if bits.flags & flag::FIXED_ONLY != 0 && bits.fixed == 0 {
        reading.note(at, "`fixed-only` needs the `fixed` counter");
    }
    if let Some(address) = keys.register.number() {
        bits.register = address as u32;
    }
    if let Some(value) = keys.value.number() {
        bits.value = value;
    }
    if let Some(increment) = keys.max_increment.number() {
        bits.max_increment = increment as u8;
        if increment > 1 && (bits.counter_mask > 0 || bits.flags & flag::EDGE != 0) {
            reading.note(
                at,
                "with a `counter-mask` or an `edge` the counter grows by 1 in a cycle: leave `max-increment` out",
            );
        }
    }
    let has_value = bits.value != 0 && bits.flags & flag::WIDE == 0;
    if (has_value || bits.flags & flag::REGISTER_VALUE != 0) && bits.register == 0 {
        reading.note(at, "`value` needs the `register` it is for");
    }
    let errata = (!keys.errata.is_absent()).then(|| {
        let errata: Vec<String> = keys.errata.items().map(|(erratum, _)| erratum).collect();
        Checked::Given(errata.join("; "), at.clone())
    });
    for (key, words, into) in [
        ("same-as", keys.same_as, &mut entry.same_as),
        ("description", keys.description, &mut entry.description),
        ("unit", keys.unit, &mut entry.unit),
        ("errata", errata.unwrap_or_default(), &mut entry.errata),
        ("instead", keys.instead, &mut entry.instead),
    ] {
        match words.spanned() {
            Some((words, at)) if words.len() > 500 => {
                reading.note(&at, format!("`{key}` is longer than 500 bytes"));
            }
            Some((words, _)) => *into = reading.text(&words),
            None => {}
        }
    }
    if !entry.errata.is_empty() || !entry.unit.is_empty() {
        entry.bits.flags |= flag::HAS_WORDS;
    }
    if !entry.instead.is_empty() && entry.bits.flags & flag::DEPRECATED == 0 {
        reading.note(at, "`instead` is for what is `deprecated = true`");
    }
}
