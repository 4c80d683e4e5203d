//! When sampling starts and ends: after a delay, by commands, at a length of the file.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use super::judge::BUSY;
use super::peer::perf;
use super::{Bench, skip, stderr, stdout};

/// Names of functions that perf finds in a recording.
fn functions(bench: &Bench) -> Option<String> {
    let script = perf(bench, &["script", "-F", "ip,sym"])?;
    assert_eq!(stderr(&script), "");
    Some(stdout(&script))
}

#[test]
fn what_was_mapped_before_sampling_started_has_names() {
    const TEST: &str = "what_was_mapped_before_sampling_started_has_names";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let busy = BUSY
        .replace("i < 2000;", "i >= 0;")
        .replace("pages[i *", "pages[i % 2000 *");
    bench.compile("endless", &busy).expect("it compiled before");
    let command = format!("timeout 1 {}", bench.path("endless").display());
    let output = bench.record(&["-e", "cpu-clock:u", "-F", "500", "-D", "100"], &command);
    assert_eq!(output.status.code(), Some(124), "{}", stderr(&output));
    let rows = bench.rows(&[]);
    assert!(rows.iter().any(|row| row["symbol"] == "turn"), "{rows:?}");
    assert!(
        rows.iter().all(|row| row["event"] == "cpu-clock:u"),
        "{rows:?}"
    );
    let Some(text) = functions(&bench) else {
        return skip(TEST, "perf does not start here");
    };
    assert!(text.contains("turn"), "{text}");
}

/// A recording that is told what to do.
struct Told {
    commands: File,
    answers: BufReader<File>,
}

impl Told {
    fn new(control: &Path, ack: &Path) -> Self {
        let both = |path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .expect("a pipe")
        };
        Self {
            commands: both(control),
            answers: BufReader::new(both(ack)),
        }
    }

    fn tell(&mut self, command: &str) {
        self.commands
            .write_all(format!("{command}\n").as_bytes())
            .expect("a pipe takes it");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        assert_eq!(answer, "ack\n", "{command}");
    }
}

#[test]
fn commands_start_stop_and_end_a_recording() {
    const TEST: &str = "commands_start_stop_and_end_a_recording";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let (control, ack) = (bench.path("control"), bench.path("ack"));
    for pipe in [&control, &ack] {
        crate::make_pipe(pipe);
    }
    let mut told = Told::new(&control, &ack);
    // Each program that is run between two commands has a name of its own.
    for name in ["before", "between", "after"] {
        std::os::unix::fs::symlink("/bin/true", bench.path(name)).expect("linked");
    }
    let mut shell = Command::new(cargo_bin("quipu"))
        .current_dir(bench.directory.path())
        .args([
            "record",
            "-q",
            "-e",
            "page-faults:u",
            "-c",
            "1",
            "-D",
            "-1",
            "--control",
        ])
        .arg("fifo:control,ack")
        .args(["sh", "-c", "while read name; do ./$name; echo ran; done"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = shell.stdin.take().expect("a pipe");
    let mut output = BufReader::new(shell.stdout.take().expect("a pipe"));
    let mut run = |name: &str| {
        writeln!(input, "{name}").expect("the shell reads");
        let mut line = String::new();
        output.read_line(&mut line).expect("the shell writes");
        assert_eq!(line, "ran\n", "{name}");
    };
    told.tell("ping");
    run("before");
    told.tell("enable");
    run("between");
    told.tell("disable");
    run("after");
    told.tell("stop");
    let status = shell.wait().expect("it ends");
    // The shell was ended with SIGTERM.
    assert_eq!(status.code(), Some(143));
    let commands: Vec<_> = bench
        .rows(&[])
        .iter()
        .map(|row| row["command"].clone())
        .collect();
    assert!(
        commands.iter().any(|command| command == "between"),
        "{commands:?}"
    );
    assert!(
        !commands.iter().any(|c| c == "before" || c == "after"),
        "{commands:?}"
    );
}

#[test]
fn a_file_that_is_as_long_as_it_may_be_ends_the_recording() {
    const TEST: &str = "a_file_that_is_as_long_as_it_may_be_ends_the_recording";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("busy", BUSY).expect("it compiled before");
    std::fs::write(bench.path("endless.sh"), "while :; do ./busy; done").expect("written");
    let options = [
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "-m",
        "1",
        "--max-size",
        "300K",
    ];
    let output = bench.record(&options, "sh endless.sh");
    // The command was ended with SIGTERM.
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    let len = std::fs::metadata(bench.path("perf.data"))
        .expect("a recording")
        .len();
    assert!(len >= 300 << 10, "{len}");
    assert!(bench.report(&[]).status.success());
    for wrong in ["0", "-5M", "many"] {
        let output = bench.record(&["--max-size", wrong], "true");
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}
