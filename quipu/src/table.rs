//! Counts as a table for people.

use std::fmt;

use quipu_hal::{Count, Result};

use crate::{Counts, EventCount, Measurement};

/// Writes a line for each event: its value and unit, its name, and what the value is.
///
/// ```text
///   1,024  page-faults   exact
/// ~45,678  cache-misses  estimated: it had a counter for 41.67% of the time
///       -  cycles:u      not counted: the machine has no PMU
/// ```
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Row<'_>> = self.events().map(Row::new).collect();
        let widest = |width: fn(&Row<'_>) -> usize| rows.iter().map(width).max().unwrap_or(0);
        let value_width = widest(|row| row.value.chars().count());
        let unit_width = widest(|row| row.unit.chars().count());
        let unit_gap = if unit_width > 0 { " " } else { "" };
        let name_width = widest(|row| row.name.chars().count());
        for (at, row) in rows.iter().enumerate() {
            let Row {
                value,
                unit,
                name,
                meaning,
            } = row;
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(
                f,
                "{value:>value_width$}{unit_gap}{unit:unit_width$}  {name:name_width$}  {meaning}"
            )?;
        }
        Ok(())
    }
}

/// Writes the counts as a table; the output of the closure is not written.
impl<T> fmt::Display for Measurement<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.fmt(f)
    }
}

/// A line of the table.
struct Row<'a> {
    value: String,
    unit: &'a str,
    name: &'a str,
    meaning: String,
}

impl<'a> Row<'a> {
    fn new(event: EventCount<'a>) -> Self {
        let info = event.event().info();
        let total = event.total();
        let value = total.as_ref().ok().and_then(|count| count.value());
        let scale = info.map_or(1.0, |info| info.scale);
        let mut row = Self {
            value: "-".to_owned(),
            unit: "",
            name: event.name(),
            meaning: match &total {
                Ok(count) => meaning(&event, *count),
                Err(error) => {
                    let reason = error.reason().unwrap_or_else(|| error.kind().as_str());
                    let hint = error.hint().map(|hint| format!("; {hint}"));
                    format!("not counted: {reason}{}", hint.unwrap_or_default())
                }
            },
        };
        if let (Some(value), Ok(count)) = (value, total) {
            let estimated = count.is_estimate();
            row.value = match scale {
                1.0 if estimated => Count::Estimated(value).to_string(),
                1.0 => Count::Exact(value).to_string(),
                _ => format!(
                    "{}{:.2}",
                    if estimated { "~" } else { "" },
                    value as f64 * scale
                ),
            };
            row.unit = info.map_or("", |info| &info.unit);
        }
        if event.event().fell_back_to_user() {
            row.meaning.push_str(", user mode only");
        }
        row
    }
}

/// Returns what a count is, and why it is not exact.
fn meaning(event: &EventCount<'_>, count: Count) -> String {
    match count {
        Count::Exact(_) => "exact".to_owned(),
        Count::Estimated(_) => match share_running(event) {
            Ok(Some(share)) => {
                format!("estimated: it had a counter for {share:.2}% of the time")
            }
            _ => "estimated: it had a counter for a part of the time".to_owned(),
        },
        Count::AtLeast(_) => "at least: a part of the time may not have been counted".to_owned(),
        Count::Partial { missing, parts, .. } => {
            let estimate = match count.is_estimate() {
                true => ", and others for a part of the time",
                false => "",
            };
            format!("at least: {missing} of {parts} parts never had a counter{estimate}")
        }
        _ => match event.no_value() {
            Ok(Some(why)) => format!("not counted: {why}"),
            _ => "not counted: it never had a counter".to_owned(),
        },
    }
}

/// Returns the share of the time enabled that the counters of an event ran, in percent. Core PMUs of a hybrid machine
/// take turns, and have no such share.
fn share_running(event: &EventCount<'_>) -> Result<Option<f64>> {
    let terms = event.term_readings()?;
    let (mut enabled, mut running) = (0.0, 0.0);
    for (part, reading) in terms.iter().flatten() {
        if part.core.is_some() {
            return Ok(None);
        }
        enabled += reading.time_enabled as f64;
        running += reading.time_running as f64;
    }
    Ok((enabled > 0.0).then(|| 100.0 * running / enabled))
}
