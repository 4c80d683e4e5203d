//! Checks across entries: references, overlaps, ranges, and CPU entries that can never match.

mod aliases;
mod masks;
mod reach;

use std::collections::HashMap;

use quipu_hal::text::nearest_of;

use crate::BaseLayer;
use crate::diagnostics::{Findings, Source};
use crate::events::ALL_MODIFIERS;
use crate::fields::shortened;
use crate::formula::Formula;
use crate::model::{
    Aliases, Bits, Counters, Cpu, Entry, Location, Mapping, flag, has_unit_masks, is_generalized,
    is_software, join, largest_code, scheme_flags,
};
use crate::name::{self, Names};
use quipu_hal::Scheme;

/// Checks the CPU entries of one layer against each other and against the layers below.
pub(crate) fn check(
    cpus: &mut Vec<Cpu>,
    aliases: &mut [Aliases],
    files: &[(&str, &str)],
    below: &dyn BaseLayer,
    findings: &mut Findings,
) {
    let mut noted: Vec<(Location, String)> = Vec::new();
    let by_id = index_ids(cpus, &mut noted);
    let by_id = aliases::attach(cpus, aliases, by_id, below, &mut noted);
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
            check_entry(scheme, general, fixed, entry, &mut noted);
        }
        if let Some(table) = cpu.aliases.and_then(|at| aliases.get_mut(at)) {
            for entry in &mut table.entries {
                check_entry(scheme, general, None, entry, &mut noted);
            }
        }
    }
    let tables: Vec<Table<'_>> = cpus.iter().map(|cpu| Table::new(cpu, &mut noted)).collect();
    for (at, cpu) in cpus.iter().enumerate() {
        let lookup = Lookup {
            tables: &tables,
            by_id: &by_id,
            below,
            id: &cpu.id,
            at,
        };
        check_base(cpu, cpus, &by_id, below, &mut noted);
        check_overlaps(cpu, &lookup, &mut noted);
        masks::check(cpu, &mut noted);
        check_mappings(cpu, &lookup, &mut noted);
    }
    reach::check(cpus, &mut noted);
    report(noted, files, findings);
}

/// Turns locations into findings, file by file.
fn report(mut noted: Vec<(Location, String)>, files: &[(&str, &str)], findings: &mut Findings) {
    noted.sort_by_key(|(location, _)| (location.file, location.start));
    let mut open: Option<(u32, Source<'_>)> = None;
    for (location, message) in noted {
        if open.as_ref().is_none_or(|(file, _)| *file != location.file) {
            let (file, text) = files
                .get(location.file as usize)
                .copied()
                .unwrap_or_default();
            open = Some((location.file, Source::new(file, text)));
        }
        if let Some((_, source)) = &open {
            findings.add(source, &(location.start..location.start), message);
        }
    }
}

fn index_ids(cpus: &[Cpu], noted: &mut Vec<(Location, String)>) -> HashMap<String, usize> {
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
    noted: &mut Vec<(Location, String)>,
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
    entry: &mut Entry,
    noted: &mut Vec<(Location, String)>,
) {
    let bits = entry.bits;
    if bits.modifiers == ALL_MODIFIERS {
        entry.bits.modifiers &= scheme_flags(scheme);
    }
    let mut note = |message: String| {
        let name = entry.full_name();
        noted.push((entry.location, format!("{}: {message}", shortened(&name))));
    };
    if bits.code > largest_code(scheme) {
        note(format!(
            "event number {:#x} is larger than the scheme's {:#x}",
            bits.code,
            largest_code(scheme)
        ));
    }
    if !has_unit_masks(scheme)
        && (bits.unit_mask | bits.counter_mask != 0 || !entry.mask.is_empty())
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

/// The entries of one CPU by folded name.
struct Table<'c> {
    cpu: &'c Cpu,
    by_name: HashMap<String, usize>,
}

impl<'c> Table<'c> {
    fn new(cpu: &'c Cpu, noted: &mut Vec<(Location, String)>) -> Self {
        let mut by_name = HashMap::with_capacity(cpu.entries.len());
        for (at, entry) in cpu.entries.iter().enumerate() {
            let name = entry.full_name();
            if by_name.insert(name.to_ascii_uppercase(), at).is_some() {
                let name = shortened(&name);
                noted.push((
                    entry.location,
                    format!(
                        "there is another event `{name}` (letter case does not distinguish events)"
                    ),
                ));
            }
        }
        Self { cpu, by_name }
    }

    fn find(&self, event: &str, mask: &str) -> Option<&'c Entry> {
        let at = self.by_name.get(&join(event, mask).to_ascii_uppercase())?;
        self.cpu.entries.get(*at)
    }
}

/// Finds names as they will be found for one CPU: its own, its base's, the layers below.
struct Lookup<'c> {
    tables: &'c [Table<'c>],
    by_id: &'c HashMap<String, usize>,
    below: &'c dyn BaseLayer,
    id: &'c str,
    at: usize,
}

