//! Rows of `quipu top`: what samples have in common by the keys, with their shares.

use std::fmt::Write as _;

use crate::report::{self, Entries, EventProfile, Key, Profile, Seen};
use quipu_shell::terminal::escaped;

/// The columns of rows, and the rows that are shown.
#[derive(Debug, Clone)]
pub(super) struct TopForm {
    pub(super) keys: Vec<Key>,
    /// The options of a report with the same rows.
    pub(super) report: report::Options,
    /// True if rows have their callers.
    pub(super) with_callers: bool,
    pub(super) with_samples: bool,
    /// The least share, in percent.
    pub(super) limit: f64,
}

/// An order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Share,
    /// By the key at a position, then by share.
    Key(usize),
}

impl Order {
    /// Returns the order that follows when a person asks for another one.
    pub(super) fn next(self, keys: &[Key]) -> Self {
        let next = match self {
            Self::Share => 0,
            Self::Key(at) => at + 1,
        };
        if next < keys.len() {
            Self::Key(next)
        } else {
            Self::Share
        }
    }

    pub(super) fn name(self, keys: &[Key]) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Key(at) => keys[at].title(),
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TopRow {
    pub(super) percent: f64,
    pub(super) samples: u64,
    /// The texts of the keys.
    pub(super) cells: Vec<String>,
    /// The function of its samples, where the keys tell functions apart.
    pub(super) function: Option<Seen>,
    /// True if a CPU without work waits in it.
    pub(super) is_idle: bool,
    /// Lines on who called it.
    pub(super) callers: Vec<String>,
}

/// Functions in which a CPU without work waits, as `perf top` knows them (`idle_symbols`, `tools/perf/util/symbol.c`).
const IDLE: [&str; 18] = [
    "acpi_idle_do_entry",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle",
    "cpu_startup_entry",
    "default_idle",
    "idle_cpu",
    "intel_idle",
    "intel_idle_ibrs",
    "intel_idle_irq",
    "mwait_idle",
    "mwait_idle_with_hints",
    "native_safe_halt",
    "poll_idle",
    "psw_idle",
    "pv_native_safe_halt",
];

/// Returns true for a function in which a CPU without work waits.
fn is_idle(function: &Seen) -> bool {
    // Compilers append `.constprop.0` and the like.
    let name = function
        .name
        .as_deref()
        .and_then(|name| name.split('.').next());
    function.in_kernel && name.is_some_and(|name| IDLE.contains(&name))
}

/// Returns the rows of an event, the heaviest first.
pub(super) fn rows(profile: &Profile, event: &EventProfile, form: &TopForm) -> Vec<TopRow> {
    let entries = Entries::new(profile, event, &form.keys, &form.report, form.limit);
    let symbol = form.keys.iter().position(|key| *key == Key::Symbol);
    let list = entries.list.into_iter();
    list.map(|entry| {
        let function = symbol.map(|_| profile.functions.get(entry.function).clone());
        let callers = match form.with_callers {
            true => report::callers(profile, entries.total, &entry),
            false => Vec::new(),
        };
        let mut cells = entry.cells;
        let is_idle = function.as_ref().is_some_and(is_idle);
        if let Some(at) = symbol.filter(|_| is_idle) {
            cells[at].push_str(" (idle)");
        }
        TopRow {
            percent: entry.own.percent_of(entries.total),
            samples: report::whole_samples(entry.own.samples),
            cells,
            function,
            is_idle,
            callers,
        }
    })
    .collect()
}

/// Returns the rows that have a text in one of their cells, in any case of letters, in an order.
pub(super) fn chosen(rows: &[TopRow], order: Order, filter: &str) -> Vec<TopRow> {
    let filter = filter.to_lowercase();
    let has = |cell: &String| cell.to_lowercase().contains(&filter);
    let rows = rows.iter();
    let mut rows: Vec<_> = rows
        .filter(|row| filter.is_empty() || row.cells.iter().any(has))
        .cloned()
        .collect();
    // The heaviest stay first where the cells of a key are equal.
    if let Order::Key(at) = order {
        rows.sort_by(|a, b| a.cells[at].cmp(&b.cells[at]));
    }
    rows
}

/// Appends a table of at most so many rows as text.
pub(super) fn table(
    out: &mut String,
    (name, samples): (&str, u64),
    rows: &[TopRow],
    (form, most): (&TopForm, usize),
    lost: u64,
) {
    let name = escaped(name);
    let _ = writeln!(out, "# {name}: {samples} recent samples, {lost} lost");
    let rows = &rows[..rows.len().min(most)];
    let titles: Vec<_> = form.keys.iter().map(|key| key.title().to_owned()).collect();
    let texts = || rows.iter().map(|row| &row.cells).chain([&titles]);
    let widths: Vec<usize> = (0..titles.len())
        .map(|at| texts().map(|cells| cells[at].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        let cells: String = cells
            .map(|(text, width)| format!("  {text:<width$}"))
            .collect();
        cells.trim_end().to_owned()
    };
    let title = if form.with_samples {
        "     Samples"
    } else {
        ""
    };
    let _ = writeln!(out, "# Overhead{title}{}", line(&titles));
    for row in rows {
        let count = match form.with_samples {
            true => format!("{:>12}", row.samples),
            false => String::new(),
        };
        let _ = writeln!(out, "{:9.2}%{count}{}", row.percent, line(&row.cells));
        for caller in &row.callers {
            let _ = writeln!(out, "          {caller}");
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::example::profile;

    #[test]
    fn waiting_for_work_is_idle_in_the_kernel() {
        let of = |name: &str, in_kernel| Seen {
            object: "[kernel.kallsyms]".into(),
            name: Some(name.into()),
            at: None,
            inlined: false,
            in_kernel,
            source: None,
        };
        assert!(is_idle(&of("pv_native_safe_halt", true)));
        assert!(is_idle(&of("mwait_idle_with_hints.constprop.0", true)));
        assert!(!is_idle(&of("idle", true)) && !is_idle(&of("default_idle", false)));
    }

    #[test]
    fn tables_of_every_form() {
        let profile = profile();
        let mut out = String::new();
        for (with_samples, with_callers, most) in
            [(false, false, 10), (true, false, 10), (true, true, 1)]
        {
            let form = TopForm {
                keys: vec![Key::Command, Key::Object, Key::Symbol],
                report: report::Options::default(),
                with_callers,
                with_samples,
                limit: 0.0,
            };
            let rows = rows(&profile, &profile.events[0], &form);
            table(&mut out, ("cpu-clock", 3), &rows, (&form, most), 7);
        }
        insta::assert_snapshot!(out);
    }
}
