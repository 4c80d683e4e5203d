//! The report for people: aligned, digits grouped, estimates marked, remarks at the end.

use std::fmt::Write;

use quipu::Count;

use quipu_shell::terminal::{Layout, escaped};

use super::super::aggregate::AggregateId;
use super::super::rows::{Metric, Row};
use super::metric_only::MetricTable;
use super::number::{bytes, fixed, push_fixed, push_metric_value, push_whole};
use super::{Of, Report};

/// Widths that perf has too; longer contents widen their column.
const VALUE_WIDTH: usize = 18;
const UNIT_WIDTH: usize = 4;
const NAME_WIDTH: usize = 24;
const METRIC_WIDTH: usize = 9;
const METRIC_UNIT_WIDTH: usize = 14;
const TIME_WIDTH: usize = 16;
const TIMES_WIDTH: usize = 18;
/// The columns of a time with its standard error and what that is in percent.
const WIDEST_TIME: usize = 70;
/// The columns of a line of an interval, and of repeated runs.
const WIDEST_LINE: usize = 96;
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
    title.push(':');
    out.push('\n');
    for line in layout.wrap(&title, 1) {
        let _ = writeln!(out, " {}", layout.bold(&line));
    }
    out.push('\n');
    if metric_only {
        MetricTable::of(&report.rows).text(out, Of::All, true, layout);
    } else {
        Columns::new(layout).rows(out, &report.rows, false, layout);
    }
    if !report.rows.is_empty() {
        out.push('\n');
    }
    times(out, report, layout);
    notes(out, report, layout);
    out.push('\n');
}

