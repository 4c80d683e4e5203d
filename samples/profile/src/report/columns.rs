//! The columns of a report, as `--fields` of perf-report(1) names them, and the order of the rows.

use std::cmp::{Ordering, Reverse};

use crate::fitted::fit;
use quipu_shell::Failure;
use quipu_shell::terminal::Layout;

use super::entries::Entry;
use super::options::Options;
use super::profile::Weight;
use super::sort::{self, Key};

/// The share from which on a row is in colour, in percent, as in perf (`MIN_RED`, `tools/perf/util/color.h`).
pub(crate) const HOT: f64 = 5.0;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Share of the functions themselves.
    Overhead,
    /// Share with what they called.
    Children,
    Samples,
    Period,
    /// The key at a position among those of the report.
    Key(usize),
}

/// The columns that are no keys, by their names.
const WEIGHTS: [(&str, Column); 4] = [
    ("overhead", Column::Overhead),
    ("overhead_children", Column::Children),
    ("sample", Column::Samples),
    ("period", Column::Period),
];

/// The columns of a report, their keys, and the order of its rows.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) keys: Vec<Key>,
    pub(super) list: Vec<Column>,
    /// The widths that are asked for, from the first column on; 0 where one is as wide as its texts.
    pub(super) widths: Vec<usize>,
    /// The columns by which rows are in order; those of `--fields` alone are.
    order: Vec<Column>,
}

impl Columns {
    /// Returns the columns that are named, or the usual ones.
    pub(super) fn new(options: &Options) -> Result<Self, Failure> {
        if options.fields.is_empty() {
            let keys = match options.branch_stack && options.shown.sort.is_empty() {
                true => sort::USUAL_OF_BRANCHES.to_vec(),
                false => sort::keys(&options.shown.sort)?,
            };
            let mut list = match options.children {
                true => vec![Column::Children, Column::Overhead],
                false => vec![Column::Overhead],
            };
            list.push(Column::Samples);
            list.extend((0..keys.len()).map(Column::Key));
            let order = Vec::new();
            let widths = options.column_widths.clone();
            return Ok(Self {
                keys,
                list,
                widths,
                order,
            });
        }
        let mut keys = match options.shown.sort.as_slice() {
            [] => Vec::new(),
            named => sort::keys(named)?,
        };
        let (of_sort, mut list) = (keys.len(), Vec::new());
        for name in &options.fields {
            let weight = WEIGHTS.iter().find(|(known, _)| known == name);
            let column = match (weight, sort::key(name)) {
                (Some((_, column)), _) => *column,
                (None, Some(key)) => {
                    let known = keys.iter().position(|known| *known == key);
                    Column::Key(known.unwrap_or_else(|| {
                        keys.push(key);
                        keys.len() - 1
                    }))
                }
                (None, None) => {
                    return Err(Failure::usage(format_args!(
                        "--fields {name}: there is no such column; there are overhead, overhead_children, sample, period, \
                         and the keys of --sort"
                    )));
                }
            };
            if !list.contains(&column) {
                list.push(column);
            }
        }
        let mut order: Vec<_> = (0..of_sort).map(Column::Key).collect();
        for column in list.clone() {
            if !order.contains(&column) {
                order.push(column);
            }
        }
        let missing = (0..of_sort).map(Column::Key).filter(|c| !list.contains(c));
        let missing: Vec<_> = missing.collect();
        list.extend(missing);
        let widths = options.column_widths.clone();
        Ok(Self {
            keys,
            list,
            widths,
            order,
        })
    }

    /// Returns true if rows have the weight of what their functions called.
    pub(super) fn has_children(&self) -> bool {
        self.list.contains(&Column::Children)
    }

    /// Returns true if the column at a position has a width that was asked for.
    pub(super) fn is_cut(&self, at: usize) -> bool {
        self.widths.get(at).is_some_and(|width| *width > 0)
    }

    /// Narrows columns whose widths were not asked for, so that a row fits into so many characters.
    pub(super) fn fit(&self, widths: &mut [usize], room: usize) {
        let columns = self.list.iter().enumerate();
        let texts = columns.filter(|(at, column)| !column.is_weight() && !self.is_cut(*at));
        let texts: Vec<usize> = texts.map(|(at, _)| at).collect();
        let says_most = |at: &&usize| match self.list[**at] {
            Column::Key(key) => matches!(self.keys[key], Key::Symbol | Key::SymbolTo),
            _ => false,
        };
        if let Some(main) = texts.iter().rfind(says_most).or(texts.last()) {
            fit(widths, &texts, *main, room);
        }
    }

    /// Returns a row with a large share in colour, if that is its first column.
    pub(super) fn coloured(
        &self,
        row: &str,
        entry: &Entry<'_>,
        total: Weight,
        layout: Layout,
    ) -> String {
        let weight = match self.list.first() {
            Some(Column::Overhead) => entry.own,
            Some(Column::Children) => entry.with_children,
            _ => return row.to_owned(),
        };
        match row.split_once('%') {
            Some((share, rest)) if weight.percent_of(total) >= HOT => {
                format!("{}{rest}", layout.red(&format!("{share}%")))
            }
            _ => row.to_owned(),
        }
    }

    /// Puts rows into the order of the columns that were named.
    pub(super) fn arrange(&self, rows: &mut [Entry<'_>]) {
        rows.sort_by(|a, b| {
            let one = |column: &Column| column.compare(a, b);
            self.order
                .iter()
                .map(one)
                .fold(Ordering::Equal, Ordering::then)
        });
    }

    /// Returns the heading of a column.
    pub(super) fn title(&self, column: Column) -> &'static str {
        match column {
            Column::Overhead if self.has_children() => "Self",
            Column::Overhead => "Overhead",
            Column::Children => "Children",
            Column::Samples => "Samples",
            Column::Period => "Period",
            Column::Key(at) => self.keys[at].title(),
        }
    }
}

impl Column {
    fn compare(self, a: &Entry<'_>, b: &Entry<'_>) -> Ordering {
        let by = |weight: fn(&Entry<'_>) -> u64| Reverse(weight(a)).cmp(&Reverse(weight(b)));
        match self {
            Self::Overhead | Self::Period => by(|entry| entry.own.period),
            Self::Children => by(|entry| entry.with_children.period),
            Self::Samples => by(|entry| entry.own.samples),
            Self::Key(at) => a.cells[at].cmp(&b.cells[at]),
        }
    }

    /// Returns the text of a row; weights are parts of `total`.
    pub(super) fn text(self, entry: &Entry<'_>, total: Weight) -> String {
        match self {
            Self::Overhead => format!("{:.2}%", entry.own.percent_of(total)),
            Self::Children => format!("{:.2}%", entry.with_children.percent_of(total)),
            Self::Samples => entry.own.samples.to_string(),
            Self::Period => entry.own.period.to_string(),
            Self::Key(at) => entry.cells[at].clone(),
        }
    }

    /// Returns true for numbers, which stand at the right of their columns.
    pub(super) fn is_weight(self) -> bool {
        !matches!(self, Self::Key(_))
    }

    /// Returns the least width.
    pub(super) fn least_width(self) -> usize {
        match self {
            Self::Overhead | Self::Children => 8,
            _ => 7,
        }
    }
}
