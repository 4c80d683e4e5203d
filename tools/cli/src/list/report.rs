//! The listing, for people and as JSON.

use std::collections::BTreeSet;
use std::fmt::Write;

use quipu::Error;
use serde::Serialize;
use serde_json::Value;

use super::catalog::Catalog;
use super::entry::{ListedEvent, State};
use super::selection::EventKind;
use quipu_shell::Failure;
use quipu_shell::terminal::Layout;

/// On a terminal, names longer than this do not widen their column.
const WIDEST_NAME: usize = 40;

#[derive(Serialize)]
struct JsonEntry<'a> {
    event: &'a str,
    /// As perf list calls it.
    #[serde(rename = "EventName")]
    event_name: &'a str,
    kind: &'static str,
    aliases: &'a [&'static str],
    #[serde(rename = "BriefDescription")]
    description: &'a str,
    /// `opens`, `refused`, `not probed`, or `form` for text that has parts to fill in.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_mode_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// Returns the listing as one JSON array, with what the database has at its end; what does not open is
/// in it if `all`, except that names are.
pub fn json(catalog: &Catalog, native: Vec<Value>, all: bool) -> Result<String, Failure> {
    super::json_text(&objects(catalog, native, all)?)
}

/// Returns the objects of that array.
pub fn objects(catalog: &Catalog, native: Vec<Value>, all: bool) -> Result<Vec<Value>, Failure> {
    let shown = catalog
        .entries
        .iter()
        .filter(|entry| all || !is_refused(entry));
    let mut entries = shown
        .map(|entry| serde_json::to_value(json_entry(entry)))
        .collect::<Result<Vec<Value>, _>>()
        .map_err(Failure::new)?;
    entries.extend(native);
    Ok(entries)
}

fn json_entry(entry: &ListedEvent) -> JsonEntry<'_> {
    let mut json = JsonEntry {
        event: &entry.name,
        event_name: &entry.name,
        kind: entry.kind.name(),
        aliases: entry.aliases,
        description: &entry.description,
        state: "form",
        backend: None,
        user_mode_only: None,
        reason: None,
        hint: None,
    };
    match &entry.state {
        State::Form => {}
        State::NotProbed => json.state = "not probed",
        State::Opens(opened) => {
            json.state = "opens";
            json.backend = Some(opened.backend);
            json.user_mode_only = Some(opened.user_only);
        }
        State::Refused(error) => {
            json.state = "refused";
            json.reason = Some(reason(error));
            json.hint = error.hint();
        }
    }
    json
}

/// Returns the listing for people; what does not open is in it if `all`.
pub fn text(catalog: &Catalog, all: bool, layout: Layout) -> String {
    let mut out = sections(catalog, &EventKind::ALL, all, layout);
    let refused = catalog.entries.iter().filter(|e| is_refused(e)).count();
    if refused > 0 && !all {
        let events = if refused == 1 {
            "event is"
        } else {
            "events are"
        };
        let rest =
            format!("\n{refused} {events} not available here; --all lists them with the reason.\n");
        out.push_str(&rest);
    }
    out
}

/// Returns the sections on some kinds.
pub(super) fn sections(
    catalog: &Catalog,
    kinds: &[EventKind],
    all: bool,
    layout: Layout,
) -> String {
    let mut report = Report {
        out: String::new(),
        layout,
        all,
        hints: BTreeSet::new(),
    };
    for kind in kinds.iter().copied() {
        let entries: Vec<&ListedEvent> =
            catalog.entries.iter().filter(|e| e.kind == kind).collect();
        let unavailable = catalog.unavailable.iter().find(|(k, _)| *k == kind);
        if !entries.is_empty() || unavailable.is_some() {
            report.section(kind, &entries);
        }
        if let Some((_, error)) = unavailable {
            report.why(error);
        }
    }
    report.out
}

struct Report<'a> {
    out: String,
    layout: Layout,
    all: bool,
    /// The hints given so far; each is given once.
    hints: BTreeSet<&'a str>,
}

