//! Programs whose exec(2) ends the counters of an ordinary user: what they did is not 0.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use tempfile::TempDir;

use super::{has_perf_events, json_rows, stderr};

/// Copies of a shell that an ordinary user's counters do not survive, and one that they do.
struct Programs {
    directory: TempDir,
}

/// Spends CPU time in the shell itself.
const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

impl Programs {
    /// Returns the copies, or says why a test is skipped.
    fn new(test: &str) -> Option<Self> {
        let skip = |why: &str| {
            let _ = writeln!(std::io::stderr(), "SKIP {test}: {why}");
            None
        };
        if !has_perf_events(test) {
            return None;
        }
        let directory = TempDir::new().expect("a directory");
        let programs = Self { directory };
        open_to_all(programs.directory.path());
        let shell = fs::read("/bin/sh").expect("every system has it");
        let copy = |name: &str, mode| {
            let path = programs.path(name);
            fs::write(&path, &shell).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        copy("plain", 0o755);
        copy("setgid", 0o2755);
        copy("unreadable", 0o711);
        copy("capable", 0o755);
        // As an ordinary user cannot run what the test builds in a directory of root's.
        let quipu = programs.path("quipu");
        fs::copy(cargo_bin("quipu"), &quipu).expect("a copy");
        let set = Command::new("setcap")
            .arg("cap_net_raw+ep")
            .arg(programs.path("capable"))
            .stderr(Stdio::null())
            .status();
        match set {
            Ok(status) if status.success() => {}
            _ => return skip("setcap(8) gives no capabilities here"),
        }
        match programs.stat(&["-e", "page-faults:u", "true"]) {
            Ok(output) if output.status.success() => Some(programs),
            Ok(output) => skip(stderr(&output).trim()),
            Err(e) => skip(&format!("no setpriv(1): {e}")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `quipu stat` as an ordinary user.
    fn stat(&self, arguments: &[&str]) -> std::io::Result<Output> {
        self.quipu("stat", arguments)
    }

    fn quipu(&self, command: &str, arguments: &[&str]) -> std::io::Result<Output> {
        Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(self.path("quipu"))
            .arg(command)
            .args(arguments)
            .current_dir(self.directory.path())
            .output()
    }

    fn report(&self, arguments: &[&str]) -> String {
        stderr(&self.stat(arguments).expect("it ran before"))
    }
}

fn open_to_all(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("it is ours");
}

fn value<'a>(rows: &'a [Value], event: &str) -> &'a str {
    let row = rows.iter().find(|row| row["event"] == event);
    let row = row.unwrap_or_else(|| panic!("{event} in {rows:?}"));
    row["counter-value"].as_str().expect("a text")
}

#[test]
fn what_ends_its_counters_is_not_counted_and_wait4_stands_in() {
    let Some(programs) = Programs::new("what_ends_its_counters_is_not_counted_and_wait4_stands_in")
    else {
        return;
    };
    let events = "task-clock,page-faults,minor-faults:u";
    let plain = json_rows(&programs.report(&["-j", "-e", events, "./plain", "-c", BUSY]));
    assert_ne!(value(&plain, "minor-faults:u"), "<not counted>");
    for program in ["./setgid", "./unreadable", "./capable"] {
        let text = programs.report(&["-j", "-e", events, program, "-c", BUSY]);
        let rows = json_rows(&text);
        assert_eq!(value(&rows, "minor-faults:u"), "<not counted>", "{text}");
        for (event, least) in [("task-clock", 1.0), ("page-faults", 20.0)] {
            let counted: f64 = value(&rows, event).parse().expect("a number");
            assert!(counted > least, "{program}: {text}");
        }
        let text = programs.report(&["-e", events, program, "-c", BUSY]);
        assert!(text.contains("<not counted>      minor-faults:u"), "{text}");
        assert!(
            text.contains("counted by wait4(2): task-clock, page-faults"),
            "{text}"
        );
        assert!(text.contains("setuid or setgid"), "{text}");
    }
    let text = programs.report(&["-x,", "-e", "minor-faults:u", "./setgid", "-c", BUSY]);
    assert!(text.starts_with("<not counted>,,minor-faults:u,"), "{text}");
    let text = programs.report(&["-r3", "-e", "minor-faults:u", "./setgid", "-c", BUSY]);
    assert!(text.contains("<not counted>      minor-faults:u"), "{text}");
}

#[test]
fn no_interval_of_ended_counters_is_0() {
    let Some(programs) = Programs::new("no_interval_of_ended_counters_is_0") else {
        return;
    };
    let events = "task-clock,page-faults:u";
    let command = format!("{BUSY}; {BUSY}; {BUSY}");
    let text = programs.report(&["-I20", "-j", "-e", events, "./setgid", "-c", &command]);
    let rows = text.lines().filter(|line| line.starts_with('{'));
    let rows = json_rows(&rows.collect::<Vec<_>>().join("\n"));
    assert!(rows.len() > 4, "{text}");
    for row in rows {
        assert_eq!(row["counter-value"], "<not counted>", "{text}");
    }
}

#[test]
fn a_sum_without_a_child_is_incomplete() {
    let Some(programs) = Programs::new("a_sum_without_a_child_is_incomplete") else {
        return;
    };
    // More than other tests' forks, which may be this command's, can explain.
    let command = format!("./setgid -c '{BUSY}; {BUSY}; {BUSY}'; {BUSY}");
    let text = programs.report(&["-e", "page-faults:u", "./plain", "-c", &command]);
    let row = text.lines().find(|line| line.contains("page-faults:u"));
    assert!(row.is_some_and(|row| row.contains('~')), "{text}");
    assert!(
        text.contains("disturbed: page-faults:u\n") && text.contains("on CPUs were counted: "),
        "{text}"
    );
    for (program, expected) in [
        (["./plain", "-c", &command], "~"),
        (["./setgid", "-c", BUSY], "<not counted>"),
    ] {
        let arguments = ["record", "-e", "page-faults:u", "-o", "counts.data"];
        programs.report(&[&arguments[..], &program].concat());
        let report = ["report", "-i", "counts.data"];
        let output = programs.stat(&report).expect("it ran before");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        let row = text
            .lines()
            .find(|line| line.contains("      page-faults:u"));
        assert!(row.is_some_and(|row| row.contains(expected)), "{text}");
    }
}

#[test]
fn a_process_that_ends_its_counters_later_is_not_counted_from_then_on() {
    let Some(programs) =
        Programs::new("a_process_that_ends_its_counters_later_is_not_counted_from_then_on")
    else {
        return;
    };
    let go = programs.path("go");
    crate::make_pipe(&go);
    fs::set_permissions(&go, fs::Permissions::from_mode(0o666)).expect("it is ours");
    let mut process = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args([
            "./plain",
            "-c",
            "read go <go; exec ./setgid -c 'while :; do :; done'",
        ])
        .current_dir(programs.directory.path())
        .spawn()
        .expect("it ran before");
    let id = process.id().to_string();
    // The command lets the process go on, and waits until the other program has run for so long that it is missed: for
    // more than 10 of the kernel's ticks of 10 ms, in the 14th field of its line.
    let script = format!(
        "echo >go; until read -r _ comm _ _ _ _ _ _ _ _ _ _ _ ticks _ </proc/{id}/stat; \
         [ $comm = '(setgid)' ] && [ $ticks -gt 10 ]; do sleep 0.01; done"
    );
    let command = ["timeout", "60", "sh", "-c", &script];
    let events = ["-e", "page-faults:u,task-clock", "-p", &id];
    let text = programs.report(&[&events[..], &command].concat());
    let _ = process.kill();
    let _ = process.wait();
    let rows = text.matches("<not counted>").count();
    assert_eq!(rows, 2, "{text}");
}

#[test]
fn what_has_no_samples_is_named_with_the_reason() {
    let Some(programs) = Programs::new("what_has_no_samples_is_named_with_the_reason") else {
        return;
    };
    let record = |command: &str| {
        let arguments = ["-e", "page-faults:u", "-c1", "./plain", "-c", command];
        stderr(&programs.quipu("record", &arguments).expect("it ran before"))
    };
    let reason = "the kernel ends an ordinary user's counters";
    for command in [
        "exec ./setgid -c :",
        "./setgid -c :; ./plain -c :; ./capable -c :",
    ] {
        let text = record(command);
        assert!(text.contains("not sampled: "), "{text}");
        assert!(text.contains("setgid: ") && text.contains(reason), "{text}");
        assert_eq!(
            command.contains("capable"),
            text.contains("capable, setgid"),
            "{text}"
        );
    }
    let text = record("./plain -c :; true");
    assert!(!text.contains("not sampled"), "{text}");
}
