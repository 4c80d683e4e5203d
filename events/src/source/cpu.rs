//! Reads CPU entries: how a CPU is recognised, and what counters it has.

use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostics::Findings;
use super::events::read_events;
use super::fields::{Fields, Reading, shortened};
use super::model::{Counters, Cpu, Mapping, Rule, SCHEMES, Scheme};

const ROOT_KEYS: &[&str] = &["cpu"];
const CPU_KEYS: &[&str] = &[
    "id",
    "name",
    "scheme",
    "base",
    "match",
    "fallback",
    "counters",
    "backends",
    "source",
    "events",
    "generalized",
    "presets",
];
const MATCH_KEYS: &[&str] = &[
    "vendor",
    "family",
    "models",
    "steppings",
    "core-type",
    "native-model",
    "implementer",
    "part",
];
const COUNTERS_KEYS: &[&str] = &["general", "general-width", "fixed", "fixed-width"];
/// The backends that count with the counters of a CPU.
const BACKENDS: &[&str] = &["linux", "msr", "pctr"];
const OS_KEYS: &[&str] = &["linux", "openbsd", "freebsd", "dragonfly", "netbsd"];

/// Reads the text of one event file.
pub(crate) fn read_document(reading: &mut Reading<'_, '_>) -> Vec<Cpu> {
    let (document, errors) = DeTable::parse_recoverable(reading.source.text);
    for error in errors {
        let at = error.span().unwrap_or(0..0);
        let message = shortened(&error.message().replace('\n', ", "));
        reading.note(&at, format!("not valid TOML: {message}"));
    }
    let at = document.span();
    let root = Fields::new(reading, document.get_ref(), at, ROOT_KEYS);
    let Some(cpus) = root.get("cpu") else {
        return Vec::new();
    };
    let Some(cpus) = reading.array("cpu", cpus) else {
        return Vec::new();
    };
    let mut read = Vec::new();
    for cpu in cpus {
        if let Some(table) = reading.table("cpu", cpu)
            && let Some(cpu) = read_cpu(reading, table, cpu.span())
        {
            read.push(cpu);
        }
    }
    read
}

fn read_cpu(reading: &mut Reading<'_, '_>, table: &DeTable<'_>, at: Range<usize>) -> Option<Cpu> {
    let fields = Fields::new(reading, table, at, CPU_KEYS);
    let Some((id, id_at)) = fields.text(reading, "id") else {
        reading.note(fields.at(), "this CPU entry has no `id`");
        return None;
    };
    if !is_kebab_case(&id) {
        reading.note(
            &id_at,
            format!(
                "`{}` is no id: lower-case letters and digits in words joined by hyphens, vendor first",
                shortened(&id)
            ),
        );
    }
    let mut cpu = Cpu {
        place: reading.place(&id_at),
        id,
        name: fields.text(reading, "name").map(|(name, _)| name),
        scheme: read_scheme(reading, &fields),
        base: fields.text(reading, "base").map(|(base, _)| base),
        rules: Vec::new(),
        fallback: fields.truth(reading, "fallback").unwrap_or(false),
        general: None,
        fixed: None,
        backends: Vec::new(),
        source: fields.text(reading, "source").map(|(source, _)| source),
        entries: Vec::new(),
        generalized: Vec::new(),
        presets: Vec::new(),
    };
    if let Some(value) = fields.get("match")
        && let Some(rules) = reading.array("match", value)
    {
        cpu.rules = rules
            .iter()
            .filter_map(|rule| read_rule(reading, rule))
            .collect();
    }
    if let Some(value) = fields.get("counters")
        && let Some(table) = reading.table("counters", value)
    {
        let counters = Fields::new(reading, table, value.span(), COUNTERS_KEYS);
        cpu.general = read_counters(reading, &counters, "general", "general-width");
        cpu.fixed = read_counters(reading, &counters, "fixed", "fixed-width");
    }
    if let Some(value) = fields.get("backends")
        && let Some(table) = reading.table("backends", value)
    {
        let systems = Fields::new(reading, table, value.span(), OS_KEYS);
        for os in OS_KEYS {
            if let Some(value) = systems.get(os) {
                let backends = read_backends(reading, os, value);
                cpu.backends.push(((*os).to_owned(), backends));
            }
        }
    }
    if let Some(value) = fields.get("events")
        && let Some(table) = reading.table("events", value)
    {
        cpu.entries = read_events(reading, table);
    }
    if let Some(value) = fields.get("generalized") {
        cpu.generalized = read_mappings(reading, "generalized", value);
    }
    if let Some(value) = fields.get("presets") {
        cpu.presets = read_mappings(reading, "presets", value);
    }
    Some(cpu)
}

