//! JSON lines: an object a row, with the field names of perf-stat(1), "JSON FORMAT", and a few more
//! for what perf does not say.

use std::collections::BTreeMap;

use quipu::Count;
use serde::Serialize;

use super::super::aggregate::AggregateId;
use super::super::notes::Note;
use super::super::rows::{Row, TermCount};

/// One line. perf writes values as text, because they may be `<not counted>`.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<String>,
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
    /// Quipu's own: what counted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'static str>,
    /// Quipu's own: the value was scaled up from a part of the time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    estimate: bool,
    /// Quipu's own: how many parts of the target were never counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_parts: Option<usize>,
    /// Quipu's own: what each core type of a hybrid machine counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    core_types: BTreeMap<&'a str, String>,
    /// Quipu's own: what a preset of several events was made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    formula: Option<String>,
    /// Quipu's own: whether the terms of the formula were counted in one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_one_group: Option<bool>,
    /// Quipu's own: what was counted of each event of the formula.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    terms: Vec<TermLine<'a>>,
    /// Quipu's own: the reason why another program kept a part of the time from being counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    disturbance: Option<&'a str>,
    /// Quipu's own: how many nanoseconds it counted at a time, where it took turns with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_ns: Option<u128>,
    /// Quipu's own: why there is no value.
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

/// Appends a line for each row.
pub fn rows(out: &mut String, rows: &[Row], time: Option<f64>) {
    for row in rows {
        // There is nothing in a line that JSON cannot hold: its numbers are finite.
        out.push_str(&serde_json::to_string(&line(row, time)).unwrap_or_default());
        out.push('\n');
    }
}

fn line(row: &Row, time: Option<f64>) -> Line<'_> {
    let mut line = Line {
        interval: time,
        counter_value: match row.no_value() {
            Some(words) => format!("<{words}>"),
            None => value(row, row.count),
        },
        unit: &row.unit.name,
        event: &row.name,
        backend: row.backend,
        cgroup: row.cgroup.as_deref(),
        variance: row.spread.map(|spread| rounded(spread.percent, 2)),
        event_runtime: row.running,
        pcnt_running: rounded(row.percent_running(), 2),
        estimate: row.count.is_estimate(),
        missing_parts: Some(row.count.missing()).filter(|missing| *missing > 0),
        core_types: row
            .cores
            .iter()
            .map(|(core, count)| (core.as_str(), value(row, *count)))
            .collect(),
        disturbance: row.disturbance.as_deref(),
        turn_ns: row.turn.map(|turn| turn.as_nanos()),
        reason: row.reason.as_deref(),
        ..Line::default()
    };
    if let Some(preset) = &row.preset {
        line.formula = Some(preset.formula.to_string());
        line.in_one_group = Some(preset.in_one_group);
        line.terms = preset.terms.iter().map(term).collect();
    }
    if let Some(metric) = &row.metric {
        line.metric_value = rounded(metric.value, 6);
        line.metric_unit = &metric.unit;
    }
    match &row.place {
        AggregateId::Whole => {}
        AggregateId::Cpu(cpu) => line.cpu = Some(cpu.to_string()),
        AggregateId::Core { .. } => line.core = Some(row.place.to_string()),
        AggregateId::Socket(_) => line.socket = Some(row.place.to_string()),
        AggregateId::Thread { .. } => line.thread = Some(row.place.to_string()),
    }
    if matches!(row.place, AggregateId::Core { .. } | AggregateId::Socket(_)) {
        line.aggregate_number = Some(row.cpus);
    }
    line
}

fn term(term: &TermCount) -> TermLine<'_> {
    TermLine {
        event: &term.name,
        counter_value: match term.count.value() {
            Some(value) if term.unit.is_plain() => format!("{value}.000000"),
            Some(value) => format!("{:.6}", term.unit.scale(value as f64)),
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
        (Some(value), _) => format!("{:.6}", row.unit.scale(value as f64)),
        (None, _) => String::new(),
    }
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let factor = 10f64.powi(decimals);
    (value * factor).round() / factor
}
