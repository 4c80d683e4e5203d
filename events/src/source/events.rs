//! Reads events and their unit masks.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Reading, shortened};
use super::model::{Bits, Entry, Place, flag};

const EVENT_KEYS: &[&str] = &[
    "code",
    "unit-mask",
    "second-mask",
    "counter-mask",
    "edge",
    "invert",
    "any-thread",
    "in-tx",
    "in-tx-cp",
    "equal",
    "clocks",
    "counters",
    "fixed",
    "register",
    "value",
    "register-value",
    "modifiers",
    "same-as",
    "description",
    "unit",
    "errata",
    "deprecated",
    "instead",
    "masks",
    "combine",
];
const MASK_KEYS: &[&str] = &[
    "bits",
    "code",
    "second-mask",
    "counter-mask",
    "edge",
    "invert",
    "any-thread",
    "in-tx",
    "in-tx-cp",
    "equal",
    "clocks",
    "counters",
    "fixed",
    "register",
    "value",
    "register-value",
    "same-as",
    "description",
    "unit",
    "errata",
    "deprecated",
    "instead",
    "default",
    "alone",
    "group",
];
const MODIFIERS: [(&str, u16); 7] = [
    ("edge", flag::EDGE),
    ("invert", flag::INVERT),
    ("counter-mask", flag::COUNTER_MASK),
    ("any-thread", flag::ANY_THREAD),
    ("in-tx", flag::IN_TX),
    ("in-tx-cp", flag::IN_TX_CP),
    ("clocks", flag::CLOCKS),
];

/// Modifiers that a file does not restrict; the check narrows them to what the scheme has.
pub(crate) const ALL_MODIFIERS: u16 = flag::ENCODED | flag::COUNTER_MASK;

pub(crate) fn read_events(reading: &mut Reading<'_, '_>, table: &DeTable<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (key, value) in table {
        let name: &str = key.get_ref();
        check_name(reading, &key.span(), name);
        let place = reading.place(&key.span());
        match value.get_ref() {
            // The short form: a name and its number.
            DeValue::Integer(_) => {
                if let Some(code) = reading.integer(name, 0..=0xffff, value) {
                    let mut entry = empty_entry(name, place);
                    entry.bits.code = code as u16;
                    entry.bits.modifiers = ALL_MODIFIERS;
                    entries.push(entry);
                }
            }
            DeValue::Table(table) => {
                read_event(reading, name, place, table, value.span(), &mut entries);
            }
            other => reading.wrong_type(&value.span(), name, "a table or an event number", other),
        }
    }
    entries
}

fn empty_entry(event: &str, place: Place) -> Entry {
    Entry {
        event: event.to_owned(),
        mask: String::new(),
        bits: Bits::default(),
        same_as: String::new(),
        description: String::new(),
        unit: String::new(),
        errata: Vec::new(),
        instead: String::new(),
        place,
    }
}

/// Names are what the resolver can take apart again: no colon, comma, slash, quote or space.
fn check_name(reading: &mut Reading<'_, '_>, at: &Range<usize>, name: &str) {
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
    reading: &mut Reading<'_, '_>,
    name: &str,
    place: Place,
    table: &DeTable<'_>,
    at: Range<usize>,
    entries: &mut Vec<Entry>,
) {
    let fields = Fields::new(reading, table, at, EVENT_KEYS);
    if name.contains('.') && fields.get("masks").is_some() {
        reading.note(
            fields.at(),
            format!(
                "`{}` has a point in its name and cannot have masks",
                shortened(name)
            ),
        );
    }
    let mut event = empty_entry(name, place);
    let code = fields.integer(reading, "code", 0..=0xffff);
    event.bits.code = code.unwrap_or(0) as u16;
    event.bits.modifiers = read_modifiers(reading, &fields);
    let unit_mask = fields.integer(reading, "unit-mask", 0..=0xff);
    event.bits.unit_mask = unit_mask.unwrap_or(0) as u8;
    read_bits(reading, &fields, &mut event);
    read_words(reading, &fields, &mut event);

    let masks = fields
        .get("masks")
        .and_then(|value| reading.table("masks", value).map(|table| (table, value)));
    let Some((masks, masks_value)) = masks else {
        if fields.get("code").is_none() {
            reading.note(fields.at(), format!("`{}` has no `code`", shortened(name)));
        }
        if fields.get("combine").is_some() {
            reading.note(fields.at(), "`combine` is about masks, and there are none");
        }
        entries.push(event);
        return;
    };
    if masks.is_empty() {
        reading.note(&masks_value.span(), "`masks` is empty");
    }
    let combine = fields.truth(reading, "combine").unwrap_or(false);
    let mut bare = event.clone();
    let wants_value = bare.bits.flags & flag::REGISTER_VALUE != 0 && bare.bits.value == 0;
    if unit_mask.is_none() || wants_value {
        bare.bits.flags |= flag::NEEDS_MASK;
    }
    entries.push(bare);
    event.same_as.clear();
    event.bits.unit_mask = 0;
    for (key, value) in masks {
        check_name(reading, &key.span(), key.get_ref());
        let mut mask = event.clone();
        mask.mask = key.get_ref().to_string();
        mask.place = reading.place(&key.span());
        if combine {
            mask.bits.flags |= flag::COMBINES;
        }
        read_mask(reading, value, code.is_some(), &mut mask);
        entries.push(mask);
    }
}

