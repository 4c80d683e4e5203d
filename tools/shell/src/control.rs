//! Commands that start and stop a measurement (`--control`): `enable`, `disable` and `ping`, for a recording `stop`, a
//! line each, from a descriptor or a named pipe; each is acknowledged by `ack` (perf-stat(1) and perf-record(1),
//! `--control`).

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use nix::fcntl::OFlag;

use crate::Failure;

/// The time between looks at whether a command has come.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// Files that commands come from and are acknowledged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlFiles {
    commands: PathBuf,
    acknowledgements: Option<PathBuf>,
}

impl FromStr for ControlFiles {
    type Err = String;

    /// Reads `fd:CONTROL[,ACK]` or `fifo:CONTROL[,ACK]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected fd:CONTROL[,ACK] or fifo:CONTROL[,ACK]".to_owned();
        let (kind, names) = text.split_once(':').ok_or_else(expected)?;
        let path = |name: &str| match (kind, name) {
            (_, "") => Err(expected()),
            ("fifo", name) => Ok(PathBuf::from(name)),
            ("fd", number) => match number.parse::<u32>() {
                Ok(number) => Ok(PathBuf::from(format!("/dev/fd/{number}"))),
                Err(_) => Err(format!("{number} is not the number of a descriptor")),
            },
            _ => Err(expected()),
        };
        let (commands, acknowledgements) = match names.split_once(',') {
            Some((commands, ack)) => (path(commands)?, Some(path(ack)?)),
            None => (path(names)?, None),
        };
        Ok(Self {
            commands,
            acknowledgements,
        })
    }
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Start counting or sampling.
    Enable,
    /// Stop it.
    Disable,
    /// Acknowledge, and do nothing else.
    Ping,
    /// End the recording.
    Stop,
}

impl Command {
    /// Returns the commands of a measurement, by their words.
    fn of(purpose: Purpose) -> &'static [(&'static str, Self)] {
        let all = &[
            ("enable", Self::Enable),
            ("disable", Self::Disable),
            ("ping", Self::Ping),
            ("stop", Self::Stop),
        ];
        match purpose {
            Purpose::Count => &all[..3],
            Purpose::Record => all,
        }
    }
}

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Counting, which has no command to end it.
    Count,
    /// A recording.
    Record,
}

/// Returns the delay of `-D MS`: [`Duration::MAX`] for -1, where a command of `--control` ends it.
pub fn delay(ms: Option<i64>, control: Option<&ControlFiles>) -> Result<Option<Duration>, Failure> {
    match ms.map(u64::try_from) {
        None | Some(Ok(0)) => Ok(None),
        Some(Ok(ms)) => Ok(Some(Duration::from_millis(ms))),
        Some(Err(_)) if control.is_some() => Ok(Some(Duration::MAX)),
        Some(Err(_)) => Err(Failure::usage(
            "-D -1 waits for a command to start: add --control",
        )),
    }
}

/// The open files.
pub struct Control {
    commands: File,
    acknowledgements: Option<File>,
    accepted: &'static [(&'static str, Command)],
    /// The part of the next line that was read.
    line: Vec<u8>,
}

impl Control {
    /// Opens the files for reading commands of a kind of measurement.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub fn open(files: &ControlFiles, purpose: Purpose) -> Result<Self, Failure> {
        // A pipe is opened for both, so that it does not end when its writer closes it, and opening does not wait.
        let both = |path: &Path| {
            let mut options = OpenOptions::new();
            options
                .custom_flags(OFlag::O_NONBLOCK.bits())
                .read(true)
                .write(true);
            options
                .open(path)
                .map_err(|e| Failure::new(format_args!("cannot open {}: {e}", path.display())))
        };
        Ok(Self {
            commands: both(&files.commands)?,
            acknowledgements: files.acknowledgements.as_deref().map(both).transpose()?,
            accepted: Command::of(purpose),
            line: Vec::new(),
        })
    }

    /// Returns the next command, if one has come. Warns of what is none of them, and leaves it out.
    pub fn next_command(&mut self) -> Result<Option<Command>, Failure> {
        let mut byte = [0];
        loop {
            match self.commands.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) if byte == *b"\n" => {}
                Ok(_) => {
                    self.line.push(byte[0]);
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => {
                    return Err(Failure::new(format_args!(
                        "cannot read from --control: {e}"
                    )));
                }
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            let mut accepted = self.accepted.iter();
            if let Some((_, command)) = accepted.find(|(word, _)| *word == line) {
                return Ok(Some(*command));
            }
            if !line.is_empty() {
                let words: Vec<_> = self.accepted.iter().map(|(word, _)| *word).collect();
                crate::terminal::warn(format_args!(
                    "--control: {line:?} is none of {}",
                    words.join(", ")
                ));
            }
        }
    }

    /// Acknowledges that a command has been carried out.
    pub fn acknowledge(&mut self) -> Result<(), Failure> {
        let Some(file) = &mut self.acknowledgements else {
            return Ok(());
        };
        file.write_all(b"ack\n").map_err(|e| {
            Failure::new(format_args!(
                "cannot acknowledge a command of --control: {e}"
            ))
        })
    }
}
