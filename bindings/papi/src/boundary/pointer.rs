//! Reads and writes through the caller's pointers, and texts as C has them.

use std::ffi::{CStr, CString, c_char};

use crate::code::{EINVAL, Outcome};

/// Returns the caller's text, where there is one.
///
/// # Safety
/// `text` is null or points to a text that ends with a NUL and stays unchanged for `'a`.
pub(crate) unsafe fn optional_text<'a>(text: *const c_char) -> Option<std::borrow::Cow<'a, str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Returns the caller's text.
///
/// # Safety
/// As [`optional_text`].
pub(crate) unsafe fn caller_text<'a>(text: *const c_char) -> Outcome<std::borrow::Cow<'a, str>> {
    // SAFETY: the caller's promise.
    unsafe { optional_text(text) }.ok_or(EINVAL)
}

/// Writes a result where the caller wants it.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn write<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: not null, and the caller's promise; C may have it at any address.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Reads what the caller points to.
///
/// # Safety
/// `from` is null or points to a value.
pub(crate) unsafe fn read<T: Copy>(from: *const T) -> Outcome<T> {
    if from.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: not null, and the caller's promise.
    Ok(unsafe { from.read_unaligned() })
}

/// Copies a text into a field of a struct, as much as fits, with a NUL behind it.
pub(crate) fn put<const N: usize>(field: &mut [c_char; N], text: &str) {
    let mut end = text.len().min(N - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    field.fill(0);
    for (to, from) in field.iter_mut().zip(&text.as_bytes()[..end]) {
        *to = *from as c_char;
    }
}

/// Returns a text as C has it; of one with a NUL inside, what is before that.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
