//! A process that waits for a byte before it executes its program.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeSpec;
use nix::sys::wait::waitpid;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, close, getpid, read};
use quipu_hal::{Error, ErrorKind, Result};

use crate::asleep::Thread;
use crate::os_error;
use crate::running::Running;
#[cfg(target_os = "freebsd")]
use crate::sys;

/// Locked while a process is made, so that another that is made at the same time does not inherit its descriptors: the
/// [end of a pipe](Command::spawn) by which its execution is noticed would be open until the other executes, too.
static SPAWNING: Mutex<()> = Mutex::new(());

/// The longest time that [`SuspendedCommand::resume`] waits for the program to execute. A process that other code forked at
/// the same time may have the descriptor whose end is waited for, and a program on a file system that does not answer
/// does not execute.
const PATIENCE: Duration = Duration::from_secs(10);

/// A command that has a process and does not execute its program before [`resume`](Self::resume), so
/// that counters can be attached first, with [`enable_on_exec`] and [`inherit`].
///
/// It is any [`Command`], with its streams, environment, directory, ids and groups. It starts with no signal blocked
/// and SIGPIPE at its default. Dropping it kills the process.
///
/// ```
/// # fn main() -> quipu_hal::Result<()> {
/// use std::io::Read;
/// use std::process::{Command, Stdio};
///
/// use quipu_command::SuspendedCommand;
/// use quipu_hal::{Attributes, Backend, GroupSpec, Software, Target};
/// use quipu_posix::PosixBackend;
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo $N"]).env("N", "five").stdout(Stdio::piped());
/// let suspended = SuspendedCommand::of(command)?;
/// let spec = GroupSpec::single(Software::PageFaults).with_attributes(
///     Attributes::default()
///         .with_inherit(true)
///         .with_enable_on_exec(true)
///         .with_disabled(true),
/// );
/// let mut group = PosixBackend::new().open(&spec, &Target::Thread(suspended.pid()))?;
/// let mut running = suspended.resume()?;
/// let mut text = String::new();
/// let mut output = running.streams().stdout.take().expect("it is piped");
/// output.read_to_string(&mut text).expect("it is text");
/// let exit = running.wait()?;
/// let mut buf = group.read_buf();
/// group.read(&mut buf)?;
/// println!("{}: {text}{:?} page faults", exit.status, buf[0][0].count());
/// # assert!(exit.status.success());
/// # assert_eq!(text, "five\n");
/// # Ok(())
/// # }
/// ```
///
/// [`enable_on_exec`]: quipu_hal::Attributes::enable_on_exec
/// [`inherit`]: quipu_hal::Attributes::inherit
#[derive(Debug)]
pub struct SuspendedCommand {
    pid: Pid,
    /// Carries a [`Message`] here, and one byte to the process, which resumes it.
    link: UnixStream,
    /// The CPU time that the process had had when it began to wait.
    cpu_time: Duration,
    /// The outcome of [`Command::spawn`], which returns when the program executes; `None` once it is left alone.
    spawned: Option<Receiver<io::Result<Child>>>,
    program: OsString,
}

/// The id of a process, and the nanoseconds that it has been on CPUs, as bytes of a native integer each.
type Message = [[u8; 8]; 2];

