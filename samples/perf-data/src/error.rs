//! Errors of reading and writing files.

use std::{fmt, io};

/// Why a `perf.data` file could not be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    Io(io::Error),
    /// It does not begin as such a file does.
    NotPerfData,
    /// It uses something that is not read here.
    Unsupported(&'static str),
    /// A record does not have the layout of its event.
    Record(quipu_hal::Error),
    /// It was not finished: what recorded it was ended before it could say how much there is.
    Unfinished {
        /// Length of the file.
        len: u64,
    },
    /// It ends before something that its header speaks of.
    Truncated {
        /// Name of the missing part.
        what: &'static str,
        /// Offset at which that would end, in bytes from the start of the file.
        needed: u64,
        /// Length of the file.
        len: u64,
    },
    /// Something in it contradicts the format.
    Malformed {
        /// Name of the malformed part.
        what: &'static str,
        /// Offset in bytes from the start of the file, or of the section where that is not known.
        offset: u64,
    },
}

impl Error {
    pub(crate) fn malformed(what: &'static str, offset: u64) -> Self {
        Self::Malformed { what, offset }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(e) => e.fmt(f),
            Self::Record(e) => e.fmt(f),
            Self::NotPerfData => f.write_str("it is no perf.data file"),
            Self::Unsupported(what) => write!(f, "it has {what}, which is not supported"),
            Self::Unfinished { len } => write!(
                f,
                "it was not finished: its recording was ended when it had {len} bytes"
            ),
            Self::Truncated { what, needed, len } => write!(
                f,
                "it is truncated: {what} should end at byte {needed}, the file ends at byte {len}"
            ),
            Self::Malformed { what, offset } => {
                write!(f, "it is malformed at byte {offset}: {what}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(e) => Some(e),
            Self::Record(e) => Some(e),
            _ => None,
        }
    }
}

impl From<quipu_hal::Error> for Error {
    fn from(e: quipu_hal::Error) -> Self {
        Self::Record(e)
    }
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        use std::error::Error as _;

        let io = || io::Error::other("a disk that is full");
        let kind = quipu_hal::ErrorKind::InvalidConfiguration;
        let record = || quipu_hal::Error::new(kind, "decode a record");
        let (what, needed, len) = ("its data", 20, 10);
        for (error, expected, source) in [
            (
                Error::from(io()),
                "a disk that is full".to_owned(),
                Some(io().to_string()),
            ),
            (
                record().into(),
                record().to_string(),
                Some(record().to_string()),
            ),
            (Error::NotPerfData, "it is no perf.data file".into(), None),
            (
                Error::Unsupported("this"),
                "it has this, which is not supported".into(),
                None,
            ),
            (
                Error::Unfinished { len },
                "it was not finished: its recording was ended when it had 10 bytes".into(),
                None,
            ),
            (
                Error::Truncated { what, needed, len },
                "it is truncated: its data should end at byte 20, the file ends at byte 10".into(),
                None,
            ),
            (
                Error::malformed(what, 7),
                "it is malformed at byte 7: its data".into(),
                None,
            ),
        ] {
            assert_eq!(error.to_string(), expected);
            assert_eq!(error.source().map(ToString::to_string), source, "{error}");
        }
    }
}
