//! Other programs: run, and what they print.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// Says that a check is left out, past what the test harness captures.
pub(crate) fn skip(name: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP {name}: {reason}");
}

/// The folder of this crate.
#[allow(dead_code, reason = "not every test reads files")]
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that has to succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output
}

/// Returns the output of a command that has to succeed.
#[allow(dead_code, reason = "not every test reads it")]
pub(crate) fn printed(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).expect("UTF-8")
}

/// Returns true if a program is installed.
#[allow(dead_code, reason = "not every test asks")]
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
