//! The event database's part of the listing: native events and presets, and the CPUs there are.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quipu::{Error, Event, EventSpec, Target};
use quipu_events::{CpuTable, EventDetails, GeneralizedEvent, PresetEvent};
use serde_json::{Value, json};

use crate::encode::counters;
use crate::events::CpuChoice;
use quipu_shell::Failure;
use quipu_shell::terminal::{Layout, table_lines};

use super::description::{Descriptions, named};
use super::probe::open_here;
use super::selection::ListFilter;
use super::short::ShortSection;

/// Returns the CPUs of the database, one a line.
pub(super) fn cpus(choice: &CpuChoice) -> Result<String, Failure> {
    let mut table = Layout::PLAIN.table(0);
    table.add_rows(
        choice
            .database()?
            .cpus()
            .into_iter()
            .map(|cpu| [cpu.id, cpu.name]),
    );
    Ok(table_lines(table, 0).map(|line| line + "\n").collect())
}

/// The selected events of the database for the CPUs of a machine.
pub(super) struct Native {
    cpus: Vec<ListedCpu>,
    /// Why there is nothing.
    unknown: Option<Failure>,
    /// Why none of the events opens here, where one was tried.
    refused: Option<Error>,
}

struct ListedCpu {
    table: CpuTable,
    events: Vec<EventDetails>,
    generalized: Vec<GeneralizedEvent>,
    presets: Vec<PresetEvent>,
}

impl Native {
    /// Returns the events of the CPU that was chosen, or of every kind of core of this machine, whose
    /// names are asked for.
    ///
    /// # Errors
    /// When the event file cannot be used, or there is no such CPU or none that is known.
    pub(super) fn of(choice: &CpuChoice, selection: &ListFilter) -> Result<Self, Failure> {
        let cpu = |table: CpuTable| {
            let mut events = table.events();
            events
                .retain(|event| selection.has_event([event.name.as_str()], || event.description()));
            let mut generalized = table.generalized();
            generalized.retain(|event| {
                let description = event.description();
                selection.has_event([event.name.as_str()], || description.as_deref())
            });
            let mut presets = table.presets();
            presets.retain(|preset| {
                selection.has_event([preset.name.as_str()], || preset.description())
            });
            ListedCpu {
                table,
                events,
                generalized,
                presets,
            }
        };
        Ok(Self {
            cpus: choice.tables()?.into_iter().map(cpu).collect(),
            unknown: None,
            refused: None,
        })
    }

    /// Returns the events of this machine, for which an unknown CPU is no failure. One event is
    /// tried for all: what is in the way of it is in the way of the others.
    pub(super) fn of_this_machine(choice: &CpuChoice, selection: &ListFilter) -> Self {
        let mut native = Self::of(choice, selection).unwrap_or_else(|failure| Self {
            cpus: Vec::new(),
            // Who searches wants to see what is found.
            unknown: Some(failure).filter(|_| selection.is_everything()),
            refused: None,
        });
        let mut events = native.cpus.iter().flat_map(|cpu| &cpu.events);
        if let Some(event) = events.find(|event| !event.needs_mask) {
            let spec = EventSpec::new(Event::Named(event.name.clone()));
            native.refused = open_here(&spec, &Target::CurrentThread).err();
        }
        native
    }

    /// Returns the tables of the CPUs.
    pub(super) fn tables(&self) -> Vec<CpuTable> {
        self.cpus.iter().map(|cpu| cpu.table.clone()).collect()
    }

    /// Returns true if no event is selected.
    pub(super) fn is_empty(&self) -> bool {
        self.cpus.iter().all(|cpu| {
            cpu.events.is_empty() && cpu.generalized.is_empty() && cpu.presets.is_empty()
        })
    }

