//! Probes of programs that start others, which goes on as it does uncounted.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::{json_rows, skip, stderr};

const LIBC: &str = "/lib/x86_64-linux-gnu/libc.so.6";

/// The probes of programs that there are in tracefs.
const PROBES: &str = "/sys/kernel/tracing/uprobe_events";

/// Returns true if probes can be made here.
fn has_probes(test: &str) -> bool {
    let writable = std::fs::OpenOptions::new().append(true).open(PROBES);
    let missing = [LIBC, "/sys/bus/event_source/devices/uprobe"]
        .iter()
        .find(|path| !Path::new(path).exists());
    match (missing, writable) {
        (Some(path), _) => skip(test, format_args!("there is no {path}")),
        (None, Err(e)) => skip(test, format_args!("{PROBES}: {e}")),
        (None, Ok(_)) => return true,
    }
    false
}

fn quipu(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.args(arguments);
    command
}

fn run(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

/// The example of the README, with a program that starts two others.
const PIPE: [&str; 3] = ["sh", "-c", "ls / | wc -l"];

#[test]
fn a_program_that_starts_others_is_counted_with_them_and_goes_on() {
    const TEST: &str = "a_program_that_starts_others_is_counted_with_them_and_goes_on";
    if !has_probes(TEST) {
        return;
    }
    let uncounted = run(Command::new(PIPE[0]).args(&PIPE[1..]));
    // Beside perf's probe of the same place, as the judge. Both are in one run, since no two ask for memory equally often.
    let probe = format!("quipu_test_{}:malloc", std::process::id());
    let made = Command::new("perf")
        .args(["probe", "-q", "-x", LIBC, &format!("{probe}=malloc")])
        .output();
    let judged = made.is_ok_and(|output| output.status.success());
    let mut events = format!("uprobe:{LIBC}:malloc");
    if judged {
        events += &format!(",{probe}");
    } else {
        skip(TEST, "perf probe makes no probe here");
    }
    let counted = run(quipu(&["stat", "-j", "-e", &events, "--"]).args(PIPE));
    if judged {
        let removed = run(Command::new("perf").args(["probe", "-q", "-d", &probe]));
        assert!(removed.status.success(), "{}", stderr(&removed));
    }
    assert!(counted.status.success(), "{}", stderr(&counted));
    assert_eq!(counted.stdout, uncounted.stdout, "{}", stderr(&counted));
    let rows = json_rows(&stderr(&counted));
    let calls = rows.iter().map(|row| {
        let value = row["counter-value"].as_str().expect("text");
        value.parse::<f64>().expect("a number")
    });
    let calls: Vec<f64> = calls.collect();
    assert_eq!(calls.len(), 1 + usize::from(judged), "{rows:?}");
    // Each of the three programs asks for memory.
    assert!(calls[0] > 3.0, "{rows:?}");
    assert!(calls.iter().all(|count| *count == calls[0]), "{rows:?}");
}

/// Returns the lines of tracefs that define probes of a process.
fn probes_of(pid: u32) -> Vec<String> {
    let all = std::fs::read_to_string(PROBES).expect("readable");
    let system = format!(":quipu_{pid}/");
    let own = all.lines().filter(|line| line.contains(&system));
    own.map(str::to_owned).collect()
}

#[test]
fn probes_of_a_command_that_was_killed_are_removed_by_the_next() {
    const TEST: &str = "probes_of_a_command_that_was_killed_are_removed_by_the_next";
    if !has_probes(TEST) {
        return;
    }
    let event = format!("uprobe:{LIBC}:malloc");
    let script = "echo started; exec sleep 1000";
    let mut killed = quipu(&["stat", "-e", &event, "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let stdout = killed.stdout.take().expect("a pipe");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("the program runs");
    assert_eq!(line, "started\n");
    let pid = killed.id();
    assert_eq!(probes_of(pid).len(), 1, "while it counts");
    killed.kill().expect("it runs");
    killed.wait().expect("it has ended");
    assert_eq!(probes_of(pid).len(), 1, "nobody removes it yet");
    // The kernel closes the counters of a process that was killed in its own time.
    let start = Instant::now();
    while !probes_of(pid).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "it stays");
        let next = run(&mut quipu(&["stat", "-e", &event, "--", "true"]));
        assert!(next.status.success(), "{}", stderr(&next));
    }
}

#[test]
fn a_recording_leaves_no_probe() {
    const TEST: &str = "a_recording_leaves_no_probe";
    if !has_probes(TEST) {
        return;
    }
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = directory.path().join("perf.data");
    let file = file.to_str().expect("text");
    let event = format!("uprobe:{LIBC}:malloc");
    let mut recording = quipu(&["record", "-o", file, "-c", "1", "-e", &event, "--"]);
    let recording = recording.args(PIPE).stdout(Stdio::null());
    let recording = recording.stderr(Stdio::null()).spawn().expect("it starts");
    let pid = recording.id();
    let output = recording.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(probes_of(pid), [""; 0]);
}
