//! A process to be measured: it waits, executes another program, and ends.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::verdict::{Missing, Outcome, Stop};

/// The time that a child that was released may take to end.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Runs a program that executes another in its own place, which forks 20 times: it fails if a fork does, or a process
/// that was forked.
pub(crate) fn forks_often() -> Outcome<ExitStatus> {
    const FORKS: &str =
        "i=0; while [ $i -lt 20 ]; do i=$((i + 1)); (exit 3); [ $? = 3 ] || exit 1; done";
    Command::new("sh")
        .args(["-c", "exec sh -c \"$0\"", FORKS])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(no_shell)
}

/// A child process that waits to be released, and is killed if it never is.
pub(crate) struct Waiting(Child);

impl Waiting {
    /// Starts a shell that wakes when it is [stirred](Self::stir), and once released executes another
    /// in its own place. (What is smaller than a shell may be built into this one.)
    ///
    /// It is a shell by the time this returns: starting it is an execution, too.
    pub(crate) fn start() -> Outcome<Self> {
        let child = Command::new("sh")
            .args([
                "-c",
                "echo awake; read stirred; echo awake; read released; exec sh -c :",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(no_shell)?;
        let mut waiting = Self(child);
        waiting.hear()?;
        Ok(waiting)
    }

    /// Waits until it says that it is awake.
    fn hear(&mut self) -> Outcome {
        if let Some(stdout) = &mut self.0.stdout {
            stdout
                .read_exact(&mut [0; "awake\n".len()])
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Its process id.
    pub(crate) fn id(&self) -> i32 {
        // Process ids are positive and below 2^22 on every system there is.
        i32::try_from(self.0.id()).unwrap_or(i32::MAX)
    }

    /// Has it run for a moment, and waits until it has. Only once.
    pub(crate) fn stir(&mut self) -> Outcome {
        if let Some(stdin) = &mut self.0.stdin {
            stdin.write_all(b"wake\n").map_err(failed)?;
        }
        self.hear()
    }

    /// Lets it run, and waits for its end.
    pub(crate) fn finish(&mut self) -> Outcome<ExitStatus> {
        if let Some(mut stdin) = self.0.stdin.take() {
            stdin.write_all(b"go\ngo\n").map_err(failed)?;
        }
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().map_err(failed)? {
                return Ok(status);
            }
            if start.elapsed() > TIME_LIMIT {
                return Err(Stop::Fail("the measured process did not end".into()));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn no_shell(error: io::Error) -> Stop {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Stop::Skip(Missing::Inapplicable("this system has no shell to measure"))
        }
        _ => Stop::Fail(format!("no shell to measure: {error}")),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn failed(error: io::Error) -> Stop {
    Stop::Fail(format!("the measured process: {error}"))
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Both fail when it has ended and been waited for, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
