//! Counting by an ordinary user where counting in the kernel is not permitted.

use std::io::Write as _;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use super::has_perf_events;

/// Returns the report of the default events for a user without privileges.
fn run_unprivileged(test: &str) -> Option<String> {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .unwrap_or_else(|e| e.to_string());
    if paranoid.trim() != "2" {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP {test}: perf_event_paranoid is {}",
            paranoid.trim()
        );
        return None;
    }
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(cargo_bin("quipu"))
        .args(["stat", "/bin/true"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8(output.stderr).expect("text"))
        }
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            let _ = writeln!(
                std::io::stderr(),
                "SKIP {test}: cannot become an ordinary user: {}",
                why.trim()
            );
            None
        }
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "SKIP {test}: no setpriv(1): {e}");
            None
        }
    }
}

#[test]
fn user_mode_is_counted_and_that_is_said_once() {
    if !has_perf_events("user_mode_is_counted") {
        return;
    }
    let Some(text) = run_unprivileged("user_mode_is_counted") else {
        return;
    };
    let line = |word: &str| {
        text.lines()
            .find(|line| line.contains(word))
            .unwrap_or_else(|| panic!("{word} in {text}"))
    };
    assert!(line("page-faults:u").contains("/sec"), "{text}");
    for event in ["context-switches", "cpu-migrations"] {
        assert!(line(event).contains("<not counted>"), "{text}");
    }
    assert!(!line("task-clock").contains(":u"), "{text}");
    for once in [
        "not counted: context-switches, cpu-migrations",
        "happens in the kernel only",
        "user mode only: ",
        "in every mode: task-clock",
    ] {
        assert_eq!(text.matches(once).count(), 1, "{once} in {text}");
    }
    assert!(text.contains("perf_event_paranoid is 2"), "{text}");
}

#[test]
fn what_never_happens_in_the_modes_that_are_counted_is_said_to_be_0() {
    if !has_perf_events("what_never_happens_in_the_modes_that_are_counted") {
        return;
    }
    let output = Command::new(cargo_bin("quipu"))
        .args(["stat", "-e", "cs:u,migrations:u,page-faults:u", "true"])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(
            "always 0: cs:u, migrations:u\n    happens in the kernel only, which is not counted"
        ),
        "{text}"
    );
}
