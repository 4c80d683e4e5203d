//! A report as text: a table for people, and lines with commas.

use std::fmt::{self, Write as _};
use std::time::Duration;

use quipu::Count;

use crate::report::totals;
use crate::{Counted, RegionReport, Report};

/// The columns of a table before those of events.
const HEADINGS: [&str; 4] = ["region", "calls", "threads", "elapsed"];
/// The widest table.
const WIDTH: usize = 80;

/// Writes the sums over all threads, a row for each region below the one in which it was entered; further events are in
/// further tables. Reasons why something was not counted, and mistakes, are below.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&table(std::slice::from_ref(self)))
    }
}

/// Returns the sums over the threads of processes as a table, as [`Report`] is written.
pub fn table(reports: &[Report]) -> String {
    let totals = totals(reports);
    let names: Vec<String> = totals.iter().map(label).collect();
    let mut columns: Vec<Vec<String>> = vec![
        column(
            HEADINGS[1],
            totals.iter().map(|region| region.calls.to_string()),
        ),
        column(
            HEADINGS[2],
            totals.iter().map(|region| region.threads.to_string()),
        ),
        column(
            HEADINGS[3],
            totals.iter().map(|region| time(region.elapsed)),
        ),
    ];
    let events = totals.first().map_or(0, |region| region.events.len());
    for at in 0..events {
        let cells = totals
            .iter()
            .map(|region| cell(region.events.get(at).map(|event| &event.counted)));
        columns.push(column(&name(&totals[0].events[at].counted), cells));
    }
    let first = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(HEADINGS[0].len());
    let mut text = String::new();
    let mut rest = columns.into_iter().peekable();
    while rest.peek().is_some() {
        let mut width = first;
        let mut shown: Vec<Vec<String>> = Vec::new();
        while let Some(next) = rest.peek() {
            let wider = width + 2 + widest(next);
            if !shown.is_empty() && wider > WIDTH {
                break;
            }
            width = wider;
            shown.extend(rest.next());
        }
        if !text.is_empty() {
            text.push('\n');
        }
        for row in 0..=names.len() {
            let label = if row == 0 {
                HEADINGS[0]
            } else {
                &names[row - 1]
            };
            let _ = write!(text, "{label:first$}");
            for column in &shown {
                let _ = write!(text, "  {:>width$}", column[row], width = widest(column));
            }
            text.push('\n');
        }
    }
    for note in notes(&totals, reports) {
        let _ = writeln!(text, "  {note}");
    }
    text
}

fn column(heading: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [heading.to_owned()].into_iter().chain(cells).collect()
}

fn widest(column: &[String]) -> usize {
    column
        .iter()
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or(0)
}

/// Returns the name of a region, further to the right the deeper it is.
fn label(region: &RegionReport) -> String {
    let depth = region.path.len().saturating_sub(1);
    format!("{:indent$}{}", "", region.name(), indent = 2 * depth)
}

fn name(counted: &Counted) -> String {
    let mode = if counted.user_mode_only { ":u" } else { "" };
    format!("{}{mode}", counted.event)
}

fn cell(counted: Option<&Counted>) -> String {
    match counted.and_then(|counted| counted.count) {
        Some(count) => match count {
            Count::Partial { .. } => format!("{} *", short(count)),
            count => short(count),
        },
        None => "-".to_owned(),
    }
}

/// Returns a count without what is behind its number.
fn short(count: Count) -> String {
    let text = count.to_string();
    match text.split_once(" (") {
        Some((number, "at least)")) => format!(">={number}"),
        Some((number, _)) => number.to_owned(),
        None => text,
    }
}

/// Returns a time with a unit that suits it.
fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match seconds {
        1.0.. => format!("{seconds:.3} s"),
        1e-3.. => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{:.1} us", seconds * 1e6),
    }
}

/// Returns what a reader of the table has to know.
fn notes(totals: &[RegionReport], reports: &[Report]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    for region in totals {
        if region.not_left > 0 {
            note(format!(
                "{} was entered and not left, {} times: that is not in its row",
                region.path.join(" > "),
                region.not_left
            ));
        }
        for counted in region.events.iter().map(|event| &event.counted) {
            if let Some(reason) = &counted.reason {
                note(format!("{}: {reason}", counted.event));
            }
            if matches!(counted.count, Some(Count::Partial { .. })) {
                note("*: threads are missing that had no counter for it".to_owned());
            }
            if counted.whole_cpus {
                note(format!(
                    "{}: of whole CPUs, whatever ran there",
                    counted.event
                ));
            }
        }
    }
    for thread in reports.iter().flat_map(|report| &report.threads) {
        for mistake in &thread.mistakes {
            note(format!("thread {} ({}): {mistake}", thread.id, thread.name));
        }
    }
    notes
}

impl Report {
    /// Returns lines with commas, the first with the names of columns: one for each thread, region and event. What was
    /// not counted has an empty count.
    pub fn csv(&self) -> String {
        let mut text = String::from(
            "process,thread,region,calls,not_left,elapsed_ns,own_elapsed_ns,event,count,own_count,kind\n",
        );
        for thread in &self.threads {
            for region in &thread.regions {
                for event in &region.events {
                    let value = |counted: &Counted| {
                        let value = counted.count.and_then(Count::value);
                        value.map(|value| value.to_string()).unwrap_or_default()
                    };
                    let _ = writeln!(
                        text,
                        "{},{},{},{},{},{},{},{},{},{},{}",
                        self.process,
                        thread.id,
                        quoted(&region.path.join("/")),
                        region.calls,
                        region.not_left,
                        region.elapsed.as_nanos(),
                        region.own_elapsed.as_nanos(),
                        quoted(&event.counted.event),
                        value(&event.counted),
                        value(&event.own),
                        kind(event.counted.count),
                    );
                }
            }
        }
        text
    }
}

/// Returns a word for what a count is.
fn kind(count: Option<Count>) -> &'static str {
    match count {
        Some(Count::Exact(_)) => "exact",
        Some(Count::Estimated(_)) => "estimated",
        Some(Count::AtLeast(_)) => "at least",
        Some(Count::Partial { .. }) => "partial",
        _ => "not counted",
    }
}

/// Returns a field of a line with commas.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
