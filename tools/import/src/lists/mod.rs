//! Writes event tables from the lists that vendors publish: names, numbers, masks and constraints.
//!
//! No description is taken over: `quipu-import descriptions` writes those apart. What comes out is the `[cpu.events]`
//! part of an event file, to be put under a CPU entry; `docs/event-database.md` has the commands that made the
//! embedded tables.

mod emit;
mod event_json;
mod offcore_matrix;
mod uncore;

use std::collections::{BTreeMap, HashMap};

use quipu_events_format::{Bits, Together, flag, join};
use quipu_hal::{Error, ErrorKind, Result};
use serde_json::Value;

/// A published form of event lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// The JSON of github.com/intel/perfmon.
    IntelPerfmon,
    /// The JSON of `tools/perf/pmu-events` in Linux: AMD, ARM and Intel.
    LinuxPmuEvents,
    /// The JSON of `tools/perf/pmu-events` in Linux: the events of units outside of the cores, of Intel and AMD.
    LinuxUncore,
}

impl Format {
    /// All forms.
    pub const ALL: &'static [Self] = &[Self::IntelPerfmon, Self::LinuxPmuEvents, Self::LinuxUncore];

    /// Returns the name in commands: `intel-perfmon`, `linux-pmu-events`, `linux-uncore`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IntelPerfmon => "intel-perfmon",
            Self::LinuxPmuEvents => "linux-pmu-events",
            Self::LinuxUncore => "linux-uncore",
        }
    }
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// The `[cpu.events]` part of an event file, or the `[uncore.pmus]` of a file of uncore events.
    pub text: String,
    /// The number of its events, each mask counted.
    pub events: usize,
    /// The events that were left out, each with the reason, and what else was not taken over.
    pub left_out: Vec<String>,
}

/// Imports the events of one CPU from its files, `(name, text)` each.
///
/// ```
/// use quipu_import::lists::{Format, import};
///
/// let list = r#"[{ "EventName": "ex_ret_instr", "EventCode": "0xc0" }]"#;
/// let imported = import(Format::LinuxPmuEvents, &[("core.json", list)])?;
/// assert_eq!(imported.text, "[cpu.events]\nex_ret_instr = 0xc0\n");
/// # Ok::<(), quipu_hal::Error>(())
/// ```
///
/// # Errors
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when a file is not of the form, with its name.
pub fn import(format: Format, files: &[(&str, &str)]) -> Result<Imported> {
    let mut parsed = Vec::new();
    for (name, text) in files {
        let value: Value =
            serde_json::from_str(text).map_err(|error| refuse(name, &error.to_string()))?;
        let list = match &value {
            Value::Object(object) => object.get("Events").cloned(),
            Value::Array(_) => Some(value.clone()),
            _ => None,
        };
        match list {
            Some(Value::Array(list)) => parsed.push((*name, list)),
            _ => return Err(refuse(name, "it has no list of events")),
        }
    }
    if format == Format::LinuxUncore {
        return Ok(uncore::import(&parsed));
    }
    let mut events = Events::default();
    event_json::read(format, &parsed, &mut events);
    events.name_doubles();
    events.name_unions();
    let text = emit::events(&events.list);
    Ok(Imported {
        text,
        events: events.list.len(),
        left_out: events.left_out,
    })
}

fn refuse(name: &str, reason: &str) -> Error {
    Error::new(ErrorKind::InvalidConfiguration, format!("import {name}")).with_reason(reason)
}

/// One event or mask as it was published.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    event: String,
    mask: String,
    bits: Bits,
    errata: Vec<String>,
    same_as: String,
}

/// The events read so far.
#[derive(Default)]
struct Events {
    list: Vec<Event>,
    by_name: HashMap<String, usize>,
    left_out: Vec<String>,
}

impl Events {
    /// Adds an event by its published name; a second one of a name is left out, and so is one
    /// that cannot be written as a name.
    fn add(&mut self, name: &str, bits: Bits, mut errata: Vec<String>) {
        let (event, mask) = name.split_once('.').unwrap_or((name, ""));
        if !is_plain(event) || name.contains('.') && !mask.split('.').all(is_plain) {
            return self.leave_out(&format!("{name:?}"), "that is no name for an event");
        }
        errata.retain(|erratum| is_plain(erratum));
        let known = self.by_name.get(&name.to_ascii_uppercase());
        if let Some(known) = known.and_then(|at| self.list.get(*at)) {
            if known.bits != bits {
                self.leave_out(name, "it is listed twice, with different numbers");
            }
            return;
        }
        self.by_name
            .insert(name.to_ascii_uppercase(), self.list.len());
        self.list.push(Event {
            event: event.to_owned(),
            mask: mask.to_owned(),
            bits,
            errata,
            same_as: String::new(),
        });
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        self.left_out.push(format!("{name}: {reason}"));
    }

