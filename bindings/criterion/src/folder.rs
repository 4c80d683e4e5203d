//! Folders for the results of one event.

use std::path::PathBuf;

/// Returns the folder for results of what has this name: beside those that criterion has of times, with which it would compare
/// them otherwise.
pub(crate) fn of(measured: &str) -> PathBuf {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let name: String = measured.chars().map(plain).collect();
    criterions().join("counted").join(name)
}

/// Returns criterion's own folder: the one that its variable names, else `criterion` in cargo's target folder, where the program is.
fn criterions() -> PathBuf {
    if let Some(home) = quipu_environment::variable("CRITERION_HOME") {
        return home.into();
    }
    let program = std::env::current_exe().unwrap_or_default();
    // Cargo marks it so.
    let target = program
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").exists());
    match target {
        Some(target) => target.join("criterion"),
        None => PathBuf::from("target/criterion"),
    }
}
