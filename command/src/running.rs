//! A command that executes its program, and its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quipu_hal::Result;

use crate::os_error;
use crate::{sys, wait};

/// Bytes in a unit of `ru_maxrss`: kibibytes, but bytes on macOS (getrusage(2) of each).
const MAXRSS_UNIT: u64 = if cfg!(target_vendor = "apple") {
    1
} else {
    1024
};

/// A command that executes its program.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    resumed: Instant,
    time_before: Duration,
    exit: Option<Exit>,
    streams: Option<Streams>,
    /// Brings the streams, if they were not there when it was resumed.
    spawned: Receiver<io::Result<Child>>,
}

/// The other ends of the streams of a command that are pipes
/// ([`Stdio::piped`](std::process::Stdio::piped)). Take them to use them.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Streams {
    /// Writes to its standard input. [`Running::wait`] closes it, if it is still here.
    pub stdin: Option<ChildStdin>,
    /// Reads from its standard output.
    pub stdout: Option<ChildStdout>,
    /// Reads from its standard error.
    pub stderr: Option<ChildStderr>,
}

impl From<Child> for Streams {
    fn from(child: Child) -> Self {
        Self {
            stdin: child.stdin,
            stdout: child.stdout,
            stderr: child.stderr,
        }
    }
}

/// The exit status and the resource usage of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Exit code, or the signal that killed it.
    pub status: ExitStatus,
    /// Wall time from [`resume`](crate::SuspendedCommand::resume) until it was waited for.
    pub elapsed: Duration,
    /// Time in user mode, its waited-for children included (wait4(2), `ru_utime`).
    pub user_time: Duration,
    /// Time in the kernel on its behalf, likewise (`ru_stime`).
    pub system_time: Duration,
    /// CPU time of the process before it executed its program, for the fork and in the wait: it is in the times above,
    /// and before `elapsed`. 0 if it is not known.
    pub time_before: Duration,
    /// The most memory it or one of its waited-for children had, in bytes (`ru_maxrss`). On Linux it
    /// is no less than what this process had of its own at the fork: until it executes its program, the
    /// child has the same.
    pub max_resident: u64,
    /// Page faults served without input or output, of it and its waited-for children (`ru_minflt`), from the fork on.
    pub minor_faults: u64,
    /// Page faults that needed input or output, likewise (`ru_majflt`).
    pub major_faults: u64,
    /// The times that it gave up the CPU or had it taken away, likewise (`ru_nvcsw`, `ru_nivcsw`).
    pub context_switches: u64,
}

impl Running {
    pub(crate) fn new(
        pid: i32,
        (resumed, time_before): (Instant, Duration),
        child: Option<Child>,
        spawned: Receiver<io::Result<Child>>,
    ) -> Self {
        Self {
            pid,
            resumed,
            time_before,
            exit: None,
            streams: child.map(Streams::from),
            spawned,
        }
    }

    /// Returns the other ends of the command's pipes. Waits until it executes its program, if that was not seen when it
    /// was [resumed](crate::SuspendedCommand::resume).
    pub fn streams(&mut self) -> &mut Streams {
        let spawned = &self.spawned;
        self.streams.get_or_insert_with(|| {
            let child = spawned.recv().ok().and_then(io::Result::ok);
            child.map(Streams::from).unwrap_or_default()
        })
    }

    /// Returns the id of the process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal to the process; does nothing if it has been waited for.
    ///
    /// # Errors
    /// When there is no signal of that number that has a name, or the process now belongs to another user.
    pub fn signal(&self, signal: i32) -> Result<()> {
        if self.exit.is_some() {
            return Ok(());
        }
        // It is our child and has not been waited for, so the id is still its own.
        let named = Signal::try_from(signal);
        let sent = named.and_then(|signal| kill(Pid::from_raw(self.pid), signal));
        sent.map_err(|e| {
            let attempted = format!("send signal {signal} to process {}", self.pid);
            os_error(&attempted, &e.into())
        })
    }

    /// Waits until the process ends, after closing its standard input if that is a pipe. A signal that this process
    /// handles does not end the wait.
    ///
    /// # Errors
    /// When other code of this process has waited for it, or SIGCHLD is ignored.
    pub fn wait(&mut self) -> Result<Exit> {
        // It may wait for the end of its input.
        drop(
            self.streams
                .as_mut()
                .and_then(|streams| streams.stdin.take()),
        );
        loop {
            if let Some(exit) = self.collect(0)? {
                return Ok(exit);
            }
        }
    }

    /// Waits until the process ends, but not longer than `timeout`; returns `None` if it is still
    /// running. A signal that this process handles ends the wait early, and so may a system that does
    /// not report when processes end: then call it again.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Exit>> {
        if let Some(exit) = self.collect(libc::WNOHANG)? {
            return Ok(Some(exit));
        }
        wait::sleep_until_exit(self.pid, timeout);
        self.collect(libc::WNOHANG)
    }

    /// Waits until the process has ended, but not longer than `timeout`, and leaves it to be [waited for](Self::wait):
    /// until then the system knows what it was. Returns false if it is still running, as
    /// [`wait_timeout`](Self::wait_timeout) does.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn ended_within(&mut self, timeout: Duration) -> Result<bool> {
        let has_ended = || {
            sys::has_ended(self.pid)
                .map_err(|e| os_error(&format!("look at process {}", self.pid), &e.into()))
        };
        if self.exit.is_some() || has_ended()? {
            return Ok(true);
        }
        wait::sleep_until_exit(self.pid, timeout);
        has_ended()
    }

    fn collect(&mut self, flags: libc::c_int) -> Result<Option<Exit>> {
        if self.exit.is_some() {
            return Ok(self.exit);
        }
        match sys::wait4(self.pid, flags) {
            Ok(None) => {}
            Ok(Some((status, usage))) => {
                self.exit = Some(Exit {
                    status: ExitStatus::from_raw(status),
                    elapsed: self.resumed.elapsed(),
                    user_time: duration(usage.ru_utime),
                    system_time: duration(usage.ru_stime),
                    time_before: self.time_before,
                    max_resident: unsigned(usage.ru_maxrss).saturating_mul(MAXRSS_UNIT),
                    minor_faults: unsigned(usage.ru_minflt),
                    major_faults: unsigned(usage.ru_majflt),
                    context_switches: unsigned(usage.ru_nvcsw)
                        .saturating_add(unsigned(usage.ru_nivcsw)),
                });
            }
            Err(Errno::EINTR) => {}
            Err(e) => {
                return Err(os_error(
                    &format!("wait for process {}", self.pid),
                    &e.into(),
                ));
            }
        }
        Ok(self.exit)
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(unsigned(time.tv_sec)) + Duration::from_micros(unsigned(time.tv_usec))
}

/// Converts a number that the interface declares signed, though it never is negative.
fn unsigned(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(0)
}
