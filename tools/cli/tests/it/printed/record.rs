//! The messages of `quipu record`.

use std::io::Write as _;

use tempfile::TempDir;

use super::{all_printed, printed};

#[test]
fn closing_note() {
    let directory = TempDir::new().expect("a directory");
    let text = printed(
        &directory,
        &["record", "-e", "page-faults:u", "-c", "1", "--", "true"],
    );
    if text.contains("exit status 125") {
        let _ = writeln!(std::io::stderr(), "SKIP closing_note: {}", text.trim());
        return;
    }
    insta::with_settings!({filters => vec![(r"[0-9][0-9.,]*", "[number]")]}, {
        insta::assert_snapshot!(text);
    });
}

#[test]
fn refusals() {
    let runs: [&[&str]; 5] = [
        &["record", "-p", "python3"],
        &["record", "-p", "999999999"],
        &["record", "-F", "0", "--", "true"],
        &["record", "--call-graph", "nosuch", "--", "true"],
        &["top", "true"],
    ];
    let directory = TempDir::new().expect("a directory");
    insta::assert_snapshot!(all_printed(&directory, &runs));
}
