//! Running a program under counters: a child that waits to be released before it executes.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_hal::{Error, ErrorKind, Result};

use crate::sys::{last_errno, usage_of};

mod exec;
mod wait;

use exec::Program;

/// Held while a child's end of its link is open in this process.
static SPAWNING: Mutex<()> = Mutex::new(());

/// A command that has its process but not yet its program: it waits until it is released, so that
/// counters can be attached to it first, with [`enable_on_exec`] and [`inherit`].
///
/// It keeps this process's standard streams, environment and directory, and starts with no signal
/// blocked and SIGPIPE at its default. Dropping it unreleased ends the process.
///
/// ```no_run
/// # fn main() -> quipu_hal::Result<()> {
/// use quipu_hal::{Attributes, Backend, Group, GroupSpec, Software, Target};
/// use quipu_posix::{HeldCommand, PosixBackend};
///
/// let command = HeldCommand::spawn("ls", ["-l"])?;
/// let spec = GroupSpec::single(Software::PageFaults).with_attributes(Attributes {
///     inherit: true,
///     enable_on_exec: true,
///     disabled: true,
///     ..Attributes::default()
/// });
/// let mut group = PosixBackend::new().open(&spec, &Target::Thread(command.pid()))?;
/// let exit = command.release()?.wait()?;
/// let mut buf = group.read_buf();
/// group.read(&mut buf)?;
/// println!("{}: {:?} page faults", exit.status, buf.total(0));
/// # Ok(())
/// # }
/// ```
///
/// [`enable_on_exec`]: quipu_hal::Attributes::enable_on_exec
/// [`inherit`]: quipu_hal::Attributes::inherit
#[derive(Debug)]
pub struct HeldCommand {
    process: Unreleased,
    /// One byte to the child releases it; an errno from it says that the program could not be
    /// executed, and the end of the stream that it was.
    link: UnixStream,
    program: OsString,
}

/// A child that has not been let go: dropping it ends it.
#[derive(Debug)]
struct Unreleased(i32);

/// A released command.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    started: Instant,
    exit: Option<Exit>,
}

/// How a command ended, and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// From its release until it was waited for.
    pub elapsed: Duration,
    /// Time in user mode, its waited-for children included (wait4(2), `ru_utime`).
    pub user_time: Duration,
    /// Time in the kernel on its behalf, likewise (`ru_stime`).
    pub system_time: Duration,
    /// The most memory it or one of its waited-for children had, in bytes (`ru_maxrss`). On Linux it
    /// is no less than what this process had of its own when it made the command's: until that executes
    /// its program, it has the same.
    pub max_resident: u64,
}

impl HeldCommand {
    /// Makes the process of a command. The program is looked up in `PATH`, unless it has a `/`, as
    /// execvp(3) does it.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when an argument contains a NUL
    /// byte; else when there can be no further process or file. That the program does not exist
    /// only [`release`](Self::release) can tell.
    pub fn spawn<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self> {
        let program = program.as_ref();
        let fail = |e: &io::Error| os_error(&format!("start {}", program.display()), e);
        let mut prepared =
            Program::new(program, arguments, std::env::vars_os()).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidConfiguration,
                    format!("start {}", program.display()),
                )
                .with_reason("an argument contains a NUL byte")
            })?;
        // A child forked by another thread in between would hold this child's end of the link too,
        // and keep `release` waiting.
        let _alone = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
        // Both ends are close-on-exec: the child's goes when the program is executed.
        let (link, child_link) = UnixStream::pair().map_err(|e| fail(&e))?;
        // SAFETY: the child runs `exec::child` only, which makes async-signal-safe calls only and
        // does not return; it uses memory that was prepared before. The parent just goes on.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(fail(&io::Error::last_os_error())),
            0 => exec::child(&mut prepared, link.as_raw_fd(), child_link.as_raw_fd()),
            pid => Ok(Self {
                process: Unreleased(pid),
                link,
                program: program.to_owned(),
            }),
        }
    }

    /// The process, to attach counters to.
    pub fn pid(&self) -> i32 {
        self.process.0
    }

    /// Lets it execute its program, and waits until that has happened.
    ///
    /// # Errors
    /// When the program cannot be executed, with the errno: a shell would exit with 127 on
    /// [`NoSuchTarget`](ErrorKind::NoSuchTarget) (it does not exist) and with 126 on any other. The
    /// process is gone then.
    pub fn release(mut self) -> Result<Running> {
        let started = Instant::now();
        let mut answer = Vec::new();
        let released = self
            .link
            .write_all(&[0])
            .and_then(|()| self.link.read_to_end(&mut answer));
        let failure = match (released, <[u8; 4]>::try_from(answer)) {
            (Err(e), _) => Some(e),
            (Ok(_), Ok(errno)) => Some(io::Error::from_raw_os_error(i32::from_ne_bytes(errno))),
            (Ok(_), Err(_)) => None,
        };
        if let Some(e) = failure {
            return Err(os_error(&format!("execute {}", self.program.display()), &e));
        }
        let pid = self.process.0;
        std::mem::forget(self.process);
        Ok(Running {
            pid,
            started,
            exit: None,
        })
    }
}

