//! Tests what a command shares with the runs after it: its input, and the processes that it leaves behind.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};

use super::{has_perf_events, skip, stat, stderr};

/// Runs a shell's script with quipu as `$0`, in a process group of its own: other tests leave processes behind too.
fn shell(script: &str) -> Output {
    let mut command = Command::new("sh");
    let quipu = stat(&[]);
    command
        .args(["-c", script])
        .arg(quipu.get_program())
        .process_group(0)
        .output()
        .expect("every system has a shell")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn each_run_reads_a_file_from_where_the_first_did() {
    let test = "each_run_reads_a_file_from_where_the_first_did";
    if !has_perf_events(test) {
        return;
    }
    let script = "file=$(mktemp); seq 100 > $file; \
        (read first; $0 stat -r 3 -e task-clock wc -l) < $file; rm $file";
    let output = shell(script);
    assert_eq!(
        stdout(&output).split_whitespace().collect::<Vec<_>>(),
        ["99"; 3]
    );
    assert!(
        !stderr(&output).contains("standard input"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn runs_that_share_a_pipe_are_noted_once() {
    if !has_perf_events("runs_that_share_a_pipe_are_noted_once") {
        return;
    }
    let output = shell("(sleep 0.1; seq 100) | $0 stat -r 3 -e task-clock wc -l");
    assert_eq!(
        stdout(&output).split_whitespace().collect::<Vec<_>>(),
        ["100", "0", "0"]
    );
    let text = stderr(&output);
    assert_eq!(
        text.matches("standard input: runs 2 to 3").count(),
        1,
        "{text}"
    );
    // One that is not read is none of the command's.
    let output = shell("sleep 0.5 | $0 stat -r 2 -e task-clock true");
    assert!(
        !stderr(&output).contains("standard input"),
        "{}",
        stderr(&output)
    );
    let output = shell("seq 100 | $0 stat -e task-clock wc -l");
    assert!(
        !stderr(&output).contains("standard input"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn processes_that_are_left_behind_are_named() {
    if !has_perf_events("processes_that_are_left_behind_are_named") {
        return;
    }
    // The shell of the script has children of its own, and its parent takes no orphans.
    let script = |command: &str| {
        format!("sleep 3 & other=$!; $0 stat -e task-clock sh -c '{command}'; kill $other")
    };
    let text = stderr(&shell(&script("sleep 2 > /dev/null 2>&1 & sleep 0.1")));
    assert!(text.contains("left behind: sleep ("), "{text}");
    assert_eq!(text.matches("sleep (").count(), 1, "{text}");
    let text = stderr(&shell(&script("sleep 0.1 & wait")));
    assert!(!text.contains("left behind"), "{text}");
    // The first process of a container begins no session.
    let contained = |command: &str| {
        let script = "unshare --pid --fork --mount-proc sh -c \"$0 stat -e task-clock sh -c '";
        stderr(&shell(&format!("{script}{command}'; sleep 0.1\"")))
    };
    let text = contained("sleep 2 > /dev/null 2>&1 & sleep 0.1");
    if !text.contains("task-clock") {
        return skip("processes_that_are_left_behind_are_named", text.trim());
    }
    assert_eq!(text.matches("left behind: sleep (").count(), 1, "{text}");
    let text = contained("sleep 0.1 & wait");
    assert!(!text.contains("left behind"), "{text}");
}
