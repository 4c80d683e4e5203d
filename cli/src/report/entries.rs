//! The lines of a report: functions, by how much they weigh.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::options::Options;
use super::profile::{EventProfile, Profile, Weight};

/// One line: a function in a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) command: Arc<str>,
    /// Its position among the functions.
    pub(super) function: usize,
    /// Weight of the function itself.
    pub(super) own: Weight,
    /// With what it called.
    pub(super) with_children: Weight,
}

/// All lines, the heaviest first.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) list: Vec<Entry>,
    /// True if they are sorted by what they called too.
    pub(super) children: bool,
}

impl Entries {
    pub(super) fn new(profile: &Profile, event: &EventProfile, options: &Options) -> Self {
        let mut weights: HashMap<(&Arc<str>, usize), (Weight, Weight)> = HashMap::new();
        let mut seen = BTreeSet::new();
        for (stack, weight) in &event.stacks {
            seen.clear();
            for (i, &function) in stack.frames.iter().enumerate() {
                let leaf = i == 0;
                // A function that calls itself did so once.
                if !seen.insert(function) || !(leaf || options.children) {
                    continue;
                }
                let (own, all) = weights.entry((&stack.command, function)).or_default();
                all.add(*weight);
                if leaf {
                    own.add(*weight);
                }
            }
        }
        let mut list: Vec<Entry> = weights
            .into_iter()
            .map(|((command, function), (own, with_children))| Entry {
                command: command.clone(),
                function,
                own,
                with_children,
            })
            .filter(|entry| {
                let weight = if options.children {
                    entry.with_children
                } else {
                    entry.own
                };
                weight.percent_of(event.total) >= options.percent_limit
            })
            .collect();
        list.sort_by(|a, b| {
            let weights = |e: &Entry| (e.with_children.period, e.own.period, e.own.samples);
            let names = |e: &Entry| {
                let function = profile.functions.get(e.function);
                (
                    e.command.clone(),
                    function.object.clone(),
                    function.name.clone(),
                )
            };
            weights(b)
                .cmp(&weights(a))
                .then_with(|| names(a).cmp(&names(b)))
        });
        Self {
            list,
            children: options.children,
        }
    }
}
