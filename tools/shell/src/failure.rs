//! Failures of `quipu` itself: a message for a person and an exit status for a script.

use std::fmt;
use std::process::ExitCode;

use crate::terminal;

/// Why the command could not do what was asked.
#[derive(Debug)]
pub struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// The exit status of a failure that is quipu's own and not that of a measured command, as
    /// env(1) and timeout(1) have it.
    pub const STATUS: u8 = 125;
    /// The exit status when the command line is wrong.
    pub const USAGE: u8 = 2;

    /// Returns a failure of quipu's own.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::with_status(message, Self::STATUS)
    }

    /// Returns a command line that cannot be meant.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::with_status(message, Self::USAGE)
    }

    /// Returns a failure with another exit status.
    pub fn with_status(message: impl fmt::Display, status: u8) -> Self {
        Self {
            message: message.to_string(),
            status,
        }
    }

    /// Writes the message to standard error and returns the exit status.
    pub fn report(&self) -> ExitCode {
        match self.status {
            Self::USAGE => terminal::advise(self),
            _ => terminal::warn(self),
        }
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<quipu_hal::Error> for Failure {
    /// Returns the error in one sentence, with its hint.
    fn from(error: quipu_hal::Error) -> Self {
        Self::new(format_args!("{error:#}"))
    }
}
