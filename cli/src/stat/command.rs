//! The measured command: suspended until everything is counting, and how it ended.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use quipu::ErrorKind;
use quipu::command::SuspendedCommand;

use crate::failure::Failure;

use super::system;

/// The exit status of a shell if a command exists and cannot be executed (POSIX, XCU 2.8.2).
const CANNOT_EXECUTE: u8 = 126;
/// The exit status of a shell if a command does not exist.
const NOT_FOUND: u8 = 127;

/// Makes the process of a command, if there is one; it stays on these CPUs, if any are named.
pub(crate) fn suspend(
    command: &[OsString],
    cpus: Option<&[u32]>,
) -> Result<Option<SuspendedCommand>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let spawn = || SuspendedCommand::spawn(program, arguments);
    let suspended = match cpus {
        Some(cpus) => system::on_cpus(cpus, spawn)?,
        None => spawn(),
    };
    Ok(Some(suspended?))
}

/// Returns the failure of a command that could not be executed, with a shell's exit status.
pub(crate) fn not_executed(program: &OsStr, error: &quipu::Error) -> Failure {
    let program = program.to_string_lossy();
    let why = match error.errno() {
        Some(errno) => std::io::Error::from_raw_os_error(errno).to_string(),
        None => error.to_string(),
    };
    match error.kind() {
        ErrorKind::NoSuchTarget if !program.contains('/') => Failure::with_status(
            format_args!("cannot execute {program}: no such command in PATH"),
            NOT_FOUND,
        ),
        ErrorKind::NoSuchTarget => {
            Failure::with_status(format_args!("cannot execute {program}: {why}"), NOT_FOUND)
        }
        _ => Failure::with_status(
            format_args!("cannot execute {program}: {why}"),
            CANNOT_EXECUTE,
        ),
    }
}

/// Returns the exit status for a command that ended: its own, or 128 + n after signal n.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => Failure::STATUS.into(),
    };
    // Exit codes have eight bits, and there are fewer than 128 signals.
    (code & 0xff) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_a_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(255 << 8)), 255);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
        // With a core dump.
        assert_eq!(exit_code(ExitStatus::from_raw(11 | 0x80)), 139);
    }
}
