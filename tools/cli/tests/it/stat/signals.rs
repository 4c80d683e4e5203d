//! Ctrl-C and its like end a measurement without losing it.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use super::can_count;
use crate::interrupted::{Running, start};

fn counting(script: &str) -> Running {
    start(Command::new(cargo_bin("quipu")).args([
        "stat",
        "-e",
        "task-clock",
        "-x,",
        "sh",
        "-c",
        script,
    ]))
}

#[test]
fn ctrl_c_reports() {
    if !can_count("ctrl_c_reports", &["-e", "task-clock"]) {
        return;
    }
    let (status, text) = counting("echo ready; exec sleep 20").end("-INT");
    assert_eq!(status, Some(130), "{text}");
    assert!(text.contains(",task-clock,"), "{text}");
}

#[test]
fn a_command_that_handles_ctrl_c_has_the_last_word() {
    if !can_count("a_command_that_handles_ctrl_c", &["-e", "task-clock"]) {
        return;
    }
    let script = "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done";
    let (status, text) = counting(script).end("-INT");
    assert_eq!(status, Some(7), "{text}");
    assert!(text.contains(",task-clock,"), "{text}");
}

#[test]
fn a_request_to_terminate_is_passed_on() {
    if !can_count("a_request_to_terminate", &["-e", "task-clock"]) {
        return;
    }
    let (status, text) = counting("echo ready; exec sleep 20").end("-TERM");
    assert_eq!(status, Some(143), "{text}");
    assert!(text.contains(",task-clock,"), "{text}");
}
