//! Readers that have stalled: a command whose output nothing reads ends when it is asked to.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use quipu_shell::signals::is_ignored;
use tempfile::TempDir;

use crate::{make_pipe, skip};

/// The time in which what was asked to end has to.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a named pipe that is full, and open for reading, so that writing to it waits.
fn full_pipe() -> (TempDir, PathBuf, std::fs::File) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pipe");
    make_pipe(&path);
    let mut pipe = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(&path)
        .expect("it is ours");
    loop {
        match pipe.write(&[b'x'; 512]) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) => panic!("{e}"),
        }
    }
    (directory, path, pipe)
}

/// Returns quipu with a full pipe as standard output.
fn stalled(pipe: &Path, arguments: &[&str]) -> Command {
    let mut quipu = Command::new(env!("CARGO_BIN_EXE_quipu"));
    quipu
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(end_of(pipe))
        .stderr(Stdio::piped());
    quipu
}

/// Returns the end of a pipe that is written to.
fn end_of(pipe: &Path) -> std::fs::File {
    let pipe = OpenOptions::new().write(true).open(pipe);
    pipe.expect("it is ours")
}

/// Sends signals to a process, one after the other.
fn send(signals: &[&str], child: &Child) {
    for signal in signals {
        // One that has ended already has no use for another.
        let _ = Command::new("kill")
            .args([*signal, &child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn ends(child: &mut Child) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if child.try_wait().expect("our child").is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn an_output_that_stalls_keeps_nothing_from_ending() {
    const TEST: &str = "an_output_that_stalls_keeps_nothing_from_ending";
    let (_directory, path, _reader) = full_pipe();
    let commands: &[&[&str]] = &[
        &[
            "stat",
            "-I",
            "20",
            "-o",
            "-",
            "-e",
            "task-clock",
            "sleep",
            "100",
        ],
        &["stat", "-I", "20", "-o", "-", "-a", "-e", "task-clock"],
        #[cfg(target_os = "linux")]
        &["record", "-o", "-", "-e", "cpu-clock", "sleep", "100"],
        #[cfg(target_os = "linux")]
        &["top", "--stdio", "-d", "1", "-e", "cpu-clock"],
    ];
    for arguments in commands {
        let mut stalls = 0;
        // The first table of top comes after a second.
        let begun = if arguments[0] == "top" { 1_500 } else { 300 };
        for signals in [&["-TERM"][..], &["-HUP"], &["-INT", "-INT"]] {
            if signals == ["-HUP"] && is_ignored(libc::SIGHUP) {
                skip(TEST, "SIGHUP is ignored here");
                continue;
            }
            let mut child = stalled(&path, arguments).spawn().expect("it starts");
            std::thread::sleep(Duration::from_millis(begun));
            send(signals, &child);
            let ended = ends(&mut child);
            let _ = child.kill();
            let output = child.wait_with_output().expect("it ended");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(ended, "{arguments:?} {signals:?}: {said}");
            stalls += usize::from(said.contains("its reader has stalled"));
            if output.status.code() == Some(125) && stalls == 0 {
                stalls = 1;
                skip(TEST, said.trim());
            }
        }
        assert!(stalls > 0, "{arguments:?}: nothing stalled");
    }
}

/// Neither do messages that nothing reads, nor what is printed by a command that measures nothing.
#[test]
fn messages_and_lists_that_stall_keep_nothing_from_ending() {
    let (_directory, path, _reader) = full_pipe();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("perf.data").display().to_string();
    let record = ["record", "-o", &file, "-e", "cpu-clock", "sleep", "100"];
    let compare = ["compare", "--time", "100", "sleep 0.1", "sleep 0.2"];
    let list = ["list", "all"];
    for arguments in [&record[..], &compare, &list] {
        for signals in [&["-TERM"][..], &["-INT", "-INT"]] {
            // What starts the tests may ignore SIGINT, and a list leaves that as it is.
            if arguments == list && signals[0] == "-INT" {
                continue;
            }
            let mut command = stalled(&path, arguments);
            if arguments[0] != "list" {
                // Messages for a workflow are written to a pipe too.
                command.env("GITHUB_ACTIONS", "true").stderr(end_of(&path));
            }
            let mut child = command.spawn().expect("it starts");
            std::thread::sleep(Duration::from_millis(500));
            send(signals, &child);
            let ended = ends(&mut child);
            let _ = child.kill();
            let _ = child.wait();
            assert!(ended, "{arguments:?} {signals:?}");
        }
    }
}

/// A pipe of commands that never runs dry, and one for acknowledgements that nothing reads, cost neither the end nor a number.
#[test]
fn commands_that_never_end_keep_nothing_from_ending() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipes = ["commands", "acknowledgements"].map(|name| directory.path().join(name));
    pipes.iter().for_each(|pipe| make_pipe(pipe));
    let [commands, acknowledgements] = pipes.map(|pipe| pipe.display().to_string());
    let control = format!("fifo:{commands},{acknowledgements}");
    for word in ["ping", "no command"] {
        let mut flood = Command::new("sh")
            .args(["-c", "exec yes \"$1\" >\"$0\"", &commands, word])
            .stderr(Stdio::null())
            .spawn()
            .expect("yes(1)");
        let mut child = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .args([
                "stat",
                "-e",
                "task-clock",
                "--control",
                &control,
                "sleep",
                "0.3",
            ])
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let ended = ends(&mut child);
        let _ = child.kill();
        let _ = flood.kill();
        let _ = flood.wait();
        let output = child.wait_with_output().expect("it ended");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(ended, "{word}: {said}");
        assert!(said.contains("task-clock"), "{word}: {said}");
        let left_out = said.matches("is none of").count();
        assert!(left_out <= 10, "{word}: {said}");
        assert_eq!(left_out == 0, word == "ping", "{said}");
    }
}
