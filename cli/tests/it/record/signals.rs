//! Ctrl-C ends a recording, and the file is whole.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use super::Bench;
use crate::interrupted::start;

#[test]
fn ctrl_c_finishes_the_file() {
    let Some(bench) = Bench::new("ctrl_c_finishes_the_file") else {
        return;
    };
    let recording = start(
        Command::new(cargo_bin("quipu"))
            .current_dir(bench.directory.path())
            .args(["record", "-e", "page-faults:u", "-c", "1"])
            .args(["sh", "-c", "echo ready; exec sleep 20"]),
    );
    let (status, report) = recording.end("-INT");
    assert_eq!(status, Some(130), "{report}");
    assert!(report.contains(" lost, "), "{report}");
    let rows = bench.rows(&[]);
    assert!(rows.iter().any(|row| row["command"] == "sh"), "{rows:?}");
}
