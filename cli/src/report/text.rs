//! A report for a person, in the columns of `perf report --stdio`.

use std::fmt::Write;

use crate::terminal::{Layout, escaped};

use super::callers::{self, Form};
use super::entries::Entries;
use super::profile::{EventProfile, Profile, Weight};
use super::sort::Key;

/// Appends the report of one event.
pub(super) fn write(
    out: &mut String,
    profile: &Profile,
    event: &EventProfile,
    entries: &Entries<'_>,
    (keys, callers, limit): (&[Key], Option<Form>, f64),
    (separator, layout): (Option<&str>, Layout),
) {
    if !out.is_empty() {
        out.push('\n');
    }
    let (samples, period) = (event.total.samples, event.total.period);
    let _ = writeln!(
        out,
        "# Samples: {samples} of event '{}', {} lost",
        escaped(&event.name),
        event.lost
    );
    let _ = writeln!(out, "# Event count (approx.): {period}");
    if let Some(throttled) = &event.throttled {
        let _ = writeln!(out, "# Event {throttled}");
    }
    if let Some(jumped) = super::jumped(event.jumped) {
        let _ = writeln!(out, "# Not in the count: {jumped}");
    }
    out.push_str("#\n");
    let list = &entries.list;
    if let Some(separator) = separator {
        separated(out, event, entries, keys, separator);
        return left_out(out, event, entries, limit);
    }
    let widths: Vec<usize> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let texts = list.iter().map(|entry| entry.cells[at].chars().count());
            texts.fold(key.title().len(), usize::max)
        })
        .collect();
    let (first, dots) = match entries.children {
        true => ("Children      Self", "........  ........"),
        false => ("Overhead", "........"),
    };
    let titles = keys.iter().map(|key| key.title().to_owned());
    let title = format!("# {first}  Samples  {}", columns(titles, &widths));
    let _ = writeln!(out, "{}", layout.bold(&title));
    let lengths = keys.iter().zip(&widths).enumerate();
    let lengths = lengths.map(|(at, (key, width))| match at + 1 == keys.len() {
        true => ".".repeat(key.title().len()),
        false => ".".repeat(*width),
    });
    let _ = writeln!(out, "# {dots}  .......  {}\n#", columns(lengths, &widths));
    for entry in list {
        if entries.children {
            let _ = write!(
                out,
                "  {:>7.2}%",
                entry.with_children.percent_of(event.total)
            );
        }
        let _ = writeln!(
            out,
            "  {:>7.2}%  {:>7}  {}",
            entry.own.percent_of(event.total),
            entry.own.samples,
            columns(entry.cells.iter().cloned(), &widths),
        );
        let Some(form) = callers else {
            continue;
        };
        for line in callers::lines(profile, event, entry, form) {
            let title = profile.functions.get(line.function).title();
            let indent = 2 * line.depth;
            let text = format!("{:>21.2}%{:indent$}  {}", line.percent, "", escaped(&title));
            let _ = writeln!(out, "{}", layout.dim(&text));
        }
    }
    left_out(out, event, entries, limit);
}

/// Appends the rows with a separator between their columns.
fn separated(
    out: &mut String,
    event: &EventProfile,
    entries: &Entries<'_>,
    keys: &[Key],
    separator: &str,
) {
    let first: &[_] = match entries.children {
        true => &["Children", "Self", "Samples"],
        false => &["Overhead", "Samples"],
    };
    let titles: Vec<_> = first
        .iter()
        .copied()
        .chain(keys.iter().map(|key| key.title()))
        .collect();
    let _ = writeln!(out, "# {}", titles.join(separator));
    for entry in &entries.list {
        let share = |weight: Weight| format!("{:.2}%", weight.percent_of(event.total));
        let children = entries.children.then(|| share(entry.with_children));
        let own = [share(entry.own), entry.own.samples.to_string()];
        // As perf has it, which programs that split at the separator rely on.
        let cells = entry.cells.iter().map(|cell| cell.replace(separator, "."));
        let fields: Vec<_> = children.into_iter().chain(own).chain(cells).collect();
        let _ = writeln!(out, "{}", fields.join(separator));
    }
}

/// Appends the line on the rows below the limit, if there are any.
fn left_out(out: &mut String, event: &EventProfile, entries: &Entries<'_>, limit: f64) {
    let (rows, weight) = entries.left_out;
    if rows > 0 {
        let share = weight.percent_of(event.total);
        let _ = writeln!(
            out,
            "#\n# Left out: {rows} below {limit} %, with {share:.2} % of all; --percent-limit 0 shows them"
        );
    }
}

/// Returns texts in columns, without blanks after the last.
fn columns(texts: impl Iterator<Item = String>, widths: &[usize]) -> String {
    let (mut line, mut blanks) = (String::new(), 0);
    for (text, width) in texts.zip(widths) {
        line.extend(std::iter::repeat_n(' ', blanks));
        line.push_str(&text);
        blanks = 2 + width.saturating_sub(text.chars().count());
    }
    line.truncate(line.trim_end().len());
    line
}