    /// Returns the names and descriptions of events and presets.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.cpus.iter().flat_map(|cpu| {
            let events = cpu.events.iter();
            let events = events.flat_map(|event| [Some(event.name.as_str()), event.description()]);
            let presets = cpu.presets.iter();
            let presets =
                presets.flat_map(|preset| [Some(preset.name.as_str()), preset.description()]);
            events.chain(presets).flatten()
        })
    }

    /// Returns the ids of the CPUs.
    pub(super) fn ids(&self) -> String {
        let ids: Vec<_> = self.cpus.iter().map(|cpu| cpu.table.id()).collect();
        ids.join(" and ")
    }

    /// Returns the part of the whole listing, below the other kinds.
    pub(super) fn section(
        &self,
        selection: &ListFilter,
        descriptions: Descriptions,
        layout: Layout,
    ) -> String {
        let mut text = String::new();
        if let Some(why) = &self.unknown {
            let heading = layout.bold("Native events");
            let _ = writeln!(text, "\n{heading}: none listed\n  why:  {why}");
        }
        for cpu in self.cpus.iter().filter(|cpu| !cpu.events.is_empty()) {
            let heading = format!("Native events of {} ({})", cpu.table.id(), cpu.table.name());
            let opens = if self.refused.is_some() {
                ", none available here"
            } else {
                ""
            };
            let count = cpu.events.len();
            let _ = writeln!(text, "\n{}: {count}{opens}", layout.bold(&heading));
            if let Some(error) = &self.refused {
                let _ = writeln!(text, "  why:  {}", super::report::reason(error));
            }
            let events = cpu.events.iter();
            text.extend(events.map(|event| described(event, descriptions, layout)));
        }
        for cpu in &self.cpus {
            // Who searches for a preset is told why there is none.
            let mut presets = cpu
                .presets
                .iter()
                .filter(|preset| !selection.is_everything() || preset.formula.is_ok())
                .peekable();
            if presets.peek().is_some() {
                let heading = format!("Presets on {}", cpu.table.id());
                let _ = writeln!(text, "\n{}:", layout.bold(&heading));
                text.extend(presets.map(|preset| preset_lines(preset, descriptions, layout)));
            }
        }
        text
    }

    /// Returns the presets, metrics and native events of the CPUs as the short listing has them: with their names, if
    /// they can be counted here.
    pub(super) fn short(&self) -> Vec<ShortSection> {
        let of_cpus = self.cpus.iter().map(|cpu| cpu.table.name().to_owned());
        let of_cpus = of_cpus.collect::<Vec<_>>().join(" and ");
        let named = |filter, kind: &str, count: usize, names: BTreeSet<String>| {
            let opens = self.refused.is_none();
            ShortSection {
                filter,
                heading: format!("{kind} of {of_cpus}"),
                names: names.into_iter().filter(|_| opens).collect(),
                summary: match (&self.unknown, opens) {
                    (Some(why), _) => why.to_string(),
                    (None, true) => count.to_string(),
                    (None, false) => format!("{count}, none available here"),
                },
            }
        };
        let mut short = Vec::new();
        let presets = self.cpus.iter().flat_map(|cpu| &cpu.presets);
        let with_formula = presets.filter(|preset| preset.formula.is_ok());
        let presets: BTreeSet<String> = with_formula.map(|preset| preset.name.clone()).collect();
        if !presets.is_empty() {
            short.push(named("PAPI_", "Presets", presets.len(), presets));
        }
        let metrics = self.cpus.iter().flat_map(|cpu| cpu.table.metrics());
        let metrics: BTreeSet<String> = metrics.map(|metric| metric.name).collect();
        if !metrics.is_empty() {
            short.push(named(
                "metrics",
                "Metrics (stat -M)",
                metrics.len(),
                metrics,
            ));
        }
        let events = self.cpus.iter().map(|cpu| cpu.events.len()).sum();
        short.push(named("native", "Native events", events, BTreeSet::new()));
        short
    }

    /// Returns the full listing, CPU by CPU.
    pub(super) fn text(&self, descriptions: Descriptions, layout: Layout) -> String {
        let mut text = String::new();
        for cpu in &self.cpus {
            if !text.is_empty() {
                text.push('\n');
            }
            let heading = format!("{} ({})", cpu.table.id(), cpu.table.name());
            let _ = writeln!(text, "{}", layout.bold(&heading));
            let events = cpu.events.iter();
            text.extend(events.map(|event| described(event, descriptions, layout)));
            for generalized in &cpu.generalized {
                let name = &generalized.name;
                text += &match &generalized.event {
                    Ok(event) => named(name, " = ", event, layout.without_colour()),
                    Err(reason) => named(name, "  ", reason, layout),
                };
                text += &descriptions.lines(generalized.description().as_deref(), layout);
            }
            let presets = cpu.presets.iter();
            text.extend(presets.map(|preset| preset_lines(preset, descriptions, layout)));
        }
        text
    }

    /// Returns the native events as JSON objects.
    pub(super) fn objects(&self) -> Vec<Value> {
        let of_cpu = |cpu: &ListedCpu| -> Vec<Value> {
            let events = cpu.events.iter();
            events.map(|event| object(&cpu.table, event)).collect()
        };
        self.cpus.iter().flat_map(of_cpu).collect()
    }

    /// Events and presets as objects of the whole listing.
    pub(super) fn entries(&self) -> Vec<Value> {
        let state = match (&self.refused, self.cpus.is_empty()) {
            (Some(error), _) => {
                json!({ "state": "refused", "reason": super::report::reason(error) })
            }
            _ => json!({ "state": "not probed" }),
        };
        let mut entries = Vec::new();
        for cpu in &self.cpus {
            for event in &cpu.events {
                let mut entry = state.clone();
                entry["event"] = event.name.as_str().into();
                entry["EventName"] = event.name.as_str().into();
                entry["BriefDescription"] = event.description().into();
                if let Some(long) = event.long_description() {
                    entry["PublicDescription"] = long.into();
                }
                entry["kind"] = "native".into();
                entry["native"] = object(&cpu.table, event);
                entries.push(entry);
            }
            for preset in &cpu.presets {
                let mut entry = json!({
                    "event": preset.name,
                    "EventName": preset.name,
                    "BriefDescription": preset.description(),
                    "kind": "preset",
                    "cpu": cpu.table.id(),
                });
                match &preset.formula {
                    Ok(formula) => entry["formula"] = formula.to_string().into(),
                    Err(reason) => entry["reason"] = reason.as_str().into(),
                }
                entries.push(entry);
            }
        }
        entries
    }
}

