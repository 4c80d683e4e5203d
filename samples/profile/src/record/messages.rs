//! Messages of `quipu record` on standard error.

use quipu_shell::terminal::{self, escaped};

/// Writes a message, unless none are wanted.
pub(super) fn say(quiet: bool, text: &str) {
    if !quiet {
        // One that cannot be written is also in the file or of no importance.
        terminal::say(&format!("[ quipu record: {} ]\n", escaped(text)));
    }
}

pub(super) fn samples(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} sample{plural}")
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.3} MB", bytes as f64 / 1e6)
}
