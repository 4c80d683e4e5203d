//! Reads CPU entries: the rules that recognise a CPU, and its counters.

use std::ops::Range;

use quipu_text::nearest_of;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::bits::{Counters, ISAS, SCHEMES};
use crate::events::{read_events, read_modifiers};
use crate::fields::{Checked, Node, Number, Numbers, Reading};
use crate::model::{Aliases, Cpu, Mapping, Rule};
use crate::printable::shortened;

/// The keys of a table of aliases.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct AliasKeys {
    cpus: Checked<Vec<Checked<String>>>,
    source: Checked<String>,
    #[serde(rename = "events")]
    _events: IgnoredAny,
}

/// The keys of a CPU entry.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct CpuKeys {
    id: Checked<String>,
    name: Checked<String>,
    scheme: Checked<String>,
    base: Checked<String>,
    r#match: Checked<Vec<Checked<MatchKeys>>>,
    fallback: Checked<bool>,
    counters: Checked<CountersKeys>,
    modifiers: Checked<Vec<Checked<String>>>,
    backends: Checked<BackendKeys>,
    source: Checked<String>,
    #[serde(rename = "events")]
    _events: IgnoredAny,
    #[serde(rename = "generalized")]
    _generalized: IgnoredAny,
    #[serde(rename = "presets")]
    _presets: IgnoredAny,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table")]
struct MatchKeys {
    vendor: Checked<String>,
    family: Checked<Number<0, 0x10e>>,
    models: Checked<Vec<Checked<Numbers<0xff>>>>,
    steppings: Checked<Numbers<0xf>>,
    core_type: Checked<String>,
    native_model: Checked<Number<0, 0xff_ffff>>,
    implementer: Checked<Number<0, 0xff>>,
    part: Checked<Number<0, 0xfff>>,
    isa: Checked<String>,
    id: Checked<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", expecting = "a table")]
struct CountersKeys {
    general: Checked<Number<0, 32>>,
    general_width: Checked<Number<8, 64>>,
    fixed: Checked<Number<0, 32>>,
    fixed_width: Checked<Number<8, 64>>,
}

/// The backends per operating system.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct BackendKeys {
    linux: Checked<Vec<Checked<String>>>,
    openbsd: Checked<Vec<Checked<String>>>,
    freebsd: Checked<Vec<Checked<String>>>,
    dragonfly: Checked<Vec<Checked<String>>>,
    netbsd: Checked<Vec<Checked<String>>>,
}

/// A generalized event or preset that the CPU does not count.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
struct AbsentKeys {
    absent: Checked<String>,
}

/// The backends that Quipu has, or is to have. Programs register others, under any name that is not close to these.
const BACKENDS: [&str; 5] = ["hwpmc", "linux", "msr", "pctr", "posix"];
/// The backends that are used after consent only: they write registers past the kernel.
const BY_CONSENT: [&str; 1] = ["msr"];

pub(crate) fn read_aliases(reading: &Reading<'_>, node: Node<'_, '_>) -> Option<Aliases> {
    let keys: AliasKeys = reading.read(node)?;
    if keys.cpus.is_absent() {
        reading.note(&node.1.span(), "these aliases name no `cpus`");
    }
    let events = node.1.get_ref().get("events");
    let events = events.and_then(|events| reading.table(("events", events)));
    let cpus = keys.cpus.items();
    Some(Aliases {
        cpus: cpus.map(|(id, at)| (id, reading.location(&at))).collect(),
        source: keys.source.value().unwrap_or_default(),
        entries: events.map_or_else(Vec::new, |table| read_events(reading, table)),
    })
}

