//! The exit status is the command's, and so is its standard output.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;

use super::{can_count, has_perf_events, run, stat, stderr};

fn code(arguments: &[&str]) -> Option<i32> {
    run(arguments).status.code()
}

#[test]
fn it_is_that_of_the_command() {
    if !can_count("it_is_that_of_the_command", &["-e", "task-clock"]) {
        return;
    }
    assert_eq!(code(&["true"]), Some(0));
    assert_eq!(code(&["--", "sh", "-c", "exit 3"]), Some(3));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["sh", "-c", "kill -TERM $$"]), Some(143));
}

#[test]
fn a_command_that_cannot_be_executed_is_said_so_as_a_shell_does() {
    if !can_count("not_executed", &["-e", "task-clock"]) {
        return;
    }
    for (command, status, word) in [
        ("no-such-command-at-all", 127, "no such command in PATH"),
        ("/no/such/file", 127, "no such file"),
        ("ls -l /", 127, "give its words separately"),
        ("/etc/passwd", 126, "Permission denied"),
        ("/", 126, "Permission denied"),
    ] {
        let output = run(&[command]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{message}");
        assert!(
            message.contains(command) && message.contains(word),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "no report: {message}");
    }
}

/// As an ordinary user: root may search any directory.
#[test]
fn a_directory_that_may_not_be_searched_has_no_commands() {
    let folder = tempfile::tempdir().expect("a directory");
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    };
    set_mode(folder.path(), 0o755);
    let [closed, open] = ["closed", "open"].map(|name| folder.path().join(name));
    std::fs::create_dir(&closed).expect("a directory");
    std::fs::create_dir(&open).expect("a directory");
    std::fs::write(open.join("no-program"), "").expect("a file");
    set_mode(&open.join("no-program"), 0o644);
    set_mode(&closed, 0o000);
    let quipu = folder.path().join("quipu");
    std::fs::copy(env!("CARGO_BIN_EXE_quipu"), &quipu).expect("a copy others may execute");
    let path = std::env::join_paths([&closed, &open]).expect("plain paths");
    let status = |command: &str| {
        let mut stat = std::process::Command::new(&quipu);
        stat.args(["stat", "-n", "--", command]).env("PATH", &path);
        if std::fs::metadata(folder.path()).expect("it is there").uid() == 0 {
            stat.uid(65534).gid(65534);
        }
        stat.output().map(|output| output.status.code())
    };
    let outcome = ["no-such-command", "no-program"].map(status);
    set_mode(&closed, 0o755);
    match outcome {
        [Ok(missing), Ok(forbidden)] => assert_eq!([missing, forbidden], [Some(127), Some(126)]),
        [Err(error), _] | [_, Err(error)] => {
            let test = "a_directory_that_may_not_be_searched_has_no_commands";
            let _ = writeln!(std::io::stderr(), "SKIP {test}: {error}");
        }
    }
}

#[test]
fn a_wrong_command_line_is_explained_and_nothing_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let witness = directory.path().join("witness");
    let witness = witness.to_str().expect("text");
    let perf_events = has_perf_events("a wrong command line: what the kernel refuses");
    for (options, status, word) in [
        (&["-e", "cycles,,faults"][..], 2, "character 8"),
        (&["-e", "{cycles"], 2, "expected"),
        (&["-e", "page-fualts"], 125, "page-faults"),
        (&["-A"], 2, "add -a"),
        (&["-C", "3-1"], 2, "backwards"),
        (&["-p", "2147483647"], 125, "no such process"),
        (&["-G", "no/such/cgroup"], 125, "no/such/cgroup"),
        (&["--no-such-option"], 2, "--no-such-option"),
        (&["--overhead", "-p", "1"], 2, "--overhead"),
    ] {
        if status == 125 && !perf_events {
            continue;
        }
        let output = run(&[options, &["--", "touch", witness]].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{options:?}: {message}");
        assert!(message.contains(word), "{options:?}: {message}");
        assert!(!Path::new(witness).exists(), "{options:?}");
    }
    let nothing = run(&[]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("quipu stat -- ls"));
}

#[test]
fn standard_streams_are_the_commands() {
    if !can_count("standard_streams", &["-e", "task-clock"]) {
        return;
    }
    let output = stat(&["-e", "task-clock", "cat"])
        .write_stdin("straight\0through\n")
        .output()
        .expect("it starts");
    assert_eq!(output.stdout, b"straight\0through\n");
    let output = run(&["sh", "-c", "echo to stderr >&2"]);
    assert!(stderr(&output).starts_with("to stderr\n"));
    assert_eq!(output.stdout, b"");
}

