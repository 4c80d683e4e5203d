//! Checks for what can never be reached: CPU entries that match no CPU, as earlier ones take every one they describe,
//! and names that are read as something else.

use std::ops::RangeInclusive;

use quipu_hal::Event;
use quipu_text::parse_event;

use super::{Lookup, Noted};
use crate::bits::flag;
use crate::generalized::cache_key;
use crate::model::{Cpu, EventEntry, Mapping, Rule};
use crate::name::Names as _;
use crate::printable::shortened;

/// Notes every event and preset whose name means something else where it is written, and every preset that an
/// event of its name hides.
pub(super) fn check_names(cpu: &Cpu, lookup: &Lookup<'_>, noted: &mut Noted) {
    let strings = lookup.strings;
    let alone = |entry: &&EventEntry| {
        entry.mask(strings).is_empty() && entry.bits.flags & flag::NEEDS_MASK == 0
    };
    let events = cpu.entries.iter().filter(alone);
    let events = events.map(|entry| (entry.event(strings), entry.location));
    let presets = cpu
        .presets
        .iter()
        .map(|preset| (strings.get(preset.name), preset.location));
    for (name, location) in events.chain(presets) {
        let read_as = match parse_event(name) {
            Ok(Event::Named(own)) if own == name => continue,
            Ok(Event::Hardware(event)) => event.name().to_owned(),
            Ok(Event::Cache(event)) => cache_key(event),
            Ok(_) => String::new(),
            Err(_) => continue,
        };
        // A generalized event may stand for the event of its own name.
        let stands_for_it = |mapping: &Mapping| {
            strings.get(mapping.name) == read_as
                && mapping.text.is_ok_and(|text| strings.get(text) == name)
        };
        if !cpu.generalized.iter().any(stands_for_it) {
            let name = shortened(name);
            noted.push((
                location,
                format!("`{name}` is read as the event that every system has by that name, never as this one"),
            ));
        }
    }
    for preset in &cpu.presets {
        let name = strings.get(preset.name);
        if lookup.find(name, "").is_some() {
            let name = shortened(name);
            noted.push((
                preset.location,
                format!("the event `{name}` hides this preset"),
            ));
        }
    }
}

/// The rest of a rule once earlier rules have taken their share: models, steppings, core kinds.
#[derive(Clone)]
struct Share {
    models: (u16, u16),
    steppings: (u8, u8),
    /// One bit for each kind of core that rules distinguish.
    cores: u64,
}

/// Past this many pieces a rule counts as reachable: no table of real CPUs is cut up so.
const MOST_SHARES: usize = 256;

/// Past this many rules for one family the rest are not compared.
const MOST_RULES: usize = 2000;

/// Notes every entry with rules of which none can ever match.
///
/// Ordinary entries are tried in order, fallback entries after all of them.
pub(super) fn check(cpus: &[Cpu], noted: &mut Noted) {
    let kinds = core_kinds(cpus);
    let mut earlier: Vec<&Rule> = Vec::new();
    for fallback in [false, true] {
        for cpu in cpus.iter().filter(|cpu| cpu.fallback == fallback) {
            let reachable = cpu.rules.is_empty()
                || earlier.len() > MOST_RULES
                || cpu.rules.iter().any(|rule| reaches(rule, &earlier, &kinds));
            if !reachable {
                noted.push((
                    cpu.location,
                    format!(
                        "`{}` can never match: earlier entries take every CPU it describes",
                        shortened(&cpu.id)
                    ),
                ));
            }
            earlier.extend(&cpu.rules);
        }
    }
}

type CoreKind<'c> = (Option<&'c str>, Option<u32>);

/// Returns every kind of core that a rule names; the first stands for all others.
fn core_kinds(cpus: &[Cpu]) -> Vec<CoreKind<'_>> {
    let mut kinds: Vec<CoreKind<'_>> = vec![(None, None)];
    for rule in cpus.iter().flat_map(|cpu| &cpu.rules) {
        if let Rule::X86 {
            core_type: Some(core_type),
            native_model,
            ..
        } = rule
        {
            for kind in [
                (Some(core_type.as_str()), None),
                (Some(core_type.as_str()), *native_model),
            ] {
                if !kinds.contains(&kind) && kinds.len() < 64 {
                    kinds.push(kind);
                }
            }
        }
    }
    kinds
}

