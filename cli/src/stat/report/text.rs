//! The report for people: aligned, digits grouped, estimates marked, remarks at the end.

use std::borrow::Cow;
use std::fmt::Write;

use quipu::Count;

use crate::terminal::{Layout, escaped};

use super::super::aggregate::AggregateId;
use super::super::metrics::Metric;
use super::super::rows::Row;
use super::metric_only::Table;
use super::number::{bytes, fixed, grouped};
use super::{Of, Report};

/// Widths that perf has too; longer contents widen their column.
const VALUE_WIDTH: usize = 18;
const UNIT_WIDTH: usize = 4;
const NAME_WIDTH: usize = 24;
const METRIC_WIDTH: usize = 9;
const METRIC_UNIT_WIDTH: usize = 14;
const TIMES_WIDTH: usize = 18;
/// The mark of a metric that is beyond its threshold.
const ATTENTION: &str = "over the threshold";
/// The width of notes if there is no terminal.
const NOTE_WIDTH: usize = 96;

/// Appends the whole report, of counts only their metrics if `metric_only`.
pub fn report(out: &mut String, report: &Report, metric_only: bool, layout: Layout) {
    let mut title = format!("Performance counter stats for {}", escaped(&report.title));
    if report.runs > 1 {
        let _ = write!(
            title,
            " ({} runs, +- standard error of the mean)",
            report.runs
        );
    }
    let _ = writeln!(out, "\n {}:\n", layout.bold(&title));
    if metric_only {
        Table::of(&report.rows).text(out, Of::All, true, layout);
    } else {
        let (rows, widths) = laid_out(&report.rows, layout);
        for row in &rows {
            line(out, "", row, &widths, layout);
        }
    }
    if !report.rows.is_empty() {
        out.push('\n');
    }
    times(out, report);
    notes(out, report, layout);
    out.push('\n');
}

/// Appends the rows of an interval, under a heading when they are the first.
pub fn interval(out: &mut String, time: f64, rows: &[Row], first: bool, layout: Layout) {
    let (laid_out, widths) = laid_out(rows, layout);
    if first {
        let places = rows.first().and_then(|row| row.place.kind());
        let heading = format!(
            "{:<16} {:<place$}{:>value$} {:<unit$} {}",
            "#           time",
            places.unwrap_or_default().replace("cpu", "CPU"),
            "counts",
            "unit",
            "event",
            place = widths.place,
            value = widths.value,
            unit = widths.unit,
        );
        let _ = writeln!(out, "{}", layout.dim(&heading));
    }
    let time = format!("{time:>16.9} ");
    for row in &laid_out {
        line(out, &time, row, &widths, layout);
    }
}

/// Appends the legend and the remarks.
pub fn notes(out: &mut String, report: &Report, layout: Layout) {
    if report.rows.iter().any(is_marked) {
        out.push_str(
            "\n  ~ an estimate: the counter ran for the share of the time in parentheses, and the\n    \
             value is scaled up to all of it\n",
        );
    }
    for note in &report.notes {
        let heading = format!("{}: {}", note.about, note.events.join(", "));
        out.push('\n');
        for line in layout.wrap(&escaped(&heading), 3) {
            let _ = writeln!(out, "  {}", layout.yellow(&line));
        }
        wrapped(out, &escaped(&note.text), layout);
    }
    if !report.details.is_empty() {
        out.push('\n');
        for detail in &report.details {
            let _ = writeln!(out, "  {}", layout.dim(&escaped(detail)));
        }
    }
}

fn is_marked(row: &Row) -> bool {
    row.count.is_estimate() || row.metric.as_ref().is_some_and(|m| m.uncertain)
}

/// Appends text in lines of limited length, indented.
fn wrapped(out: &mut String, text: &str, layout: Layout) {
    const INDENT: usize = 4;
    let layout = Layout {
        width: Some(layout.width.unwrap_or(NOTE_WIDTH).min(NOTE_WIDTH)),
        ..layout
    };
    for line in layout.wrap(text, INDENT) {
        let _ = writeln!(out, "{:INDENT$}{line}", "");
    }
}

