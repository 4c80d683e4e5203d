//! The entry points for Fortran, as its compilers spell them. Lengths of texts follow behind all other arguments.

use std::ffi::{CString, c_char, c_double, c_int};

use crate::markers::*;

/// Returns the text of a variable without the blanks that fill it.
fn text(variable: *const c_char, length: c_int) -> CString {
    let length = usize::try_from(length).unwrap_or(0);
    if variable.is_null() {
        return CString::default();
    }
    // SAFETY: not null, and the caller's variable is as long as it says.
    let bytes = unsafe { std::slice::from_raw_parts(variable.cast::<u8>(), length) };
    let text = String::from_utf8_lossy(bytes);
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(text[..end].trim_end_matches(' ')).unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerinit_() {
    likwid_markerInit();
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerthreadinit_() {
    likwid_markerThreadInit();
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markernextgroup_() {
    likwid_markerNextGroup();
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerclose_() {
    likwid_markerClose();
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerregisterregion_(tag: *const c_char, length: c_int) {
    likwid_markerRegisterRegion(text(tag, length).as_ptr());
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerstartregion_(tag: *const c_char, length: c_int) {
    likwid_markerStartRegion(text(tag, length).as_ptr());
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerstopregion_(tag: *const c_char, length: c_int) {
    likwid_markerStopRegion(text(tag, length).as_ptr());
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markerresetregion_(tag: *const c_char, length: c_int) {
    likwid_markerResetRegion(text(tag, length).as_ptr());
}

#[unsafe(no_mangle)]
extern "C" fn likwid_markergetregion_(
    tag: *const c_char,
    nr_events: *mut c_int,
    events: *mut c_double,
    time: *mut c_double,
    count: *mut c_int,
    length: c_int,
) {
    likwid_markerGetRegion(text(tag, length).as_ptr(), nr_events, events, time, count);
}
