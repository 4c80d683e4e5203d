//! The measured command: suspended until everything is counting, and how it ended.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::{env, fs, io, process};

use quipu::command::{Running, SuspendedCommand};
use quipu::{ErrorKind, Target};

use crate::Failure;
use crate::terminal;

/// The exit status of a shell if a command exists and cannot be executed (POSIX, XCU 2.8.2).
const CANNOT_EXECUTE: u8 = 126;
/// The exit status of a shell if a command does not exist.
const NOT_FOUND: u8 = 127;

/// Makes the process of a command, if there is one; it stays on these CPUs, if any are named.
pub fn suspend(
    command: &[OsString],
    cpus: Option<&[u32]>,
) -> Result<Option<SuspendedCommand>, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(None);
    };
    let mut command = process::Command::new(program);
    command.args(arguments);
    suspend_with(command, cpus).map(Some)
}

/// Makes the process of a command with streams, environment and directory of its own, likewise.
pub fn suspend_with(
    command: process::Command,
    cpus: Option<&[u32]>,
) -> Result<SuspendedCommand, Failure> {
    let program = command.get_program();
    // A path is relative to the directory that it is executed in.
    if command.get_current_dir().is_none() && !may_exist(program) {
        return Err(not_found(program));
    }
    let spawn = || SuspendedCommand::of(command);
    let suspended = match cpus {
        Some(cpus) => on_cpus(cpus, spawn)?,
        None => spawn(),
    };
    Ok(suspended?)
}

/// Returns true if there is a file that execvp(3) would try for a program: nothing is touched for one that there is not.
fn may_exist(program: &OsStr) -> bool {
    is_any(
        program,
        |found| !matches!(found, Err(e) if e.kind() == io::ErrorKind::NotFound),
    )
}

/// Returns true if one of the files that execvp(3) would try for a program satisfies a condition.
fn is_any(program: &OsStr, condition: impl Fn(io::Result<fs::Metadata>) -> bool) -> bool {
    if program.as_bytes().contains(&b'/') {
        return condition(fs::metadata(program));
    }
    // Without PATH the system has a default of its own.
    quipu_environment::variable("PATH").is_none_or(|path| {
        let mut directories = env::split_paths(&path);
        directories.any(|directory| condition(directory.join(program).metadata()))
    })
}

/// Returns the failure of a command that does not exist.
fn not_found(program: &OsStr) -> Failure {
    let name = program.to_string_lossy();
    let why = match (name.contains(char::is_whitespace), name.contains('/')) {
        (true, _) => format!("no such command; give its words separately: {name}"),
        (false, true) => "no such file".to_owned(),
        (false, false) => "no such command in PATH".to_owned(),
    };
    Failure::with_status(format_args!("cannot execute {name}: {why}"), NOT_FOUND)
}

/// Returns the failure of a command that could not be executed, with a shell's exit status.
pub fn not_executed(program: &OsStr, error: &quipu::Error) -> Failure {
    // As for a shell, a directory that may not be searched has no commands.
    let is_missing = match error.kind() {
        ErrorKind::NoSuchTarget => !may_exist(program),
        ErrorKind::NoPermission => {
            !program.as_bytes().contains(&b'/') && !is_any(program, |found| found.is_ok())
        }
        _ => false,
    };
    if is_missing {
        return not_found(program);
    }
    let program = program.to_string_lossy();
    let why = match error.errno() {
        Some(errno) => io::Error::from_raw_os_error(errno).to_string(),
        None => error.to_string(),
    };
    match error.kind() {
        ErrorKind::NoSuchTarget => {
            Failure::with_status(format_args!("cannot execute {program}: {why}"), NOT_FOUND)
        }
        _ => Failure::with_status(
            format_args!("cannot execute {program}: {why}"),
            CANNOT_EXECUTE,
        ),
    }
}

/// Sends a signal to a running command, or says why that is not possible: it may run as another user by now.
pub fn signal(running: &Running, signal: i32) {
    if let Err(error) = running.signal(signal) {
        terminal::warn(format_args!("{error:#}"));
    }
}

/// Returns the exit status for a command that ended: its own, or 128 + n after signal n.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => Failure::STATUS.into(),
    };
    // Exit codes have eight bits, and there are fewer than 128 signals.
    (code & 0xff) as u8
}

/// Does `work` on these CPUs (sched_setaffinity(2)); a process made there begins on them.
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
fn on_cpus<T>(cpus: &[u32], work: impl FnOnce() -> T) -> Result<T, Failure> {
    use nix::errno::Errno;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    let fail = |errno: Errno| cannot_keep_on(cpus, &io::Error::from(errno).to_string());
    let this_thread = Pid::from_raw(0);
    let before = sched_getaffinity(this_thread).map_err(fail)?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        wanted.set(cpu as usize).map_err(fail)?;
    }
    sched_setaffinity(this_thread, &wanted).map_err(fail)?;
    let done = work();
    sched_setaffinity(this_thread, &before).map_err(fail)?;
    Ok(done)
}

/// Fails.
#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
fn on_cpus<T>(cpus: &[u32], _: impl FnOnce() -> T) -> Result<T, Failure> {
    let why = "a program cannot choose its CPUs on this system";
    Err(cannot_keep_on(cpus, why))
}

fn cannot_keep_on(cpus: &[u32], why: &str) -> Failure {
    let cpus = Target::Cpus(cpus.to_vec());
    Failure::new(format_args!("cannot keep the command on {cpus}: {why}"))
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
