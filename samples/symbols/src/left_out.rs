//! Why the names of a file were left out.

use std::fmt::{self, Display, Formatter};
use std::io;

/// Reason why a file gave no names, or not all of them, although it is there.
///
/// ```
/// use quipu_symbols::LeftOut;
///
/// let reason = LeftOut::OfAnotherUser { uid: 1000 };
/// assert_eq!(reason.to_string(), "it belongs to user 1000, who is neither root nor the user of this process");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LeftOut {
    /// It could not be opened or read: no permission, or no more files for this process.
    Unreadable(io::Error),
    /// A `/tmp/perf-PID.map` of another user, who can give any name to any code. perf leaves it out too
    /// (`dso__load`, `tools/perf/util/symbol.c`).
    OfAnotherUser {
        /// The user.
        uid: u32,
    },
    /// A `/tmp/perf-PID.map` that is longer than this many bytes.
    TooLong {
        /// Most that is read.
        longest: u64,
    },
    /// A section of debug information that cannot be decompressed, or is compressed so well that it is not what it seems.
    Section {
        /// The section.
        name: &'static str,
    },
    /// Debug information in which inlined functions nest deeper than this: they are not read, source lines are.
    TooDeep {
        /// Most that is read.
        deepest: usize,
    },
}

impl Display for LeftOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it could not be read: {error}"),
            Self::OfAnotherUser { uid } => write!(
                f,
                "it belongs to user {uid}, who is neither root nor the user of this process"
            ),
            Self::Section { name } => write!(
                f,
                "its section {name} cannot be read, so source lines or inlined functions are missing"
            ),
            Self::TooDeep { deepest } => write!(
                f,
                "its inlined functions, which nest deeper than {deepest}, are left out"
            ),
            Self::TooLong { longest } => write!(f, "it is longer than {longest} bytes"),
        }
    }
}

impl From<io::Error> for LeftOut {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_it_is_about() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let words = format!("it could not be read: {refused}");
        for (why, expected) in [
            (LeftOut::from(refused), &*words),
            (
                LeftOut::OfAnotherUser { uid: 17 },
                "it belongs to user 17, who is neither root nor the user of this process",
            ),
            (
                LeftOut::TooLong { longest: 4096 },
                "it is longer than 4096 bytes",
            ),
            (
                LeftOut::Section {
                    name: ".debug_info",
                },
                "its section .debug_info cannot be read, so source lines or inlined functions are missing",
            ),
            (
                LeftOut::TooDeep { deepest: 256 },
                "its inlined functions, which nest deeper than 256, are left out",
            ),
        ] {
            assert_eq!(why.to_string(), expected);
        }
    }
}
