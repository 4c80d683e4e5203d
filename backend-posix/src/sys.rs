//! The system calls of counting: getrusage(2), clock_gettime(2), waitid(2).

use std::mem::MaybeUninit;

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::kill;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use quipu_hal::{Error, ErrorKind, Result};

use crate::process_counts::ProcessCounts;
use crate::usage::Usage;

cfg_if::cfg_if! {
    if #[cfg(target_os = "netbsd")] {
        // <sys/time.h> of NetBSD 7 and later; missing in the libc crate.
        const THREAD_CLOCK: ClockId = ClockId::from_raw(0x2000_0000);
        const PROCESS_CLOCK: ClockId = ClockId::from_raw(0x4000_0000);
    } else {
        const THREAD_CLOCK: ClockId = ClockId::CLOCK_THREAD_CPUTIME_ID;
        const PROCESS_CLOCK: ClockId = ClockId::CLOCK_PROCESS_CPUTIME_ID;
    }
}

cfg_if::cfg_if! {
    if #[cfg(any(target_os = "linux", target_os = "openbsd", target_os = "freebsd"))] {
        const RUSAGE_THREAD: Option<UsageWho> = Some(UsageWho::RUSAGE_THREAD);
    } else {
        /// NetBSD, DragonFly and macOS have no `RUSAGE_THREAD` (getrusage(2) of each).
        const RUSAGE_THREAD: Option<UsageWho> = None;
    }
}

/// Bytes in a unit of `ru_maxrss`: kibibytes, but bytes on macOS (getrusage(2) of each).
const MAXRSS_UNIT: u64 = if cfg!(target_vendor = "apple") {
    1
} else {
    1024
};

/// True where `ru_utime` and `ru_stime` move at ticks of the statistics clock only, in steps of about 10 ms: OpenBSD
/// (`statclock` and `calctsru` in sys/kern), whose CPU-time clocks are exact.
pub(crate) const HAS_SAMPLED_TIMES: bool = cfg!(target_os = "openbsd");

/// The subject of a usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The calling thread.
    Thread,
    /// All threads of this process.
    Process,
    /// The children that this process has waited for, and those that they have waited for.
    Children,
}

/// True if getrusage(2) can report the calling thread alone.
pub(crate) const HAS_THREAD_USAGE: bool = RUSAGE_THREAD.is_some();