pub(crate) fn read_cpu(reading: &Reading<'_>, node: Node<'_, '_>) -> Option<Cpu> {
    let keys: CpuKeys = reading.read(node)?;
    let Some((id, id_at)) = keys.id.spanned() else {
        reading.note(&node.1.span(), "this CPU entry has no `id`");
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
    // Tables of which the file chooses the keys are read entry by entry.
    let entries = |key| {
        let value = node.1.get_ref().get(key)?;
        reading.table((key, value))
    };
    let mappings = |key| -> Vec<Mapping> {
        let entries = entries(key).into_iter().flatten();
        let mapping = entries.map(|(key, value)| (key.get_ref().as_ref(), value));
        mapping
            .filter_map(|node| read_mapping(reading, node))
            .collect()
    };
    let scheme = keys.scheme.spanned();
    let rules = keys.r#match.items();
    let (general, fixed) = match keys.counters.spanned() {
        Some((keys, at)) => {
            let pair = |number, width| read_counters(reading, &at, number, width);
            (
                pair(
                    ("general", keys.general),
                    ("general-width", keys.general_width),
                ),
                pair(("fixed", keys.fixed), ("fixed-width", keys.fixed_width)),
            )
        }
        None => (None, None),
    };
    Some(Cpu {
        location: reading.location(&id_at),
        id,
        name: keys.name.value(),
        scheme: scheme.and_then(|name| reading.one_of("encoding scheme", &name, &SCHEMES)),
        base: keys.base.value(),
        rules: rules
            .filter_map(|(keys, at)| read_rule(reading, keys, &at))
            .collect(),
        fallback: keys.fallback.value().unwrap_or(false),
        general,
        fixed,
        modifiers: read_modifiers(reading, keys.modifiers),
        backends: read_backends(reading, keys.backends.value().unwrap_or_default()),
        source: keys.source.value(),
        entries: entries("events").map_or_else(Vec::new, |table| read_events(reading, table)),
        generalized: mappings("generalized"),
        presets: mappings("presets"),
        aliases: None,
    })
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

fn read_backends(reading: &Reading<'_>, keys: BackendKeys) -> Vec<(String, Vec<String>)> {
    let mut systems = Vec::new();
    for (os, given) in [
        ("linux", keys.linux),
        ("openbsd", keys.openbsd),
        ("freebsd", keys.freebsd),
        ("dragonfly", keys.dragonfly),
        ("netbsd", keys.netbsd),
    ] {
        if given.is_absent() {
            continue;
        }
        let mut backends: Vec<String> = Vec::new();
        for name in given.items() {
            let (name, at) = name;
            if let Some(fault) = fault_of_backend(&name) {
                reading.note(&at, fault);
            } else if backends.contains(&name) {
                reading.note(&at, format!("`{name}` is there twice"));
            } else {
                backends.push(name);
            }
        }
        systems.push((os.to_owned(), backends));
    }
    systems
}

/// Returns the reason why a text is not the name of a backend, of Quipu's or of a program's own.
fn fault_of_backend(name: &str) -> Option<String> {
    if BACKENDS.contains(&name) {
        return None;
    }
    let shown = shortened(name);
    if name.len() > 64 {
        return Some(format!("`{shown}` is too long for the name of a backend"));
    }
    // Short words: two letters are most typos, and no other name.
    let mut near = BACKENDS
        .iter()
        .map(|known| (strsim::osa_distance(name, known), known));
    if let Some((_, nearest)) = near.find(|(distance, _)| *distance <= 2) {
        return Some(format!(
            "unknown backend `{shown}`; did you mean `{nearest}`?"
        ));
    }
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_name = !name.is_empty() && name.bytes().all(is_word);
    (!is_name).then(|| {
        let known = BACKENDS.join(", ");
        format!("`{shown}` is no name of a backend; there are {known}, and those that programs register, in lower-case letters")
    })
}

/// Reads the backends that a file consents to.
pub(crate) fn read_allowed(reading: &Reading<'_>, node: Node<'_, '_>) -> Vec<String> {
    let Some(names) = reading.read::<Vec<Checked<String>>>(node) else {
        return Vec::new();
    };
    let mut allowed = Vec::new();
    for (name, at) in names.into_iter().filter_map(Checked::spanned) {
        match BY_CONSENT.contains(&name.as_str()) {
            true => allowed.push(name),
            false => {
                let (shown, known) = (shortened(&name), BY_CONSENT.join(", "));
                reading.note(
                    &at,
                    format!("`{shown}` needs no consent, or is no backend; {known} does"),
                );
            }
        }
    }
    allowed
}

/// A key and the number it has.
type Keyed<const FIRST: u64, const LAST: u64> = (&'static str, Checked<Number<FIRST, LAST>>);

fn read_counters(
    reading: &Reading<'_>,
    at: &Range<usize>,
    (number_key, number): Keyed<0, 32>,
    (width_key, width): Keyed<8, 64>,
) -> Option<Counters> {
    for (key, other) in [
        (number_key, width.is_absent().then_some(width_key)),
        (width_key, number.is_absent().then_some(number_key)),
    ] {
        if let Some(missing) = other
            && number.is_absent() != width.is_absent()
        {
            reading.note(at, format!("`{key}` needs `{missing}` beside it"));
        }
    }
    Some(Counters {
        number: number.number()? as u8,
        width: width.number()? as u8,
    })
}

fn read_rule(reading: &Reading<'_>, keys: MatchKeys, at: &Range<usize>) -> Option<Rule> {
    let arm = !(keys.implementer.is_absent() && keys.part.is_absent());
    let x86 = !(keys.vendor.is_absent()
        && keys.family.is_absent()
        && keys.models.is_absent()
        && keys.steppings.is_absent()
        && keys.core_type.is_absent()
        && keys.native_model.is_absent());
    let other = !(keys.isa.is_absent() && keys.id.is_absent());
    if [arm, x86, other].iter().filter(|kind| **kind).count() > 1 {
        reading.note(
            at,
            "a match is either x86 (vendor, family, ...), ARM (implementer, part) or another (isa, id)",
        );
        return None;
    }
    if other {
        if keys.isa.is_absent() || keys.id.is_absent() {
            reading.note(
                at,
                "a match by `isa` needs the `id`, and one by `id` the `isa`",
            );
        }
        let isa = keys.isa.spanned()?;
        reading.one_of("architecture", &isa, &ISAS.map(|isa| (isa, ())))?;
        return Some(Rule::Other {
            isa: isa.0,
            id: keys.id.value()?,
        });
    }
    if !x86 {
        return Some(Rule::Arm {
            implementer: keys.implementer.number().map(|number| number as u8),
            part: keys.part.number().map(|number| number as u16),
        });
    }
    if keys.vendor.is_absent() || keys.family.is_absent() {
        reading.note(at, "an x86 match needs `vendor` and `family`");
    }
    let models = match keys.models {
        Checked::Absent => vec![0..=0xff],
        Checked::Wrong => return None,
        Checked::Given(models, at) => {
            if models.is_empty() {
                reading.note(&at, "`models` lists no model; leave it out to match all");
            }
            let models = models.into_iter().filter_map(Checked::value);
            models.map(|Numbers(models)| models).collect()
        }
    };
    let steppings = keys.steppings.value().map_or(0..=0xf, |given| given.0);
    let (vendor, at) = keys.vendor.spanned()?;
    check_vendor(reading, &vendor, &at);
    Some(Rule::X86 {
        family: keys.family.number()? as u16,
        vendor,
        models,
        steppings: *steppings.start() as u8..=*steppings.end() as u8,
        core_type: keys.core_type.value(),
        native_model: keys.native_model.number().map(|number| number as u32),
    })
}

/// The vendors as their CPUs call themselves (CPUID leaf 0).
const VENDORS: [&str; 5] = [
    "GenuineIntel",
    "AuthenticAMD",
    "HygonGenuine",
    "CentaurHauls",
    "  Shanghai  ",
];

/// Notes a vendor that is misspelt, or too long or short to be one.
fn check_vendor(reading: &Reading<'_>, vendor: &str, at: &Range<usize>) {
    if VENDORS.contains(&vendor) {
        return;
    }
    if let [nearest, ..] = nearest_of(vendor, VENDORS)[..] {
        let shown = shortened(vendor);
        reading.note(
            at,
            format!("unknown vendor `{shown}`; did you mean `{nearest}`?"),
        );
    } else if vendor.len() != VENDORS[0].len() {
        reading.note(
            at,
            "a vendor has the 12 characters that CPUID leaf 0 gives, as `GenuineIntel`",
        );
    }
}

pub(crate) fn read_mapping(reading: &Reading<'_>, node: Node<'_, '_>) -> Option<Mapping> {
    let (name, value) = node;
    let text = if value.get_ref().is_table() {
        let reason = reading.read::<AbsentKeys>(node)?.absent;
        if reason.is_absent() {
            let name = shortened(name);
            let message = format!("`{name}` says neither what it is nor why it is absent");
            reading.note(&value.span(), message);
        }
        Err(reading.text(&reason.value()?))
    } else {
        Ok(reading.text(&reading.read::<String>(node)?))
    };
    Some(Mapping {
        name: reading.text(name),
        text,
        location: reading.location(&value.span()),
    })
}
