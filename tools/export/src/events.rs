//! Events as metrics: names, units, sentences.

use std::sync::Arc;

use quipu::{Event, EventInfo, Formula, NativeEvents, SetEvent};
use quipu_hal::ValueKind;
use quipu_shell::target;
use quipu_text::nearest_of;

use crate::series::Shape;

/// A number that a formula makes of events over the time since the read before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) formula: String,
    pub(crate) description: String,
}

impl Metric {
    /// Returns the metric of a formula of the file.
    pub(crate) fn of_formula(
        name: &str,
        formula: &str,
        description: Option<String>,
    ) -> Result<Self, String> {
        let parsed = Formula::parse(formula).map_err(|e| e.to_string())?;
        if parsed.events().is_empty() {
            return Err("the formula counts no event".to_owned());
        }
        Ok(Self {
            name: name.to_owned(),
            formula: formula.to_owned(),
            description: description.unwrap_or_else(|| format!("The formula {formula}")),
        })
    }

    /// Returns a metric that the event database has of this CPU.
    pub(crate) fn of_database(name: &str) -> Result<Self, String> {
        let tables = NativeEvents::this()
            .tables()
            .map_err(|e| format!("{e:#}"))?;
        let [table] = tables else {
            return Err(
                "this CPU has several kinds of core: give the metric a `formula`".to_owned(),
            );
        };
        let metrics = table.metrics();
        let Some(found) = metrics.iter().find(|metric| metric.name == name) else {
            let near = nearest_of(name, metrics.iter().map(|metric| metric.name.as_str()));
            let advice = match near.first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => "give it a `formula`".to_owned(),
            };
            return Err(format!(
                "{} has no metric `{}`; {advice}",
                table.id(),
                name.escape_debug()
            ));
        };
        let smt = found
            .smt_formula
            .clone()
            .filter(|_| target::threads_share_cores());
        Self::of_formula(
            name,
            smt.as_ref().unwrap_or(&found.formula),
            Some(found.description.clone()),
        )
    }
}

/// The metric that an event is.
#[derive(Debug, Clone)]
pub(crate) struct EventMetric {
    /// The event as it was asked for.
    pub(crate) event: Arc<str>,
    pub(crate) name: String,
    pub(crate) unit: Option<&'static str>,
    /// The factor from values to the unit.
    pub(crate) factor: f64,
    pub(crate) help: String,
    pub(crate) shape: Shape,
    /// True if it is a momentary value, which is not summed up.
    pub(crate) is_level: bool,
    /// The letters of its modifiers.
    pub(crate) modifiers: Option<Arc<str>>,
}

impl EventMetric {
    /// Returns the metric of an open event.
    pub(crate) fn of(event: &SetEvent, info: &EventInfo, metrics: &[Metric]) -> Self {
        let spec = event.spec();
        let plain = spec.event.to_string();
        let modifiers = spec.to_string();
        let modifiers = modifiers.strip_prefix(&plain).unwrap_or_default();
        let modifiers = modifiers.trim_matches([':', '/']);
        let metric = metrics
            .iter()
            .find(|metric| matches!(&spec.event, Event::Named(name) if *name == metric.name));
        let (unit, to_unit) = unit(&info.unit);
        let is_level = info.kind == ValueKind::Gauge;
        let mut name = format!("quipu_{}", word(&plain));
        // The suffixes are the encoder's.
        if let Some(shorter) = name.strip_suffix("_total") {
            name.truncate(shorter.len());
        }
        Self {
            event: event.name().into(),
            name,
            unit,
            factor: info.scale * to_unit,
            help: match metric {
                Some(metric) => metric.description.clone(),
                None => help(&spec.event),
            },
            shape: match metric.is_some() || is_level {
                true => Shape::Gauge,
                false => Shape::Counter,
            },
            is_level,
            modifiers: (!modifiers.is_empty()).then(|| modifiers.into()),
        }
    }
}

/// Returns text with what no name of a metric may have replaced.
fn word(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars() {
        match c.is_ascii_alphanumeric() {
            true => word.push(c.to_ascii_lowercase()),
            false if word.ends_with('_') => {}
            false => word.push('_'),
        }
    }
    word.trim_matches('_').to_owned()
}

/// Returns the base unit of a unit, and the factor that leads there.
fn unit(unit: &str) -> (Option<&'static str>, f64) {
    match unit {
        "ns" => (Some("seconds"), 1e-9),
        "us" => (Some("seconds"), 1e-6),
        "ms" | "msec" => (Some("seconds"), 1e-3),
        "s" => (Some("seconds"), 1.0),
        "Joules" | "J" => (Some("joules"), 1.0),
        "B" | "Bytes" | "bytes" => (Some("bytes"), 1.0),
        "KiB" => (Some("bytes"), 1024.0),
        "MiB" => (Some("bytes"), 1024.0 * 1024.0),
        "GiB" => (Some("bytes"), 1024.0 * 1024.0 * 1024.0),
        "MB" => (Some("bytes"), 1e6),
        "C" => (Some("celsius"), 1.0),
        _ => (None, 1.0),
    }
}

/// Returns the sentence that says what an event counts.
fn help(event: &Event) -> String {
    let described = quipu_text::describe(event).or_else(|| {
        let Event::Named(name) = event else {
            return None;
        };
        let mut tables = NativeEvents::this().tables().unwrap_or_default().iter();
        tables.find_map(|table| {
            let event = table
                .event(name)
                .and_then(|event| event.description().map(str::to_owned));
            event.or_else(|| table.preset(name)?.description().map(str::to_owned))
        })
    });
    let text = described.unwrap_or_else(|| format!("Events of {event}"));
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_units_are_base_units() {
        assert_eq!(word("cpu/event=0xc0,umask=1/"), "cpu_event_0xc0_umask_1");
        assert_eq!(word("L1-dcache-load-misses"), "l1_dcache_load_misses");
        assert_eq!(unit("ns"), (Some("seconds"), 1e-9));
        assert_eq!(unit("MiB"), (Some("bytes"), 1_048_576.0));
        assert_eq!(unit("frobs"), (None, 1.0));
    }

    #[test]
    fn sentences_are_those_of_the_event_database() {
        let faults = help(&quipu::Software::PageFaults.into());
        assert_eq!(faults, "Page faults, minor and major");
        let unknown = help(&Event::Named("X87_OPS".into()));
        assert_eq!(unknown, "Events of X87_OPS");
    }
}
