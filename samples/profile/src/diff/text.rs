//! The differences for a person, in the columns of `perf diff`, or with a separator between them.

use std::fmt::Write;

use crate::fitted::fit;
use crate::report::{self, Key};
use quipu_shell::terminal::{Layout, escaped, shortened};
use quipu_viewers::Unit;

use super::matched::{Difference, Matched};
use super::{DiffForm, ReadRecording};

/// A column of numbers, or of texts that are formulas.
struct DiffColumn {
    title: String,
    width: usize,
    cells: Vec<String>,
}

/// Appends the rows of one event.
pub(super) fn write(
    out: &mut String,
    recordings: &[ReadRecording],
    event: &str,
    matched: &Matched<'_>,
    form: &DiffForm<'_>,
    layout: Layout,
) {
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "# Event '{}'\n#\n# Data files:", escaped(event));
    for (at, recording) in recordings.iter().enumerate() {
        let path = recording.path.to_string_lossy();
        let baseline = if at == 0 { " (Baseline)" } else { "" };
        let _ = writeln!(out, "#  [{at}] {}{baseline}", escaped(&path));
    }
    totals(out, recordings, event, layout);
    out.push_str("#\n");
    let columns = columns(recordings.len(), matched, form);
    match &form.options.field_separator {
        Some(separator) => separated(out, separator, &columns, matched, form),
        None => aligned(out, &columns, matched, form, layout),
    }
}

/// Appends the totals of an event in each recording, of which shares are parts: with a smaller share a function may take longer.
fn totals(out: &mut String, recordings: &[ReadRecording], event: &str, layout: Layout) {
    let mut base = None;
    let totals = recordings.iter().enumerate().map(|(at, recording)| {
        let mut events = recording.profile.events.iter();
        let Some(found) = events.find(|found| found.name == event) else {
            return format!("[{at}] none");
        };
        let total = found.total;
        let amount = match found.unit != Unit::Count {
            true => report::seconds(total),
            false => format!("{} events", total.period),
        };
        let base = *base.get_or_insert(total.period);
        let more = match (at, base) {
            (0, _) | (_, 0) => String::new(),
            (_, base) => format!(
                " ({:+.1} %)",
                (total.period as f64 / base as f64 - 1.0) * 100.0
            ),
        };
        format!("[{at}] {} samples, {amount}{more}", total.samples)
    });
    let totals: Vec<_> = totals.collect();
    let line = format!("Totals: {}", totals.join("; "));
    for line in layout.wrap(&line, 2) {
        let _ = writeln!(out, "# {line}");
    }
}

/// Returns the columns of numbers, from left to right.
fn columns(files: usize, matched: &Matched<'_>, form: &DiffForm<'_>) -> Vec<DiffColumn> {
    let mut all = Vec::new();
    let mut add =
        |title: &str, least: usize, at: usize, cell: &dyn Fn(&Difference<'_>) -> String| {
            let title = match files {
                ..=2 => title.to_owned(),
                _ => format!("{title}/{at}"),
            };
            let cells: Vec<String> = matched.rows.iter().map(cell).collect();
            let widest = cells.iter().map(String::len).fold(least, usize::max);
            all.push(DiffColumn {
                width: widest.max(title.len()),
                title,
                cells,
            });
        };
    let percent = match form.options.field_separator {
        Some(_) => "",
        None => "%",
    };
    let part = |row: &Difference<'_>, at| matched.part(row, at);
    add("Baseline", 0, 0, &|row| {
        let part = part(row, 0);
        part.map_or_else(String::new, |part| {
            format!("{:.2}{percent}", part.percent())
        })
    });
    if form.options.period {
        add("Base period", 14, 0, &|row| {
            matched.baseline(row).weight.period.to_string()
        });
    }
    for at in 1..files {
        let (title, width) = form.compute.title();
        add(title, width, at, &|row| {
            let new = part(row, at);
            new.map_or_else(String::new, |new| form.compute.text(part(row, 0), new))
        });
        if form.options.formula {
            add("Formula", 0, at, &|row| {
                let new = part(row, at);
                let old = matched.baseline(row);
                new.map_or_else(String::new, |new| form.compute.formula(old, new))
            });
        }
        if form.options.period {
            add("Period", 14, at, &|row| {
                let new = part(row, at);
                new.map_or_else(String::new, |new| new.weight.period.to_string())
            });
        }
    }
    all
}

/// Appends rows with a separator, which is a dot where it is in a key.
fn separated(
    out: &mut String,
    separator: &str,
    columns: &[DiffColumn],
    matched: &Matched<'_>,
    form: &DiffForm<'_>,
) {
    let titles = columns.iter().map(|column| column.title.clone());
    let keys = form.keys.iter().map(|key| key.title().to_owned());
    let heading: Vec<String> = titles.chain(keys).collect();
    let _ = writeln!(out, "# {}", heading.join(separator));
    for (at, row) in matched.rows.iter().enumerate() {
        let numbers = columns.iter().map(|column| column.cells[at].clone());
        let keys = row.entry.cells.iter();
        let keys = keys.map(|cell| cell.replace(separator, "."));
        let cells: Vec<String> = numbers.chain(keys).collect();
        let _ = writeln!(out, "{}", cells.join(separator));
    }
}

/// Appends rows in columns, numbers at their right end.
fn aligned(
    out: &mut String,
    columns: &[DiffColumn],
    matched: &Matched<'_>,
    form: &DiffForm<'_>,
    layout: Layout,
) {
    let widths = form.keys.iter().enumerate().map(|(at, key)| {
        let cells = matched.rows.iter().map(|row| row.entry.cells[at].chars());
        let widest = cells.map(Iterator::count);
        widest.fold(key.title().len(), usize::max)
    });
    let mut widths: Vec<usize> = widths.collect();
    if let Some(width) = layout.width {
        let numbers = columns.iter().map(|column| column.width + 2).sum::<usize>();
        let texts: Vec<usize> = (0..widths.len()).collect();
        let main = form.keys.iter().rposition(|key| *key == Key::Symbol);
        let main = main.unwrap_or(texts.len() - 1);
        fit(&mut widths, &texts, main, width.saturating_sub(2 + numbers));
    }
    let line = |numbers: &mut dyn Iterator<Item = &str>, keys: &mut dyn Iterator<Item = &str>| {
        let numbers = numbers.zip(columns);
        let numbers = numbers.map(|(cell, column)| format!("{cell:>0$}", column.width));
        let keys = keys
            .zip(&widths)
            .map(|(cell, width)| format!("{:width$}", shortened(cell, *width)));
        let cells: Vec<String> = numbers.chain(keys).collect();
        cells.join("  ").trim_end().to_owned()
    };
    let heading = line(
        &mut columns.iter().map(|column| column.title.as_str()),
        &mut form.keys.iter().map(|key| key.title()),
    );
    let _ = writeln!(out, "{}", layout.bold(&format!("# {heading}")));
    let dots: Vec<String> = columns.iter().map(|c| ".".repeat(c.width)).collect();
    let dots_of_keys: Vec<String> = widths.iter().map(|width| ".".repeat(*width)).collect();
    let dots = line(
        &mut dots.iter().map(String::as_str),
        &mut dots_of_keys.iter().map(String::as_str),
    );
    let _ = writeln!(out, "# {dots}\n#");
    for (at, row) in matched.rows.iter().enumerate() {
        let text = line(
            &mut columns.iter().map(|column| column.cells[at].as_str()),
            &mut row.entry.cells.iter().map(String::as_str),
        );
        let _ = writeln!(out, "  {text}");
    }
}
