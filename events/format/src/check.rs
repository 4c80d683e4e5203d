//! Checks across entries: references, overlaps, ranges, and CPU entries that can never match.

mod aliases;
mod masks;
mod noted;
mod reach;

use std::cmp::Ordering;
use std::collections::HashMap;

use quipu_text::nearest_of;

use crate::BaseLayer;
use crate::bits::{Bits, Counters, flag, is_software};
use crate::diagnostics::Findings;
use crate::events::ALL_MODIFIERS;
use crate::formula::Formula;
use crate::generalized::is_generalized;
use crate::model::{
    Aliases, Cpu, EventEntry, Location, Mapping, by_name, has_unit_masks, largest_code,
    scheme_flags,
};
use crate::name::{self, Names};
use crate::packed::compare;
use crate::printable::shortened;
use crate::strings::Strings;
use noted::Noted;
use quipu_hal::Scheme;

/// Checks the CPU entries of one layer against each other and against the layers below.
pub(crate) fn check(
    cpus: &mut Vec<Cpu>,
    aliases: &mut [Aliases],
    strings: &Strings,
    files: &[(&str, &str)],
    below: &dyn BaseLayer,
    findings: &mut Findings,
) {
    let mut noted = Noted::default();
    let by_id = index_ids(cpus, &mut noted);
    let by_id = aliases::attach(cpus, aliases, strings, by_id, below, &mut noted);
    let schemes: Vec<Option<Scheme>> = cpus
        .iter()
        .map(|cpu| scheme_of(cpu, cpus, &by_id, below))
        .collect();
    for (cpu, scheme) in cpus.iter_mut().zip(&schemes) {
        let Some(scheme) = *scheme else {
            let id = shortened(&cpu.id);
            let mut message =
                format!("`{id}` gives no `scheme`, and no other entry gives one for it");
            if let [nearest, ..] = nearest_of(&cpu.id, &below.ids())[..] {
                message += &format!("; did you mean `{nearest}`?");
            }
            noted.push((cpu.location, message));
            continue;
        };
        let known = below.counters(&cpu.id);
        let general = cpu
            .general
            .map(|Counters { number, .. }| number)
            .or(known.0);
        let fixed = cpu.fixed.map(|Counters { number, .. }| number).or(known.1);
        let of_cpu = cpu.modifiers.unwrap_or(ALL_MODIFIERS) & scheme_flags(scheme);
        for entry in &mut cpu.entries {
            if entry.bits.modifiers == ALL_MODIFIERS {
                entry.bits.modifiers &= of_cpu;
            }
            check_entry(scheme, general, fixed, entry, strings, &mut noted);
        }
        if let Some(table) = cpu.aliases.and_then(|at| aliases.get_mut(at)) {
            for entry in &mut table.entries {
                check_entry(scheme, general, None, entry, strings, &mut noted);
            }
        }
    }
    let tables: Vec<CpuEntries<'_>> = cpus
        .iter()
        .map(|cpu| CpuEntries::new(cpu, strings, &mut noted))
        .collect();
    for (at, cpu) in cpus.iter().enumerate() {
        let lookup = Lookup {
            tables: &tables,
            strings,
            by_id: &by_id,
            below,
            id: &cpu.id,
            at,
        };
        check_base(cpu, cpus, &by_id, below, &mut noted);
        check_overlaps(cpu, &lookup, &mut noted);
        masks::check(cpu, strings, &mut noted);
        check_mappings(cpu, &lookup, &mut noted);
    }
    reach::check(cpus, &mut noted);
    noted.report(files, findings);
}

fn index_ids(cpus: &[Cpu], noted: &mut Noted) -> HashMap<String, usize> {
    let mut by_id = HashMap::new();
    for (at, cpu) in cpus.iter().enumerate() {
        if by_id.insert(cpu.id.clone(), at).is_some() {
            let id = shortened(&cpu.id);
            noted.push((cpu.location, format!("there is another CPU entry `{id}`")));
        }
    }
    by_id
}

/// Returns a CPU entry's own scheme, that of the entry it adds to, or that of its base.
fn scheme_of(
    cpu: &Cpu,
    cpus: &[Cpu],
    by_id: &HashMap<String, usize>,
    below: &dyn BaseLayer,
) -> Option<Scheme> {
    let base = || {
        let base = cpu.base.as_ref()?;
        let here = by_id.get(base).and_then(|at| cpus[*at].scheme);
        here.or_else(|| below.scheme(base))
    };
    cpu.scheme.or_else(|| below.scheme(&cpu.id)).or_else(base)
}

/// The most bases, one on the other, that a file may give a CPU entry. Layers below may add as many.
const MOST_BASES: usize = 4;

