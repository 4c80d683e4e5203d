//! JSON lines: an object a row, with the keys of perf-stat(1), "JSON FORMAT", and on request more of them
//! for what perf does not say.

use std::collections::BTreeMap;

use quipu::Count;
use serde::Serialize;

use super::super::notes::{Note, warning};
use super::super::rows::{Row, TermCount};
use super::Of;

/// One line. perf writes values as text, because they may be `<not counted>`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct JsonRow<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<f64>,
    /// By its kind.
    #[serde(flatten)]
    place: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_number: Option<usize>,
    counter_value: String,
    unit: &'a str,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variance: Option<f64>,
    event_runtime: u64,
    pcnt_running: f64,
    metric_value: f64,
    metric_unit: &'a str,
    /// `good` or `bad`, as perf says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    metric_threshold: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none", rename = "metricgroup")]
    metric_group: Option<String>,
    #[serde(flatten)]
    extra: Option<Extra<'a>>,
}

/// The keys of a line that perf does not have.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Extra<'a> {
    /// The backend that counted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'static str>,
    /// True if the value was scaled up from a part of the time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimate: bool,
    /// The number of parts of the target that were never counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_parts: Option<usize>,
    /// True if the value is a lower bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
    /// The counts of each core type of a hybrid machine.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    core_types: BTreeMap<&'a str, String>,
    /// The formula of a preset of several events.
    #[serde(skip_serializing_if = "Option::is_none")]
    formula: Option<String>,
    /// True if the terms of the formula were counted in one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_one_group: Option<bool>,
    /// The counts of each event of the formula.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    terms: Vec<TermLine<'a>>,
    /// The reason why another program kept a part of the time from being counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbance: Option<&'a str>,
    /// The nanoseconds it counted at a time, where it took turns with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_ns: Option<u128>,
    /// The reason why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// The count of one event of a formula.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct TermLine<'a> {
    event: &'a str,
    counter_value: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimate: bool,
}

/// Returns a remark in an object of its own.
pub fn remark(note: &Note) -> String {
    let object = serde_json::json!({ &note.about: note.events, "reason": note.text });
    format!("{object}\n")
}

/// Appends a line for each row; with the keys that perf does not have if `extra`. What would pass as a whole
/// count without them is remarked in an object of its own.
pub fn rows(out: &mut String, rows: &[Row], of: Of, extra: bool) {
    for row in rows {
        // There is nothing in a line that JSON cannot hold: its numbers are finite.
        out.push_str(&serde_json::to_string(&line(row, of, extra)).unwrap_or_default());
        out.push('\n');
        if !extra && let Some(note) = warning(row) {
            out.push_str(&remark(&note));
        }
    }
}

fn line(row: &Row, of: Of, extra: bool) -> JsonRow<'_> {
    let mut line = JsonRow {
        run: match of {
            Of::Run(number) => Some(number),
            _ => None,
        },
        interval: match of {
            Of::Interval(time) => Some(time),
            _ => None,
        },
        counter_value: match row.no_value() {
            Some(words) => format!("<{words}>"),
            None => value(row, row.count),
        },
        unit: &row.unit.name,
        event: &row.name,
        cgroup: row.cgroup.as_deref(),
        variance: row.spread.map(|spread| rounded(spread.percent, 2)),
        event_runtime: row.running,
        pcnt_running: rounded(row.percent_running(), 2),
        extra: extra.then(|| more(row)),
        ..JsonRow::default()
    };
    if let Some(metric) = &row.metric {
        line.metric_value = rounded(metric.value, 6);
        line.metric_unit = &metric.unit;
        line.metric_threshold = metric.attention.map(|bad| if bad { "bad" } else { "good" });
    }
    line.metric_group = row.derived.as_ref().map(|derived| derived.groups.join(";"));
    line.place = row.place.json().into_iter().collect();
    line.aggregate_number = row.place.is_of_cpus().then_some(row.cpus);
    line
}

fn more(row: &Row) -> Extra<'_> {
    let cores = row.cores.iter();
    let mut extra = Extra {
        backend: row.backend,
        estimate: row.count.is_estimate(),
        missing_parts: Some(row.count.missing()).filter(|missing| *missing > 0),
        at_least: row.count.is_lower_bound(),
        core_types: cores
            .map(|(core, count)| (core.as_str(), value(row, *count)))
            .collect(),
        disturbance: row.disturbance.as_deref(),
        turn_ns: row.turn.map(|turn| turn.as_nanos()),
        reason: row.reason.as_deref(),
        ..Extra::default()
    };
    if let Some(preset) = &row.preset {
        extra.formula = Some(preset.formula.to_string());
        extra.in_one_group = Some(preset.in_one_group);
        extra.terms = preset.terms.iter().map(term).collect();
    }
    extra
}

fn term(term: &TermCount) -> TermLine<'_> {
    TermLine {
        event: &term.name,
        counter_value: match term.count.value() {
            Some(value) if term.unit.is_plain() => format!("{value}.000000"),
            Some(value) => format!("{:.6}", term.unit.scale(value)),
            None => "<not counted>".into(),
        },
        unit: &term.unit.name,
        estimate: term.count.is_estimate(),
    }
}

/// Returns a value with six decimals, as perf writes it; a whole number with all its digits.
pub fn value(row: &Row, count: Count) -> String {
    match (count.value(), row.spread) {
        (Some(value), None) if row.unit.is_plain() => format!("{value}.000000"),
        (Some(_), Some(_)) if count == row.count => format!("{:.6}", row.amount().unwrap_or(0.0)),
        (Some(value), _) => format!("{:.6}", row.unit.scale(value)),
        (None, _) => String::new(),
    }
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let factor = 10f64.powi(decimals);
    (value * factor).round() / factor
}
