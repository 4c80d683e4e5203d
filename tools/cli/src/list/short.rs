//! The listing of a terminal where nothing is asked for: what most people count, and a line for each other kind.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quipu_shell::terminal::{Layout, table_lines};

use super::catalog::Catalog;
use super::entry::{ListedEvent, State};
use super::report::{sections, summary};
use super::selection::EventKind;

/// The kinds whose events are listed with their descriptions.
const LISTED: [EventKind; 2] = [EventKind::Hardware, EventKind::Software];

/// Names that one filter of `quipu list` lists.
#[derive(Debug)]
pub struct ShortSection {
    /// The filter.
    pub filter: &'static str,
    /// A heading of them.
    pub heading: String,
    /// The names, if they are shown.
    pub names: Vec<String>,
    /// The number of them, or why there are none.
    pub summary: String,
}

/// Returns the listing; of the rest of the database names are shown, or a line each.
pub fn text(catalog: &Catalog, database: &[ShortSection], layout: Layout) -> String {
    let mut out = sections(catalog, &LISTED, false, layout);
    for named in database.iter().filter(|named| !named.names.is_empty()) {
        let heading = layout.bold(&named.heading);
        let _ = writeln!(out, "\n{heading}: {}", named.summary);
        for line in layout.wrap(&named.names.join("  "), 2) {
            let _ = writeln!(out, "  {line}");
        }
    }
    let _ = writeln!(out, "\n{}", layout.bold("More, by the words that list it:"));
    let mut table = layout.table(60);
    let mut row = |filter: &str, what: String| {
        table.add_row([format!("quipu list {filter}"), what]);
    };
    for kind in EventKind::ALL {
        if LISTED.contains(&kind) {
            continue;
        }
        let entries: Vec<&ListedEvent> =
            catalog.entries.iter().filter(|e| e.kind == kind).collect();
        let unavailable = catalog.unavailable.iter().find(|(of, _)| *of == kind);
        let what = match unavailable {
            Some((_, error)) => super::report::reason(error),
            None => match kind {
                EventKind::Tracepoint => tracepoints(&entries),
                _ => summary(&entries),
            },
        };
        row(kind.name(), format!("{}: {what}", kind.heading()));
    }
    for named in database {
        row(
            named.filter,
            format!("{}: {}", named.heading, named.summary),
        );
    }
    row(
        "TEXT",
        "events of every kind with TEXT in their names".to_owned(),
    );
    row(
        "all",
        "everything; --all adds what is not available here, with the reasons".to_owned(),
    );
    for line in table_lines(table, 2) {
        out += &line;
        out.push('\n');
    }
    out
}

/// Returns how many tracepoints there are; one of them was tried for all.
fn tracepoints(entries: &[&ListedEvent]) -> String {
    let refused = entries
        .iter()
        .all(|entry| matches!(entry.state, State::Refused(_)));
    if refused {
        return summary(entries);
    }
    let system = |entry: &&ListedEvent| entry.name.split(':').next().map(str::to_owned);
    let systems: BTreeSet<_> = entries.iter().filter_map(system).collect();
    format!(
        "{} in {} systems; quipu list sched: lists those of one",
        entries.len(),
        systems.len()
    )
}
