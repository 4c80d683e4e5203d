//! Lines on terminals of several widths.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use super::recording;
use crate::skip;

/// Returns what is written to a terminal of so many columns, without colours; `None` without script(1).
fn on_terminal(directory: &Path, columns: usize, arguments: &str) -> Option<String> {
    let quipu = cargo_bin("quipu");
    let command = format!(
        "stty cols {columns} rows 24 && {} {arguments} 2>/dev/null",
        quipu.display()
    );
    let output = Command::new("script")
        .current_dir(directory)
        .env("PAGER", "cat")
        .args(["-qec", &command, "/dev/null"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    // A colour ends with an m.
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    Some(plain)
}

#[test]
fn reports_fit_on_the_terminal() {
    const TEST: &str = "reports_fit_on_the_terminal";
    let directory = recording::directory();
    recording::write(&directory, "more.data", 30);
    let runs = [
        ("report", "Samples"),
        ("report --children -g", "main"),
        ("report --sort comm,tid,dso,sym,srcline", "hash"),
        ("annotate hash", "hottest"),
        ("diff perf.data more.data", "Totals"),
        ("diff perf.data more.data -s comm,dso,sym", "Totals"),
    ];
    for columns in [60, 80, 120, 200] {
        for (arguments, part) in runs {
            let Some(text) = on_terminal(directory.path(), columns, arguments) else {
                return skip(TEST, "script is not installed");
            };
            assert!(text.contains(part), "{arguments}: {text}");
            for line in text.lines() {
                // A tab leads to the next column of eight.
                let width = line.chars().fold(0, |at, c| match c {
                    '\t' => at / 8 * 8 + 8,
                    _ => at + 1,
                });
                assert!(width <= columns, "{arguments} at {columns}: {line}");
            }
        }
    }
}
