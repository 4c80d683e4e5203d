//! The events of units outside of the cores: those of the units that this machine's kernel has, or of another CPU.

use std::fmt::Write as _;

use quipu_events::{CpuTable, UncoreDetails};
use serde_json::{Value, json};

use quipu_shell::terminal::Layout;

use super::description::{Descriptions, named};
use super::selection::ListFilter;
use super::short::ShortSection;

/// The selected uncore events of some CPUs.
pub(super) struct Uncore {
    cpus: Vec<(CpuTable, Vec<UncoreDetails>)>,
}

impl Uncore {
    /// Returns the selected events of these CPUs: of all units, or of those that this machine's kernel has.
    pub(super) fn new(tables: Vec<CpuTable>, selection: &ListFilter, of_all: bool) -> Self {
        // Kinds of core have the units of their machine in common.
        let mut listed: Vec<UncoreDetails> = Vec::new();
        let mut cpus = Vec::new();
        for table in tables {
            let mut events = table.uncore_events();
            events.retain(|event| {
                selection.has_event([event.name.as_str(), event.pmu], || event.description())
            });
            events.retain(|event| !listed.contains(event));
            let mut units: Vec<&str> = events.iter().map(|event| event.pmu).collect();
            units.sort_unstable();
            units.dedup();
            units.retain(|pmu| of_all || is_here(pmu));
            events.retain(|event| units.contains(&event.pmu));
            listed.extend(events.iter().cloned());
            cpus.push((table, events));
        }
        cpus.retain(|(_, events)| !events.is_empty());
        Self { cpus }
    }

    /// Returns the full listing, CPU by CPU.
    pub(super) fn text(&self, descriptions: Descriptions, layout: Layout) -> String {
        let mut text = String::new();
        for (table, events) in &self.cpus {
            let separator = if text.is_empty() { "" } else { "\n" };
            let heading = format!("{} ({}), uncore", table.id(), table.name());
            let _ = writeln!(text, "{separator}{}", layout.bold(&heading));
            for event in events {
                let mut facts = event.encoded();
                if let Some((factor, unit)) = event.scale {
                    let _ = write!(facts, "; in {unit}, {factor} each");
                }
                text += &named(&event.name, "  ", &facts, layout);
                let long = || event.long_description();
                text += &descriptions.of(event.description(), long, layout);
            }
        }
        text
    }

    /// Returns the events as JSON objects.
    pub(super) fn objects(&self) -> Vec<Value> {
        let of_cpu = |(table, events): &(CpuTable, Vec<UncoreDetails>)| -> Vec<Value> {
            let object = |event: &UncoreDetails| {
                json!({
                    "cpu": table.id(),
                    "name": event.name,
                    "pmu": event.pmu,
                    "terms": event.terms,
                    "BriefDescription": event.description(),
                    "PublicDescription": event.long_description(),
                    "unit": event.scale.map(|(_, unit)| unit),
                    "scale": event.scale.map(|(factor, _)| factor),
                })
            };
            events.iter().map(object).collect()
        };
        self.cpus.iter().flat_map(of_cpu).collect()
    }

    /// Returns the part of the whole listing, below the other kinds.
    pub(super) fn section(&self, descriptions: Descriptions, layout: Layout) -> String {
        let text = self.text(descriptions, layout);
        if text.is_empty() {
            text
        } else {
            format!("\n{text}")
        }
    }

    /// Returns the events as the short listing has them: how many of which units.
    pub(super) fn short(&self) -> Option<ShortSection> {
        let mut units: Vec<&str> = self
            .cpus
            .iter()
            .flat_map(|(_, events)| events)
            .map(|event| event.pmu)
            .collect();
        let events = units.len();
        units.sort_unstable();
        units.dedup();
        (events > 0).then(|| ShortSection {
            filter: "uncore",
            heading: "Uncore events".to_owned(),
            names: Vec::new(),
            summary: format!("{events}, of {}", units.join(", ")),
        })
    }

    /// Returns the events as objects of the whole listing.
    pub(super) fn entries(&self) -> Vec<Value> {
        let objects = self.objects().into_iter();
        objects
            .map(|uncore| {
                json!({ "event": uncore["name"], "EventName": uncore["name"], "kind": "uncore", "state": "not probed", "uncore": uncore })
            })
            .collect()
    }

    /// Returns true if no event is selected.
    pub(super) fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }
}

/// Returns true if the kernel has a PMU of this name, or numbered instances of it.
#[cfg(target_os = "linux")]
fn is_here(pmu: &str) -> bool {
    let pmus = quipu_linux::sysfs::SysfsPmus::new();
    pmus.pmu(pmu).is_ok() || !pmus.instances(pmu).is_empty()
}

/// Returns false: Linux alone counts what cores do not.
#[cfg(not(target_os = "linux"))]
fn is_here(_: &str) -> bool {
    false
}
