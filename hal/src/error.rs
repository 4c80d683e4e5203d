//! The one error type of Quipu: a kind to match on, and a sentence for a person.

use std::sync::Arc;
use std::{fmt, io};

/// The result of every fallible operation in Quipu.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure, for programs to match on.
///
/// The kinds are few on purpose; the details (what was attempted, the errno, what to do about it)
/// are in the [`Error`] itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The event does not exist here: not on this CPU, kernel or backend.
    UnsupportedEvent,
    /// The event exists, but something asked of it (a filter, inheritance, a target) is not offered.
    UnsupportedFeature,
    /// Not permitted for this user; the hint says which permission is missing.
    NoPermission,
    /// No such thread, process, CPU or cgroup.
    NoSuchTarget,
    /// No such device or driver: the whole backend is missing.
    NoSuchDevice,
    /// The group has more events than can ever be counted at the same time.
    TooManyEvents,
    /// Another process holds the counters.
    Busy,
    /// The request contradicts itself or is malformed; it is wrong on every machine.
    InvalidConfiguration,
    /// The counter is in the error state: a pinned group could not be scheduled.
    CounterInErrorState,
    /// The device is tied to another thread than the calling one.
    WrongThread,
    /// The registers were changed by another process during the measurement.
    Interference,
    /// The counter moved further than its event can have occurred: its value means nothing.
    CounterJumped,
    /// Any other refusal by the operating system; see [`Error::errno`].
    Os,
}

impl ErrorKind {
    /// Every kind, in declaration order.
    pub const ALL: &[Self] = &[
        Self::UnsupportedEvent,
        Self::UnsupportedFeature,
        Self::NoPermission,
        Self::NoSuchTarget,
        Self::NoSuchDevice,
        Self::TooManyEvents,
        Self::Busy,
        Self::InvalidConfiguration,
        Self::CounterInErrorState,
        Self::WrongThread,
        Self::Interference,
        Self::CounterJumped,
        Self::Os,
    ];

    /// The kind in a few lower-case words, as it appears in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnsupportedEvent => "event not supported",
            Self::UnsupportedFeature => "feature not supported",
            Self::NoPermission => "not permitted",
            Self::NoSuchTarget => "no such target",
            Self::NoSuchDevice => "no such device",
            Self::TooManyEvents => "too many events for one group",
            Self::Busy => "counters are busy",
            Self::InvalidConfiguration => "invalid request",
            Self::CounterInErrorState => "counter in error state",
            Self::WrongThread => "called on the wrong thread",
            Self::Interference => "registers were changed by another process",
            Self::CounterJumped => "the counter jumped",
            Self::Os => "refused by the operating system",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something could not be done: [kind](ErrorKind), errno, what was attempted, the reason, and
/// a hint where a person can act on it.
///
/// One pointer wide, so that results on the hot path stay small. `Display` gives one sentence: what was attempted, and the
/// reason, else the text of the kind. The text of the errno stands beside the reason of [`ErrorKind::Os`], or in its
/// place. `{:#}` adds the hint.
///
/// ```
/// use quipu_hal::{Error, ErrorKind};
///
/// let e = Error::new(ErrorKind::NoPermission, "open cycles:k on this thread")
///     .with_errno(13)
///     .with_reason("kernel counting needs CAP_PERFMON")
///     .with_hint("set kernel.perf_event_paranoid to 1 or lower");
/// assert_eq!(e.kind(), ErrorKind::NoPermission);
/// assert!(e.to_string().starts_with("cannot open cycles:k on this thread: kernel counting needs"));
/// assert!(format!("{e:#}").ends_with("set kernel.perf_event_paranoid to 1 or lower"));
/// assert_eq!(size_of::<Error>(), size_of::<usize>());
/// ```
// Shared by its copies: dropping one is a few instructions in the hundreds of places that may do so.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Arc<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    attempted: String,
    os: Option<OsError>,
    reason: Option<String>,
    hint: Option<String>,
    member: Option<usize>,
}

