//! Failures: why a call fails, and each thread's last one.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr;

use quipu::{Error, ErrorKind};

use crate::handle::LookupError;
use crate::quipu_status::{self, *};

/// Why a call fails: the library's error, under the status it is returned as.
pub(crate) struct Failure {
    status: quipu_status,
    error: Error,
}

impl Failure {
    /// An argument that no caller may pass; `attempted` completes "cannot".
    pub(crate) fn invalid(attempted: &str, reason: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidConfiguration, attempted)
            .with_reason(reason)
            .into()
    }

    /// Returns the failure of a handle of a kind that has no object.
    pub(crate) fn lookup(kind: &str, error: LookupError) -> Self {
        let (status, error_kind, reason) = match error {
            LookupError::Stale => (
                QUIPU_EHANDLE,
                ErrorKind::InvalidConfiguration,
                "it is no open handle: never given out, of another kind, or closed already",
            ),
            LookupError::Busy => (
                QUIPU_EINUSE,
                ErrorKind::Busy,
                "another thread is in a call with the same handle",
            ),
        };
        Self {
            status,
            error: Error::new(error_kind, format!("use this {kind}")).with_reason(reason),
        }
    }

    /// A panic, with what it says.
    pub(crate) fn bug(says: &str) -> Self {
        Self {
            status: QUIPU_EBUG,
            error: Error::new(ErrorKind::Os, "finish the call")
                .with_reason(format!("defect of the library: {says}")),
        }
    }

    /// Returns the status that stands for it.
    pub(crate) fn status(&self) -> quipu_status {
        self.status
    }

    /// Makes it the calling thread's last error.
    pub(crate) fn remember(self) {
        Texts::new(self.status, Some(&self.error)).remember();
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            status: error.kind().into(),
            error,
        }
    }
}

/// An error in the form C reads it.
pub(crate) struct Texts {
    pub(crate) status: quipu_status,
    pub(crate) os_errno: c_int,
    pub(crate) member: c_int,
    pub(crate) message: CString,
    pub(crate) attempted: CString,
    pub(crate) reason: Option<CString>,
    pub(crate) hint: Option<CString>,
}

impl Texts {
    pub(crate) fn new(status: quipu_status, error: Option<&Error>) -> Self {
        let member = error.and_then(Error::member);
        Self {
            status,
            os_errno: error.and_then(Error::errno).unwrap_or(0),
            member: member.map_or(-1, |member| c_int::try_from(member).unwrap_or(-1)),
            message: text(&error.map(ToString::to_string).unwrap_or_default()),
            attempted: text(error.map_or("", Error::attempted)),
            reason: error.and_then(Error::reason).map(text),
            hint: error.and_then(Error::hint).map(text),
        }
    }

    /// Makes it the calling thread's last error. A thread that is ending has none any more.
    pub(crate) fn remember(self) {
        let _ = LAST.try_with(|last| last.replace(self));
    }
}

/// A text as C has it; a NUL within, which C would take for the end, is shown as what it is.
pub(crate) fn text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{2400}")).unwrap_or_default()
}

/// The address of a text, or null.
pub(crate) fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |text| text.as_ptr())
}

thread_local! {
    static LAST: RefCell<Texts> = RefCell::new(Texts::new(QUIPU_OK, None));
}

/// Runs something on the calling thread's last error; `None` in a thread that is ending.
pub(crate) fn with_last<T>(look: impl FnOnce(&Texts) -> T) -> Option<T> {
    LAST.try_with(|last| look(&last.borrow())).ok()
}
