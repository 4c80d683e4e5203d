//! Rows of `quipu top`: functions with their shares.

use std::fmt::Write as _;

use crate::annotate::{EventHits, Function};
use crate::terminal::escaped;

/// An order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Share,
    Object,
    Symbol,
}

impl Order {
    /// Returns the order that follows when a person asks for another one.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Share => Self::Object,
            Self::Object => Self::Symbol,
            Self::Symbol => Self::Share,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Object => "object",
            Self::Symbol => "symbol",
        }
    }
}

/// The rows that are shown, and their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) order: Order,
    /// Part of the name of the function or its object, in any case of letters.
    pub(super) filter: &'a str,
    /// The least share, in percent.
    pub(super) limit: f64,
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) percent: f64,
    pub(super) samples: u64,
    pub(super) object: String,
    pub(super) symbol: String,
    pub(super) function: Function,
}

/// Returns the rows of an event.
pub(super) fn rows(event: &EventHits, shown: Shown<'_>) -> Vec<Row> {
    let filter = shown.filter.to_lowercase();
    let rows = event.functions.iter().map(|(function, hits)| {
        let object = function.object.rsplit('/').next().unwrap_or_default();
        Row {
            percent: hits.total.percent_of(event.total),
            samples: hits.total.samples,
            object: escaped(object).into_owned(),
            symbol: escaped(function.name.as_deref().unwrap_or("[unknown]")).into_owned(),
            function: function.clone(),
        }
    });
    let is_shown = |row: &Row| {
        let has = |text: &str| text.to_lowercase().contains(&filter);
        row.percent >= shown.limit && (filter.is_empty() || has(&row.symbol) || has(&row.object))
    };
    let mut rows: Vec<_> = rows.filter(is_shown).collect();
    rows.sort_by(|a, b| {
        let by_share = b.percent.total_cmp(&a.percent);
        let by_name = || a.function.cmp(&b.function);
        match shown.order {
            Order::Share => by_share.then_with(by_name),
            Order::Object => a.object.cmp(&b.object).then(by_share).then_with(by_name),
            Order::Symbol => a.symbol.cmp(&b.symbol).then(by_share).then_with(by_name),
        }
    });
    rows
}

/// Appends a table of at most so many rows as text, with the samples of each if they are asked for.
pub(super) fn table(
    out: &mut String,
    event: &EventHits,
    rows: &[Row],
    (most, with_samples): (usize, bool),
    lost: u64,
) {
    let name = escaped(&event.name);
    let samples = event.total.samples;
    let _ = writeln!(out, "# {name}: {samples} recent samples, {lost} lost");
    let rows = &rows[..rows.len().min(most)];
    let width = rows.iter().map(|row| row.object.chars().count()).max();
    let width = width.unwrap_or(0).max("Object".len());
    let title = if with_samples { "     Samples" } else { "" };
    let _ = writeln!(out, "# Overhead{title}  {:<width$}  Symbol", "Object");
    for row in rows {
        let Row {
            percent,
            samples,
            object,
            symbol,
            ..
        } = row;
        let count = match with_samples {
            true => format!("{samples:>12}"),
            false => String::new(),
        };
        let _ = writeln!(out, "{percent:9.2}%{count}  {object:<width$}  {symbol}");
    }
    out.push('\n');
}
