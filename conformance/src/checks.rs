//! The checks, one file for each area.

mod concurrency;
mod errors;
mod exclusive;
mod exec;
mod filters;
mod groups;
mod hostile;
mod inherit;
mod lifecycle;
mod multiplexing;
mod never_scheduled;
mod pinned;
mod reset;
mod resources;
mod targets;
mod times;
mod user_reads;
mod values;

use crate::Check;

/// Every check, area by area.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        lifecycle::CHECKS,
        values::CHECKS,
        reset::CHECKS,
        times::CHECKS,
        groups::CHECKS,
        multiplexing::CHECKS,
        never_scheduled::CHECKS,
        pinned::CHECKS,
        exclusive::CHECKS,
        filters::CHECKS,
        targets::CHECKS,
        inherit::CHECKS,
        exec::CHECKS,
        concurrency::CHECKS,
        user_reads::CHECKS,
        resources::CHECKS,
        errors::CHECKS,
        hostile::CHECKS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::all;

    #[test]
    fn ids_are_unique_and_made_of_area_and_subject() {
        let mut seen = HashSet::new();
        for check in all() {
            assert!(seen.insert(check.id), "{} is there twice", check.id);
            let (area, subject) = check.id.split_once('.').expect("a dot");
            let word = |text: &str| {
                !text.is_empty() && text.bytes().all(|b| b == b'-' || b.is_ascii_alphanumeric())
            };
            assert!(word(area) && word(subject), "{}", check.id);
            assert_eq!(check.area(), area);
        }
        assert!(seen.len() >= 80, "only {} checks", seen.len());
    }

    #[test]
    fn every_check_requires_something_in_a_sentence_and_has_a_source() {
        for check in all() {
            assert!(check.requires.ends_with('.'), "{}", check.id);
            assert!(!check.source.is_empty(), "{}", check.id);
        }
    }

    #[test]
    fn areas_are_together() {
        let mut areas: Vec<_> = all().map(crate::Check::area).collect();
        areas.dedup();
        let unique: HashSet<_> = areas.iter().collect();
        assert_eq!(unique.len(), areas.len(), "{areas:?}");
    }
}