fn is_kebab_case(id: &str) -> bool {
    id.len() <= 64
        && id.contains('-')
        && id.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

fn read_backends(
    reading: &mut Reading<'_, '_>,
    os: &str,
    value: &Spanned<DeValue<'_>>,
) -> Vec<String> {
    let mut backends: Vec<String> = Vec::new();
    for item in reading.array(os, value).into_iter().flatten() {
        let Some(name) = reading.text(os, item).map(str::to_owned) else {
            continue;
        };
        if !BACKENDS.contains(&name.as_str()) {
            let name = shortened(&name);
            let known = BACKENDS.join(", ");
            let message = format!("unknown backend `{name}`; there are {known}");
            reading.note(&item.span(), message);
        } else if backends.contains(&name) {
            reading.note(&item.span(), format!("`{name}` is there twice"));
        } else {
            backends.push(name);
        }
    }
    backends
}

fn read_scheme(reading: &mut Reading<'_, '_>, fields: &Fields<'_, '_>) -> Option<Scheme> {
    let (name, at) = fields.text(reading, "scheme")?;
    let scheme = SCHEMES.iter().find(|(known, _)| *known == name);
    if scheme.is_none() {
        let known: Vec<&str> = SCHEMES.iter().map(|(known, _)| *known).collect();
        reading.note(
            &at,
            format!(
                "unknown encoding scheme `{}`; there are {}",
                shortened(&name),
                known.join(", ")
            ),
        );
    }
    scheme.map(|(_, scheme)| *scheme)
}

fn read_counters(
    reading: &mut Reading<'_, '_>,
    fields: &Fields<'_, '_>,
    number: &'static str,
    width: &'static str,
) -> Option<Counters> {
    let count = fields.integer(reading, number, 0..=32);
    let bits = fields.integer(reading, width, 8..=64);
    match (count, bits) {
        (Some(count), Some(bits)) => Some(Counters {
            number: count as u8,
            width: bits as u8,
        }),
        (None, None) => None,
        (Some(_), None) => {
            if fields.get(width).is_none() {
                reading.note(fields.at(), format!("`{number}` needs `{width}` beside it"));
            }
            None
        }
        (None, Some(_)) => {
            if fields.get(number).is_none() {
                reading.note(fields.at(), format!("`{width}` needs `{number}` beside it"));
            }
            None
        }
    }
}

fn read_rule(reading: &mut Reading<'_, '_>, value: &Spanned<DeValue<'_>>) -> Option<Rule> {
    let table = reading.table("match", value)?;
    let fields = Fields::new(reading, table, value.span(), MATCH_KEYS);
    let arm = fields.get("implementer").is_some() || fields.get("part").is_some();
    let x86 = [
        "vendor",
        "family",
        "models",
        "steppings",
        "core-type",
        "native-model",
    ]
    .iter()
    .any(|key| fields.get(key).is_some());
    if arm && x86 {
        reading.note(
            fields.at(),
            "a match is either x86 (vendor, family, ...) or ARM (implementer, part)",
        );
        return None;
    }
    if !x86 {
        return Some(Rule::Arm {
            implementer: fields
                .integer(reading, "implementer", 0..=0xff)
                .map(|n| n as u8),
            part: fields.integer(reading, "part", 0..=0xfff).map(|n| n as u16),
        });
    }
    let vendor = fields.text(reading, "vendor");
    let family = fields.integer(reading, "family", 0..=0x10e);
    if fields.get("vendor").is_none() || fields.get("family").is_none() {
        reading.note(fields.at(), "an x86 match needs `vendor` and `family`");
    }
    let steppings = fields
        .get("steppings")
        .and_then(|value| read_range(reading, "steppings", 0xf, value))
        .unwrap_or(0..=0xf);
    let models = match fields.get("models") {
        None => vec![0..=0xff],
        Some(value) => {
            let items = reading.array("models", value)?;
            if items.is_empty() {
                reading.note(
                    &value.span(),
                    "`models` lists no model; leave it out to match all",
                );
            }
            items
                .iter()
                .filter_map(|item| read_range(reading, "models", 0xff, item))
                .collect()
        }
    };
    Some(Rule::X86 {
        vendor: vendor?.0,
        family: family? as u16,
        models,
        steppings: *steppings.start() as u8..=*steppings.end() as u8,
        core_type: fields.text(reading, "core-type").map(|(text, _)| text),
        native_model: fields
            .integer(reading, "native-model", 0..=0xff_ffff)
            .map(|n| n as u32),
    })
}

/// A number, or a range of them as text: `"0x10-0x2f"`.
fn read_range(
    reading: &mut Reading<'_, '_>,
    key: &str,
    largest: u16,
    value: &Spanned<DeValue<'_>>,
) -> Option<RangeInclusive<u16>> {
    let DeValue::String(text) = value.get_ref() else {
        let number = reading.integer(key, 0..=u64::from(largest), value)? as u16;
        return Some(number..=number);
    };
    let range = match text.split_once('-') {
        Some((first, last)) => parse_number(first).zip(parse_number(last)),
        None => parse_number(text).map(|number| (number, number)),
    };
    match range {
        Some((first, last)) if first <= last && last <= largest => Some(first..=last),
        _ => {
            reading.note(
                &value.span(),
                format!(
                    "`{}` is no range of `{key}`: numbers to {largest:#x}, as in \"0x10-0x1f\"",
                    shortened(text)
                ),
            );
            None
        }
    }
}

fn parse_number(text: &str) -> Option<u16> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn read_mappings(
    reading: &mut Reading<'_, '_>,
    what: &str,
    value: &Spanned<DeValue<'_>>,
) -> Vec<Mapping> {
    let Some(table) = reading.table(what, value) else {
        return Vec::new();
    };
    let mut mappings = Vec::new();
    for (key, value) in table {
        let text = match value.get_ref() {
            DeValue::Table(table) => {
                let fields = Fields::new(reading, table, value.span(), &["absent"]);
                let Some((reason, _)) = fields.text(reading, "absent") else {
                    reading.note(
                        fields.at(),
                        format!(
                            "`{}` says neither what it is nor why it is absent",
                            shortened(key.get_ref())
                        ),
                    );
                    continue;
                };
                Err(reason)
            }
            _ => match reading.text(key.get_ref(), value) {
                Some(text) => Ok(text.to_owned()),
                None => continue,
            },
        };
        mappings.push(Mapping {
            name: key.get_ref().to_string(),
            text,
            place: reading.place(&value.span()),
        });
    }
    mappings
}

/// Reads one file whose place in the set of files is `file`.
pub(crate) fn read_file(
    source: &super::diagnostics::Source<'_>,
    file: u32,
    findings: &mut Findings,
) -> Vec<Cpu> {
    read_document(&mut Reading {
        source,
        file,
        findings,
    })
}