impl Lookup<'_> {
    /// The longest chain of bases that is followed.
    const DEEPEST: usize = 8;

    /// Returns the CPU's own table and those of its bases.
    fn chain(&self) -> impl Iterator<Item = &Table<'_>> {
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
        let here = |table: &Table<'_>| table.cpu.generalized.iter().any(|g| g.name == name);
        self.chain().any(here)
            || self
                .ids_below()
                .any(|id| self.below.has_generalized(id, name))
    }

    /// Returns true if this CPU defines a preset, in any letter case.
    fn has_preset(&self, name: &str) -> bool {
        let is_it = |preset: &Mapping| preset.name.eq_ignore_ascii_case(name);
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
            return table
                .cpu
                .entries
                .iter()
                .filter(|entry| {
                    entry.event.eq_ignore_ascii_case(event) && entry.bits.flags & flag::DEFAULT != 0
                })
                .map(|entry| entry.bits)
                .collect();
        }
        self.ids_below()
            .map(|id| self.below.default_masks(id, event))
            .find(|masks| !masks.is_empty())
            .unwrap_or_default()
    }
}

/// Returns the numbers that no two entries may share, unless one is `same-as` the other.
fn encoded(bits: Bits) -> impl std::hash::Hash + Eq {
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
fn counted(lookup: &Lookup<'_>, entry: &Entry) -> Bits {
    match entry.bits.flags & flag::GROUP {
        0 => entry.bits,
        _ => name::select(lookup, &entry.full_name()).map_or(entry.bits, |whole| whole.bits),
    }
}

fn check_overlaps(cpu: &Cpu, lookup: &Lookup<'_>, noted: &mut Vec<(Location, String)>) {
    let mut seen: HashMap<_, Vec<&Entry>> = HashMap::with_capacity(cpu.entries.len());
    for entry in &cpu.entries {
        if entry.bits.flags & flag::NEEDS_MASK != 0 {
            continue;
        }
        if entry.same_as.is_empty() {
            // A mask of a group is part of an event: it overlaps with another of its group only.
            let group = entry.bits.flags & flag::GROUP;
            let of = if group == 0 { "" } else { &entry.event };
            seen.entry((encoded(entry.bits), group, of))
                .or_default()
                .push(entry);
            continue;
        }
        let name = shortened(&entry.full_name());
        let other = name::select(lookup, &entry.same_as);
        let message = match other {
            Ok(other) if encoded(other.bits) == encoded(counted(lookup, entry)) => continue,
            Ok(_) => format!(
                "{name} is not the same as `{}`: its bits differ",
                shortened(&entry.same_as)
            ),
            Err(error) => format!(
                "{name}: `same-as` names `{}`: {}",
                shortened(&entry.same_as),
                error.reason()
            ),
        };
        noted.push((entry.location, message));
    }
    for entries in seen.values() {
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
                        shortened(&entry.full_name()),
                        shortened(&other.full_name())
                    ),
                ));
            }
        }
    }
}

fn check_mappings(cpu: &Cpu, lookup: &Lookup<'_>, noted: &mut Vec<(Location, String)>) {
    for mapping in &cpu.generalized {
        if !is_generalized(&mapping.name) {
            let name = shortened(&mapping.name);
            noted.push((
                mapping.location,
                format!(
                    "`{name}` is no generalized event; they are named as `perf list` names them"
                ),
            ));
        }
        if let Ok(text) = &mapping.text {
            check_event(cpu, lookup, mapping.location, &mapping.name, text, noted);
        }
    }
    reach::check_names(cpu, lookup, noted);
    for preset in &cpu.presets {
        let name = shortened(&preset.name);
        let legal = preset.name.len() <= 128
            && preset.name.starts_with(|c: char| c.is_ascii_alphabetic())
            && preset
                .name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !legal {
            noted.push((
                preset.location,
                format!("`{name}` is no name for a preset: letters, digits and `_` only"),
            ));
        }
        let Ok(text) = &preset.text else { continue };
        match Formula::parse(text) {
            Ok(formula) => {
                for event in formula.events() {
                    if is_software(event) {
                        continue;
                    }
                    if !is_generalized(event) {
                        check_event(cpu, lookup, preset.location, &preset.name, event, noted);
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
    noted: &mut Vec<(Location, String)>,
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
    if error == name::NameError::UnknownEvent && lookup.has_preset(event) {
        message += "; a formula names events, and that is a preset";
        noted.push((location, message));
        return;
    }
    // Many findings of this kind are not worth a search each.
    let entries = if noted.len() < 50 {
        &cpu.entries[..]
    } else {
        &[]
    };
    let names: Vec<String> = entries.iter().map(Entry::full_name).collect();
    if let [nearest, ..] = nearest_of(event, &names)[..] {
        message += &format!("; did you mean `{nearest}`?");
    }
    noted.push((location, message));
}