impl SuspendedCommand {
    /// Makes the process of a command, by a thread that waits until it executes its program, as
    /// [`Command::spawn`] does.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when an argument contains a NUL
    /// byte; [`NoSuchTarget`](ErrorKind::NoSuchTarget) when the command's directory does not exist; else when there can
    /// be no further process or file. A program that does not exist is reported by [`resume`](Self::resume).
    pub fn of(mut command: Command) -> Result<Self> {
        let program = command.get_program().to_owned();
        let fail = |e: &io::Error| {
            let attempted = format!("start {}", program.display());
            match e.kind() {
                io::ErrorKind::InvalidInput => {
                    Error::new(ErrorKind::InvalidConfiguration, attempted)
                        .with_reason("an argument contains a NUL byte")
                }
                _ => os_error(&attempted, e),
            }
        };
        let _alone = SPAWNING.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut link, childs) = UnixStream::pair().map_err(|e| fail(&e))?;
        let childs = Arc::new(childs);
        hold(&mut command, Arc::clone(&childs), link.as_raw_fd());
        let (sender, spawned) = mpsc::channel();
        let (started, spawner) = mpsc::channel();
        let spawn = move || {
            let _ = started.send(Thread::this());
            let outcome = command.spawn();
            if outcome.is_err() {
                // It may have failed before it sent its id, for which the other side waits.
                let _ = (&*childs).write_all(Message::default().as_flattened());
            }
            // The streams are the child's and the receiver's alone.
            drop((command, childs));
            let _ = sender.send(outcome);
        };
        let named = thread::Builder::new().name("quipu-command".to_owned());
        named.spawn(spawn).map_err(|e| fail(&e))?;
        let mut message = Message::default();
        link.read_exact(message.as_flattened_mut())
            .map_err(|e| fail(&e))?;
        // The process is there. The thread closes its end of the pipe next, and then sleeps reading the other.
        if let Ok(spawner) = spawner.recv() {
            spawner.wait_until_asleep();
        }
        let [pid, cpu_time] = message.map(u64::from_ne_bytes);
        match pid as i32 {
            0 => Err(match spawned.recv() {
                Ok(Err(e)) => fail(&e),
                _ => fail(&io::Error::from(Errno::ECHILD)),
            }),
            pid => Ok(Self {
                pid: Pid::from_raw(pid),
                link,
                cpu_time: Duration::from_nanos(cpu_time),
                spawned: Some(spawned),
                program,
            }),
        }
    }

    /// Returns the id of the process, to attach counters to.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Lets the process execute its program, and waits until that has happened, for 10 s at most: if
    /// it cannot be seen by then, the process counts as running.
    ///
    /// # Errors
    /// When the program cannot be executed, with the errno: a shell would exit with 127 on
    /// [`NoSuchTarget`](ErrorKind::NoSuchTarget) (it does not exist) and with 126 on any other. The
    /// process is gone then.
    pub fn resume(mut self) -> Result<Running> {
        let resumed = Instant::now();
        let fail = |e: &io::Error| os_error(&format!("execute {}", self.program.display()), e);
        self.link.write_all(&[0]).map_err(|e| fail(&e))?;
        // From here on the process is not killed when this is dropped: it executes, or spawn has waited for it.
        let Some(spawned) = self.spawned.take() else {
            unreachable!("it is taken here alone, and this consumes the command");
        };
        let child = match spawned.recv_timeout(PATIENCE) {
            Ok(Err(e)) => return Err(fail(&e)),
            Ok(Ok(child)) => Some(child),
            Err(_) => None,
        };
        let begun = (resumed, self.cpu_time);
        Ok(Running::new(self.pid(), begun, child, spawned))
    }
}

impl Drop for SuspendedCommand {
    fn drop(&mut self) {
        let Some(spawned) = &self.spawned else {
            return;
        };
        // The child has not been waited for, so the id is still its own.
        let _ = kill(self.pid, Signal::SIGKILL);
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
        // What it had of descriptors here is closed then.
        let _ = spawned.recv_timeout(PATIENCE);
    }
}

fn nanoseconds(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec()).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// Has the process of a command send a [`Message`] and wait for a byte, last before it executes its program.
fn hold(command: &mut Command, link: Arc<UnixStream>, parents_end: RawFd) {
    let wait = move || {
        // Open here too, the link would never end for the child when the parent exits.
        let _ = close(parents_end);
        // hwpmc(4) counts from the wait on: little is to be between it and the program.
        #[cfg(target_os = "freebsd")]
        sys::bind_execvp();
        let cpu_time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, nanoseconds);
        let message: Message = [getpid().as_raw() as u64, cpu_time].map(u64::to_ne_bytes);
        (&*link).write_all(message.as_flattened())?;
        let mut byte = [0];
        loop {
            match read(&*link, &mut byte) {
                Ok(1) => return Ok(()),
                Err(Errno::EINTR) => {}
                _ => return Err(Errno::ECANCELED.into()),
            }
        }
    };
    // SAFETY: between fork(2) and execve(2) it calls close, write or send, getpid, read, clock_gettime and execvp, which are
    // async-signal-safe (signal-safety(7)), and makes errors of numbers and constants, which allocates nothing.
    unsafe { command.pre_exec(wait) };
}