impl<'a> Report<'a> {
    fn section(&mut self, kind: EventKind, entries: &[&'a ListedEvent]) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let heading = self.layout.bold(kind.heading()).into_owned();
        self.line(&format!("{heading}: {}", summary(entries)));
        let common = common_refusal(entries);
        if let Some(error) = common {
            self.why(error);
        }
        let shown: Vec<&ListedEvent> = entries
            .iter()
            .copied()
            .filter(|entry| self.all || !is_refused(entry))
            .collect();
        self.table(&shown, common.is_some());
        if self.all && common.is_none() {
            for error in entries.iter().filter_map(|entry| refusal(entry)) {
                self.hint(error);
            }
        }
    }

    /// Writes a line for each entry: name, other names, description and state, in columns.
    fn table(&mut self, entries: &[&ListedEvent], reason_is_known: bool) {
        let widest = self.layout.width.map_or(usize::MAX, |_| WIDEST_NAME);
        let width = |texts: &mut dyn Iterator<Item = usize>| {
            texts.filter(|&len| len <= widest).max().unwrap_or(0)
        };
        let names = width(&mut entries.iter().map(|e| e.name.chars().count()));
        let aliases: Vec<String> = entries.iter().map(|e| e.aliases.join(", ")).collect();
        let aliases_width = width(&mut aliases.iter().map(|a| a.chars().count()));
        let indent = 2 + names + 2 + aliases_width + if aliases_width > 0 { 2 } else { 0 };
        for (entry, aliases) in entries.iter().zip(&aliases) {
            let mut start = format!("  {:names$}", entry.name);
            if aliases_width > 0 {
                let _ = write!(start, "  {aliases:aliases_width$}");
            }
            let remark = remark(entry, reason_is_known);
            let lines = self.layout.wrap(&remark, indent);
            let mut lines = lines.iter();
            // A name too long for its column gets a line of its own where lines have to fit.
            if start.chars().count() + 2 > indent && self.layout.width.is_some() {
                self.line(&self.faded(entry, &start));
            } else if let Some(first) = lines.next() {
                self.line(&self.faded(entry, &format!("{start}  {first}")));
            }
            for line in lines.filter(|line| !line.is_empty()) {
                self.line(&self.faded(entry, &format!("{:indent$}{line}", "")));
            }
        }
    }

    /// Writes a reason with its hint, below a heading.
    fn why(&mut self, error: &'a Error) {
        self.paragraph("  why:  ", &reason(error));
        self.hint(error);
    }

    fn hint(&mut self, error: &'a Error) {
        if let Some(hint) = error.hint()
            && self.hints.insert(hint)
        {
            self.paragraph("  hint: ", hint);
        }
    }

    fn paragraph(&mut self, label: &str, text: &str) {
        let mut start = label.to_owned();
        for line in self.layout.wrap(text, label.len()) {
            self.line(&format!("{start}{line}"));
            start = " ".repeat(label.len());
        }
    }

    fn faded(&self, entry: &ListedEvent, line: &str) -> String {
        if is_refused(entry) {
            self.layout.dim(line).into_owned()
        } else {
            line.to_owned()
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

fn refusal(entry: &ListedEvent) -> Option<&Error> {
    match &entry.state {
        State::Refused(error) => Some(error),
        _ => None,
    }
}

fn is_refused(entry: &ListedEvent) -> bool {
    refusal(entry).is_some()
}

/// Returns the refusal that all entries that can be opened at all share, if they do.
fn common_refusal<'a>(entries: &[&'a ListedEvent]) -> Option<&'a Error> {
    let mut probed = entries.iter().filter(|entry| entry.state != State::Form);
    let first = refusal(probed.next()?)?;
    let same = |entry: &&ListedEvent| {
        refusal(entry).is_some_and(|error| {
            (error.kind(), error.reason(), error.hint())
                == (first.kind(), first.reason(), first.hint())
        })
    };
    probed.all(same).then_some(first)
}

/// Returns how many of the entries open, in words.
pub(super) fn summary(entries: &[&ListedEvent]) -> String {
    let count = |is: fn(&State) -> bool| entries.iter().filter(|e| is(&e.state)).count();
    let opens = count(|state| matches!(state, State::Opens(_)));
    let refused = count(|state| matches!(state, State::Refused(_)));
    let not_probed = count(|state| matches!(state, State::NotProbed));
    let total = opens + refused + not_probed;
    match (opens, refused, not_probed) {
        (0, 0, 0) if entries.is_empty() => "none listed".to_owned(),
        (0, 0, 0) => "by pattern".to_owned(),
        (0, _, 0) => format!("{total}, none available here"),
        (_, 0, 0) => format!("{total}, all available here"),
        (_, _, 0) => format!("{total}, {opens} available here"),
        (_, 0, _) => format!("{total}, {opens} probed, all available here"),
        _ => format!(
            "{total}, {} probed, {opens} available here",
            opens + refused
        ),
    }
}

/// Returns the description of an entry with its state.
fn remark(entry: &ListedEvent, reason_is_known: bool) -> String {
    let state = match &entry.state {
        State::Opens(opened) if opened.user_only => "(user mode only)".to_owned(),
        State::NotProbed => "(not probed)".to_owned(),
        State::Refused(error) if !reason_is_known => format!("({})", reason(error)),
        State::Opens(_) | State::Refused(_) | State::Form => String::new(),
    };
    match (entry.description.as_str(), state.as_str()) {
        ("", state) => state.to_owned(),
        (description, "") => description.to_owned(),
        (description, state) => format!("{description} {state}"),
    }
}

/// Returns the reason of an error or its kind, without the attempted action.
pub fn reason(error: &Error) -> String {
    match error.reason() {
        Some(reason) => reason.to_owned(),
        None => error.kind().to_string(),
    }
}
