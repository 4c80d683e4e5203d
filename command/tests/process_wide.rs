//! Own process: counts the open descriptors and the children of the whole process, one test at a time.
#![cfg(unix)]

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quipu_command::SuspendedCommand;

static ALONE: Mutex<()> = Mutex::new(());

fn open_descriptors() -> usize {
    // SAFETY: the call takes integers and changes nothing.
    let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    (0..1024).filter(is_open).count()
}

/// Returns user time, system time (both in nanoseconds) and peak memory of all waited-for children.
fn usage_of_children() -> [u64; 3] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the usage is writable and as large as getrusage(2) wants; all zeros is a valid one.
    let usage = unsafe {
        assert_eq!(
            libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()),
            0
        );
        usage.assume_init()
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    let unit = if cfg!(target_vendor = "apple") {
        1
    } else {
        1024
    };
    [
        ns(usage.ru_utime),
        ns(usage.ru_stime),
        usage.ru_maxrss as u64 * unit,
    ]
}

#[test]
fn suspending_resuming_and_failing_leave_nothing_open() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = open_descriptors();
    for _ in 0..100 {
        drop(SuspendedCommand::of(Command::new("true")).expect("a process"));
        let missing = SuspendedCommand::of(Command::new("/nowhere/at/all")).expect("a process");
        assert!(missing.resume().is_err());
        let suspended = SuspendedCommand::of(Command::new("true")).expect("a process");
        let mut running = suspended.resume().expect("it executes");
        let waited = running.wait_timeout(Duration::from_secs(60));
        assert!(waited.is_ok() && running.wait().is_ok());
    }
    assert_eq!(open_descriptors(), before);
}

/// The peak of a command is known as that of all children only if it is the highest so far.
#[test]
fn an_exit_has_the_times_and_the_peak_of_the_command() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = usage_of_children();
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; x=$(head -c 30000000 /dev/zero | tr '\\0' x)";
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let suspended = SuspendedCommand::of(command).unwrap();
    let exit = suspended.resume().unwrap().wait().unwrap();
    let after = usage_of_children();
    for (told, i) in [(exit.user_time, 0), (exit.system_time, 1)] {
        let time = u64::try_from(told.as_nanos()).unwrap();
        assert!(time.abs_diff(after[i] - before[i]) <= 1_000, "{exit:?}");
    }
    assert!(after[2] > before[2]);
    assert_eq!(exit.max_resident, after[2]);
}
