//! Callers of a function: a tree, the heaviest first.

use std::collections::HashMap;

use super::entries::Entry;
use super::profile::{EventProfile, Profile, Weight};

/// Callers below this share of all samples are left out, in percent.
const SMALLEST: f64 = 0.5;
/// Deeper trees are cut: nobody follows them, and a recursion has no end.
const DEEPEST: usize = 64;

/// A function that called the one above it, and those that called it.
#[derive(Debug, Default)]
struct Callers {
    weight: Weight,
    by_function: HashMap<usize, Self>,
}

/// One line of the tree.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) depth: usize,
    pub(super) percent: f64,
    pub(super) function: usize,
}

/// The callers of an entry, in the order to print them. A caller that is the only one stands under
/// what it called without going in deeper.
pub(super) fn lines(profile: &Profile, event: &EventProfile, entry: &Entry) -> Vec<Line> {
    let mut root = Callers::default();
    for (stack, weight) in &event.stacks {
        let Some((leaf, callers)) = stack.frames.split_first() else {
            continue;
        };
        if (*leaf, &stack.command) != (entry.function, &entry.command) {
            continue;
        }
        root.weight.add(*weight);
        let mut node = &mut root;
        for function in callers.iter().take(DEEPEST) {
            node = node.by_function.entry(*function).or_default();
            node.weight.add(*weight);
        }
    }
    let mut lines = Vec::new();
    root.collect(profile, event.total, 0, &mut lines);
    lines
}

impl Callers {
    fn collect(&self, profile: &Profile, total: Weight, depth: usize, lines: &mut Vec<Line>) {
        let mut callers: Vec<_> = self
            .by_function
            .iter()
            .filter(|(_, callers)| callers.weight.percent_of(total) >= SMALLEST)
            .collect();
        callers.sort_by_key(|(function, callers)| {
            let name = profile.functions.get(**function).name.clone();
            (std::cmp::Reverse(callers.weight.period), name)
        });
        let alone = callers.len() == 1 && callers[0].1.weight == self.weight;
        for (function, callers) in callers {
            lines.push(Line {
                depth,
                percent: callers.weight.percent_of(total),
                function: *function,
            });
            callers.collect(profile, total, depth + usize::from(!alone), lines);
        }
    }
}
