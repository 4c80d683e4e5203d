//! `quipu stat`, end to end.

#[cfg(target_os = "linux")]
mod ended_counters;
mod exit_status;
#[cfg(target_os = "linux")]
mod files;
mod formats;
mod habits;
mod intervals;
mod peer;
mod plot;
mod presets;
mod privileges;
mod probes;
mod programs;
mod regions;
mod shared_input;
mod signals;
mod sources;
mod targets;

use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

use crate::skip;

/// Returns `quipu stat` with these arguments.
fn stat(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("quipu").expect("cargo builds it");
    command.arg("stat").args(arguments).env_remove("NO_COLOR");
    command
}

/// Runs `quipu stat` with these arguments.
fn run(arguments: &[&str]) -> Output {
    stat(arguments).output().expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the report is text")
}

/// Returns the rows of a report in JSON lines.
fn json_rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// Returns true if perf_event_open(2) can be used here; if not, says that a test is skipped. A
/// container may forbid it, and what answers then for some events knows no user mode and no other
/// processes.
fn has_perf_events(test: &str) -> bool {
    let report = stderr(&run(&["-e", "page-faults:u", "-j", "--", "true"]));
    let able = report.contains("\"counter-value\"") && !report.contains("<not ");
    if !able {
        skip(test, report.trim());
    }
    able
}

/// Returns true if this process may count here at all; if not, says that a test is skipped.
fn can_count(test: &str, arguments: &[&str]) -> bool {
    let output = run(&[arguments, &["--", "true"]].concat());
    let able = output.status.code() != Some(125);
    if !able {
        skip(test, stderr(&output).trim());
    }
    able
}
