//! The list of checks.

use std::collections::HashSet;

use quipu_conformance::{Check, all};

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
    let mut areas: Vec<_> = all().map(Check::area).collect();
    areas.dedup();
    let unique: HashSet<_> = areas.iter().collect();
    assert_eq!(unique.len(), areas.len(), "{areas:?}");
}
