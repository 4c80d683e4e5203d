//! Separated values, in the order of columns of perf-stat(1), "CSV FORMAT".
//!
//! Optional time of the interval (or `summary`, or the run), optional place (and its number of CPUs), value,
//! unit, event, optional control group, optional spread, run time in nanoseconds, percentage of time
//! running, metric, unit of the metric. A field that contains the separator or a quote is quoted, and
//! control characters are escaped.

use std::fmt::Write;

use quipu_shell::terminal::escaped;

use super::super::aggregate::AggregateId;
use super::super::notes::{Note, warning};
use super::super::rows::Row;
use super::Of;

/// Returns a remark in a line that is none of values, as perf begins its files with.
pub fn comment(note: &Note) -> String {
    let events = note.events.join(", ");
    format!(
        "# {}: {}: {}\n",
        note.about,
        escaped(&events),
        escaped(&note.text)
    )
}

/// Appends a line for each row; with the reasons of missing counts in comments if `extra`. What would pass as
/// a whole count is remarked in any case.
pub fn rows(out: &mut String, rows: &[Row], of: Of, separator: &str, extra: bool) {
    for row in rows {
        let fields = fields(row, of);
        for (i, field) in fields.iter().enumerate() {
            if i > 0 {
                out.push_str(separator);
            }
            push_quoted(out, field, separator);
        }
        out.push('\n');
        if let Some(note) = warning(row) {
            out.push_str(&comment(&note));
        } else if let (Some(about), Some(reason), true) = (row.no_value(), &row.reason, extra) {
            let (name, reason) = (escaped(&row.name), escaped(reason));
            let _ = writeln!(out, "# {about}: {name}: {reason}");
        }
    }
}

fn fields(row: &Row, of: Of) -> Vec<String> {
    let mut fields = Vec::with_capacity(12);
    match of {
        Of::All => {}
        Of::Interval(time) => fields.push(format!("{time:>16.9}")),
        Of::Totals => fields.push(format!("{:>16}", "summary")),
        Of::Run(number) => fields.push(format!("{:>16}", format!("run {number}"))),
    }
    if row.place != AggregateId::Whole {
        fields.push(row.place.to_string());
    }
    if row.place.is_of_cpus() {
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
    fields.push(row.unit.name.to_string());
    fields.push(row.name.to_string());
    fields.extend(row.cgroup.clone());
    if let Some(spread) = row.spread {
        fields.push(format!("{:.2}%", spread.percent));
    }
    fields.push(row.running.to_string());
    fields.push(format!("{:.2}", row.percent_running()));
    match &row.metric {
        Some(metric) => {
            fields.push(format!("{:.3}", metric.value));
            fields.push(metric.unit.to_string());
        }
        None => fields.extend([String::new(), String::new()]),
    }
    fields
}

pub fn push_quoted(out: &mut String, field: &str, separator: &str) {
    let field = escaped(field);
    if (separator.is_empty() || !field.contains(separator)) && !field.contains('"') {
        out.push_str(&field);
    } else {
        let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
    }
}
