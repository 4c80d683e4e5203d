//! A report for a person, in the columns of `perf report --stdio`.

use std::fmt::Write;
use std::{iter, mem};

use quipu_shell::terminal::{Layout, escaped};

use super::callers::{self, TreeForm};
use super::columns::Columns;
use super::entries::Entries;
use super::profile::{EventProfile, Profile};

/// Appends the report of one event.
pub(super) fn write(
    out: &mut String,
    profile: &Profile,
    event: &EventProfile,
    entries: &Entries<'_>,
    (columns, callers, limit): (&Columns, Option<TreeForm>, f64),
    (separator, layout): (Option<&str>, Layout),
) {
    if out.len() > profile.header.len() {
        out.push('\n');
    }
    let (samples, period) = (entries.total.samples, entries.total.period);
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
        separated(out, entries, columns, separator);
        return left_out(out, entries, limit);
    }
    let cells: Vec<Vec<String>> = list
        .iter()
        .map(|entry| {
            let texts = columns.list.iter();
            texts
                .map(|column| column.text(entry, entries.total))
                .collect()
        })
        .collect();
    let widths: Vec<usize> = columns
        .list
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let texts = cells.iter().map(|row| row[at].chars().count());
            let least = if column.is_weight() {
                column.least_width()
            } else {
                0
            };
            let natural = texts.fold(columns.title(*column).len().max(least), usize::max);
            match columns.widths.get(at) {
                Some(0) | None => natural,
                // A number that is cut would be another one.
                Some(width) if column.is_weight() => natural.max(*width),
                Some(width) => *width,
            }
        })
        .collect();
    let last = columns.list.len() - 1;
    let titles = columns.list.iter().map(|column| columns.title(*column));
    let title = format!("# {}", row(titles, columns, &widths));
    let _ = writeln!(out, "{}", layout.bold(&title));
    let dots = columns.list.iter().zip(&widths).enumerate();
    let dots = dots.map(|(at, (column, width))| {
        match at == last && !column.is_weight() && !columns.is_cut(at) {
            true => ".".repeat(columns.title(*column).len()),
            false => ".".repeat(*width),
        }
    });
    let _ = writeln!(out, "# {}\n#", row(dots, columns, &widths));
    for (entry, cells) in list.iter().zip(&cells) {
        let _ = writeln!(out, "  {}", row(cells.iter(), columns, &widths));
        let Some(form) = callers else {
            continue;
        };
        for line in callers::lines(profile, entries.total, entry, form) {
            let _ = writeln!(out, "{}", layout.dim(&line.text(profile, 21)));
        }
    }
    left_out(out, entries, limit);
}

/// Appends the rows with a separator between their columns.
fn separated(out: &mut String, entries: &Entries<'_>, columns: &Columns, separator: &str) {
    let titles = columns.list.iter().map(|column| columns.title(*column));
    let titles: Vec<_> = titles.collect();
    let _ = writeln!(out, "# {}", titles.join(separator));
    for entry in &entries.list {
        let fields = columns.list.iter().map(|column| {
            let text = column.text(entry, entries.total);
            // As perf has it, which programs that split at the separator rely on.
            match column.is_weight() {
                true => text,
                false => text.replace(separator, "."),
            }
        });
        let fields: Vec<_> = fields.collect();
        let _ = writeln!(out, "{}", fields.join(separator));
    }
}

/// Appends the line on the rows below the limit, if there are any.
fn left_out(out: &mut String, entries: &Entries<'_>, limit: f64) {
    let (rows, weight) = entries.left_out;
    if rows > 0 {
        let share = weight.percent_of(entries.total);
        let _ = writeln!(
            out,
            "#\n# Left out: {rows} below {limit} %, with {share:.2} % of all; --percent-limit 0 shows them"
        );
    }
}

/// Returns texts in columns, numbers at their right, without blanks after the last, which may be thousands.
fn row(
    texts: impl Iterator<Item = impl AsRef<str>>,
    columns: &Columns,
    widths: &[usize],
) -> String {
    let (mut line, mut spaces) = (String::new(), 0);
    for ((text, column), width) in texts.zip(&columns.list).zip(widths) {
        let text = text.as_ref();
        let end = text.char_indices().nth(*width).map(|(end, _)| end);
        let text = &text[..end.unwrap_or(text.len())];
        let missing = width.saturating_sub(text.chars().count());
        let (before, behind) = match column.is_weight() {
            true => (missing, 0),
            false => (0, missing),
        };
        spaces += before;
        if !text.is_empty() {
            line.extend(iter::repeat_n(' ', mem::take(&mut spaces)));
            line.push_str(text);
        }
        spaces += behind + 2;
    }
    line.truncate(line.trim_end().len());
    line
}
