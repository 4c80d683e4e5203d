//! Ctrl-C ends a recording, and the file is whole.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::{Bench, stderr};

#[test]
fn ctrl_c_finishes_the_file() {
    let Some(bench) = Bench::new("ctrl_c_finishes_the_file") else {
        return;
    };
    let mut child = Command::new(cargo_bin("quipu"))
        .current_dir(bench.directory.path())
        .args([
            "record",
            "-e",
            "page-faults:u",
            "-c",
            "1",
            "sh",
            "-c",
            "echo ready; exec sleep 20",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    out.read_line(&mut line).expect("the command says so");
    assert_eq!(line, "ready\n");
    // A terminal sends SIGINT to the whole group.
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.expect("kill(1)").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains(" lost, "), "{}", stderr(&output));
    let rows = bench.rows(&[]);
    assert!(rows.iter().any(|row| row["command"] == "sh"), "{rows:?}");
}
