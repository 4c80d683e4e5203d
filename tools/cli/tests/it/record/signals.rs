//! Ctrl-C ends a recording, and the file is whole.

use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use quipu_shell::signals::is_ignored;

use super::{Bench, skip};
use crate::interrupted::{Running, start};

impl Running {
    /// Sends a signal to quipu alone.
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, "--", &self.0.id().to_string()])
            .status();
        assert!(sent.expect("kill(1)").success());
    }

    /// Returns true if quipu has ended.
    fn has_ended(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()));
        state.is_ok_and(|state| state.contains(") Z "))
    }

    /// Waits for the end of quipu alone, whose command may go on: the exit status. What is left of the group is killed.
    fn wait(mut self) -> Option<i32> {
        let status = self.0.wait().expect("it ends");
        let group = format!("-{}", self.0.id());
        // There may be nothing left.
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        status.code()
    }
}

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

#[test]
fn a_signal_to_quipu_alone_reaches_the_command() {
    let Some(bench) = Bench::new("a_signal_to_quipu_alone_reaches_the_command") else {
        return;
    };
    for (signal, status) in [("-INT", 130), ("-QUIT", 131), ("-TERM", 143), ("-HUP", 129)] {
        if signal == "-HUP" && is_ignored(libc::SIGHUP) {
            skip("a_signal_to_quipu_alone: -HUP", "SIGHUP is ignored here");
            continue;
        }
        let recording = start(
            Command::new(cargo_bin("quipu"))
                .current_dir(bench.directory.path())
                .args(["record", "-q", "-e", "page-faults:u", "-c", "1"])
                .args(["sh", "-c", "echo ready; exec sleep 60"]),
        );
        recording.signal(signal);
        assert_eq!(recording.wait(), Some(status), "{signal}");
        assert!(bench.rows(&[]).iter().any(|row| row["command"] == "sh"));
    }
}

#[test]
fn a_second_signal_ends_the_recording_of_a_command_that_ignores_the_first() {
    const TEST: &str = "a_second_signal_ends_the_recording_of_a_command_that_ignores_the_first";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let recording = start(
        Command::new(cargo_bin("quipu"))
            .current_dir(bench.directory.path())
            .args(["record", "-q", "-e", "page-faults:u", "-c", "1"])
            .args(["sh", "-c", "trap '' TERM INT; echo ready; sleep 60"]),
    );
    // One after the other, as a person sends them.
    let signals = ["-TERM", "-INT", "-TERM", "-INT"];
    for signal in signals {
        recording.signal(signal);
        std::thread::sleep(std::time::Duration::from_millis(600));
        if recording.has_ended() {
            break;
        }
    }
    let status = recording.wait();
    assert!(matches!(status, Some(130 | 143)), "{status:?}");
    assert!(bench.rows(&[]).iter().any(|row| row["command"] == "sh"));
}
