//! Commands are suspended, resumed and waited for.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use quipu_command::{Exit, SuspendedCommand};
use quipu_hal::ErrorKind;

fn suspended(program: impl AsRef<OsStr>, arguments: &[&str]) -> SuspendedCommand {
    let mut command = Command::new(program);
    command.args(arguments);
    SuspendedCommand::of(command).expect("a process")
}

fn run(program: &str, arguments: &[&str]) -> Exit {
    let mut running = suspended(program, arguments).resume().expect("it executes");
    running.wait().expect("it ends")
}

fn exists(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None).is_ok()
}

/// Returns the text that a shell writes to the file `$1`.
fn output_of(script: &str) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("out");
    let path = file.to_str().expect("text");
    assert!(run("sh", &["-c", script, "sh", path]).status.success());
    std::fs::read_to_string(file).expect("it was written")
}

#[test]
fn the_exit_status_is_the_commands() {
    let exit = run("true", &[]);
    assert!(exit.status.success());
    assert!(exit.max_resident > 0);
    // A process takes some time to be forked, and `true` some more; both are in what wait4(2) reports, by ticks on
    // some systems.
    assert!(exit.time_before > Duration::ZERO);
    if cfg!(target_os = "linux") {
        assert!(exit.time_before < exit.user_time + exit.system_time);
    }
    assert_eq!(run("sh", &["-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(run("sh", &["-c", "kill -9 $$"]).status.signal(), Some(9));
}

#[test]
fn a_program_that_cannot_be_executed_is_told_with_its_errno() {
    let fail = |program: &Path| {
        let suspended = suspended(program, &[]);
        let pid = suspended.pid();
        let e = suspended.resume().expect_err("no such program");
        assert!(!exists(pid), "its process is gone");
        (e.kind(), e.errno())
    };
    let missing = (ErrorKind::NoSuchTarget, Some(libc::ENOENT));
    assert_eq!(fail(Path::new("no-such-program-anywhere")), missing);
    assert_eq!(fail(Path::new("/nowhere/at/all")), missing);
    assert_eq!(fail(Path::new("")), missing);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("data");
    std::fs::write(&file, "echo").expect("written");
    let forbidden = (ErrorKind::NoPermission, Some(libc::EACCES));
    assert_eq!(fail(&file), forbidden);
    assert_eq!(fail(dir.path()), forbidden);
    let mut nul = Command::new("true");
    nul.arg("a\0b");
    let nul = SuspendedCommand::of(nul).expect_err("a NUL");
    assert_eq!(nul.kind(), ErrorKind::InvalidConfiguration);
}

#[test]
fn a_script_without_an_interpreter_line_goes_to_the_shell() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("script");
    std::fs::write(&file, "exit $(($1 + $#))\n").expect("written");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let path = file.to_str().expect("text");
    assert_eq!(run(path, &["3", "x"]).status.code(), Some(5));
}

#[test]
fn dropped_while_suspended_it_is_gone() {
    let suspended = suspended("sleep", &["1000"]);
    let pid = suspended.pid();
    drop(suspended);
    assert!(!exists(pid));
}

#[test]
fn the_wait_can_end_before_the_command() {
    let suspended = suspended("sleep", &["1000"]);
    let mut running = suspended.resume().expect("it executes");
    let waited = running.wait_timeout(Duration::from_millis(1));
    assert_eq!(waited, Ok(None));
    running.signal(libc::SIGTERM).expect("it is ours");
    let exit = running.wait().expect("it ends");
    assert_eq!(exit.status.signal(), Some(libc::SIGTERM));
    assert_eq!(running.wait(), Ok(exit));
    assert_eq!(running.wait_timeout(Duration::MAX), Ok(Some(exit)));
    assert_eq!(running.signal(libc::SIGTERM), Ok(()));
}

/// Nothing of the launcher is left in the command: no descriptor, no ignored or blocked signal.
#[cfg(target_os = "linux")]
#[test]
fn the_command_starts_clean() {
    let signals = output_of("grep -E '^Sig(Blk|Ign)' /proc/self/status >\"$1\"");
    let masks: Vec<u64> = signals
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok())
        .collect();
    let [blocked, ignored] = masks[..] else {
        panic!("{signals}");
    };
    assert_eq!(blocked, 0);
    assert_eq!(ignored >> (libc::SIGPIPE - 1) & 1, 0);
    let descriptors = output_of("ls -l /proc/self/fd >\"$1\"");
    for leak in ["socket", "perf_event"] {
        assert!(!descriptors.contains(leak), "{descriptors}");
    }
}

#[test]
fn the_environment_and_the_arguments_are_passed_on() {
    let path = std::env::var("PATH").expect("there is a PATH");
    assert_eq!(output_of("printf %s \"$PATH\" >\"$1\""), path);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("out");
    let file = file.to_str().expect("text");
    let script = "out=$1; shift; printf '[%s]' \"$@\" >\"$out\"";
    run("sh", &["-c", script, "sh", file, "a b", "", "ü*"]);
    assert_eq!(
        std::fs::read_to_string(file).expect("written"),
        "[a b][][ü*]"
    );
}

#[test]
fn a_command_has_the_streams_the_environment_and_the_directory_that_it_was_given() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("sh");
    command
        .args(["-c", "cat; pwd -P; printf %s \"$N$HOME\"; printf e >&2"])
        .env_clear()
        .env("N", "five")
        .env("PATH", std::env::var_os("PATH").expect("there is a PATH"))
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let suspended = SuspendedCommand::of(command).expect("a process");
    let mut running = suspended.resume().expect("it executes");
    let streams = running.streams();
    let mut input = streams.stdin.take().expect("a pipe");
    input.write_all(b"in\n").expect("it reads");
    drop(input);
    let [mut out, mut err] = [String::new(), String::new()];
    let mut stdout = streams.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut out).expect("text");
    let mut stderr = streams.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut err).expect("text");
    assert!(running.wait().expect("it ends").status.success());
    let here = dir.path().canonicalize().expect("it is there");
    assert_eq!(out, format!("in\n{}\nfive", here.display()));
    assert_eq!(err, "e");
}

#[test]
fn the_wait_closes_an_input_that_nobody_took() {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    let suspended = SuspendedCommand::of(command).expect("a process");
    let mut running = suspended.resume().expect("it executes");
    assert!(running.wait().expect("its input ends").status.success());
}

#[test]
fn a_directory_that_is_missing_is_reported_before_anything_is_attached() {
    let mut command = Command::new("true");
    command.current_dir("/nowhere/at/all");
    let missing = SuspendedCommand::of(command).expect_err("no such directory");
    assert_eq!(missing.kind(), ErrorKind::NoSuchTarget);
    assert_eq!(missing.errno(), Some(libc::ENOENT));
}

/// Each waits for its own byte, in any order.
#[test]
fn several_are_suspended_at_a_time() {
    let commands: Vec<_> = (0..8)
        .map(|n| suspended("sh", &["-c", &format!("exit {n}")]))
        .collect();
    for (n, command) in commands.into_iter().enumerate().rev() {
        let exit = command
            .resume()
            .expect("it executes")
            .wait()
            .expect("it ends");
        assert_eq!(exit.status.code(), Some(n as i32));
    }
}
