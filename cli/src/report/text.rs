//! A report for a person, in the columns of `perf report --stdio`.

use std::fmt::Write;

use crate::terminal::Layout;

use super::callers;
use super::entries::Entries;
use super::options::Options;
use super::profile::{EventProfile, Profile};

/// Appends the report of one event.
pub(super) fn write(
    out: &mut String,
    profile: &Profile,
    event: &EventProfile,
    entries: &Entries,
    options: &Options,
    layout: Layout,
) {
    if !out.is_empty() {
        out.push('\n');
    }
    let (samples, period) = (event.total.samples, event.total.period);
    let _ = writeln!(
        out,
        "# Samples: {samples} of event '{}', {} lost",
        event.name, event.lost
    );
    let _ = writeln!(out, "# Event count (approx.): {period}");
    if let Some(throttled) = &event.throttled {
        let _ = writeln!(out, "# Event {throttled}");
    }
    if let Some(jumped) = super::jumped(event.jumped) {
        let _ = writeln!(out, "# Not in the count: {jumped}");
    }
    out.push_str("#\n");
    let widest = |title: &str, lengths: &mut dyn Iterator<Item = usize>| {
        lengths.fold(title.len(), usize::max)
    };
    let list = &entries.list;
    let function = |place| profile.functions.get(place);
    let commands = widest(
        "Command",
        &mut list.iter().map(|e| e.command.chars().count()),
    );
    let objects = widest(
        "Shared Object",
        &mut list
            .iter()
            .map(|e| function(e.function).short_object().chars().count()),
    );
    let (first, dots) = match entries.children {
        true => ("Children      Self", "........  ........"),
        false => ("Overhead", "........"),
    };
    let title = format!(
        "# {first}  Samples  {:commands$}  {:objects$}  Symbol",
        "Command", "Shared Object"
    );
    let _ = writeln!(out, "{}", layout.bold(&title));
    let line = |n| ".".repeat(n);
    let _ = writeln!(
        out,
        "# {dots}  .......  {}  {}  ......\n#",
        line(commands),
        line(objects)
    );
    for entry in list {
        let seen = function(entry.function);
        if entries.children {
            let _ = write!(
                out,
                "  {:>7.2}%",
                entry.with_children.percent_of(event.total)
            );
        }
        let _ = writeln!(
            out,
            "  {:>7.2}%  {:>7}  {:commands$}  {:objects$}  {} {}",
            entry.own.percent_of(event.total),
            entry.own.samples,
            entry.command,
            seen.short_object(),
            seen.mark(),
            seen.title(),
        );
        if options.call_graph {
            for line in callers::lines(profile, event, entry) {
                let caller = function(line.function);
                let indent = 2 * line.depth;
                let text = format!("{:>21.2}%{:indent$}  {}", line.percent, "", caller.title());
                let _ = writeln!(out, "{}", layout.dim(&text));
            }
        }
    }
}
