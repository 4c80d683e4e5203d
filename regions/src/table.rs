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
        f.write_str(&table(std::slice::from_ref(self), &[]))
    }
}

/// Returns the sums over the threads of processes as a table, as [`Report`] is written. What was counted `outside` of all
/// regions has a row of its own, if it is known.
pub fn table(reports: &[Report], outside: &[Counted]) -> String {
    let totals = totals(reports);
    let mut names: Vec<String> = totals.iter().map(label).collect();
    let cells = |of: &dyn Fn(&RegionReport) -> String| totals.iter().map(of).collect::<Vec<_>>();
    let mut columns = vec![
        column(HEADINGS[1], cells(&|region| region.calls.to_string())),
        column(HEADINGS[2], cells(&|region| region.threads.to_string())),
        column(HEADINGS[3], cells(&|region| time(region.elapsed))),
    ];
    let is_counted = |name: &str| {
        let mut events = totals.iter().flat_map(|region| &region.events);
        events.any(|event| event.counted.event == name && event.counted.count.is_some())
    };
    let events = totals.first().map_or(&[][..], |region| &region.events);
    for event in events
        .iter()
        .filter(|event| is_counted(&event.counted.event))
    {
        let of_event = |region: &RegionReport| {
            let mut events = region.events.iter().map(|other| &other.counted);
            cell(events.find(|other| other.event == event.counted.event))
        };
        columns.push(column(&event.counted.name(), cells(&of_event)));
    }
    if !outside.is_empty() {
        names.push("outside of regions".to_owned());
        for column in &mut columns {
            let of_column = outside.iter().find(|counted| counted.name() == column[0]);
            column.push(of_column.map_or(String::new(), |counted| cell(Some(counted))));
        }
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
    let options = textwrap::Options::new(WIDTH)
        .initial_indent("  ")
        .subsequent_indent("    ");
    for note in notes(&totals, reports) {
        for line in textwrap::wrap(&note, &options) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

fn column(heading: &str, cells: Vec<String>) -> Vec<String> {
    [vec![heading.to_owned()], cells].concat()
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

fn cell(counted: Option<&Counted>) -> String {
    let Some((counted, count)) = counted.and_then(|counted| Some((counted, counted.count?))) else {
        return "-".to_owned();
    };
    let mut text = match (counted.is_time, count.value()) {
        (true, Some(nanoseconds)) => {
            let nanoseconds = u64::try_from(nanoseconds).unwrap_or(u64::MAX);
            let mark = if count.is_estimate() { "~" } else { "" };
            format!("{mark}{}", time(Duration::from_nanos(nanoseconds)))
        }
        _ => number(count),
    };
    if count.is_lower_bound() {
        text.insert_str(0, ">=");
    }
    if matches!(count, Count::Partial { .. }) {
        text.push_str(" *");
    }
    text
}

/// Returns a count without what is behind its number.
fn number(count: Count) -> String {
    let text = count.to_string();
    let number = text.split(" (").next();
    number.unwrap_or_default().to_owned()
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