impl Error {
    /// An error of a kind. `attempted` completes the phrase "cannot ...": `open cycles on CPU 3`.
    pub fn new(kind: ErrorKind, attempted: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            attempted: attempted.into(),
            os: None,
            reason: None,
            hint: None,
            member: None,
        }))
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }

    /// Sets the operating system's error number.
    #[must_use]
    pub fn with_errno(mut self, errno: i32) -> Self {
        self.inner().os = Some(OsError(errno));
        self
    }

    /// Adds the number of an operating system's error, or its text as the reason if it has none.
    #[must_use]
    pub fn with_io_error(self, e: &io::Error) -> Self {
        match e.raw_os_error() {
            Some(errno) => self.with_errno(errno),
            None => self.with_reason(e.to_string()),
        }
    }

    /// Sets the reason: what is the matter, in a phrase.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.inner().reason = Some(reason.into());
        self
    }

    /// Sets the hint: what a person can do about it on this machine.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner().hint = Some(hint.into());
        self
    }

    /// Sets the group member (by position) that caused it.
    #[must_use]
    pub fn with_member(mut self, index: usize) -> Self {
        self.inner().member = Some(index);
        self
    }

    /// Returns the kind of the failure, for matching.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operating system's error number, when there was one.
    pub fn errno(&self) -> Option<i32> {
        self.0.os.as_ref().map(|os| os.0)
    }

    /// Returns what was attempted; completes "cannot ...".
    pub fn attempted(&self) -> &str {
        &self.0.attempted
    }

    /// Returns the reason, without what was attempted.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// Returns the hint: what a person can do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The position in its group of the member that caused the error.
    pub fn member(&self) -> Option<usize> {
        self.0.member
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        write!(f, "cannot {}: ", e.attempted)?;
        // The kind is what an error number means, and a reason what the kind means here: all would say it twice.
        match (&e.reason, &e.os) {
            (Some(reason), Some(os)) if e.kind == ErrorKind::Os => write!(f, "{reason} [{os}]"),
            (Some(reason), _) => f.write_str(reason),
            (None, Some(os)) if e.kind == ErrorKind::Os => write!(f, "{os}"),
            (None, _) => write!(f, "{}", e.kind),
        }?;
        if f.alternate()
            && let Some(hint) = &e.hint
        {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// Prints the sentence with its hint, since this is what a `main` that returns the error prints.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl std::error::Error for Error {
    /// Returns the operating system's error, when there was one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.os.as_ref().map(|os| os as _)
    }
}

/// Keeps the error number, and takes the kind from it; [`Error::with_reason`] can add the rest.
impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        let kind = match e.kind() {
            io::ErrorKind::PermissionDenied => ErrorKind::NoPermission,
            io::ErrorKind::NotFound => ErrorKind::NoSuchDevice,
            io::ErrorKind::ResourceBusy => ErrorKind::Busy,
            io::ErrorKind::Unsupported => ErrorKind::UnsupportedFeature,
            io::ErrorKind::InvalidInput => ErrorKind::InvalidConfiguration,
            _ => ErrorKind::Os,
        };
        Self::new(kind, "use the operating system").with_io_error(&e)
    }
}

/// Keeps the whole error inside, and takes the kind that is nearest.
impl From<Error> for io::Error {
    fn from(e: Error) -> Self {
        let kind = match e.kind() {
            ErrorKind::NoPermission => io::ErrorKind::PermissionDenied,
            ErrorKind::NoSuchTarget | ErrorKind::NoSuchDevice => io::ErrorKind::NotFound,
            ErrorKind::Busy => io::ErrorKind::ResourceBusy,
            ErrorKind::UnsupportedEvent | ErrorKind::UnsupportedFeature => {
                io::ErrorKind::Unsupported
            }
            ErrorKind::InvalidConfiguration | ErrorKind::TooManyEvents => {
                io::ErrorKind::InvalidInput
            }
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, e)
    }
}

/// An error number of the operating system, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OsError(i32);

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl std::error::Error for OsError {}
