//! The command, its records, and what it finds on this machine.

mod command;
#[cfg(target_os = "linux")]
mod linux_mutants;
mod records;
