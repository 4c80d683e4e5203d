//! Differential flame graphs: the stacks of a recording, coloured by what differs from another.

use std::collections::BTreeMap;
use std::path::Path;

use crate::report::{self, EventProfile, Profile};
use quipu_shell::Failure;

/// Draws the stacks of an event in the second recording into a file. Weights of the first are scaled to the total of the second:
/// shares are compared, as in the table.
pub(super) fn write(
    path: &Path,
    old: (&Profile, &EventProfile),
    new: (&Profile, &EventProfile),
    title: &str,
) -> Result<(), Failure> {
    let lines = lines(old, new);
    let cut = new.1.cut.as_ref().map(ToString::to_string);
    report::draw(path, (title, cut), &new.1.name, &lines)
}

/// Returns each stack with its weight in the first recording, scaled, and in the second.
fn lines(old: (&Profile, &EventProfile), new: (&Profile, &EventProfile)) -> Vec<String> {
    let mut stacks: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (at, (profile, event)) in [old, new].into_iter().enumerate() {
        for (stack, weight) in event.stacks.iter() {
            let weights = stacks.entry(report::path(profile, stack)).or_default();
            weights[at] = weights[at].saturating_add(weight.period);
        }
    }
    let total = |at: usize| stacks.values().map(|weights| u128::from(weights[at])).sum();
    let totals: [u128; 2] = [total(0), total(1)];
    let lines = stacks.iter().map(|(stack, [old, new])| {
        let scaled = match totals[0] {
            0 => 0,
            all => u128::from(*old) * totals[1] / all,
        };
        format!("{stack} {scaled} {new}")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Seen, Task, Weight};

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let mut profile = Profile::default();
        let mut event = EventProfile::default();
        for (name, period) in stacks {
            let place = profile.functions.place(Seen {
                object: "bench".into(),
                name: Some((*name).into()),
                at: None,
                inlined: false,
                in_kernel: false,
                source: None,
            });
            let task = Task {
                command: "bench".into(),
                pid: None,
                tid: None,
                cpu: None,
            };
            let stack = profile.stacks.stack(task, &[place]);
            let weight = Weight {
                samples: 1,
                period: *period,
            };
            event.stacks.add(stack, weight);
        }
        profile.events.push(event);
        profile
    }

    #[test]
    fn shares_of_stacks_are_compared() {
        // Twice as long, and the half of it is `b` where it was a quarter.
        let old = profile(&[("a", 300), ("b", 100)]);
        let new = profile(&[("c", 400), ("b", 400)]);
        let lines = lines((&old, &old.events[0]), (&new, &new.events[0]));
        assert_eq!(lines, ["bench;a 600 0", "bench;b 200 400", "bench;c 0 400"]);
    }
}
