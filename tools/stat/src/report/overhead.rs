//! The overhead of a set, in any format.

use std::fmt::Write as _;

use quipu::{Overhead, Spread};
use serde::Serialize;

use quipu_shell::terminal::Layout;

use super::csv::push_quoted;
use super::number::grouped;

/// The overhead that a set adds to the count of one of its events, or the reason why it is unknown.
pub struct OverheadRow {
    pub name: String,
    pub unit: String,
    pub overhead: Result<Overhead, String>,
}

/// Returns the rows for people, in columns.
pub fn text(rows: &[OverheadRow], layout: Layout) -> String {
    let title = layout.bold("Counted by the set itself, in each measurement:");
    let mut out = format!("\n {title}\n\n");
    let heading = format!("{:>26} {:>26}", "start to stop", "read to read");
    let _ = writeln!(out, "{}", layout.dim(&heading));
    for row in rows {
        match &row.overhead {
            Ok(overhead) => {
                let [start, read] = [overhead.start_to_stop, overhead.read_to_read].map(words);
                let _ = writeln!(out, "{start:>26} {read:>26} {:<4} {}", row.unit, row.name);
            }
            Err(why) => {
                let _ = writeln!(
                    out,
                    "{:>26} {:26} {:<4} {}: {why}",
                    "<not counted>", "", "", row.name
                );
            }
        }
    }
    out.push_str("\n  The value is the median; in parentheses the lowest and the highest, where they differ.\n\n");
    out
}

fn words(spread: Spread) -> String {
    let median = grouped(spread.median);
    if spread.is_constant() {
        return median;
    }
    format!(
        "{median} ({}-{})",
        grouped(spread.lowest),
        grouped(spread.highest)
    )
}

/// Returns a line for each row: median, lowest and highest from start to stop, the same from read to read,
/// unit, event.
pub fn csv(rows: &[OverheadRow], separator: &str) -> String {
    let mut out = String::new();
    for row in rows {
        let values = match &row.overhead {
            Ok(overhead) => [overhead.start_to_stop, overhead.read_to_read]
                .map(|s| [s.median, s.lowest, s.highest].map(|value| value.to_string()))
                .concat(),
            Err(_) => vec!["<not counted>".to_owned(); 6],
        };
        for field in values.iter().chain([&row.unit]) {
            push_quoted(&mut out, field, separator);
            out.push_str(separator);
        }
        push_quoted(&mut out, &row.name, separator);
        out.push('\n');
        if let Err(why) = &row.overhead {
            let _ = writeln!(out, "# not counted: {}: {why}", row.name);
        }
    }
    out
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OverheadLine<'a> {
    event: &'a str,
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_to_stop: Option<SpreadLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_to_read: Option<SpreadLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct SpreadLine {
    median: u128,
    lowest: u128,
    highest: u128,
}

impl From<Spread> for SpreadLine {
    fn from(spread: Spread) -> Self {
        Self {
            median: spread.median,
            lowest: spread.lowest,
            highest: spread.highest,
        }
    }
}

/// Returns an object for each row.
pub fn json(rows: &[OverheadRow]) -> String {
    let mut out = String::new();
    for row in rows {
        let overhead = row.overhead.as_ref().ok();
        let line = OverheadLine {
            event: &row.name,
            unit: &row.unit,
            start_to_stop: overhead.map(|o| o.start_to_stop.into()),
            read_to_read: overhead.map(|o| o.read_to_read.into()),
            reason: row.overhead.as_ref().err().map(String::as_str),
        };
        // There is nothing in a line that JSON cannot hold.
        out.push_str(&serde_json::to_string(&line).unwrap_or_default());
        out.push('\n');
    }
    out
}
