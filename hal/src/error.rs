//! The one error type of Quipu: a kind to match on, and a sentence for a person.

use std::fmt;

/// The result of every fallible operation in Quipu.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for programs to match on.
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
    /// Somebody else holds the counters.
    Busy,
    /// The request contradicts itself or is malformed; it is wrong on every machine.
    InvalidConfiguration,
    /// The counter is in the error state: a pinned group could not be scheduled.
    CounterInErrorState,
    /// The device is tied to another thread than the calling one.
    WrongThread,
    /// The registers were changed by somebody else during the measurement.
    Interference,
    /// Any other refusal by the operating system; see [`Error::errno`].
    Os,
}

impl ErrorKind {
    /// Every kind, in declaration order.
    pub const ALL: [Self; 12] = [
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
            Self::Interference => "registers were changed by somebody else",
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
/// One pointer wide, so that results on the hot path stay small. `Display` gives one sentence
/// without the hint; `{:#}` adds the hint.
///
/// ```
/// use quipu_hal::{Error, ErrorKind};
///
/// let e = Error::new(ErrorKind::NoPermission, "open cycles:k on this thread")
///     .with_errno(13)
///     .with_reason("kernel counting needs CAP_PERFMON")
///     .with_hint("set kernel.perf_event_paranoid to 1 or lower");
/// assert_eq!(e.kind(), ErrorKind::NoPermission);
/// assert!(e.to_string().starts_with("cannot open cycles:k on this thread: not permitted"));
/// assert!(format!("{e:#}").ends_with("set kernel.perf_event_paranoid to 1 or lower"));
/// assert_eq!(size_of::<Error>(), size_of::<usize>());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    attempted: String,
    errno: Option<i32>,
    reason: Option<String>,
    hint: Option<String>,
    member: Option<usize>,
}

impl Error {
    /// An error of a kind. `attempted` completes the phrase "cannot ...": `open cycles on CPU 3`.
    pub fn new(kind: ErrorKind, attempted: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            attempted: attempted.into(),
            errno: None,
            reason: None,
            hint: None,
            member: None,
        }))
    }

    /// The same error with the operating system's error number.
    #[must_use]
    pub fn with_errno(mut self, errno: i32) -> Self {
        self.0.errno = Some(errno);
        self
    }

    /// The same error with the reason: what is the matter, in a phrase.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = Some(reason.into());
        self
    }

    /// The same error with a hint: what a person can do about it on this machine.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error naming the group member (by position) that caused it.
    #[must_use]
    pub fn with_member(mut self, index: usize) -> Self {
        self.0.member = Some(index);
        self
    }

    /// What went wrong, for matching.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operating system's error number, when there was one.
    pub fn errno(&self) -> Option<i32> {
        self.0.errno
    }

    /// What was attempted; completes "cannot ...".
    pub fn attempted(&self) -> &str {
        &self.0.attempted
    }

    /// What is the matter, without what was attempted.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// What a person can do about it.
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
        write!(f, "cannot {}: {}", e.attempted, e.kind)?;
        if let Some(reason) = &e.reason {
            write!(f, ": {reason}")?;
        }
        if let Some(errno) = e.errno {
            write!(f, " [{}]", std::io::Error::from_raw_os_error(errno))?;
        }
        if f.alternate()
            && let Some(hint) = &e.hint
        {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_displays_and_is_listed_once() {
        let mut seen = std::collections::HashSet::new();
        for kind in ErrorKind::ALL {
            let text = Error::new(kind, "do it").to_string();
            assert_eq!(text, format!("cannot do it: {}", kind.as_str()));
            assert!(seen.insert(text));
        }
    }

    #[test]
    fn parts_come_in_order_and_the_hint_only_when_asked() {
        let e = Error::new(ErrorKind::Os, "read")
            .with_errno(5)
            .with_reason("why")
            .with_hint("do that")
            .with_member(2);
        let plain = e.to_string();
        assert!(plain.starts_with("cannot read: refused by the operating system: why ["));
        assert!(!plain.contains("do that"));
        assert_eq!(format!("{e:#}"), format!("{plain}; do that"));
        assert_eq!((e.errno(), e.member()), (Some(5), Some(2)));
    }
}
