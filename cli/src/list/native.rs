//! `quipu list native` and `quipu list cpus`: what the event database has.

use quipu::events::{CpuTable, EventDetails};
use serde_json::{Value, json};

use crate::encode::counters;
use crate::events::Choice;
use crate::failure::Failure;
use crate::terminal::Layout;

/// The CPUs of the database, one a line.
pub(super) fn cpus(choice: &Choice) -> Result<String, Failure> {
    let cpus = choice.database()?.cpus();
    let width = cpus.iter().map(|cpu| cpu.id.len()).max().unwrap_or(0);
    Ok(cpus
        .iter()
        .map(|cpu| format!("{:<width$}  {}\n", cpu.id, cpu.name))
        .collect())
}

/// The native events, generalized events and presets of a CPU that have one of the texts in their name.
pub(super) fn text(choice: &Choice, texts: &[String], layout: Layout) -> Result<String, Failure> {
    let mut text = String::new();
    for table in choice.tables()? {
        if !text.is_empty() {
            text.push('\n');
        }
        let heading = format!("{} ({})", table.id(), table.name());
        text += &format!("{}\n", layout.bold(&heading));
        for event in events(&table, texts) {
            text += &line(&event, layout);
        }
        for generalized in table.generalized() {
            if matches(&generalized.name, texts) {
                text += &match generalized.event {
                    Ok(event) => format!("  {} = {event}\n", generalized.name),
                    Err(reason) => format!("  {}  {}\n", generalized.name, layout.dim(&reason)),
                };
            }
        }
        for preset in table.presets() {
            if matches(&preset.name, texts) {
                text += &match preset.formula {
                    Ok(formula) => format!("  {}  {}\n", preset.name, formula.events().join(", ")),
                    Err(reason) => format!("  {}  {}\n", preset.name, layout.dim(&reason)),
                };
            }
        }
    }
    Ok(text)
}

/// The native events as JSON.
pub(super) fn json(choice: &Choice, texts: &[String]) -> Result<String, Failure> {
    let mut list = Vec::new();
    for table in choice.tables()? {
        list.extend(
            events(&table, texts)
                .iter()
                .map(|event| object(&table, event)),
        );
    }
    let text = serde_json::to_string_pretty(&list).map_err(Failure::new)?;
    Ok(text + "\n")
}

fn events(table: &CpuTable, texts: &[String]) -> Vec<EventDetails> {
    let mut events = table.events();
    events.retain(|event| matches(&event.name, texts));
    events
}

/// Whether a name has one of the texts in it, letter case aside.
fn matches(name: &str, texts: &[String]) -> bool {
    let name = name.to_lowercase();
    texts.is_empty() || texts.iter().any(|text| name.contains(&text.to_lowercase()))
}

fn line(event: &EventDetails, layout: Layout) -> String {
    if event.needs_mask {
        return format!(
            "  {}  {}\n",
            event.name,
            layout.dim("with a mask of those below")
        );
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
    if let Some(description) = &event.description {
        facts.push(description.clone());
    }
    format!("  {}  {}\n", event.name, layout.dim(&facts.join("; ")))
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
        "description": event.description,
    })
}
