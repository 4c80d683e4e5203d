//! A forked process that waits for a byte before it executes its program.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use quipu_hal::{Error, ErrorKind, Result};

use crate::exec::{self, Program};
use crate::os_error;
use crate::running::Running;

/// Locked while a child's end of its socket pair is open in this process.
static SPAWNING: Mutex<()> = Mutex::new(());

/// The longest time that [`SuspendedCommand::resume`] waits for the program to execute. A process that other code of this one forked
/// meanwhile has the child's end of the link too and keeps it open, and a program on a file system that does not answer
/// does not execute.
const PATIENCE: Duration = Duration::from_secs(10);

/// A command that has a process and does not execute its program before [`resume`](Self::resume), so
/// that counters can be attached first, with [`enable_on_exec`] and [`inherit`].
///
/// It inherits the standard streams, environment and directory of this process, and starts with no
/// signal blocked and SIGPIPE at its default. Dropping it kills the process.
///
/// ```
/// # fn main() -> quipu_hal::Result<()> {
/// use quipu_command::SuspendedCommand;
/// use quipu_hal::{Attributes, Backend, GroupSpec, Software, Target};
/// use quipu_posix::PosixBackend;
///
/// let command = SuspendedCommand::spawn("true", ["ignored"])?;
/// let spec = GroupSpec::single(Software::PageFaults).with_attributes(
///     Attributes::default()
///         .with_inherit(true)
///         .with_enable_on_exec(true)
///         .with_disabled(true),
/// );
/// let mut group = PosixBackend::new().open(&spec, &Target::Thread(command.pid()))?;
/// let exit = command.resume()?.wait()?;
/// let mut buf = group.read_buf();
/// group.read(&mut buf)?;
/// println!("{}: {:?} page faults", exit.status, buf[0][0].count());
/// # assert!(exit.status.success());
/// # Ok(())
/// # }
/// ```
///
/// [`enable_on_exec`]: quipu_hal::Attributes::enable_on_exec
/// [`inherit`]: quipu_hal::Attributes::inherit
#[derive(Debug)]
pub struct SuspendedCommand {
    process: KillOnDrop,
    /// Carries one byte to the child, which resumes it; back come the errno of a failed execve(2), or
    /// the end of the stream once the program executes.
    link: UnixStream,
    program: OsString,
}

/// A child that is killed and waited for when dropped.
#[derive(Debug)]
struct KillOnDrop(Pid);

impl SuspendedCommand {
    /// Forks the process of a command. The program is looked up in `PATH`, unless it has a `/`, as
    /// execvp(3) does it.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when an argument contains a NUL
    /// byte; else when there can be no further process or file. A program that does not exist is
    /// reported by [`resume`](Self::resume).
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
        // A child forked by another thread in between would inherit this child's end of the link,
        // and keep `resume` waiting.
        let _alone = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
        // Both ends are close-on-exec: the child's is closed when the program executes.
        let (link, child_link) = UnixStream::pair().map_err(|e| fail(&e))?;
        // SAFETY: the child runs `exec::child` only, which makes async-signal-safe calls only and
        // does not return; it uses memory that was prepared before. The parent just goes on.
        match unsafe { fork() } {
            Err(errno) => Err(fail(&errno.into())),
            Ok(ForkResult::Child) => exec::child(&mut prepared, link, &child_link),
            Ok(ForkResult::Parent { child }) => Ok(Self {
                process: KillOnDrop(child),
                link,
                program: program.to_owned(),
            }),
        }
    }

    /// Returns the id of the process, to attach counters to.
    pub fn pid(&self) -> i32 {
        self.process.0.as_raw()
    }

    /// Lets the process execute its program, and waits until that has happened, for 10 s at most: if
    /// it cannot be told by then, the process counts as running, and where the program cannot be executed after all,
    /// its exit status is 127.
    ///
    /// # Errors
    /// When the program cannot be executed, with the errno: a shell would exit with 127 on
    /// [`NoSuchTarget`](ErrorKind::NoSuchTarget) (it does not exist) and with 126 on any other. The
    /// process is gone then.
    pub fn resume(mut self) -> Result<Running> {
        let resumed = Instant::now();
        self.link
            .write_all(&[0])
            .and_then(|()| executed(&self.link, resumed + PATIENCE))
            .map_err(|e| os_error(&format!("execute {}", self.program.display()), &e))?;
        let pid = self.process.0.as_raw();
        std::mem::forget(self.process);
        Ok(Running::new(pid, resumed))
    }
}

/// Waits until the child executes its program, which closes its end of the link, or for the deadline.
///
/// # Errors
/// The errno of execve(2) that the child sent, or why the link cannot be read.
fn executed(mut link: &UnixStream, deadline: Instant) -> io::Result<()> {
    let mut errno = [0; 4];
    let mut received = 0;
    while received < errno.len() {
        let patience = deadline.saturating_duration_since(Instant::now());
        if patience.is_zero() {
            return Ok(());
        }
        link.set_read_timeout(Some(patience))?;
        match link.read(&mut errno[received..]) {
            Ok(0) => return Ok(()),
            Ok(more) => received += more,
            Err(e) => match e.kind() {
                io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut => {}
                _ => return Err(e),
            },
        }
    }
    Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // The child has not been waited for, so the id is still its own.
        let _ = kill(self.0, Signal::SIGKILL);
        while waitpid(self.0, None) == Err(Errno::EINTR) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_that_stays_open_is_not_waited_for_without_end() {
        let (link, child) = UnixStream::pair().expect("a pair");
        let soon = || Instant::now() + Duration::from_millis(20);
        executed(&link, soon()).expect("nothing was sent");
        let errno = libc::ENOENT.to_ne_bytes();
        (&child).write_all(&errno).expect("sent");
        let e = executed(&link, Instant::now() + PATIENCE).expect_err("an errno was sent");
        assert_eq!(e.raw_os_error(), Some(libc::ENOENT));
        drop(child);
        executed(&link, Instant::now() + PATIENCE).expect("the program executes");
    }
}
