//! The report for people: aligned, digits grouped, estimates marked, remarks at the end.

use std::fmt::Write;

use quipu::Count;

use crate::terminal::{Layout, escaped};

use super::super::aggregate::AggregateId;
use super::super::metrics::Metric;
use super::super::rows::Row;
use super::metric_only::Table;
use super::number::{bytes, fixed, push_fixed, push_whole};
use super::{Of, Report};

/// Widths that perf has too; longer contents widen their column.
const VALUE_WIDTH: usize = 18;
const UNIT_WIDTH: usize = 4;
const NAME_WIDTH: usize = 24;
const METRIC_WIDTH: usize = 9;
const METRIC_UNIT_WIDTH: usize = 14;
const TIME_WIDTH: usize = 16;
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
        let mut columns = Columns::default();
        columns.set(None, &report.rows, layout);
        columns.lines(out, &report.rows, layout);
    }
    if !report.rows.is_empty() {
        out.push('\n');
    }
    times(out, report);
    notes(out, report, layout);
    out.push('\n');
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

/// More than most columns lack.
const SPACES: &str = "                                ";

/// The columns of a row.
const PLACE: usize = 0;
const VALUE: usize = 1;
const UNIT: usize = 2;
const NAME: usize = 3;
const CGROUP: usize = 4;
/// The value of the metric beside the count; none where the row is the metric.
const METRIC: usize = 5;

/// The texts of the columns of rows. They are made before the first line, since the widths depend on all of them.
#[derive(Default)]
pub struct Columns {
    /// All of them, one after the other, after the time that is before each line.
    texts: String,
    time: usize,
    /// By row.
    cells: Vec<[Cell; 6]>,
    widths: [usize; 6],
}

/// The end of a text among all, and its width.
#[derive(Clone, Copy, Default)]
struct Cell {
    end: usize,
    width: usize,
}

impl Columns {
    /// Appends the rows of an interval, under a heading when they are the first.
    pub fn interval(
        &mut self,
        out: &mut String,
        time: f64,
        rows: &[Row],
        first: bool,
        layout: Layout,
    ) {
        self.set(Some(time), rows, layout);
        if first {
            let places = rows.first().and_then(|row| row.place.kind());
            let heading = format!(
                "{:<16} {:<place$}{:>value$} {:<unit$} {}",
                "#           time",
                places.unwrap_or_default().replace("cpu", "CPU"),
                "counts",
                "unit",
                "event",
                place = self.widths[PLACE],
                value = self.widths[VALUE],
                unit = self.widths[UNIT],
            );
            let _ = writeln!(out, "{}", layout.dim(&heading));
        }
        self.lines(out, rows, layout);
    }

    /// Makes the texts of rows, of which each line begins with the time.
    fn set(&mut self, time: Option<f64>, rows: &[Row], layout: Layout) {
        let texts = &mut self.texts;
        texts.clear();
        if let Some(time) = time {
            push_fixed(texts, time, 9, false);
            let missing = TIME_WIDTH.saturating_sub(texts.len());
            texts.insert_str(0, &SPACES[..missing]);
            texts.push(' ');
        }
        self.time = texts.len();
        self.cells.clear();
        self.widths = [0, VALUE_WIDTH, UNIT_WIDTH, NAME_WIDTH, 0, METRIC_WIDTH];
        for row in rows {
            let mut start = texts.len();
            let mut cell = |texts: &String, column: usize| {
                let text = &texts[start..];
                start = texts.len();
                let cell = Cell {
                    end: texts.len(),
                    width: width(text),
                };
                self.widths[column] = self.widths[column].max(cell.width);
                cell
            };
            push_place(texts, row);
            let place = cell(texts, PLACE);
            push_value(texts, row, layout);
            let value = cell(texts, VALUE);
            texts.push_str(&row.unit.name);
            let unit = cell(texts, UNIT);
            texts.push_str(&escaped(&row.name));
            let name = cell(texts, NAME);
            if let Some(cgroup) = &row.cgroup {
                texts.push_str(&escaped(cgroup));
            }
            let cgroup = cell(texts, CGROUP);
            if let (Some(metric), None) = (&row.metric, &row.derived) {
                push_metric_value(texts, metric, layout);
            }
            let metric = cell(texts, METRIC);
            self.cells.push([place, value, unit, name, cgroup, metric]);
        }
        for column in [PLACE, CGROUP] {
            self.widths[column] += usize::from(self.widths[column] > 0);
        }
    }

    /// Appends the lines of the rows that the columns are of.
    fn lines(&self, out: &mut String, rows: &[Row], layout: Layout) {
        let mut start = self.time;
        for (row, cells) in rows.iter().zip(&self.cells) {
            let texts = cells.map(|cell| {
                let text = &self.texts[start..cell.end];
                start = cell.end;
                (text, cell.width)
            });
            self.line(out, row, texts, layout);
        }
    }