fn check_base(
    cpu: &Cpu,
    cpus: &[Cpu],
    by_id: &HashMap<String, usize>,
    below: &dyn BaseLayer,
    noted: &mut Noted,
) {
    let mut note = |message: String| noted.push((cpu.location, message));
    let Some(base) = &cpu.base else { return };
    if base == &cpu.id {
        return note("a CPU entry cannot be its own base".to_owned());
    }
    if !by_id.contains_key(base) && below.scheme(base).is_none() {
        return note(format!("the base `{}` is no CPU entry", shortened(base)));
    }
    let of_base = by_id.get(base).and_then(|at| cpus[*at].scheme);
    let of_base = of_base.or_else(|| below.scheme(base));
    if cpu.scheme.is_some() && of_base.is_some() && cpu.scheme != of_base {
        note(format!("the base `{}` has another scheme", shortened(base)));
    }
    let mut next = Some(base);
    for _ in 0..MOST_BASES {
        let Some(base) = next else { return };
        if base == &cpu.id {
            return note("its bases lead back to it".to_owned());
        }
        next = by_id.get(base).and_then(|at| cpus[*at].base.as_ref());
    }
    if next.is_some() {
        note(format!(
            "it has more than {MOST_BASES} bases, one on the other"
        ));
    }
}

fn check_entry(
    scheme: Scheme,
    general: Option<u8>,
    fixed: Option<u8>,
    entry: &mut EventEntry,
    strings: &Strings,
    noted: &mut Noted,
) {
    let bits = entry.bits;
    if bits.modifiers == ALL_MODIFIERS {
        entry.bits.modifiers &= scheme_flags(scheme);
    }
    let mut note = |message: String| {
        let name = shortened(strings.get(entry.name));
        noted.push((entry.location, format!("{name}: {message}")));
    };
    if bits.config() > largest_code(scheme) {
        note(format!(
            "event number {:#x} is larger than the scheme's {:#x}",
            bits.config(),
            largest_code(scheme)
        ));
    }
    // Masks of a config word are words of their own.
    let has_masks = has_unit_masks(scheme) || scheme == Scheme::Perf;
    if !has_unit_masks(scheme) && bits.unit_mask | bits.counter_mask != 0
        || !has_masks && !entry.mask(strings).is_empty()
    {
        note("this scheme has no unit masks and no counter masks".to_owned());
    }
    if bits.second_mask != 0 && scheme != Scheme::IntelArchitectural {
        note("this scheme has no second unit mask".to_owned());
    }
    if bits.register != 0 && scheme != Scheme::IntelArchitectural {
        note("this scheme has no extra registers".to_owned());
    }
    let strange = bits.flags & flag::ENCODED & !scheme_flags(scheme);
    for (key, flag) in flag::KEYS {
        if strange & flag != 0 {
            note(format!("this scheme has no flag `{key}`"));
        }
    }
    if bits.modifiers != ALL_MODIFIERS && bits.modifiers & !scheme_flags(scheme) != 0 {
        note("`modifiers` lists one that this scheme does not have".to_owned());
    }
    if let Some(number) = general
        && number < 32
        && bits.counters >> number != 0
    {
        note(format!(
            "`counters` names one beyond the {number} there are"
        ));
    }
    if bits.fixed > 0
        && let Some(number) = fixed
        && bits.fixed > number
    {
        note(format!(
            "fixed counter {} is beyond the {number} there are",
            bits.fixed - 1
        ));
    }
}

/// Returns each entry that has the name of the one before it.
fn twice<'e>(
    by_name: &[&'e EventEntry],
    strings: &Strings,
) -> impl Iterator<Item = &'e EventEntry> {
    let same = |pair: &&[&'e EventEntry]| {
        let [a, b] = [0, 1].map(|at| strings.get(pair[at].name));
        a.eq_ignore_ascii_case(b)
    };
    by_name.windows(2).filter(same).map(|pair| pair[1])
}

/// The entries of one CPU by name, letter case aside.
struct CpuEntries<'c> {
    cpu: &'c Cpu,
    strings: &'c Strings,
    by_name: Vec<&'c EventEntry>,
}

impl<'c> CpuEntries<'c> {
    fn new(cpu: &'c Cpu, strings: &'c Strings, noted: &mut Noted) -> Self {
        let by_name = by_name(&cpu.entries, strings);
        for entry in twice(&by_name, strings) {
            let name = shortened(strings.get(entry.name));
            noted.push((
                entry.location,
                format!(
                    "there is another event `{name}` (letter case does not distinguish events)"
                ),
            ));
        }
        Self {
            cpu,
            strings,
            by_name,
        }
    }