/// Returns a preset with its formula, or with the reason why it has none, which says what it counts.
fn preset_lines(preset: &PresetEvent, descriptions: Descriptions, layout: Layout) -> String {
    match &preset.formula {
        Ok(formula) => {
            let description = descriptions.lines(preset.description(), layout);
            let formula = formula.to_string();
            named(&preset.name, " = ", &formula, layout.without_colour()) + &description
        }
        Err(reason) => named(&preset.name, "  ", reason, layout),
    }
}

/// Returns an event with its description.
fn described(event: &EventDetails, descriptions: Descriptions, layout: Layout) -> String {
    let long = || event.long_description();
    line(event, layout) + &descriptions.of(event.description(), long, layout)
}

fn line(event: &EventDetails, layout: Layout) -> String {
    if event.needs_mask {
        return named(&event.name, "  ", "with a mask of those below", layout);
    }
    let mut facts = vec![format!("event {:#04x}", event.code)];
    if !event.mask.is_empty() || event.unit_mask != 0 {
        facts.push(format!("mask {:#04x}", event.unit_mask));
    }
    if event.counter_mask != 0 {
        facts.push(format!("counter mask {}", event.counter_mask));
    }
    facts.extend(event.flags.iter().map(|flag| (*flag).to_owned()));
    if let Some((register, value)) = event.register {
        facts.push(format!("register {register:#x} = {value:#x}"));
    }
    if let Some(counters) = counters(event.slots) {
        facts.push(format!("counters {counters}"));
    }
    if event.is_default {
        facts.push("default".to_owned());
    }
    if event.is_deprecated {
        facts.push("deprecated".to_owned());
    }
    if let Some(same_as) = &event.same_as {
        facts.push(format!("same as {same_as}"));
    }
    if !event.errata.is_empty() {
        facts.push(format!("errata {}", event.errata.join(", ")));
    }
    named(&event.name, "  ", &facts.join("; "), layout)
}

fn object(table: &CpuTable, event: &EventDetails) -> Value {
    json!({
        "cpu": table.id(),
        "name": event.name,
        "event": event.event,
        "mask": event.mask,
        "code": event.code,
        "unit_mask": event.unit_mask,
        "counter_mask": event.counter_mask,
        "flags": event.flags,
        "counters": counters(event.slots),
        "register": event.register.map(|(address, value)| json!({ "address": address, "value": value })),
        "needs_mask": event.needs_mask,
        "default": event.is_default,
        "deprecated": event.is_deprecated,
        "same_as": event.same_as,
        "errata": event.errata,
        "BriefDescription": event.description(),
        "PublicDescription": event.long_description(),
    })
}
