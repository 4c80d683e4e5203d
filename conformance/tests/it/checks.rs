//! The list of checks.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

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

/// Returns what stands between backquotes in a document.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_document_on_trust_names_checks_and_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file of the repository");
    let document = read(&root.join("docs/trust.md"));
    let ids: HashSet<_> = all().map(|check| check.id).collect();
    let areas: HashSet<_> = all().map(Check::area).collect();
    let mut git = Command::new("git");
    let listed = git.args(["ls-files", "*.rs"]).current_dir(&root).output();
    let listed = listed.map_or_else(|_| Vec::new(), |output| output.stdout);
    if listed.is_empty() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP the document on trust: not in a checkout"
        );
        return;
    }
    let listed = String::from_utf8(listed).expect("names");
    let sources: String = listed.lines().map(|name| read(&root.join(name))).collect();
    let (mut checks, mut tests) = (0, 0);
    for name in quoted(&document) {
        if name
            .split_once('.')
            .is_some_and(|(area, _)| areas.contains(area))
        {
            assert!(ids.contains(name), "there is no check {name}");
            checks += 1;
        } else if name.len() > 15 && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
            assert!(
                sources.contains(&format!("fn {name}(")),
                "there is no test {name}"
            );
            tests += 1;
        } else if name.contains("/tests/") || name.contains("/src/") {
            assert!(root.join(name).exists(), "there is no file {name}");
        }
    }
    assert!(checks > 20 && tests > 20, "{checks}, {tests}");
}
