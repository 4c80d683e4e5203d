//! The lines of a report: functions, by how much they weigh.

use std::collections::BTreeSet;

use foldhash::HashMap;

use super::options::{Options, Percentage};
use super::profile::{EventProfile, Profile, Task, Weight};
use super::sort::Key;
use super::stacks::Stack;

/// One line: the samples that are the same by the keys of the report.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    /// The texts of the keys.
    pub(crate) cells: Vec<String>,
    /// One of its tasks, and the position of one of its functions.
    pub(crate) task: &'a Task,
    pub(crate) function: usize,
    /// Weight of the function itself.
    pub(crate) own: Weight,
    /// With what it called.
    pub(crate) with_children: Weight,
    /// The stacks in which it is innermost.
    pub(crate) stacks: Vec<(Stack, Weight)>,
}

/// All lines, the heaviest first.
#[derive(Debug)]
pub(crate) struct Entries<'a> {
    pub(crate) list: Vec<Entry<'a>>,
    /// True if they are sorted by what they called too.
    pub(crate) children: bool,
    /// Weight that shares are parts of.
    pub(crate) total: Weight,
    /// Number of those below the limit, and their weight without what they called.
    pub(crate) left_out: (usize, Weight),
}

impl<'a> Entries<'a> {
    /// Returns true if there are none, above the limit or below.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.left_out.0 == 0
    }

    /// Returns the lines of an event that are not below `limit`, in percent.
    pub(crate) fn new(
        profile: &'a Profile,
        event: &'a EventProfile,
        keys: &[Key],
        options: &Options,
        limit: f64,
    ) -> Self {
        let children = options.with_children();
        let mut total = event.total;
        let mut list: Vec<Entry<'_>> = Vec::new();
        let mut by_cells: HashMap<Vec<String>, usize> = HashMap::default();
        let mut known: HashMap<(u32, Option<u32>, usize), usize> = HashMap::default();
        let with_branches = profile.stacks.branches.is_some();
        let mut seen = BTreeSet::new();
        for (stack, weight) in event.stacks.iter() {
            seen.clear();
            let branch = with_branches.then_some(stack.callers);
            let frames = profile.stacks.frames(stack).enumerate();
            for (i, function) in frames.take(if children { usize::MAX } else { 1 }) {
                let subject = (stack.task, branch, function);
                let place = *known.entry(subject).or_insert_with(|| {
                    let texts = keys.iter();
                    let texts = texts.map(|key| key.text(profile, stack, function));
                    *by_cells.entry(texts.collect()).or_insert_with(|| {
                        list.push(Entry {
                            cells: Vec::new(),
                            task: profile.stacks.task(stack),
                            function,
                            own: Weight::default(),
                            with_children: Weight::default(),
                            stacks: Vec::new(),
                        });
                        list.len() - 1
                    })
                });
                let entry = &mut list[place];
                // A function that calls itself did so once.
                if seen.insert(place) {
                    entry.with_children.add(weight);
                }
                if i == 0 {
                    entry.own.add(weight);
                    entry.stacks.push((stack, weight));
                }
            }
        }
        for (cells, place) in by_cells {
            list[place].cells = cells;
        }
        if let Some(part) = &options.symbol_filter {
            list.retain(|entry| {
                let name = &profile.functions.get(entry.function).name;
                name.as_deref()
                    .is_some_and(|name| name.contains(part.as_str()))
            });
            if options.shown.percentage == Percentage::Relative {
                total = Weight::default();
                list.iter().for_each(|entry| total.add(entry.own));
            }
        }
        let mut left_out = (0, Weight::default());
        list.retain(|entry| {
            let weight = if children {
                entry.with_children
            } else {
                entry.own
            };
            let is_shown = weight.percent_of(total) >= limit;
            if !is_shown {
                left_out.0 += 1;
                left_out.1.add(entry.own);
            }
            is_shown
        });
        list.sort_by(|a, b| {
            let weights = |e: &Entry<'_>| (e.with_children.period, e.own.period, e.own.samples);
            weights(b)
                .cmp(&weights(a))
                .then_with(|| a.cells.cmp(&b.cells))
        });
        Self {
            list,
            children,
            total,
            left_out,
        }
    }
}