/// The texts of a row's columns. They are made once, since the widths of columns depend on all of them.
struct Cells<'a> {
    place: Cow<'a, str>,
    value: String,
    name: Cow<'a, str>,
    cgroup: Cow<'a, str>,
    /// The value of the metric beside the count; none where the row is the metric.
    metric: Option<String>,
}

impl<'a> Cells<'a> {
    fn of(row: &'a Row, layout: Layout) -> Self {
        Self {
            place: place(row),
            value: value(row, layout),
            name: escaped(&row.name),
            cgroup: escaped(row.cgroup.as_deref().unwrap_or_default()),
            metric: row
                .metric
                .as_ref()
                .filter(|_| row.derived.is_none())
                .map(|metric| metric_value(metric, layout)),
        }
    }
}

/// The widths of columns.
struct Widths {
    place: usize,
    value: usize,
    unit: usize,
    name: usize,
    cgroup: usize,
    metric: usize,
}

impl Widths {
    fn of(rows: &[(&Row, Cells<'_>)]) -> Self {
        let mut widths = Self {
            place: 0,
            value: VALUE_WIDTH,
            unit: UNIT_WIDTH,
            name: NAME_WIDTH,
            cgroup: 0,
            metric: METRIC_WIDTH,
        };
        for (row, cells) in rows {
            let columns = [
                (&mut widths.place, &*cells.place),
                (&mut widths.value, &cells.value),
                (&mut widths.unit, &row.unit.name),
                (&mut widths.name, &cells.name),
                (&mut widths.cgroup, &cells.cgroup),
                (
                    &mut widths.metric,
                    cells.metric.as_deref().unwrap_or_default(),
                ),
            ];
            for (width, text) in columns {
                *width = (*width).max(text.chars().count());
            }
        }
        for width in [&mut widths.place, &mut widths.cgroup] {
            *width += usize::from(*width > 0);
        }
        widths
    }
}

/// Returns the rows with their texts, and the widths of the columns.
fn laid_out(rows: &[Row], layout: Layout) -> (Vec<(&Row, Cells<'_>)>, Widths) {
    let cells = rows.iter().map(|row| (row, Cells::of(row, layout)));
    let cells: Vec<_> = cells.collect();
    let widths = Widths::of(&cells);
    (cells, widths)
}

/// Appends a row and, below it, the shares of core types. `time` is a column of its own.
fn line(
    out: &mut String,
    time: &str,
    (row, cells): &(&Row, Cells<'_>),
    widths: &Widths,
    layout: Layout,
) {
    let start = out.len();
    out.push_str(time);
    push_left(out, &cells.place, widths.place);
    push_spaces(out, widths.value, &cells.value);
    out.push_str(&match row.count {
        Count::NotCounted | Count::Jumped => layout.dim(&cells.value),
        Count::Exact(_) => layout.bold(&cells.value),
        _ => layout.yellow(&cells.value),
    });
    out.push(' ');
    push_left(out, &row.unit.name, widths.unit);
    out.push(' ');
    push_left(out, &cells.name, widths.name);
    push_right(out, &cells.cgroup, widths.cgroup);
    if row.derived.is_some() {
        if row
            .metric
            .as_ref()
            .is_some_and(|metric| metric.attention == Some(true))
        {
            let _ = write!(out, " # {}", layout.yellow(ATTENTION));
        }
    } else if let (Some(metric), Some(value)) = (&row.metric, &cells.metric) {
        out.push_str(" # ");
        push_right(out, value, widths.metric);
        out.push(' ');
        push_left(out, &metric.unit, METRIC_UNIT_WIDTH);
    } else if row.spread.is_some() || row.is_uncertain() {
        push_left(out, "", widths.metric + METRIC_UNIT_WIDTH + " #  ".len());
    }
    if let Some(spread) = row.spread
        && spread.mean != 0.0
    {
        let _ = write!(out, "  ( +- {:>5}% )", fixed(spread.percent, 2));
    }
    if row.count.is_estimate() {
        let _ = write!(out, "  ({:.2}%)", row.percent_running());
    }
    if let Count::Partial { missing, parts, .. } = row.count {
        let _ = write!(out, "  ({missing} of {parts} parts missing)");
    }
    out.truncate(start + out[start..].trim_ascii_end().len());
    out.push('\n');
    for (core, count) in &row.cores {
        let share = count
            .value()
            .map_or_else(String::new, |v| raw_value(row, v, layout));
        push_left(out, "", time.len() + widths.place);
        push_right(out, &share, widths.value);
        out.push(' ');
        push_left(out, &row.unit.name, widths.unit);
        let _ = writeln!(out, "   on {core}");
    }
}

fn push_left(out: &mut String, text: &str, width: usize) {
    out.push_str(text);
    push_spaces(out, width, text);
}

fn push_right(out: &mut String, text: &str, width: usize) {
    push_spaces(out, width, text);
    out.push_str(text);
}

/// Appends the spaces that a text lacks to a width.
fn push_spaces(out: &mut String, width: usize, text: &str) {
    const SPACES: &str = "                                ";
    let mut missing = width.saturating_sub(text.chars().count());
    while missing > 0 {
        let some = missing.min(SPACES.len());
        out.push_str(&SPACES[..some]);
        missing -= some;
    }
}

fn place(row: &Row) -> Cow<'_, str> {
    if row.place == AggregateId::Whole {
        return Cow::Borrowed("");
    }
    let mut text = escaped(&row.place.to_string()).into_owned();
    if row.place.is_of_cpus() {
        let _ = write!(text, " {:>3}", row.cpus);
    }
    Cow::Owned(text)
}

fn value(row: &Row, layout: Layout) -> String {
    let Some(value) = row.count.value() else {
        return format!("<{}>", row.no_value().unwrap_or_default());
    };
    let mut text = match row.spread {
        // A whole number would hide an event that occurs in few of the runs.
        Some(spread) if row.unit.is_plain() && is_small_fraction(spread.mean) => {
            fixed(spread.mean, 2)
        }
        _ => raw_value(row, value, layout),
    };
    if row.count.is_estimate() {
        text.insert(0, '~');
    }
    text
}

fn is_small_fraction(mean: f64) -> bool {
    mean < 10.0 && mean.fract() != 0.0
}

fn raw_value(row: &Row, value: u128, layout: Layout) -> String {
    let (amount, decimals) = (row.unit.scale(value as f64), row.unit.decimals());
    match (row.unit.is_plain(), layout.grouped) {
        (true, true) => grouped(value),
        (true, false) => value.to_string(),
        (false, true) => fixed(amount, decimals),
        (false, false) => format!("{amount:.decimals$}"),
    }
}

pub fn metric_value(metric: &Metric, layout: Layout) -> String {
    let (value, decimals) = (metric.value, metric.decimals);
    let mut text = match layout.grouped {
        true => fixed(value, decimals),
        false => format!("{value:.decimals$}"),
    };
    if metric.uncertain {
        text.insert(0, '~');
    }
    if metric.percent {
        text.push('%');
    }
    text
}

/// Appends elapsed, user and system time, one below the other; before them the times of each run, if there are
/// any.
fn times(out: &mut String, report: &Report) {
    let times = &report.times;
    let mean = times.elapsed.mean();
    if !times.runs.is_empty() {
        out.push_str("           # Table of individual measurements:\n");
        for elapsed in &times.runs {
            let _ = writeln!(out, "{elapsed:>18.5} ({:+.5}) #", elapsed - mean);
        }
        out.push_str("\n           # Final result:\n");
    }
    let mut line = |samples: &super::Samples, what: &str| {
        let mean = format!("{:.9}", samples.mean());
        let _ = write!(out, "{mean:>TIMES_WIDTH$}");
        if samples.standard_error() > 0.0 {
            let _ = write!(out, " +- {:.9}", samples.standard_error());
        }
        let _ = write!(out, " seconds {what}");
        if samples.standard_error() > 0.0 {
            let _ = write!(out, "  ( +- {:>5}% )", fixed(samples.percent(), 2));
        }
        out.push('\n');
    };
    line(&times.elapsed, "time elapsed");
    if let Some(command) = &times.command {
        line(&command.user, "user");
        line(&command.system, "sys");
        let _ = writeln!(
            out,
            "{:>TIMES_WIDTH$} peak memory",
            bytes(command.peak_memory)
        );
    }
}
