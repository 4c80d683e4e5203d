//! Calls of the library: what fails becomes the thread's last error, panics end.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};
use std::io::Write as _;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use quipu::{Error, ErrorKind};

use super::inside::inside;
use super::pointer::optional_text;
use crate::code::*;
use crate::library::LIBRARY;

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(0) };
    /// The facade's error behind the last one, which says what would help.
    static HINT: RefCell<Option<Error>> = const { RefCell::new(None) };
    /// The last error that the facade returned, and the code it became.
    static REFUSAL: RefCell<Option<(ErrorCode, Error)>> = const { RefCell::new(None) };
}

/// The level of `PAPI_set_debug`, and the handler set with it.
pub(crate) static DEBUG_LEVEL: AtomicI32 = AtomicI32::new(0);
pub(crate) static DEBUG_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// Turns an error of the facade into a code and remembers what it says.
pub(crate) fn refused(error: &Error) -> ErrorCode {
    let code = match error.kind() {
        ErrorKind::UnsupportedEvent | ErrorKind::NoSuchDevice => ENOEVNT,
        ErrorKind::UnsupportedFeature => ENOSUPP,
        ErrorKind::NoPermission => EPERM,
        ErrorKind::TooManyEvents | ErrorKind::Busy => ECNFLCT,
        ErrorKind::CounterInErrorState | ErrorKind::Interference | ErrorKind::CounterJumped => {
            ECLOST
        }
        ErrorKind::Os | ErrorKind::NoSuchTarget => match error.errno() {
            Some(libc::ENOMEM) => ENOMEM,
            Some(libc::EMFILE) => ECOUNT,
            Some(libc::EINVAL) => EINVAL,
            _ => ESYS,
        },
        _ => EINVAL,
    };
    refused_as(code, error)
}

/// Remembers an error of the facade for a code.
pub(crate) fn refused_as(code: ErrorCode, error: &Error) -> ErrorCode {
    REFUSAL.with(|refusal| *refusal.borrow_mut() = Some((code, error.clone())));
    code
}

/// Runs what a function does inside of the library.
fn caught<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    inside(body).unwrap_or_else(|payload| {
        // A payload of another type might panic when it is dropped.
        std::mem::forget(payload);
        Err(EBUG)
    })
}

/// Runs what a function does and returns its value or code.
pub(crate) fn call(body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    caught(body).unwrap_or_else(failed)
}

/// Runs what a function does that returns [`OK`].
pub(crate) fn done(body: impl FnOnce() -> Outcome) -> c_int {
    match caught(body) {
        Ok(()) => OK,
        Err(code) => failed(code),
    }
}

/// Runs what a function does that returns something else than a code.
pub(crate) fn call_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let mut value = otherwise;
    call(|| {
        value = body();
        Ok(OK)
    });
    value
}

/// Remembers a failure, and reports it as the debug level says.
fn failed(code: ErrorCode) -> c_int {
    LAST.with(|last| last.set(code.number()));
    let refusal = REFUSAL.with(|refusal| refusal.borrow_mut().take());
    let behind = refusal
        .filter(|(of, _)| *of == code)
        .map(|(_, error)| error);
    HINT.with(|hint| *hint.borrow_mut() = behind);
    let level = DEBUG_LEVEL.load(Ordering::Relaxed);
    if level == 0 {
        return code.number();
    }
    let handler = DEBUG_HANDLER.load(Ordering::Relaxed);
    if handler == 0 {
        report(&format!(
            "PAPI error {}: {}",
            code.number(),
            text(code.number())
        ));
    } else {
        // SAFETY: the address is that of a function of this type, which the program gave with the level.
        let handler: extern "C" fn(c_int) -> c_int = unsafe { std::mem::transmute(handler) };
        handler(code.number());
    }
    if level == 2 {
        std::process::exit(1);
    }
    code.number()
}

fn report(line: &str) {
    // Standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn text(code: c_int) -> &'static str {
    text_of(code, LIBRARY.version())
        .and_then(|text| text.to_str().ok())
        .unwrap_or("an unknown code")
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_strerror(code: c_int) -> *const c_char {
    text_of(code, LIBRARY.version()).map_or(std::ptr::null(), CStr::as_ptr)
}

/// Prints the last error of the thread, and what would help.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_perror(message: *const c_char) {
    call(|| {
        // SAFETY: null, or a text that ends with a NUL, as the caller promises.
        let before = unsafe { optional_text(message) };
        let code = LAST.with(Cell::get);
        let mut line = text(code).to_owned();
        if let Some(hint) = HINT
            .with(|hint| hint.borrow().clone())
            .filter(|_| code != OK)
        {
            line = format!("{line} ({hint:#})");
        }
        match before.filter(|before| !before.is_empty()) {
            Some(before) => report(&format!("{before}: {line}")),
            None => report(&line),
        }
        Ok(OK)
    });
}
