//! The last error of a thread, for C.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;

use quipu::Error;

use crate::boundary::{self, Versioned, guarded};
use crate::failure::{Failure, Texts, pointer, with_last};
use crate::quipu_status::{self, QUIPU_OK};

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

/// Returns an error as a struct, good for as long as the texts are kept.
pub(crate) fn as_struct(texts: &Texts) -> quipu_error {
    quipu_error {
        size: size_of::<quipu_error>(),
        status: texts.status as c_int,
        os_errno: texts.os_errno,
        member: texts.member,
        message: texts.message.as_ptr(),
        attempted: texts.attempted.as_ptr(),
        reason: pointer(texts.reason.as_ref()),
        hint: pointer(texts.hint.as_ref()),
    }
}

/// Fills `out` with an error, which becomes the calling thread's last one.
///
/// # Safety
/// As [`boundary::write_versioned`].
pub(crate) unsafe fn report(error: Option<&Error>, out: *mut quipu_error) -> Result<(), Failure> {
    let status = error.map_or(QUIPU_OK, |error| error.kind().into());
    let texts = Texts::new(status, error);
    let filled = as_struct(&texts);
    // SAFETY: the caller's promise.
    unsafe { boundary::write_versioned(out, filled, "out") }?;
    // Moving the texts does not move what they point to.
    texts.remember();
    Ok(())
}

/// Says what the calling thread's last failure was. A call that succeeds leaves it as it is.
///
/// Returns QUIPU_OK, or QUIPU_EINVAL when `out` is null or its size is not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_last_error(out: *mut quipu_error) -> quipu_status {
    guarded(|| {
        let filled = with_last(as_struct).unwrap_or_else(boundary::zeroed);
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
        let said = with_last(|last| {
            let message = match last.status {
                QUIPU_OK => QUIPU_OK.text().to_string_lossy(),
                _ => last.message.to_string_lossy(),
            };
            match &last.hint {
                Some(hint) => format!("{prefix}{message}; {}", hint.to_string_lossy()),
                None => format!("{prefix}{message}"),
            }
        });
        // Standard error may be closed.
        let _ = writeln!(std::io::stderr(), "{}", said.unwrap_or_default());
        Ok(())
    });
}