    /// Tells what was not taken over.
    fn tell(&mut self, finding: String) {
        self.left_out.push(finding);
    }

    /// Finds the masks that are others of their event put together. Where one of them is not called `all` or
    /// `any`, the unit masks may be numbers instead of bits: they are not to be put together then.
    fn name_unions(&mut self) {
        let combines = |event: &Event| event.bits.flags & flag::COMBINES != 0;
        let mut by_event: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, event) in self.list.iter().enumerate().filter(|(_, e)| combines(e)) {
            by_event.entry(event.event.clone()).or_default().push(at);
        }
        for (event, masks) in by_event {
            let mask = |at: &usize| &self.list[*at];
            let beside = |bits: Bits| (bits.code, bits.counter_mask, bits.flags & flag::ENCODED);
            let mut unions = Vec::new();
            for at in masks.iter().filter(|at| mask(at).same_as.is_empty()) {
                let of_this = |other: &&usize| beside(mask(other).bits) == beside(mask(at).bits);
                let parts = masks.iter().filter(of_this).map(mask);
                let parts: Vec<_> = parts.map(|e| (e.bits.unit_mask, e.mask.as_str())).collect();
                let together = Together::new(&parts);
                if let Some(names) = together.names(mask(at).bits.unit_mask) {
                    unions.push((*at, format!("{event}:{}", names.join(":"))));
                }
            }
            let is_whole = |at: usize| {
                let mut words = self.list[at].mask.split(['_', '.']);
                words.any(|word| ["all", "any"].contains(&word.to_ascii_lowercase().as_str()))
            };
            match unions.iter().find(|(at, _)| !is_whole(*at)) {
                Some((at, names)) => {
                    let third = join(&event, &self.list[*at].mask);
                    let finding =
                        format!("{event}: its masks are not put together, {names} being {third}");
                    for at in masks {
                        self.list[at].bits.flags &= !flag::COMBINES;
                    }
                    self.tell(finding);
                }
                None => {
                    for (at, names) in unions {
                        self.list[at].same_as = names;
                    }
                }
            }
        }
    }

    /// Vendors list some numbers under several names: the first that is not deprecated keeps them, the
    /// others say that they are the same.
    fn name_doubles(&mut self) {
        let key = |bits: &Bits| {
            (
                (bits.code, bits.unit_mask, bits.second_mask),
                (
                    bits.counter_mask,
                    bits.flags & (flag::ENCODED | flag::FIXED_ONLY),
                    bits.fixed,
                ),
                (bits.register, bits.value),
            )
        };
        let mut first = HashMap::new();
        for deprecated in [0, flag::DEPRECATED] {
            for at in 0..self.list.len() {
                let event = &self.list[at];
                if event.bits.flags & flag::DEPRECATED != deprecated {
                    continue;
                }
                let name = join(&event.event, &event.mask);
                let known = first
                    .entry(key(&event.bits))
                    .or_insert_with(|| name.clone());
                if *known != name {
                    self.list[at].same_as = known.clone();
                }
            }
        }
    }
}

/// Returns true if a text is a word of letters, digits, `_` and `-`.
fn is_plain(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    !text.is_empty() && text.bytes().all(plain)
}

/// Returns a field of a JSON object as text; both lists write every number as a string.
fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
}

/// Returns the first number in a field such as `0x1a6,0x1a7`; `None` when there is none.
fn number(object: &Value, key: &str) -> Option<u64> {
    parse(text(object, key).split(',').next()?)
}

/// Returns the number at a place in such a field, or the last where there are fewer.
fn nth_number(object: &Value, key: &str, nth: usize) -> Option<u64> {
    parse(text(object, key).split(',').take(nth + 1).last()?)
}

fn parse(number: &str) -> Option<u64> {
    let number = number.trim();
    match number.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&number[2..], 16).ok(),
        _ => number.parse().ok(),
    }
}
