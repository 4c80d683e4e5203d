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

use crate::{Failure, terminal};

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
    /// Set while a line is left out that is longer than any command.
    is_too_long: bool,
    /// The number of lines that were none of them.
    strange: usize,
    /// Set when an acknowledgement could not be written.
    is_unread: bool,
}

impl Control {
    /// The most bytes that are read in a turn. A line of them is no command.
    const BLOCK: usize = 4096;
    /// The number of lines that are warned of.
    const WARNINGS: usize = 10;

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
        let acknowledgements = files.acknowledgements.as_deref().map(both).transpose()?;
        Ok(Self::new(both(&files.commands)?, acknowledgements, purpose))
    }

    fn new(commands: File, acknowledgements: Option<File>, purpose: Purpose) -> Self {
        Self {
            commands,
            acknowledgements,
            accepted: Command::of(purpose),
            line: Vec::new(),
            is_too_long: false,
            strange: 0,
            is_unread: false,
        }
    }

    /// Returns the commands that have come, of one block: between two of them a measurement looks at what else happened,
    /// however many there are. Warns of what is none of them, and leaves it out.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn commands(&mut self) -> Result<Vec<Command>, Failure> {
        let mut block = [0; Self::BLOCK];
        let read = loop {
            match self.commands.read(&mut block) {
                Ok(read) => break read,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break 0,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    return Err(Failure::new(format_args!(
                        "cannot read from --control: {e}"
                    )));
                }
            }
        };
        Ok(self.commands_in(&block[..read]))
    }

    /// Returns the commands whose lines end in a block.
    fn commands_in(&mut self, block: &[u8]) -> Vec<Command> {
        let mut commands = Vec::new();
        for part in block.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            let ends = part.ends_with(b"\n");
            if self.line.len() > Self::BLOCK {
                self.line.clear();
                self.is_too_long = true;
            }
            if ends {
                let line = std::mem::take(&mut self.line);
                match std::mem::take(&mut self.is_too_long) {
                    true => self.leave_out("a line of more than 4096 bytes"),
                    false => commands.extend(self.command(&String::from_utf8_lossy(&line))),
                }
            }
        }
        commands
    }

    fn command(&mut self, line: &str) -> Option<Command> {
        let line = line.trim();
        let mut accepted = self.accepted.iter();
        let found = accepted.find(|(word, _)| *word == line);
        if found.is_none() && !line.is_empty() {
            self.leave_out(&format!("{line:?}"));
        }
        found.map(|(_, command)| *command)
    }

    /// Warns of a line that is no command.
    fn leave_out(&mut self, line: &str) {
        self.strange += 1;
        let words: Vec<_> = self.accepted.iter().map(|(word, _)| *word).collect();
        let words = words.join(", ");
        if self.strange <= Self::WARNINGS {
            terminal::warn(format_args!("--control: {line} is none of {words}"));
        } else if self.strange == Self::WARNINGS + 1 {
            terminal::warn(format_args!(
                "--control: more lines that are none of {words} are left out without a word"
            ));
        }
    }

    /// Acknowledges that a command has been carried out. If the pipe is full because nothing reads it, a warning says once
    /// that it was not.
    ///
    /// # Errors
    /// If it cannot be written for another reason.
    pub fn acknowledge(&mut self) -> Result<(), Failure> {
        let Some(file) = &mut self.acknowledgements else {
            return Ok(());
        };
        match file.write_all(b"ack\n") {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                if !std::mem::replace(&mut self.is_unread, true) {
                    terminal::warn(
                        "--control: the pipe for acknowledgements is full; commands are carried out without one",
                    );
                }
                Ok(())
            }
            result => result.map_err(|e| {
                Failure::new(format_args!(
                    "cannot acknowledge a command of --control: {e}"
                ))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_however_their_lines_are_cut() {
        let commands = File::open("/dev/null").expect("every system has it");
        let mut control = Control::new(commands, None, Purpose::Record);
        assert_eq!(control.commands_in(b"ena"), []);
        assert_eq!(
            control.commands_in(b"ble\n\nping \nfoo\nst"),
            [Command::Enable, Command::Ping]
        );
        assert_eq!(control.commands_in(b"op\n"), [Command::Stop]);
        assert_eq!(control.strange, 1);
        // The end of a line that is too long is no command either.
        for _ in 0..3 {
            assert_eq!(control.commands_in(&[b' '; Control::BLOCK]), []);
            assert!(control.line.len() <= Control::BLOCK);
        }
        assert_eq!(control.commands_in(b"ping\nping\n"), [Command::Ping]);
        assert_eq!(control.strange, 2);
    }
}