#[test]
fn options_after_the_command_are_the_commands() {
    if !can_count("options_after_the_command", &["-e", "task-clock"]) {
        return;
    }
    let output = run(&["-e", "task-clock", "echo", "-e", "-r", "--json"]);
    assert_eq!(output.stdout, b"-r --json\n".as_slice());
}

#[test]
fn with_repeats_it_is_the_first_that_is_not_0() {
    if !can_count("with_repeats", &["-e", "task-clock"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("runs");
    // Fails in its second run with 2, in its third with 3.
    let script = format!(
        "echo >> {0}; n=$(wc -l < {0}); [ $n = 1 ] || exit $n",
        file.display()
    );
    assert_eq!(code(&["-r", "3", "sh", "-c", &script]), Some(2));
    let runs = std::fs::read_to_string(&file).expect("it ran");
    assert_eq!(runs.lines().count(), 3);
}

#[test]
fn a_message_that_cannot_be_written_does_not_change_the_exit_status() {
    for (arguments, status) in [
        (["stat", "-p", "0"], 2),
        (["list", "sw", "no-such-event"], 1),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let ended = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"))
            .args(arguments)
            .stderr(full.expect("a device of Linux"))
            .status();
        assert_eq!(ended.expect("it starts").code(), Some(status));
    }
}

#[test]
fn a_report_that_cannot_be_written_goes_elsewhere_or_is_told_by_the_status() {
    if !can_count("a_report_that_cannot_be_written", &["-e", "task-clock"]) {
        return;
    }
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let shell = |script: &str| {
        let script = format!("exec {quipu} stat -e task-clock {script}");
        let mut sh = std::process::Command::new("sh");
        sh.args(["-c", &script]).output().expect("sh")
    };
    for (options, lines) in [("", 1), ("-I 20 ", 3)] {
        let told = shell(&format!("{options}-x, -o /dev/full -- sleep 0.1"));
        let err = stderr(&told);
        assert_eq!(told.status.code(), Some(125), "{err}");
        assert!(err.matches(",task-clock,").count() >= lines, "{err}");
        assert_eq!(err.matches("cannot write /dev/full").count(), 1, "{err}");
    }
    assert_eq!(
        shell("-- sh -c 'exit 3' 2>/dev/full").status.code(),
        Some(3)
    );
    assert_eq!(shell("-- true 2>/dev/full").status.code(), Some(125));
    // Nobody would see what is counted for ever.
    assert_eq!(shell("-a -I 10 2>/dev/full").status.code(), Some(125));

    let closed = shell("-- sh -c 'echo ran' 2>&-");
    assert_eq!(closed.status.code(), Some(125));
    let out = String::from_utf8_lossy(&closed.stdout);
    assert!(
        out.contains("standard error is closed") && !out.contains("ran"),
        "{out}"
    );
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report");
    let kept = shell(&format!("-o {} -- sh -c 'echo ran' 2>&-", file.display()));
    assert_eq!(
        (kept.status.code(), &kept.stdout[..]),
        (Some(0), &b"ran\n"[..])
    );
    assert!(
        std::fs::read_to_string(file)
            .expect("a report")
            .contains("task-clock")
    );
}

#[test]
fn a_hangup_that_is_ignored_stays_so() {
    if !can_count("a_hangup_that_is_ignored", &["-e", "task-clock"]) {
        return;
    }
    let script = format!(
        "trap '' HUP; exec {} stat -e task-clock -- sh -c 'kill -HUP $PPID $$; echo alive'",
        env!("CARGO_BIN_EXE_quipu")
    );
    let told = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sh");
    assert_eq!(
        (told.status.code(), &told.stdout[..]),
        (Some(0), &b"alive\n"[..])
    );
}

/// A command that fails keeps its own status, and so does one beside which something was counted.
#[test]
fn a_command_of_which_nothing_was_counted_is_no_success() {
    if !has_perf_events("a_command_of_which_nothing_was_counted") {
        return;
    }
    let absent = ["-e", "node-prefetch-misses", "--"];
    let report = stderr(&run(&[&absent[..], &["true"]].concat()));
    if !report.contains("<not supported>") {
        let _ = writeln!(std::io::stderr(), "SKIP nothing was counted: {report}");
        return;
    }
    let of = |options: &[&str], script| code(&[options, &["--", "sh", "-c", script]].concat());
    let event = ["-e", "node-prefetch-misses"];
    assert_eq!(of(&event, "exit 0"), Some(125));
    assert_eq!(of(&event, "exit 3"), Some(3));
    assert_eq!(
        of(&["-e", "node-prefetch-misses,page-faults"], "exit 0"),
        Some(0)
    );
    assert_eq!(of(&["-n"], "exit 0"), Some(0));
    assert_eq!(
        code(&["-a", "-e", "node-prefetch-misses", "--timeout", "10"]),
        Some(125)
    );
}