fn cores(core_type: Option<&str>, native_model: Option<u32>, kinds: &[CoreKind<'_>]) -> u64 {
    kinds
        .iter()
        .enumerate()
        .filter(|(_, kind)| {
            core_type.is_none()
                || (kind.0 == core_type && (native_model.is_none() || kind.1 == native_model))
        })
        .fold(0, |bits, (at, _)| bits | 1 << at)
}

fn reaches(rule: &Rule, earlier: &[&Rule], kinds: &[CoreKind<'_>]) -> bool {
    let Rule::X86 {
        vendor,
        family,
        models,
        steppings,
        core_type,
        native_model,
    } = rule
    else {
        return !earlier.iter().any(|other| takes(other, rule));
    };
    let mut left: Vec<Share> = models
        .iter()
        .map(|models| Share {
            models: (*models.start(), *models.end()),
            steppings: (*steppings.start(), *steppings.end()),
            cores: cores(core_type.as_deref(), *native_model, kinds),
        })
        .collect();
    for other in earlier {
        if let Rule::X86 {
            vendor: other_vendor,
            family: other_family,
            models,
            steppings,
            core_type,
            native_model,
        } = other
            && (other_vendor, other_family) == (vendor, family)
        {
            let cores = cores(core_type.as_deref(), *native_model, kinds);
            for models in models {
                left = left
                    .into_iter()
                    .flat_map(|share| share.without(models, steppings, cores))
                    .collect();
                if left.is_empty() || left.len() > MOST_SHARES {
                    return !left.is_empty();
                }
            }
        }
    }
    !left.is_empty()
}

fn takes(other: &Rule, rule: &Rule) -> bool {
    match (other, rule) {
        (
            Rule::Arm {
                implementer: other_implementer,
                part: other_part,
            },
            Rule::Arm { implementer, part },
        ) => {
            (other_implementer.is_none() || other_implementer == implementer)
                && (other_part.is_none() || other_part == part)
        }
        // Of two patterns only the same one twice, and one for all, are reported.
        (
            Rule::Other {
                isa: other_isa,
                id: other_id,
            },
            Rule::Other { isa, id },
        ) => other_isa == isa && (other_id == id || other_id == "*"),
        _ => false,
    }
}

impl Share {
    /// Returns the rest of it without these models, steppings and cores.
    fn without(
        self,
        models: &RangeInclusive<u16>,
        steppings: &RangeInclusive<u8>,
        cores: u64,
    ) -> Vec<Self> {
        let models = (*models.start(), *models.end());
        let steppings = (*steppings.start(), *steppings.end());
        let both_models = (self.models.0.max(models.0), self.models.1.min(models.1));
        let both_steppings = (
            self.steppings.0.max(steppings.0),
            self.steppings.1.min(steppings.1),
        );
        if both_models.0 > both_models.1
            || both_steppings.0 > both_steppings.1
            || self.cores & cores == 0
        {
            return vec![self];
        }
        let mut left = Vec::new();
        if self.models.0 < both_models.0 {
            left.push(Self {
                models: (self.models.0, both_models.0 - 1),
                ..self
            });
        }
        if both_models.1 < self.models.1 {
            left.push(Self {
                models: (both_models.1 + 1, self.models.1),
                ..self
            });
        }
        if self.steppings.0 < both_steppings.0 {
            left.push(Self {
                models: both_models,
                steppings: (self.steppings.0, both_steppings.0 - 1),
                ..self
            });
        }
        if both_steppings.1 < self.steppings.1 {
            left.push(Self {
                models: both_models,
                steppings: (both_steppings.1 + 1, self.steppings.1),
                ..self
            });
        }
        if self.cores & !cores != 0 {
            left.push(Self {
                models: both_models,
                steppings: both_steppings,
                cores: self.cores & !cores,
            });
        }
        left
    }
}
