//! Intervals and time limits.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Command, Stdio};

use super::{can_count, has_perf_events, json_rows, run, stderr};

/// Returns a value's digits as one whole number: `12.345678` milliseconds are 12345678 nanoseconds.
fn digits(value: &str) -> u64 {
    value.replace('.', "").parse().expect("a number")
}

#[test]
fn intervals_add_up_to_the_total() {
    if !has_perf_events("intervals_add_up") {
        return;
    }
    let script = "for i in 1 2 3 4 5 6; do /bin/true; sleep 0.1; done";
    let events = ["-e", "faults:u,task-clock", "-I", "25", "--summary", "-j"];
    let output = run(&[&events[..], &["sh", "-c", script]].concat());
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    let mut times = Vec::new();
    for row in json_rows(&stderr(&output)) {
        let event = row["event"].as_str().expect("text").to_owned();
        let value = digits(row["counter-value"].as_str().expect("text"));
        match row["interval"].as_f64() {
            Some(time) => {
                times.push(time);
                *sums.entry(event).or_default() += value;
            }
            None => {
                totals.insert(event, value);
            }
        }
    }
    assert!(times.len() >= 4 && times.is_sorted(), "{times:?}");
    assert_eq!(sums, totals);
    assert_eq!(totals.len(), 2);
}

#[test]
fn without_a_summary_there_is_none() {
    if !can_count("without_a_summary", &["-e", "task-clock"]) {
        return;
    }
    let output = run(&["-I", "10", "-e", "task-clock", "-j", "sleep", "0.05"]);
    let rows = json_rows(&stderr(&output));
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row["interval"].is_f64()));
    let text = stderr(&run(&["-I", "10", "-e", "task-clock", "sleep", "0.05"]));
    assert_eq!(text.matches("#           time").count(), 1, "{text}");
}

#[test]
fn a_timeout_ends_the_command_and_reports() {
    if !can_count("a_timeout", &["-e", "task-clock"]) {
        return;
    }
    let output = run(&["--timeout", "50", "-e", "task-clock", "-x,", "sleep", "20"]);
    assert_eq!(output.status.code(), Some(143));
    assert!(stderr(&output).contains(",task-clock,"));
}

#[test]
fn a_timeout_ends_what_has_no_command() {
    let target = ["-a", "-e", "cpu-clock"];
    if !can_count("a_timeout_without_a_command", &target) {
        return;
    }
    let output = run(&[&target[..], &["--timeout", "50", "-x,"]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains(",cpu-clock,"));
}

/// Nothing is left to say to standard error of a reader that took what it wanted.
#[test]
fn a_reader_that_went_away_ends_intervals_without_a_command() {
    let target = ["-p", &std::process::id().to_string(), "-e", "cs"];
    if !can_count(
        "a_reader_that_went_away",
        &[&target[..], &["--timeout", "1"]].concat(),
    ) {
        return;
    }
    for to_output in [["-o", "/dev/stdout"], ["--log-fd", "1"]] {
        // The time is for a failure to end.
        let arguments = ["-I", "20", "--timeout", "10000"];
        let arguments = [&target[..], &to_output, &arguments].concat();
        let mut child = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .arg("stat")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut output = child.stdout.take().expect("a pipe");
        output.read_exact(&mut [0; 10]).expect("a line");
        drop(output);
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(stderr(&ended), "", "{to_output:?}");
        assert!(ended.status.success());
    }
}