    fn find(&self, event: &str, mask: &str) -> Option<&'c EventEntry> {
        let entry = *self.by_name.get(self.position(event, mask))?;
        compare(self.strings.get(entry.name), event, mask)
            .is_eq()
            .then_some(entry)
    }

    /// Returns the position of the first entry by name that is not before this one.
    fn position(&self, event: &str, mask: &str) -> usize {
        let before =
            |entry: &&EventEntry| compare(self.strings.get(entry.name), event, mask).is_lt();
        self.by_name.partition_point(before)
    }

    /// Returns the masks of an event that are taken when none is named.
    fn default_masks(&self, event: &str) -> Vec<Bits> {
        let start = self.position(event, "");
        let of_prefix = |entry: &&&EventEntry| {
            let prefix = self.strings.get(entry.name).get(..event.len());
            prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(event))
        };
        let entries = self.by_name[start..].iter().take_while(of_prefix);
        let defaults = entries.filter(|entry| {
            entry.event(self.strings).len() == event.len() && entry.bits.flags & flag::DEFAULT != 0
        });
        defaults.map(|entry| entry.bits).collect()
    }
}

/// Finds names as they will be found for one CPU: its own, its base's, the layers below.
struct Lookup<'c> {
    tables: &'c [CpuEntries<'c>],
    strings: &'c Strings,
    by_id: &'c HashMap<String, usize>,
    below: &'c dyn BaseLayer,
    id: &'c str,
    at: usize,
}

impl Lookup<'_> {
    /// The longest chain of bases that is followed.
    const DEEPEST: usize = 8;

    /// Returns the CPU's own table and those of its bases.
    fn chain(&self) -> impl Iterator<Item = &CpuEntries<'_>> {
        let mut next = Some(self.at);
        std::iter::from_fn(move || {
            let table = &self.tables[next?];
            next = table
                .cpu
                .base
                .as_ref()
                .and_then(|base| self.by_id.get(base).copied());
            Some(table)
        })
        .take(Self::DEEPEST)
    }

    /// Returns true if this CPU defines a generalized event.
    fn has_generalized(&self, name: &str) -> bool {
        let here = |table: &CpuEntries<'_>| {
            table
                .cpu
                .generalized
                .iter()
                .any(|g| self.strings.get(g.name) == name)
        };
        self.chain().any(here)
            || self
                .ids_below()
                .any(|id| self.below.has_generalized(id, name))
    }

    /// Returns true if this CPU defines a preset, in any letter case.
    fn has_preset(&self, name: &str) -> bool {
        let is_it = |preset: &Mapping| self.strings.get(preset.name).eq_ignore_ascii_case(name);
        self.chain()
            .any(|table| table.cpu.presets.iter().any(is_it))
            || self.ids_below().any(|id| self.below.has_preset(id, name))
    }

    fn ids_below(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.id).chain(self.chain().filter_map(|table| table.cpu.base.as_deref()))
    }
}

impl Names for Lookup<'_> {
    fn find(&self, event: &str, mask: &str) -> Option<Bits> {
        let here = self.chain().find_map(|table| table.find(event, mask));
        here.map(|entry| entry.bits).or_else(|| {
            self.ids_below()
                .find_map(|id| self.below.find(id, event, mask))
        })
    }

    fn default_masks(&self, event: &str) -> Vec<Bits> {
        for table in self.chain() {
            if table.find(event, "").is_none() {
                continue;
            }
            return table.default_masks(event);
        }
        self.ids_below()
            .map(|id| self.below.default_masks(id, event))
            .find(|masks| !masks.is_empty())
            .unwrap_or_default()
    }
}

/// Returns the numbers that no two entries may share, unless one is `same-as` the other.
fn encoded(bits: Bits) -> impl Ord {
    (
        (bits.code, bits.unit_mask, bits.second_mask),
        (
            bits.counter_mask,
            bits.flags & (flag::ENCODED | flag::FIXED_ONLY),
            bits.fixed,
        ),
        (bits.register, bits.value),
    )
}

/// Returns the numbers that an entry counts by its name: with the defaults of other groups, if it is a mask of one.
fn counted(lookup: &Lookup<'_>, entry: &EventEntry) -> Bits {
    match entry.bits.flags & flag::GROUP {
        0 => entry.bits,
        _ => name::select(lookup, lookup.strings.get(entry.name))
            .map_or(entry.bits, |whole| whole.bits),
    }
}

