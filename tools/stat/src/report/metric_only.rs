//! The metrics alone (`--metric-only`): a column for each, a line for each place, in any format.

use std::fmt::Write;

use serde_json::{Map, Value};

use quipu_shell::terminal::Layout;

use super::super::aggregate::AggregateId;
use super::super::rows::Row;
use super::Of;
use super::csv::push_quoted;
use super::number::metric_value;

/// The metrics of rows, place by place.
pub(super) struct MetricTable<'a> {
    /// The units of metrics as perf has them, after the name of the event where several have the same.
    headings: Vec<String>,
    /// The headings for people, with a metric's own unit behind its name.
    titles: Vec<String>,
    lines: Vec<(&'a AggregateId, Vec<Option<&'a Row>>)>,
}

impl<'a> MetricTable<'a> {
    /// Returns the metrics, without rates and shares of the CPU, as perf leaves them out
    /// (`tools/perf/util/stat-display.c` of the kernel, `valid_only_metric`).
    pub(super) fn of(rows: &'a [Row]) -> Self {
        let mut columns: Vec<(&Row, &str)> = Vec::new();
        let mut lines: Vec<(&AggregateId, Vec<Option<&Row>>)> = Vec::new();
        for row in rows {
            let unit = row.metric.as_ref().map(|metric| &*metric.unit);
            let Some(unit) = unit.filter(|u| !u.ends_with("/sec") && *u != "CPUs utilized") else {
                continue;
            };
            let at = columns
                .iter()
                .position(|(known, of)| (&known.name, *of) == (&row.name, unit))
                .unwrap_or_else(|| {
                    columns.push((row, unit));
                    columns.len() - 1
                });
            let line = lines
                .iter()
                .position(|(place, _)| **place == row.place)
                .unwrap_or_else(|| {
                    lines.push((&row.place, Vec::new()));
                    lines.len() - 1
                });
            let values = &mut lines[line].1;
            values.resize(columns.len().max(values.len()), None);
            values[at] = Some(row);
        }
        for (_, values) in &mut lines {
            values.resize(columns.len(), None);
        }
        let is_shared = |unit: &str| columns.iter().filter(|(_, other)| *other == unit).count() > 1;
        let headings = columns.iter().map(|(row, unit)| match is_shared(unit) {
            true => format!("{} {unit}", row.name),
            false => (*unit).to_owned(),
        });
        let headings: Vec<String> = headings.collect();
        let title = |((row, _), heading): (&(&Row, _), &String)| match &row.derived {
            Some(metric) => format!("{} {}", row.name, metric.unit)
                .trim_end()
                .to_owned(),
            None => heading.clone(),
        };
        Self {
            titles: columns.iter().zip(&headings).map(title).collect(),
            headings,
            lines,
        }
    }

    /// Appends a heading if `with_heading`, and a line for each place.
    pub(super) fn text(&self, out: &mut String, of: Of, with_heading: bool, layout: Layout) {
        const NARROWEST: usize = 10;
        let places = self.lines.iter().map(|(place, _)| place.to_string().len());
        let place_width = places.max().unwrap_or(0);
        let widths = self.titles.iter().map(|title| title.len().max(NARROWEST));
        let widths: Vec<usize> = widths.collect();
        let times = matches!(of, Of::Interval(_));
        if with_heading && !self.titles.is_empty() {
            let time = if times { "#           time " } else { "" };
            let mut heading = format!("{time}{:place_width$}", "");
            for (title, &width) in self.titles.iter().zip(&widths) {
                let _ = write!(heading, "  {title:>width$}");
            }
            let _ = writeln!(out, "{}", layout.dim(&heading));
        }
        for (place, values) in &self.lines {
            if let Of::Interval(time) = of {
                let _ = write!(out, "{time:>16.9} ");
            }
            let _ = write!(out, "{:place_width$}", place.to_string());
            for (row, width) in values.iter().zip(&widths) {
                let metric = row.and_then(|row| row.metric.as_ref());
                let value = metric.map_or_else(String::new, |metric| metric_value(metric, layout));
                let _ = write!(out, "  {value:>width$}");
            }
            out.push('\n');
        }
    }

    /// Appends a line of units if `with_heading`, and a line for each place.
    pub(super) fn csv(&self, out: &mut String, of: Of, with_heading: bool, separator: &str) {
        let has_places = self
            .lines
            .iter()
            .any(|(place, _)| **place != AggregateId::Whole);
        let mut line = |time: String, place: String, values: Vec<String>| {
            let time = (of != Of::All).then_some(time);
            let place = has_places.then_some(place);
            for (at, field) in time.into_iter().chain(place).chain(values).enumerate() {
                out.push_str(if at > 0 { separator } else { "" });
                push_quoted(out, &field, separator);
            }
            out.push('\n');
        };
        if with_heading {
            line(String::new(), String::new(), self.headings.clone());
        }
        let time = match of {
            Of::Interval(time) => format!("{time:>16.9}"),
            Of::Totals => format!("{:>16}", "summary"),
            Of::All | Of::Run(_) => String::new(),
        };
        for (place, values) in &self.lines {
            let metrics = values
                .iter()
                .map(|row| row.and_then(|row| row.metric.as_ref()));
            let values = metrics
                .map(|metric| metric.map_or_else(String::new, |m| format!("{:.3}", m.value)));
            line(time.clone(), place.to_string(), values.collect());
        }
    }

    /// Appends an object for each place.
    pub(super) fn json(&self, out: &mut String, of: Of) {
        for (place, values) in &self.lines {
            let mut object = Map::new();
            if let Of::Interval(time) = of {
                object.insert("interval".into(), time.into());
            }
            if let Some((kind, value)) = place.json() {
                object.insert(kind.into(), value.into());
            }
            for (heading, row) in self.headings.iter().zip(values) {
                if let Some(metric) = row.and_then(|row| row.metric.as_ref()) {
                    object.insert(heading.clone(), format!("{:.6}", metric.value).into());
                }
            }
            let _ = writeln!(out, "{}", Value::Object(object));
        }
    }
}
