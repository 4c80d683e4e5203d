//! Failures, and each thread's last one.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write;
use std::ptr;

use quipu::{Error, ErrorKind};

use crate::boundary::{self, Versioned, guarded};
use crate::handle::LookupError;
use crate::quipu_status::{self, *};

/// Why something could not be done. Set `size` first (QUIPU_INIT).
///
/// The texts are the calling thread's and stay until its next call that fails or asks for an error.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_error {
    /// sizeof (quipu_error).
    pub size: usize,
    /// The kind of failure; QUIPU_OK when there is none.
    pub status: c_int,
    /// The operating system's error number, or 0.
    pub os_errno: c_int,
    /// The position in its group of the event that was refused, or -1.
    pub member: c_int,
    /// All of it in one sentence, without the hint; empty when there is no error.
    pub message: *const c_char,
    /// The operation that failed; completes "cannot ...".
    pub attempted: *const c_char,
    /// The reason, or null.
    pub reason: *const c_char,
    /// Advice for a person on this machine, or null.
    pub hint: *const c_char,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_error {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

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
        let texts = Texts::new(self.status, Some(&self.error));
        // A thread that is ending has no last error any more.
        let _ = LAST.try_with(|last| last.replace(texts));
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
    status: quipu_status,
    os_errno: c_int,
    member: c_int,
    message: CString,
    attempted: CString,
    reason: Option<CString>,
    hint: Option<CString>,
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

    /// Returns it as a struct, good for as long as this is kept.
    pub(crate) fn as_struct(&self) -> quipu_error {
        quipu_error {
            size: size_of::<quipu_error>(),
            status: self.status as c_int,
            os_errno: self.os_errno,
            member: self.member,
            message: self.message.as_ptr(),
            attempted: self.attempted.as_ptr(),
            reason: pointer(self.reason.as_ref()),
            hint: pointer(self.hint.as_ref()),
        }
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

/// Fills `out` with an error, which becomes the calling thread's last one.
///
/// # Safety
/// As [`boundary::write_versioned`].
pub(crate) unsafe fn report(error: Option<&Error>, out: *mut quipu_error) -> Result<(), Failure> {
    let status = error.map_or(QUIPU_OK, |error| error.kind().into());
    let texts = Texts::new(status, error);
    let filled = texts.as_struct();
    // SAFETY: the caller's promise.
    unsafe { boundary::write_versioned(out, filled, "out") }?;
    // Moving the texts does not move what they point to.
    let _ = LAST.try_with(|last| last.replace(texts));
    Ok(())
}

/// Says what the calling thread's last failure was. A call that succeeds leaves it as it is.
///
/// Returns QUIPU_OK, or QUIPU_EINVAL when `out` is null or its size is not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_last_error(out: *mut quipu_error) -> quipu_status {
    guarded(|| {
        let filled = LAST.try_with(|last| last.borrow().as_struct());
        let filled = filled.unwrap_or_else(|_| boundary::zeroed());
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, filled, "out") }
    })
}

/// Writes the calling thread's last failure and its hint to standard error, after `prefix` and a
/// colon where `prefix` is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_perror(prefix: *const c_char) {
    guarded(|| {
        let prefix = match prefix.is_null() {
            true => String::new(),
            // SAFETY: not null, and the caller's promise. A program's own name need not be UTF-8.
            false => format!("{}: ", unsafe { CStr::from_ptr(prefix) }.to_string_lossy()),
        };
        let said = LAST.try_with(|last| {
            let last = last.borrow();
            let message = match last.status {
                QUIPU_OK => QUIPU_OK.text().to_string_lossy(),
                _ => last.message.to_string_lossy(),
            };
            match &last.hint {
                Some(hint) => format!("{prefix}{message}; {}", hint.to_string_lossy()),
                None => format!("{prefix}{message}"),
            }
        });
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(std::io::stderr(), "{}", said.unwrap_or_default());
        Ok(())
    });
}