/// Appends the legend and the remarks.
pub fn notes(out: &mut String, report: &Report, layout: Layout) {
    if report.rows.iter().any(is_marked) {
        const LEGEND: &str = "~ an estimate: the counter ran for the share of the time in parentheses, and the value is scaled \
             up to all of it";
        const WIDTH: usize = 86;
        let layout = Layout {
            width: Some(layout.width.unwrap_or(WIDTH).min(WIDTH)),
            ..layout
        };
        out.push('\n');
        for (at, line) in layout.wrap(LEGEND, 4).iter().enumerate() {
            let _ = writeln!(out, "{:1$}{line}", "", if at == 0 { 2 } else { 4 });
        }
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
    let of_estimate = |metric: &Metric| metric.uncertain && !row.count.is_lower_bound();
    row.count.is_estimate() || row.metric.as_ref().is_some_and(of_estimate)
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

/// The widths of the columns of rows, as wide as those of all rows that were written so far.
pub struct Columns {
    widths: [usize; 6],
    time_width: usize,
    /// False on a terminal for which lines with the metrics beside counts were too long.
    has_metrics: bool,
    /// Room for the text of the time that each line begins with.
    time: String,
}

impl Columns {
    /// Returns the widths before the first row: less on a terminal on which the lines of intervals and repeated runs would not fit.
    pub fn new(layout: Layout) -> Self {
        let is_narrow = layout.width.is_some_and(|width| width < WIDEST_LINE);
        let (value, name, metric, time_width) = match is_narrow {
            true => (12, 16, 7, 13),
            false => (VALUE_WIDTH, NAME_WIDTH, METRIC_WIDTH, TIME_WIDTH),
        };
        Self {
            widths: [0, value, UNIT_WIDTH, name, 0, metric],
            time_width,
            has_metrics: true,
            time: String::new(),
        }
    }

    /// Appends the rows of an interval, under a heading if they are to have one.
    pub fn interval(
        &mut self,
        out: &mut String,
        time: f64,
        rows: &[Row],
        heading: bool,
        layout: Layout,
    ) {
        self.time.clear();
        push_fixed(&mut self.time, time, 9, false);
        let missing = self.time_width.saturating_sub(self.time.len());
        insert_spaces(&mut self.time, 0, missing);
        self.time.push(' ');
        self.rows(out, rows, heading, layout);
    }

    fn rows(&mut self, out: &mut String, rows: &[Row], heading: bool, layout: Layout) {
        if let Some(width) = layout.width {
            let mut plain = String::new();
            let layout = Layout {
                colour: false,
                ..layout
            };
            self.lines(&mut plain, rows, false, layout);
            self.has_metrics &= plain.lines().all(|line| self::width(line) <= width);
        }
        self.lines(out, rows, heading, layout);
    }

    fn lines(&mut self, out: &mut String, rows: &[Row], heading: bool, layout: Layout) {
        let start = out.len();
        loop {
            let widths = self.widths;
            if heading {
                self.heading(out, rows, layout);
            }
            for row in rows {
                self.line(out, row, layout);
            }
            if self.widths == widths {
                break;
            }
            // What is wider than its column has made it wider: once more.
            out.truncate(start);
        }
    }

    fn heading(&self, out: &mut String, rows: &[Row], layout: Layout) {
        let places = rows.first().and_then(|row| row.place.kind());
        let heading = format!(
            "{} {:<place$}{:>value$} {:<unit$} {}",
            format_args!("#{:>1$}", "time", self.time_width - 1),
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

    /// Appends a row and, below it, the shares of core types.
    fn line(&mut self, out: &mut String, row: &Row, layout: Layout) {
        let mut line = TrimmedLine {
            out,
            spaces: 0,
            widths: &mut self.widths,
        };
        line.push(&self.time);
        match row.place {
            AggregateId::Whole => line.spaces += line.widths[PLACE],
            _ => line.left(PLACE, &place(row)),
        }
        let start = line.number(VALUE, |out| push_value(out, row, layout));
        if layout.colour {
            let value = line.out.split_off(start);
            line.out.push_str(&match row.count {
                Count::NotCounted | Count::Jumped => layout.dim(&value),
                Count::Exact(_) => layout.bold(&value),
                _ => layout.yellow(&value),
            });
        }
        line.spaces += 1;
        line.left(UNIT, &row.unit.name);
        line.spaces += 1;
        line.left(NAME, &escaped(&row.name));
        match &row.cgroup {
            Some(cgroup) => line.right(CGROUP, &format!(" {}", escaped(cgroup))),
            None => line.spaces += line.widths[CGROUP],
        }
        if row.derived.is_some() {
            if (row.metric.as_ref()).is_some_and(|metric| metric.attention == Some(true)) {
                line.push(" # ");
                line.push(&layout.yellow(ATTENTION));
            }
        } else if let Some(metric) = row.metric.as_ref().filter(|_| self.has_metrics) {
            line.push(" # ");
            line.number(METRIC, |out| push_metric_value(out, metric, layout));
            line.spaces += 1;
            line.push(&metric.unit);
            line.spaces += METRIC_UNIT_WIDTH.saturating_sub(width(&metric.unit));
        } else if self.has_metrics && (row.spread.is_some() || row.is_uncertain()) {
            line.spaces += line.widths[METRIC] + METRIC_UNIT_WIDTH + " #  ".len();
        }
        if let Some(spread) = row.spread
            && spread.mean != 0.0
        {
            line.push(&format!("  ( +- {:>5}% )", fixed(spread.percent, 2)));
        }
        if row.count.is_estimate() {
            line.push(&format!("  ({:.2}%)", row.percent_running()));
        }
        match row.count {
            Count::Partial { missing, parts, .. } => {
                line.push(&format!("  ({missing} of {parts} parts missing)"));
            }
            Count::AtLeast(_) => line.push("  (at least)"),
            _ => {}
        }
        line.out.push('\n');
        for (core, count) in &row.cores {
            line.spaces = self.time.len() + line.widths[PLACE];
            line.number(VALUE, |out| {
                if let Some(value) = count.value() {
                    push_raw_value(out, row, value, layout);
                }
            });
            line.spaces += 1;
            line.left(UNIT, &row.unit.name);
            line.push(&format!("   on {core}\n"));
        }
    }
}

/// A line without spaces at its end: they wait for the text behind them.
struct TrimmedLine<'o> {
    out: &'o mut String,
    spaces: usize,
    widths: &'o mut [usize; 6],
}

impl TrimmedLine<'_> {
    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            let spaces = std::mem::take(&mut self.spaces);
            insert_spaces(self.out, self.out.len(), spaces);
            self.out.push_str(text);
        }
    }

    /// Returns the spaces that a column has beside something so wide, for which it is made wide enough.
    fn missing(&mut self, column: usize, width: usize) -> usize {
        let column = &mut self.widths[column];
        *column = width.max(*column);
        *column - width
    }

    fn left(&mut self, column: usize, text: &str) {
        self.push(text);
        self.spaces += self.missing(column, width(text));
    }

    fn right(&mut self, column: usize, text: &str) {
        self.spaces += self.missing(column, width(text));
        self.push(text);
    }

    /// Appends a number, as `push` does, to the right of its column, and returns where it begins.
    fn number(&mut self, column: usize, push: impl FnOnce(&mut String)) -> usize {
        let start = self.out.len();
        push(self.out);
        let missing = self.missing(column, self.out.len() - start);
        let spaces = std::mem::take(&mut self.spaces) + missing;
        insert_spaces(self.out, start, spaces);
        start + spaces
    }
}

/// Returns the number of characters of a text.
fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.chars().count(),
    }
}

fn insert_spaces(out: &mut String, at: usize, mut number: usize) {
    while number > 0 {
        let some = number.min(SPACES.len());
        out.insert_str(at, &SPACES[..some]);
        number -= some;
    }
}

/// Returns the place of a row, with a space before the value.
fn place(row: &Row) -> String {
    let mut text = escaped(&row.place.to_string()).into_owned();
    if row.place.is_of_cpus() {
        let _ = write!(text, " {:>3}", row.cpus);
    }
    text.push(' ');
    text
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
            let amount = row.unit.scale(value);
            push_fixed(out, amount, row.unit.decimals(), layout.grouped);
        }
    }
}

/// Appends elapsed, user and system time, one below the other; before them the times of each run, if there are
/// any.
fn times(out: &mut String, report: &Report, layout: Layout) {
    let times = &report.times;
    let is_narrow = layout.width.is_some_and(|width| width < WIDEST_TIME);
    let column = if is_narrow { 12 } else { TIMES_WIDTH };
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
        let _ = write!(out, "{mean:>column$}");
        if samples.standard_error() > 0.0 && !is_narrow {
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
        let _ = writeln!(out, "{:>column$} peak memory", bytes(command.peak_memory));
    }
}
