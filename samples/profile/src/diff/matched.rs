//! The rows of several recordings that are the same by their keys.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::report::{Entries, Entry, Weight};

use super::DiffForm;
use super::compute::Part;

/// A row, with its weight in each recording that has it.
pub(super) struct Difference<'a> {
    /// The line of the first recording that has it, and the position of that.
    pub(super) entry: &'a Entry<'a>,
    pub(super) of: usize,
    weights: Vec<Option<Weight>>,
}

/// The rows of an event.
pub(super) struct Matched<'a> {
    pub(super) rows: Vec<Difference<'a>>,
    totals: Vec<Weight>,
}

impl<'a> Matched<'a> {
    /// Matches the lines of the recordings, the baseline first, and sorts them.
    pub(super) fn new(
        lines: &'a [Option<Entries<'a>>],
        totals: Vec<Weight>,
        form: &DiffForm<'_>,
    ) -> Self {
        let mut rows: Vec<Difference<'a>> = Vec::new();
        let mut places: HashMap<&[String], usize> = HashMap::new();
        for (of, entries) in lines.iter().enumerate() {
            for entry in entries.iter().flat_map(|entries| &entries.list) {
                let place = *places.entry(&entry.cells).or_insert_with(|| {
                    rows.push(Difference {
                        entry,
                        of,
                        weights: vec![None; lines.len()],
                    });
                    rows.len() - 1
                });
                rows[place].weights[of] = Some(entry.own);
            }
        }
        if form.options.baseline_only {
            rows.retain(|row| row.of == 0 && row.is_compared());
        }
        let mut matched = Self {
            rows: Vec::new(),
            totals,
        };
        rows.sort_by(|a, b| matched.order(a, b, form));
        matched.rows = rows;
        matched
    }

    /// Returns the weight of a row in a recording that has it.
    pub(super) fn part(&self, row: &Difference<'_>, at: usize) -> Option<Part> {
        let weight = row.weights[at]?;
        let total = self.totals[at];
        Some(Part { weight, total })
    }

    /// Returns the weight of a row in the baseline, of no events where it lacks the row.
    pub(super) fn baseline(&self, row: &Difference<'_>) -> Part {
        self.part(row, 0).unwrap_or(Part {
            weight: Weight::default(),
            total: self.totals[0],
        })
    }

    /// Orders two rows as perf does: by the comparison that was asked for, then by the baseline, by each comparison,
    /// and by the keys.
    fn order(&self, a: &Difference<'_>, b: &Difference<'_>, form: &DiffForm<'_>) -> Ordering {
        let compared = |at: usize, baseline_first: bool| {
            let (new_a, new_b) = (self.part(a, at), self.part(b, at));
            let (Some(new_a), Some(new_b)) = (new_a, new_b) else {
                return new_b.is_some().cmp(&new_a.is_some());
            };
            // Without a baseline there is only a delta.
            if baseline_first && !form.compute.is_of_shares() && (a.of > 0 || b.of > 0) {
                return (a.of > 0).cmp(&(b.of > 0));
            }
            let rank = |row: &Difference<'_>, new: Part| form.compute.rank(self.baseline(row), new);
            rank(b, new_b).total_cmp(&rank(a, new_a))
        };
        let first = match form.order {
            0 => Ordering::Equal,
            at => compared(at, true),
        };
        let period = |row: &Difference<'_>| self.baseline(row).weight.period;
        let rest = || {
            let orders = (1..self.totals.len()).map(|at| compared(at, false));
            orders.fold(Ordering::Equal, Ordering::then)
        };
        first
            .then_with(|| period(b).cmp(&period(a)))
            .then_with(|| b.is_compared().cmp(&a.is_compared()))
            .then_with(rest)
            .then_with(|| a.entry.cells.cmp(&b.entry.cells))
    }
}

impl Difference<'_> {
    /// Returns true if a recording beside the baseline has it.
    fn is_compared(&self) -> bool {
        self.weights[1..].iter().any(Option::is_some)
    }
}