/// Has functions called before a process is forked, and behind that in the process and in its child (pthread_atfork(3)). Where
/// there is no memory for it, they are not.
pub(crate) fn at_fork(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) {
    // SAFETY: the functions make no call that a forked process of several threads must not make.
    let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Has a function called when the process ends (atexit(3)); returns false if there is no memory for it.
pub(crate) fn at_exit(function: extern "C" fn()) -> bool {
    // SAFETY: the function has the type that is asked for.
    unsafe { libc::atexit(function) == 0 }
}

/// Returns the resource usage, without wall time and what counters say; CPU time is user plus system time.
///
/// # Errors
/// `UnsupportedFeature` for a thread if the system has no usage of threads; else the system's refusal.
pub(crate) fn usage(who: Who) -> Result<Usage> {
    let who = match who {
        Who::Thread => RUSAGE_THREAD.ok_or_else(|| {
            Error::new(ErrorKind::UnsupportedFeature, "read the usage of a thread")
                .with_reason("getrusage(2) of this system reports whole processes only")
        })?,
        Who::Process => UsageWho::RUSAGE_SELF,
        Who::Children => UsageWho::RUSAGE_CHILDREN,
    };
    let usage = getrusage(who).map_err(|errno| os_error("read the resource usage", errno))?;
    Ok(usage_of(usage.as_ref()))
}

/// Converts a `struct rusage`; CPU time is user plus system time.
fn usage_of(raw: &libc::rusage) -> Usage {
    let (user, system) = (timeval_ns(raw.ru_utime), timeval_ns(raw.ru_stime));
    Usage {
        cpu: user.saturating_add(system),
        wall: 0,
        user,
        system,
        minor_faults: count(raw.ru_minflt),
        major_faults: count(raw.ru_majflt),
        voluntary: count(raw.ru_nvcsw),
        involuntary: count(raw.ru_nivcsw),
        peak_memory: count(raw.ru_maxrss).saturating_mul(MAXRSS_UNIT),
        counts: ProcessCounts::default(),
    }
}

/// Returns the nanoseconds that the calling thread, or this process, has been on a CPU.
///
/// # Errors
/// `InvalidConfiguration` for children, which have no clock; else the system's refusal.
pub(crate) fn cpu_time(who: Who) -> Result<u64> {
    let clock = match who {
        Who::Thread => THREAD_CLOCK,
        Who::Process => PROCESS_CLOCK,
        Who::Children => {
            return Err(
                Error::new(ErrorKind::InvalidConfiguration, "read the CPU-time clock")
                    .with_reason("there is none for children"),
            );
        }
    };
    clock_ns(clock)
}

/// Returns the nanoseconds of the monotonic clock.
///
/// # Errors
/// The system's refusal.
pub(crate) fn wall_time() -> Result<u64> {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

/// Returns true if a process is a child of this one that has not been waited for. nix has waitid(2) for some systems only, and
/// takes a child that a real-time signal ended for an error.
///
/// # Errors
/// The system's refusal, other than that there is no such child.
pub(crate) fn is_unwaited_child(pid: i32) -> Result<bool> {
    // 0 and below mean groups of processes.
    #[allow(
        clippy::unnecessary_fallible_conversions,
        reason = "id_t has 64 bits and a sign on FreeBSD, 32 and none elsewhere"
    )]
    let id = match libc::id_t::try_from(pid) {
        Ok(id) if id > 0 => id,
        _ => return Ok(false),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    loop {
        // SAFETY: `info` is writable and as large as waitid(2) wants. WNOWAIT leaves the child waitable for the
        // code that waits for it.
        let status = unsafe { libc::waitid(libc::P_PID, id, info.as_mut_ptr(), how) };
        match Errno::result(status) {
            Ok(_) => return Ok(true),
            Err(Errno::ECHILD) => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(os_error("look at a child process", errno)),
        }
    }
}

/// Returns true if any process has this id.
pub(crate) fn process_exists(pid: i32) -> bool {
    // 0 and below mean groups of processes.
    pid > 0 && matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM))
}

fn clock_ns(clock: ClockId) -> Result<u64> {
    let now = clock_gettime(clock).map_err(|errno| os_error("read a clock", errno))?;
    Ok(count(now.tv_sec())
        .saturating_mul(1_000_000_000)
        .saturating_add(count(now.tv_nsec())))
}

fn timeval_ns(time: libc::timeval) -> u64 {
    count(time.tv_sec)
        .saturating_mul(1_000_000_000)
        .saturating_add(count(time.tv_usec).saturating_mul(1_000))
}

/// Converts a number that the interface declares signed, though it never is negative.
fn count(signed: impl TryInto<u64>) -> u64 {
    signed.try_into().unwrap_or(0)
}

fn os_error(attempted: &str, errno: Errno) -> Error {
    Error::new(ErrorKind::Os, attempted).with_io_error(&errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_used_no_more_than_its_process() {
        let process_before = cpu_time(Who::Process).unwrap();
        let thread = cpu_time(Who::Thread).unwrap();
        let process = cpu_time(Who::Process).unwrap();
        assert!(process_before <= process && thread <= process);
        if HAS_THREAD_USAGE {
            let thread = usage(Who::Thread).unwrap();
            let process = usage(Who::Process).unwrap();
            assert!(thread.minor_faults <= process.minor_faults);
            assert_eq!(thread.cpu, thread.user + thread.system);
            assert!(process.peak_memory > 4096);
        }
    }

    #[test]
    fn this_process_is_not_its_own_child_and_neither_is_nonsense() {
        let me = i32::try_from(std::process::id()).unwrap();
        for pid in [me, 1, 0, -1, i32::MIN, i32::MAX] {
            assert_eq!(is_unwaited_child(pid), Ok(false), "{pid}");
        }
        assert!(process_exists(me) && process_exists(1));
        assert!(!process_exists(0) && !process_exists(-1));
    }

    #[test]
    fn children_have_no_clock() {
        let refused = cpu_time(Who::Children).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
    }
}