/// Reads one mask over what its event says.
fn read_mask(
    reading: &mut Reading<'_, '_>,
    value: &Spanned<DeValue<'_>>,
    event_has_code: bool,
    mask: &mut Entry,
) {
    let DeValue::Table(table) = value.get_ref() else {
        let name = mask.mask.clone();
        if let Some(bits) = reading.integer(&name, 0..=0xff, value) {
            mask.bits.unit_mask = bits as u8;
        }
        if !event_has_code {
            reading.note(&value.span(), "neither the mask nor its event has a `code`");
        }
        return;
    };
    let fields = Fields::new(reading, table, value.span(), MASK_KEYS);
    if let Some(bits) = fields.integer(reading, "bits", 0..=0xff) {
        mask.bits.unit_mask = bits as u8;
    } else if fields.get("bits").is_none() {
        reading.note(fields.at(), "a mask needs its `bits`");
    }
    if let Some(code) = fields.integer(reading, "code", 0..=0xffff) {
        mask.bits.code = code as u16;
    } else if !event_has_code && fields.get("code").is_none() {
        reading.note(fields.at(), "neither the mask nor its event has a `code`");
    }
    read_bits(reading, &fields, mask);
    read_words(reading, &fields, mask);
    if fields.truth(reading, "default") == Some(true) {
        mask.bits.flags |= flag::DEFAULT;
    }
    if fields.truth(reading, "alone") == Some(true) {
        mask.bits.flags &= !flag::COMBINES;
    }
    if let Some(group) = fields.integer(reading, "group", 1..=3) {
        mask.bits.flags |= flag::of_group(group as u8);
    }
}

/// The numbers and flags that events and masks have in common.
fn read_bits(reading: &mut Reading<'_, '_>, fields: &Fields<'_, '_>, entry: &mut Entry) {
    let bits = &mut entry.bits;
    if let Some(mask) = fields.integer(reading, "second-mask", 0..=0xff) {
        bits.second_mask = mask as u8;
    }
    if let Some(mask) = fields.integer(reading, "counter-mask", 0..=0xff) {
        bits.counter_mask = mask as u8;
    }
    for (key, flag) in flag::KEYS {
        match fields.truth(reading, key) {
            Some(true) => bits.flags |= flag,
            Some(false) => bits.flags &= !flag,
            None => {}
        }
    }
    if let Some(value) = fields.get("counters") {
        bits.counters = reading.counters("counters", value);
    }
    if let Some(index) = fields.integer(reading, "fixed", 0..=15) {
        bits.fixed = index as u8 + 1;
    }
    if let Some(address) = fields.integer(reading, "register", 1..=u64::from(u32::MAX)) {
        bits.register = address as u32;
    }
    if let Some(value) = fields.integer(reading, "value", 0..=u64::MAX) {
        bits.value = value;
    }
    if fields.truth(reading, "register-value") == Some(true) {
        bits.flags |= flag::REGISTER_VALUE;
    }
    if (bits.value != 0 || bits.flags & flag::REGISTER_VALUE != 0) && bits.register == 0 {
        reading.note(fields.at(), "`value` needs the `register` it is for");
    }
}

/// The words that events and masks have in common.
fn read_words(reading: &mut Reading<'_, '_>, fields: &Fields<'_, '_>, entry: &mut Entry) {
    let mut word = |key, into: &mut String| {
        if let Some((text, at)) = fields.text(reading, key) {
            if text.len() > 500 {
                reading.note(&at, format!("`{key}` is longer than 500 bytes"));
            } else {
                *into = text;
            }
        }
    };
    word("same-as", &mut entry.same_as);
    word("description", &mut entry.description);
    word("unit", &mut entry.unit);
    word("instead", &mut entry.instead);
    if let Some(value) = fields.get("errata") {
        entry.errata = reading.texts("errata", value);
    }
    if !entry.errata.is_empty() || !entry.unit.is_empty() {
        entry.bits.flags |= flag::HAS_WORDS;
    }
    match fields.truth(reading, "deprecated") {
        Some(true) => entry.bits.flags |= flag::DEPRECATED,
        Some(false) => entry.bits.flags &= !flag::DEPRECATED,
        None => {}
    }
    if !entry.instead.is_empty() && entry.bits.flags & flag::DEPRECATED == 0 {
        reading.note(fields.at(), "`instead` is for what is `deprecated = true`");
    }
}

fn read_modifiers(reading: &mut Reading<'_, '_>, fields: &Fields<'_, '_>) -> u16 {
    let Some(value) = fields.get("modifiers") else {
        return ALL_MODIFIERS;
    };
    let mut allowed = 0;
    if let Some(array) = reading.array("modifiers", value) {
        for item in array {
            let Some(name) = reading.text("modifiers", item) else {
                continue;
            };
            match MODIFIERS.iter().find(|(known, _)| *known == name) {
                Some((_, flag)) => allowed |= flag,
                None => {
                    let known: Vec<&str> = MODIFIERS.iter().map(|(known, _)| *known).collect();
                    reading.unknown_key(&item.span(), name, &known);
                }
            }
        }
    }
    allowed
}
