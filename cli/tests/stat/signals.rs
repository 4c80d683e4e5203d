//! Ctrl-C and its like end a measurement without losing it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::can_count;

/// Starts quipu in a process group of its own, with a command that says when it runs.
fn start(script: &str) -> (Child, u32) {
    let mut child = Command::new(cargo_bin("quipu"))
        .args(["stat", "-e", "task-clock", "-x,", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("the command says so");
    assert_eq!(line, "ready\n");
    let id = child.id();
    (child, id)
}

fn kill(signal: &str, to: &str) {
    let status = Command::new("kill")
        .args([signal, "--", to])
        .status()
        .expect("kill(1)");
    assert!(status.success());
}

fn report(mut child: Child) -> (ExitStatus, String) {
    let mut text = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut text).expect("text");
    (child.wait().expect("it ends"), text)
}

#[test]
fn ctrl_c_reports() {
    if !can_count("ctrl_c_reports", &["-e", "task-clock"]) {
        return;
    }
    // A terminal sends SIGINT to the whole group.
    let (child, id) = start("echo ready; exec sleep 20");
    kill("-INT", &format!("-{id}"));
    let (status, text) = report(child);
    assert_eq!(status.code(), Some(130), "{text}");
    assert!(text.contains(",task-clock,"), "{text}");
}

#[test]
fn a_command_that_handles_ctrl_c_has_the_last_word() {
    if !can_count("a_command_that_handles_ctrl_c", &["-e", "task-clock"]) {
        return;
    }
    let script = "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done";
    let (child, id) = start(script);
    kill("-INT", &format!("-{id}"));
    let (status, text) = report(child);
    assert_eq!(status.code(), Some(7), "{text}");
    assert!(text.contains(",task-clock,"), "{text}");
}

#[test]
fn a_request_to_terminate_is_passed_on() {
    if !can_count("a_request_to_terminate", &["-e", "task-clock"]) {
        return;
    }
    let (child, id) = start("echo ready; exec sleep 20");
    kill("-TERM", &id.to_string());
    let (status, text) = report(child);
    assert_eq!(status.code(), Some(143), "{text}");
    assert!(text.contains(",task-clock,"), "{text}");
}