impl Drop for Unreleased {
    fn drop(&mut self) {
        // SAFETY: the process is our child and has not been waited for, so the id is still its own;
        // the calls touch no memory of ours.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            while libc::waitpid(self.0, std::ptr::null_mut(), 0) < 0 && last_errno() == libc::EINTR
            {
            }
        }
    }
}

impl Running {
    /// The process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends it a signal; nothing happens if it has been waited for.
    ///
    /// # Errors
    /// When there is no such signal, or it has become somebody else's.
    pub fn signal(&self, signal: i32) -> Result<()> {
        if self.exit.is_some() {
            return Ok(());
        }
        // SAFETY: the process is our child and has not been waited for, so the id is still its own.
        if unsafe { libc::kill(self.pid, signal) } == 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        Err(os_error(
            &format!("send signal {signal} to process {}", self.pid),
            &e,
        ))
    }

    /// Waits until it ends. A signal that this process handles does not end the wait.
    ///
    /// # Errors
    /// When somebody else has waited for it, or this process ignores its children (SIGCHLD).
    pub fn wait(&mut self) -> Result<Exit> {
        loop {
            if let Some(exit) = self.collect(0)? {
                return Ok(exit);
            }
        }
    }

    /// Waits until it ends, but not longer than `timeout`; `None` when it is still running. A signal
    /// that this process handles ends the wait early, and so may a system that does not tell when
    /// processes end: then call it again.
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

    fn collect(&mut self, flags: libc::c_int) -> Result<Option<Exit>> {
        if self.exit.is_some() {
            return Ok(self.exit);
        }
        match wait::wait4(self.pid, flags) {
            Ok(None) => {}
            Ok(Some((status, rusage))) => {
                let usage = usage_of(&rusage);
                self.exit = Some(Exit {
                    status: ExitStatus::from_raw(status),
                    elapsed: self.started.elapsed(),
                    user_time: Duration::from_nanos(usage.user),
                    system_time: Duration::from_nanos(usage.system),
                    max_resident: usage.peak_memory,
                });
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                return Err(os_error(&format!("wait for process {}", self.pid), &e));
            }
        }
        Ok(self.exit)
    }
}

fn os_error(attempted: &str, e: &io::Error) -> Error {
    let kind = match e.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => ErrorKind::NoSuchTarget,
        Some(libc::EACCES | libc::EPERM) => ErrorKind::NoPermission,
        _ => ErrorKind::Os,
    };
    let error = Error::new(kind, attempted);
    match e.raw_os_error() {
        Some(errno) => error.with_errno(errno),
        None => error.with_reason(e.to_string()),
    }
}

/// A C string of what may contain no NUL byte.
fn c_string(text: impl Into<OsString>) -> Option<CString> {
    CString::new(text.into().into_vec()).ok()
}

/// The bytes of an OS string, joined.
fn joined(parts: &[&OsStr]) -> OsString {
    let bytes: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    OsString::from_vec(bytes.concat())
}
