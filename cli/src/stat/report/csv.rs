//! Separated values, in the order of columns of perf-stat(1), "CSV FORMAT".
//!
//! Optional time of the interval, optional place (and how many CPUs share a core or socket), value,
//! unit, event, optional control group, optional spread, run time in nanoseconds, percentage of time
//! running, metric, unit of the metric. A field that contains the separator or a quote is quoted.

use std::fmt::Write;

use quipu::Count;

use super::super::aggregate::AggregateId;
use super::super::notes::Note;
use super::super::rows::Row;

/// Returns a remark in a line that is none of values, as perf begins its files with.
pub fn comment(note: &Note) -> String {
    format!(
        "# {}: {}: {}\n",
        note.about,
        note.events.join(", "),
        note.text
    )
}

/// Appends a line for each row.
pub fn rows(out: &mut String, rows: &[Row], time: Option<f64>, separator: &str) {
    for row in rows {
        let fields = fields(row, time);
        for (i, field) in fields.iter().enumerate() {
            if i > 0 {
                out.push_str(separator);
            }
            push_quoted(out, field, separator);
        }
        out.push('\n');
        // The notes at the end of all intervals have the others; and what is not supported is a column already.
        let here = row.count == Count::Jumped || time.is_none() && !row.is_unsupported;
        if let (Some(about), Some(reason), true) = (row.no_value(), &row.reason, here) {
            let _ = writeln!(out, "# {about}: {}: {reason}", row.name);
        }
    }
}

fn fields(row: &Row, time: Option<f64>) -> Vec<String> {
    let mut fields = Vec::with_capacity(12);
    if let Some(time) = time {
        fields.push(format!("{time:.9}"));
    }
    if row.place != AggregateId::Whole {
        fields.push(row.place.to_string());
    }
    if matches!(row.place, AggregateId::Core { .. } | AggregateId::Socket(_)) {
        fields.push(row.cpus.to_string());
    }
    fields.push(match row.count.value() {
        None => format!("<{}>", row.no_value().unwrap_or_default()),
        Some(value) if row.unit.is_plain() => value.to_string(),
        Some(_) => {
            let decimals = row.unit.decimals();
            format!("{:.decimals$}", row.amount().unwrap_or(0.0))
        }
    });
    fields.push(row.unit.name.clone());
    fields.push(row.name.clone());
    fields.extend(row.cgroup.clone());
    if let Some(spread) = row.spread {
        fields.push(format!("{:.2}%", spread.percent));
    }
    fields.push(row.running.to_string());
    fields.push(format!("{:.2}", row.percent_running()));
    match &row.metric {
        Some(metric) => {
            fields.push(format!("{:.3}", metric.value));
            fields.push(metric.unit.clone());
        }
        None => fields.extend([String::new(), String::new()]),
    }
    fields
}

pub fn push_quoted(out: &mut String, field: &str, separator: &str) {
    if (separator.is_empty() || !field.contains(separator)) && !field.contains(['"', '\n']) {
        out.push_str(field);
    } else {
        let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
    }
}
