//! How `quipu` itself fails: a message for a person and an exit status for a script.

use std::fmt;
use std::process::ExitCode;

/// Why the command could not do what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    /// The exit status of a failure that is quipu's own and not that of a measured command, as
    /// env(1) and timeout(1) have it.
    pub(crate) const STATUS: u8 = 125;
    /// The exit status when the command line is wrong.
    pub(crate) const USAGE: u8 = 2;

    /// A failure of quipu's own.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::with_status(message, Self::STATUS)
    }

    /// A command line that cannot be meant.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::with_status(message, Self::USAGE)
    }

    /// A failure with another exit status.
    pub(crate) fn with_status(message: impl fmt::Display, status: u8) -> Self {
        Self {
            message: message.to_string(),
            status,
        }
    }

    /// Tells the person, and the script.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("quipu: {self}");
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<quipu::hal::Error> for Failure {
    /// The error in one sentence, with its hint.
    fn from(error: quipu::hal::Error) -> Self {
        Self::new(format_args!("{error:#}"))
    }
}
