//! The lists of native events, one of each component.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use quipu::text::libpfm4::{self, CACHES, HARDWARE, OPERATIONS, RESULTS, SOFTWARE};
use quipu::text::{NoNames, describe, parse_spec};
use quipu::{Event, NativeEvents};

use crate::component::{CPU, UNCORE};
use crate::event::name::code_of;
use crate::event::native::Native;
use crate::event::preset::has_counters;

/// An event in the list of a component.
pub(crate) struct Listed {
    /// The name with its PMU.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) masks: Vec<(String, String)>,
    modifiers: &'static [(&'static str, &'static str)],
}

/// The modifiers of events of the CPU; those of software have all but the first two.
const MODIFIERS: [(&str, &str); 11] = [
    ("h=0", "counted in the hypervisor"),
    ("precise=0", "how precise the address of a sample is"),
    ("u=0", "counted in user mode"),
    ("k=0", "counted in the kernel"),
    ("period=0", "sampled after so many"),
    ("freq=0", "sampled so often in a second"),
    ("excl=0", "alone on the PMU"),
    ("mg=0", "counted in guests"),
    ("mh=0", "counted on the host"),
    ("cpu=0", "counted on this CPU"),
    ("pinned=0", "on a counter always"),
];

impl Listed {
    fn new(name: String, description: &str, modifiers: &'static [(&str, &str)]) -> Self {
        Self {
            name,
            description: description.to_owned(),
            masks: Vec::new(),
            modifiers,
        }
    }

    /// Returns a mask or modifier with its description: masks are first.
    pub(crate) fn mask(&self, at: usize) -> Option<(&str, &str)> {
        let masks = self.masks.iter().map(|(mask, what)| (&**mask, &**what));
        masks.chain(self.modifiers.iter().copied()).nth(at)
    }

    /// Returns true if a name is this event's, be it without its PMU, in another form, or with masks.
    pub(crate) fn is_named(&self, native: &Native) -> bool {
        let plain = |name: &str| {
            let event = name.rsplit("::").next().unwrap_or(name);
            event
                .split(':')
                .next()
                .unwrap_or(event)
                .to_ascii_uppercase()
        };
        let own = plain(&self.name);
        let is_generalized = || event_of(&own).is_some_and(|event| event == native.spec.event);
        own == plain(&native.name) || is_generalized()
    }
}

/// Returns the generalized event of one of the kernel's names.
fn event_of(name: &str) -> Option<Event> {
    let spec = parse_spec(&format!("{}::{name}", libpfm4::PMU), &NoNames).ok()?;
    Some(spec.event)
}

/// Returns the events of a component.
pub(crate) fn listed(component: usize) -> &'static [Listed] {
    static CPU_EVENTS: OnceLock<Vec<Listed>> = OnceLock::new();
    static UNCORE_EVENTS: OnceLock<Vec<Listed>> = OnceLock::new();
    match component {
        CPU => CPU_EVENTS.get_or_init(cpu_events),
        UNCORE => UNCORE_EVENTS.get_or_init(uncore_events),
        _ => &[],
    }
}

/// Returns the number of native events of a component.
pub(crate) fn number_listed(component: usize) -> usize {
    listed(component).len()
}

/// Returns what can be counted without asking for it by a name of another form: software events, and where
/// there are counters, those of the hardware.
fn cpu_events() -> Vec<Listed> {
    let named = |name: &str, modifiers| {
        let description = event_of(name).and_then(|event| describe(&event));
        let description = description.unwrap_or_default();
        Listed::new(format!("{}::{name}", libpfm4::PMU), &description, modifiers)
    };
    let mut all: Vec<Listed> = Vec::new();
    if has_counters() {
        all.extend(HARDWARE.iter().map(|(name, _)| named(name, &MODIFIERS)));
    }
    let software = SOFTWARE.iter();
    all.extend(software.map(|(name, _)| named(name, &MODIFIERS[2..])));
    all.retain(|listed| code_of(&listed.name).is_ok());
    if !has_counters() {
        return all;
    }
    all.extend(CACHES.iter().map(|(name, _)| {
        let operations = OPERATIONS.iter().map(|(mask, _)| *mask);
        let results = RESULTS.iter().map(|(mask, _)| *mask);
        let masks = operations.chain(results);
        Listed {
            masks: masks.map(|mask| (mask.to_owned(), String::new())).collect(),
            ..named(name, &MODIFIERS)
        }
    }));
    for table in NativeEvents::this().tables().unwrap_or_default() {
        let pmu = table.pmu_names().last().copied().unwrap_or(table.id());
        let mut events: BTreeMap<String, Listed> = BTreeMap::new();
        for details in table.events() {
            let name = format!("{pmu}::{}", details.event.to_ascii_uppercase());
            let description = details.description().unwrap_or_default().to_owned();
            let listed = events
                .entry(name.clone())
                .or_insert_with(|| Listed::new(name, "", &MODIFIERS));
            match details.mask.is_empty() {
                true => listed.description = description,
                false => {
                    let mask = details.mask.to_ascii_uppercase();
                    listed.masks.push((mask, description));
                }
            }
        }
        all.extend(events.into_values());
    }
    all
}

/// Returns the events of units outside of the cores that this kernel has.
fn uncore_events() -> Vec<Listed> {
    let units: Vec<String> = std::fs::read_dir("/sys/bus/event_source/devices")
        .map(|entries| {
            entries
                .flatten()
                .map(|e| e.file_name().to_string_lossy().into())
                .collect()
        })
        .unwrap_or_default();
    let is_there = |pmu: &str| {
        let instance = |unit: &String| {
            let rest = unit.strip_prefix(pmu);
            rest.is_some_and(|rest| {
                rest.trim_start_matches('_')
                    .chars()
                    .all(|c| c.is_ascii_digit())
            })
        };
        units.iter().any(instance)
    };
    let mut all = Vec::new();
    for table in NativeEvents::this().tables().unwrap_or_default() {
        for details in table.uncore_events() {
            if is_there(details.pmu) {
                all.push(Listed::new(details.name.clone(), &details.encoded(), &[]));
            }
        }
    }
    all
}
