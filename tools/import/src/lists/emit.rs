//! Writes events as TOML: short ones a line each, then events with masks as tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use quipu_events_format::{Bits, flag};

use super::Event;

/// Returns the `[cpu.events]` part of an event file.
pub(super) fn events(list: &[Event]) -> String {
    let mut by_event: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in list {
        by_event.entry(&event.event).or_default().push(event);
    }
    let mut text = String::from("[cpu.events]\n");
    let mut tables = String::new();
    for (name, entries) in by_event {
        match entries[..] {
            [only] if only.mask.is_empty() => {
                let _ = writeln!(text, "{} = {}", key(name), bare(only));
            }
            _ => table(name, &entries, &mut tables),
        }
    }
    text + &tables
}

/// Returns a key, in quotes where TOML wants them.
fn key(name: &str) -> String {
    if super::is_plain(name) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}

/// Returns an event without masks.
fn bare(event: &Event) -> String {
    let mut fields = Vec::new();
    if event.bits.unit_mask != 0 {
        fields.push(format!("unit-mask = {:#04x}", event.bits.unit_mask));
    }
    fields.extend(rest(event, &Bits::default()));
    if fields.is_empty() {
        return format!("{:#04x}", event.bits.config());
    }
    format!(
        "{{ code = {:#04x}, {} }}",
        event.bits.config(),
        fields.join(", ")
    )
}

/// Writes an event with its masks; what all masks have in common is said once.
fn table(name: &str, entries: &[&Event], text: &mut String) {
    let masks: Vec<&&Event> = entries
        .iter()
        .filter(|entry| !entry.mask.is_empty())
        .collect();
    let alone = entries.iter().find(|entry| entry.mask.is_empty());
    let first = masks.first().map_or(Bits::default(), |mask| mask.bits);
    let all = |same: &dyn Fn(Bits) -> bool| entries.iter().all(|entry| same(entry.bits));
    let mut common = Bits {
        code: most_frequent(&masks),
        ..Bits::default()
    };
    let _ = writeln!(
        text,
        "\n[cpu.events.{}]\ncode = {:#04x}",
        key(name),
        common.code
    );
    if masks
        .iter()
        .all(|mask| mask.bits.flags & flag::COMBINES != 0 && mask.bits.code == common.code)
    {
        text.push_str("combine = true\n");
    }
    if first.counters != 0 && all(&|bits| bits.counters == first.counters && bits.fixed == 0) {
        common.counters = first.counters;
        let _ = writeln!(text, "counters = {}", counters(common.counters));
    }
    let plain = |bits: Bits| bits.register == 0 && bits.unit_mask == first.unit_mask;
    // One event number and mask for each register: any value may be asked for.
    let any_value = alone.is_none_or(|alone| plain(alone.bits))
        && masks.iter().all(|mask| {
            let same_mask = mask.bits.unit_mask == first.unit_mask;
            mask.bits.register != 0 && same_mask == (mask.bits.register == first.register)
        });
    let one_register = masks
        .iter()
        .all(|mask| mask.bits.register == first.register);
    if first.register != 0 && (one_register || any_value) {
        common.register = first.register;
        let _ = writeln!(text, "register = {:#x}", common.register);
        if any_value {
            text.push_str("register-value = true\n");
        }
    }
    let bare_mask = match alone {
        Some(alone) => Some(alone.bits.unit_mask),
        None if common.register != 0 && any_value => Some(first.unit_mask),
        None => None,
    };
    if let Some(bits) = bare_mask {
        let _ = writeln!(text, "unit-mask = {bits:#04x}");
    }
    if let Some(alone) = alone {
        let mut alone = (*alone).clone();
        alone.bits.register = common.register;
        for field in rest(&alone, &common) {
            let _ = writeln!(text, "{field}");
        }
    }
    for mask in masks {
        let mut fields = Vec::new();
        if mask.bits.code != common.code {
            fields.push(format!("code = {:#04x}", mask.bits.code));
        }
        fields.extend(rest(mask, &common));
        let bits = format!("{:#04x}", mask.bits.unit_mask);
        let name = key(&mask.mask);
        let _ = if fields.is_empty() {
            writeln!(text, "masks.{name} = {bits}")
        } else {
            writeln!(
                text,
                "masks.{name} = {{ bits = {bits}, {} }}",
                fields.join(", ")
            )
        };
    }
}

/// Returns the event number that most masks have; the smallest of several.
fn most_frequent(masks: &[&&Event]) -> u16 {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for mask in masks {
        *counts.entry(mask.bits.code).or_default() += 1;
    }
    let most = counts.values().max().copied();
    counts
        .into_iter()
        .find(|(_, count)| Some(*count) == most)
        .map_or(0, |(code, _)| code)
}

/// Returns everything but event number and unit mask that is not already in `common`.
fn rest(event: &Event, common: &Bits) -> Vec<String> {
    let bits = event.bits;
    let mut fields = Vec::new();
    if bits.second_mask != 0 {
        fields.push(format!("second-mask = {:#04x}", bits.second_mask));
    }
    if bits.counter_mask != 0 {
        fields.push(format!("counter-mask = {}", bits.counter_mask));
    }
    for (key, flag) in flag::KEYS {
        if bits.flags & flag != 0 {
            fields.push(format!("{key} = true"));
        }
    }
    if bits.counters != common.counters {
        fields.push(format!("counters = {}", counters(bits.counters)));
    }
    if bits.fixed > 0 {
        fields.push(format!("fixed = {}", bits.fixed - 1));
        if bits.flags & flag::FIXED_ONLY != 0 {
            fields.push("fixed-only = true".to_owned());
        }
    }
    if bits.register != common.register {
        fields.push(format!("register = {:#x}", bits.register));
    }
    if bits.value != 0 && bits.flags & flag::WIDE == 0 {
        fields.push(format!("value = {:#x}", bits.value));
    }
    if !event.errata.is_empty() {
        let quoted: Vec<String> = event
            .errata
            .iter()
            .map(|erratum| format!("\"{erratum}\""))
            .collect();
        fields.push(format!("errata = [{}]", quoted.join(", ")));
    }
    if bits.flags & flag::DEPRECATED != 0 {
        fields.push("deprecated = true".to_owned());
    }
    if !event.same_as.is_empty() {
        fields.push(format!("same-as = \"{}\"", event.same_as));
    }
    fields
}

fn counters(mask: u32) -> String {
    let numbers: Vec<String> = (0..32)
        .filter(|number| mask >> number & 1 == 1)
        .map(|number| number.to_string())
        .collect();
    format!("[{}]", numbers.join(", "))
}
