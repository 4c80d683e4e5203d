//! The samples whose functions have no names, by object.

use std::collections::BTreeMap;

use crate::recording::Nameless;

use super::profile::{Profile, Weight};

/// Returns the share of each object, the largest first.
pub(super) fn nameless(profile: &Profile) -> Vec<Nameless> {
    let mut all: BTreeMap<_, f64> = BTreeMap::new();
    for event in &profile.events {
        let mut of_event: BTreeMap<_, Weight> = BTreeMap::new();
        for (stack, weight) in event.stacks.iter() {
            let sampled = profile.stacks.frames(stack).next();
            let sampled = sampled.map(|function| profile.functions.get(function));
            if let Some(sampled) = sampled.filter(|sampled| sampled.name.is_none()) {
                let object = (sampled.object.clone(), sampled.in_kernel);
                of_event.entry(object).or_default().add(weight);
            }
        }
        for (object, weight) in of_event {
            let percent = all.entry(object).or_default();
            *percent = percent.max(weight.percent_of(event.total));
        }
    }
    let all = all.into_iter();
    let mut all: Vec<_> = all
        .map(|((object, in_kernel), percent)| Nameless {
            object,
            in_kernel,
            percent,
        })
        .collect();
    all.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    all
}
