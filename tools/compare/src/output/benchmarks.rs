//! The formats of services that keep benchmarks.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::report::Report;

use super::pretty;

/// Returns Bencher's metric format: benchmarks, each with its measures and the ends of the intervals of their means.
/// Bencher's measures of time are in nanoseconds.
pub(super) fn bencher(report: &Report) -> String {
    let mut benchmarks = Map::new();
    for (at, command) in report.commands.iter().enumerate() {
        let mut measures = Map::new();
        for metric in &report.metrics {
            let (name, factor) = match (metric.metric.name.as_str(), metric.metric.unit.as_str()) {
                ("elapsed", _) => ("latency", 1e9),
                (name, "s") => (name, 1e9),
                (name, _) => (name, 1.0),
            };
            let interval = metric.summaries[at].interval(report.confidence);
            let measure = json!({
                "value": interval.value * factor,
                "lower_value": interval.low * factor,
                "upper_value": interval.high * factor,
            });
            measures.insert(name.to_owned(), measure);
        }
        benchmarks.insert(
            unique(&benchmarks, &command.name, &command.label),
            Value::Object(measures),
        );
    }
    pretty(&benchmarks)
}

/// Returns the name of a command, with its letter if another one has the name.
fn unique(known: &Map<String, Value>, name: &str, label: &str) -> String {
    match known.contains_key(name) {
        true => format!("{name} ({label})"),
        false => name.to_owned(),
    }
}

#[derive(Debug, Serialize)]
struct Benchmark {
    name: String,
    unit: String,
    value: f64,
    range: String,
    extra: String,
}

/// Returns what github-action-benchmark reads as `customSmallerIsBetter`.
pub(super) fn github(report: &Report) -> String {
    let mut benchmarks = Vec::new();
    for (at, command) in report.commands.iter().enumerate() {
        for metric in &report.metrics {
            let summary = &metric.summaries[at];
            let interval = summary.interval(report.confidence);
            benchmarks.push(Benchmark {
                name: format!("{}: {}", command.name, metric.metric.name),
                unit: match metric.metric.unit.as_str() {
                    "" => "events".to_owned(),
                    unit => unit.to_owned(),
                },
                value: summary.mean,
                range: format!("± {}", (interval.high - interval.low) / 2.0),
                extra: format!(
                    "{} runs, {} to {}",
                    summary.count, summary.least, summary.most
                ),
            });
        }
    }
    pretty(&benchmarks)
}
