//! Reports as a person or a script reads them, whole: of recordings that are written here, simulated counters, and the
//! event database. What differs between machines is replaced by a name in brackets.

mod annotate;
mod diff;
mod events;
#[cfg(target_os = "linux")]
mod help;
mod lists;
#[cfg(unix)]
mod pctr;
#[cfg(target_os = "linux")]
mod record;
mod recording;
mod report;
mod script;
#[cfg(unix)]
mod stat;
mod widths;

use assert_cmd::Command;
use tempfile::TempDir;

/// Runs quipu in a directory, without settings of the user and of the terminal; returns all that it printed.
fn printed(directory: &TempDir, arguments: &[&str]) -> String {
    let mut command = Command::cargo_bin("quipu").expect("cargo builds it");
    command
        .current_dir(directory.path())
        .args(arguments)
        .env("HOME", directory.path())
        .env("XDG_CONFIG_HOME", directory.path())
        .env("TZ", "UTC")
        .env("LC_ALL", "C");
    for variable in [
        "COLUMNS",
        "NO_COLOR",
        "CLICOLOR_FORCE",
        "QUIPU_EVENTS",
        "DEBUGINFOD_URLS",
    ] {
        command.env_remove(variable);
    }
    let output = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let mut all = format!("$ quipu {}\n{}", arguments.join(" "), text(output.stdout));
    let errors = text(output.stderr);
    if !errors.is_empty() {
        all += &format!("-- standard error\n{errors}");
    }
    match output.status.code() {
        Some(0) => {}
        Some(status) => all += &format!("-- exit status {status}\n"),
        None => panic!("ended by a signal: {all}"),
    }
    let path = directory.path().to_str().expect("text");
    all.replace(path, "[directory]")
}

/// Runs quipu several times; returns all that it printed.
fn all_printed(directory: &TempDir, runs: &[&[&str]]) -> String {
    let runs: Vec<_> = runs.iter().map(|run| printed(directory, run)).collect();
    runs.join("\n")
}

/// Returns messages without the ends of lines that they were broken at.
#[cfg(target_os = "linux")]
pub(crate) fn unwrapped(messages: &str) -> String {
    messages.replace("\n  ", " ")
}