    /// Appends a row and, below it, the shares of core types.
    fn line(&self, out: &mut String, row: &Row, texts: [(&str, usize); 6], layout: Layout) {
        let time = &self.texts[..self.time];
        // The spaces that the text of a column lacks.
        let missing = |column: usize| self.widths[column].saturating_sub(texts[column].1);
        let mut line = Line { out, spaces: 0 };
        line.push(time);
        line.left(texts[PLACE].0, missing(PLACE));
        line.spaces += missing(VALUE);
        let value = texts[VALUE].0;
        line.push(&match row.count {
            Count::NotCounted | Count::Jumped => layout.dim(value),
            Count::Exact(_) => layout.bold(value),
            _ => layout.yellow(value),
        });
        line.spaces += 1;
        line.left(texts[UNIT].0, missing(UNIT) + 1);
        line.left(texts[NAME].0, missing(NAME));
        line.right(texts[CGROUP].0, missing(CGROUP));
        if row.derived.is_some() {
            if (row.metric.as_ref()).is_some_and(|metric| metric.attention == Some(true)) {
                line.push(" # ");
                line.push(&layout.yellow(ATTENTION));
            }
        } else if let Some(metric) = &row.metric {
            line.left(" #", 1);
            line.right(texts[METRIC].0, missing(METRIC));
            line.spaces += 1;
            let missing = METRIC_UNIT_WIDTH.saturating_sub(width(&metric.unit));
            line.left(&metric.unit, missing);
        } else if row.spread.is_some() || row.is_uncertain() {
            line.spaces += self.widths[METRIC] + METRIC_UNIT_WIDTH + " #  ".len();
        }
        if let Some(spread) = row.spread
            && spread.mean != 0.0
        {
            line.push(&format!("  ( +- {:>5}% )", fixed(spread.percent, 2)));
        }
        if row.count.is_estimate() {
            line.push(&format!("  ({:.2}%)", row.percent_running()));
        }
        if let Count::Partial { missing, parts, .. } = row.count {
            line.push(&format!("  ({missing} of {parts} parts missing)"));
        }
        out.push('\n');
        for (core, count) in &row.cores {
            let mut share = String::new();
            if let Some(value) = count.value() {
                push_raw_value(&mut share, row, value, layout);
            }
            let mut line = Line { out, spaces: 0 };
            line.spaces = time.len() + self.widths[PLACE];
            line.right(&share, self.widths[VALUE].saturating_sub(share.len()));
            line.spaces += 1;
            line.left(texts[UNIT].0, missing(UNIT));
            line.push(&format!("   on {core}\n"));
        }
    }
}

/// A line without spaces at its end: they wait for the text behind them.
struct Line<'o> {
    out: &'o mut String,
    spaces: usize,
}

impl Line<'_> {
    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            push_spaces(self.out, std::mem::take(&mut self.spaces));
            self.out.push_str(text);
        }
    }

    /// Appends a text that lacks so many spaces to the width of its column.
    fn left(&mut self, text: &str, missing: usize) {
        self.push(text);
        self.spaces += missing;
    }

    fn right(&mut self, text: &str, missing: usize) {
        self.spaces += missing;
        self.push(text);
    }
}

/// Returns the number of characters of a text.
fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.chars().count(),
    }
}

fn push_spaces(out: &mut String, mut number: usize) {
    while number > 0 {
        let some = number.min(SPACES.len());
        out.push_str(&SPACES[..some]);
        number -= some;
    }
}

fn push_place(out: &mut String, row: &Row) {
    if row.place == AggregateId::Whole {
        return;
    }
    out.push_str(&escaped(&row.place.to_string()));
    if row.place.is_of_cpus() {
        let _ = write!(out, " {:>3}", row.cpus);
    }
}

fn push_value(out: &mut String, row: &Row, layout: Layout) {
    let Some(value) = row.count.value() else {
        let _ = write!(out, "<{}>", row.no_value().unwrap_or_default());
        return;
    };
    if row.count.is_estimate() {
        out.push('~');
    }
    match row.spread {
        // A whole number would hide an event that occurs in few of the runs.
        Some(spread) if row.unit.is_plain() && is_small_fraction(spread.mean) => {
            push_fixed(out, spread.mean, 2, true);
        }
        _ => push_raw_value(out, row, value, layout),
    }
}

fn is_small_fraction(mean: f64) -> bool {
    mean < 10.0 && mean.fract() != 0.0
}

fn push_raw_value(out: &mut String, row: &Row, value: u128, layout: Layout) {
    match row.unit.is_plain() {
        true => push_whole(out, value, layout.grouped),
        false => {
            let amount = row.unit.scale(value as f64);
            push_fixed(out, amount, row.unit.decimals(), layout.grouped);
        }
    }
}

pub fn metric_value(metric: &Metric, layout: Layout) -> String {
    let mut text = String::new();
    push_metric_value(&mut text, metric, layout);
    text
}

fn push_metric_value(out: &mut String, metric: &Metric, layout: Layout) {
    if metric.uncertain {
        out.push('~');
    }
    push_fixed(out, metric.value, metric.decimals, layout.grouped);
    if metric.percent {
        out.push('%');
    }
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