fn check_overlaps(cpu: &Cpu, lookup: &Lookup<'_>, noted: &mut Noted) {
    let mut alone: Vec<&EventEntry> = Vec::new();
    for entry in &cpu.entries {
        if entry.bits.flags & flag::NEEDS_MASK != 0 {
            continue;
        }
        let same_as = lookup.strings.get(entry.same_as);
        if same_as.is_empty() {
            alone.push(entry);
            continue;
        }
        let name = shortened(lookup.strings.get(entry.name));
        let other = name::select(lookup, same_as);
        let message = match other {
            Ok(other) if encoded(other.bits) == encoded(counted(lookup, entry)) => continue,
            Ok(_) => format!(
                "{name} is not the same as `{}`: its bits differ",
                shortened(same_as)
            ),
            Err(error) => format!(
                "{name}: `same-as` names `{}`: {}",
                shortened(same_as),
                error.reason()
            ),
        };
        noted.push((entry.location, message));
    }
    // A mask of a group is part of an event: it overlaps with another of its group only.
    let group = |entry: &EventEntry| entry.bits.flags & flag::GROUP;
    let order = |a: &&EventEntry, b: &&EventEntry| {
        let bits = |entry: &EventEntry| (encoded(entry.bits), group(entry));
        bits(a).cmp(&bits(b)).then_with(|| match group(a) {
            0 => Ordering::Equal,
            _ => a.event(lookup.strings).cmp(b.event(lookup.strings)),
        })
    };
    alone.sort_by(order);
    for entries in alone.chunk_by(|a, b| order(a, b).is_eq()) {
        for (at, entry) in entries.iter().enumerate().skip(1).take(100) {
            let clash = entries[..at].iter().find(|other| {
                let (a, b) = (other.bits.counters, entry.bits.counters);
                a == 0 || b == 0 || a & b != 0
            });
            if let Some(other) = clash {
                noted.push((
                    entry.location,
                    format!(
                        "{} has the same bits as {}; say `same-as` if that is meant",
                        shortened(lookup.strings.get(entry.name)),
                        shortened(lookup.strings.get(other.name))
                    ),
                ));
            }
        }
    }
}

fn check_mappings(cpu: &Cpu, lookup: &Lookup<'_>, noted: &mut Noted) {
    for list in [&cpu.generalized, &cpu.presets] {
        let mut by_name: Vec<&Mapping> = list.iter().collect();
        by_name.sort_by_key(|mapping| lookup.strings.get(mapping.name));
        for pair in by_name
            .windows(2)
            .filter(|pair| pair[0].name == pair[1].name)
        {
            let message = format!(
                "there is another `{}`",
                shortened(lookup.strings.get(pair[1].name))
            );
            noted.push((pair[1].location, message));
        }
    }
    for mapping in &cpu.generalized {
        let name = lookup.strings.get(mapping.name);
        if !is_generalized(name) {
            let name = shortened(name);
            noted.push((
                mapping.location,
                format!(
                    "`{name}` is no generalized event; they are named as `perf list` names them"
                ),
            ));
        }
        if let Ok(text) = mapping.text {
            let text = lookup.strings.get(text);
            check_event(cpu, lookup, mapping.location, name, text, noted);
        }
    }
    reach::check_names(cpu, lookup, noted);
    for preset in &cpu.presets {
        let preset_name = lookup.strings.get(preset.name);
        let name = shortened(preset_name);
        let legal = preset_name.len() <= 128
            && preset_name.starts_with(|c: char| c.is_ascii_alphabetic())
            && preset_name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !legal {
            noted.push((
                preset.location,
                format!("`{name}` is no name for a preset: letters, digits and `_` only"),
            ));
        }
        let Ok(text) = preset.text else { continue };
        match Formula::parse(lookup.strings.get(text)) {
            Ok(formula) => {
                for event in formula.events() {
                    if is_software(event) {
                        continue;
                    }
                    if !is_generalized(event) {
                        check_event(cpu, lookup, preset.location, preset_name, event, noted);
                    } else if !lookup.has_generalized(event) {
                        noted.push((
                            preset.location,
                            format!("{name} uses `{event}`, which this entry does not define"),
                        ));
                    }
                }
                if formula.events().is_empty() {
                    noted.push((preset.location, format!("{name} counts no event")));
                }
            }
            Err(error) => noted.push((preset.location, format!("{name}: {error}"))),
        }
    }
}

fn check_event(
    cpu: &Cpu,
    lookup: &Lookup<'_>,
    location: Location,
    name: &str,
    event: &str,
    noted: &mut Noted,
) {
    let Err(error) = name::select(lookup, event) else {
        return;
    };
    if lookup
        .ids_below()
        .any(|id| lookup.below.resolves(id, event))
    {
        return;
    }
    let mut message = format!(
        "{} names `{}`: {}",
        shortened(name),
        shortened(event),
        error.reason()
    );
    // Many findings of this kind are not worth a search each.
    let few = noted.len() < 50;
    if few && error == name::NameError::UnknownEvent && lookup.has_preset(event) {
        message += "; a formula names events, and that is a preset";
        noted.push((location, message));
        return;
    }
    // Many findings of this kind are not worth a search each.
    let entries = if few { &cpu.entries[..] } else { &[] };
    let names = entries.iter().map(|entry| lookup.strings.get(entry.name));
    if let [nearest, ..] = nearest_of(event, names)[..] {
        message += &format!("; did you mean `{nearest}`?");
    }
    noted.push((location, message));
}
