//! quipu, run in a process group of its own and ended by a signal while its command runs.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

pub(crate) struct Running(pub(crate) Child);

/// Starts quipu with a command that says when it runs, and waits until it has.
pub(crate) fn start(quipu: &mut Command) -> Running {
    let mut child = quipu
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped"))
        .read_line(&mut line)
        .expect("the command says so");
    assert_eq!(line, "ready\n");
    Running(child)
}

impl Running {
    /// Sends a signal, such as `-TERM`, to quipu alone; `-INT` goes to its whole group, as a terminal
    /// sends it. Then waits for the end: the exit status, and what was reported.
    pub(crate) fn end(self, signal: &str) -> (Option<i32>, String) {
        let group = if signal == "-INT" { "-" } else { "" };
        let to = format!("{group}{}", self.0.id());
        let sent = Command::new("kill").args([signal, "--", &to]).status();
        assert!(sent.expect("kill(1)").success());
        let output = self.0.wait_with_output().expect("it ends");
        let report = String::from_utf8(output.stderr).expect("the report is text");
        (output.status.code(), report)
    }
}
