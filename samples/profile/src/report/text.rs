//! A report for a person, in the columns of `perf report --stdio`.

use std::fmt::Write;
use std::{iter, mem};

use quipu_shell::terminal::{Layout, escaped, shortened};
use quipu_viewers::Unit;

use super::callers::{self, TreeForm};
use super::columns::Columns;
use super::entries::Entries;
use super::profile::{EventProfile, Profile};
use super::unit::seconds;

/// The columns before a row.
const INDENT: usize = 2;

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
    let name = escaped(&event.name);
    let lost = event.lost;
    comment(
        out,
        &format!("Samples: {samples} of event '{name}', {lost} lost"),
        layout,
    );
    let _ = writeln!(out, "# Event count (approx.): {period}");
    if event.unit != Unit::Count {
        let _ = writeln!(out, "# Time: {}", seconds(entries.total));
    }
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
        left_out(out, entries, limit, layout);
        return cut_chains(out, event, layout);
    }
    let mut cells: Vec<Vec<String>> = list
        .iter()
        .map(|entry| {
            let texts = columns.list.iter();
            texts
                .map(|column| column.text(entry, entries.total))
                .collect()
        })
        .collect();
    let mut widths: Vec<usize> = columns
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
    if let Some(width) = layout.width {
        columns.fit(&mut widths, width.saturating_sub(INDENT));
        let texts = cells.iter_mut().flat_map(|row| row.iter_mut().enumerate());
        for (at, cell) in texts.filter(|(at, _)| !columns.is_cut(*at)) {
            *cell = shortened(cell, widths[at]).into_owned();
        }
    }
    let last = columns.list.len() - 1;
    let titles = columns.list.iter().map(|column| columns.title(*column));
    let title = format!("# {}", row(titles, columns, &widths));
    let _ = writeln!(out, "{}", layout.bold(&layout.fitted(&title)));
    let dots = columns.list.iter().zip(&widths).enumerate();
    let dots = dots.map(|(at, (column, width))| {
        match at == last && !column.is_weight() && !columns.is_cut(at) {
            true => ".".repeat(columns.title(*column).len().min(*width)),
            false => ".".repeat(*width),
        }
    });
    let _ = writeln!(out, "# {}\n#", row(dots, columns, &widths));
    for (entry, cells) in list.iter().zip(&cells) {
        let line = format!("{:INDENT$}{}", "", row(cells.iter(), columns, &widths));
        let _ = writeln!(
            out,
            "{}",
            columns.coloured(&line, entry, entries.total, layout)
        );
        let Some(form) = callers else {
            continue;
        };
        for line in callers::lines(profile, entries.total, entry, form) {
            let line = line.text(profile, 21);
            let _ = writeln!(out, "{}", layout.dim(&layout.fitted(&line)));
        }
    }
    left_out(out, entries, limit, layout);
    cut_chains(out, event, layout);
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
fn left_out(out: &mut String, entries: &Entries<'_>, limit: f64, layout: Layout) {
    let (rows, weight) = entries.left_out;
    if rows > 0 {
        let share = weight.percent_of(entries.total);
        out.push_str("#\n");
        let text = format!(
            "Left out: {rows} below {limit} %, with {share:.2} % of all; --percent-limit 0 shows them"
        );
        comment(out, &text, layout);
    }
}

/// Appends the lines on call chains that are cut, if there are any.
fn cut_chains(out: &mut String, event: &EventProfile, layout: Layout) {
    let Some(cut) = &event.cut else {
        return;
    };
    out.push_str("#\n");
    let (what, remedy) = (format!("Cut: {cut}"), cut.remedy());
    for line in [what.as_str(), remedy] {
        comment(out, line, layout);
    }
}

/// Appends lines that are no rows.
fn comment(out: &mut String, text: &str, layout: Layout) {
    for line in layout.wrap(text, INDENT) {
        let _ = writeln!(out, "# {line}");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::options::Options;
    use crate::report::profile::{Seen, Task, Weight};

    /// Returns a profile of a server: long names, and an object with the longest of them that has little weight.
    fn profile() -> Profile {
        let mut profile = Profile::default();
        let mut event = EventProfile {
            name: "cpu-clock".into(),
            ..EventProfile::default()
        };
        let mut place = |object: &str, name: &str| {
            profile.functions.place(Seen {
                object: object.into(),
                name: Some(name.into()),
                at: None,
                inlined: false,
                in_kernel: false,
                source: None,
            })
        };
        let outer = place("/usr/bin/server", "server::main");
        for (object, name, period) in [
            (
                "/usr/bin/server",
                "hashbrown::rustc_entry::<impl hashbrown::map::HashMap<K,V,S,A>>::rustc_entry",
                6000,
            ),
            (
                "/usr/lib/_ssl.cpython-311-x86_64-linux-gnu.so",
                "_PyEval_EvalFrameDefault",
                3590,
            ),
            ("/usr/lib/libc.so.6", "malloc", 406),
            (
                "/usr/lib/_opcode_metadata_of_the_interpreter.cpython-311.so",
                "PyInit__opcode",
                4,
            ),
        ] {
            let weight = Weight::of_sample(period);
            event.total.add(weight);
            let task = Task {
                command: "server-worker-1".into(),
                pid: None,
                tid: None,
                cpu: None,
            };
            let stack = profile.stacks.stack(task, &[place(object, name), outer]);
            event.stacks.add(stack, weight);
        }
        profile.events.push(event);
        profile
    }

    #[test]
    fn lines_fit_on_terminals_of_any_width() {
        let profile = profile();
        let event = &profile.events[0];
        let options = Options {
            children: true,
            call_graph: Some("graph".into()),
            ..Options::default()
        };
        let columns = Columns::new(&options).expect("the usual ones");
        let entries = Entries::new(&profile, event, &columns.keys, &options, 0.1);
        let mut all = String::new();
        for width in [60, 80, 120, 200] {
            let layout = Layout {
                width: Some(width),
                ..Layout::PLAIN
            };
            let mut out = String::new();
            let form = (&columns, Some(TreeForm::default()), 0.1);
            write(&mut out, &profile, event, &entries, form, (None, layout));
            for line in out.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
            all += &format!("{width} columns\n{out}\n");
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn large_shares_are_red() {
        let profile = profile();
        let event = &profile.events[0];
        let options = Options::default();
        let columns = Columns::new(&options).expect("the usual ones");
        let entries = Entries::new(&profile, event, &columns.keys, &options, 0.0);
        let layout = Layout {
            colour: true,
            ..Layout::PLAIN
        };
        let mut out = String::new();
        write(
            &mut out,
            &profile,
            event,
            &entries,
            (&columns, None, 0.0),
            (None, layout),
        );
        let red = "\x1b[31m    60.00%\x1b[0m  ";
        assert!(out.contains(red), "{out:?}");
        assert!(out.contains("\n     4.06%  "), "{out:?}");
    }
}
