//! Return codes of `papi.h`, and the boundary to C: what fails becomes the thread's last error, panics end.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write as _;
use std::num::NonZero;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use nix::sys::signal::SigSet;
use quipu::{Error, ErrorKind};

use crate::abi::V7_2;
use crate::library::LIBRARY;
use crate::sys::contains;

/// A return code other than [`OK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(NonZero<c_int>);

impl Code {
    /// Returns the code of a number. Those of this library are made when it is compiled, which 0 would not.
    pub(crate) const fn new(number: c_int) -> Self {
        match NonZero::new(number) {
            Some(number) => Self(number),
            None => panic!("0 is no code"),
        }
    }

    /// Returns its number.
    pub(crate) const fn number(self) -> c_int {
        self.0.get()
    }
}

/// The result of a function of the library.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

pub(crate) const OK: c_int = 0;
pub(crate) const EINVAL: Code = Code::new(-1);
pub(crate) const ENOMEM: Code = Code::new(-2);
pub(crate) const ESYS: Code = Code::new(-3);
pub(crate) const ECMP: Code = Code::new(-4);
pub(crate) const ECLOST: Code = Code::new(-5);
pub(crate) const EBUG: Code = Code::new(-6);
pub(crate) const ENOEVNT: Code = Code::new(-7);
pub(crate) const ECNFLCT: Code = Code::new(-8);
pub(crate) const ENOTRUN: Code = Code::new(-9);
pub(crate) const EISRUN: Code = Code::new(-10);
pub(crate) const ENOEVST: Code = Code::new(-11);
pub(crate) const ENOTPRESET: Code = Code::new(-12);
pub(crate) const EMISC: Code = Code::new(-14);
pub(crate) const EPERM: Code = Code::new(-15);
pub(crate) const ENOINIT: Code = Code::new(-16);
pub(crate) const ENOCMP: Code = Code::new(-17);
pub(crate) const ENOSUPP: Code = Code::new(-18);
pub(crate) const EINVAL_DOM: Code = Code::new(-21);
pub(crate) const ECOUNT: Code = Code::new(-23);
pub(crate) const ECMP_DISABLED: Code = Code::new(-25);

/// Texts of the codes, by their numbers without the sign. The last is there since version 7.2.
const TEXTS: [&CStr; 29] = [
    c"no error",
    c"an argument is not valid",
    c"there is not enough memory",
    c"a system call failed",
    c"the component does not offer this",
    c"the counters could not be read, or were lost",
    c"an error inside of the library",
    c"there is no such event",
    c"the event cannot be counted together with the others",
    c"the event set is not running",
    c"the event set is running",
    c"there is no such event set",
    c"the event is no preset",
    c"this hardware has no counters",
    c"an error of another kind",
    c"permission is lacking",
    c"the library is not initialized",
    c"there is no such component, or none is assigned",
    c"this is not supported",
    c"this is not implemented",
    c"the buffer is too small",
    c"the domain cannot be counted",
    c"an attribute of the event is missing or not valid",
    c"there are too many events or attributes",
    c"these features do not go together",
    c"the component of the event is disabled",
    c"the component is initialized when it is first used",
    c"the event takes several passes of the program",
    c"a part of the component is disabled",
];

/// The place of a thread, inside or outside of the library.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Inside,
    /// Inside, and overflows are to be handled outside.
    InsideDeferring,
}

thread_local! {
    static LAST: Cell<c_int> = const { Cell::new(0) };
    /// The facade's error behind the last one, which says what would help.
    static HINT: RefCell<Option<Error>> = const { RefCell::new(None) };
    /// The last error that the facade returned, and the code it became.
    static REFUSAL: RefCell<Option<(Code, Error)>> = const { RefCell::new(None) };
    /// The place of the thread: handlers of signals have to keep out of the library's functions.
    static PLACE: Cell<Place> = const { Cell::new(Place::Outside) };
    /// The signal whose handler calls the program's handler of overflows, which may have interrupted an allocation; else 0.
    static HANDLING: Cell<c_int> = const { Cell::new(0) };
}

/// The level of `PAPI_set_debug`, and the handler set with it.
pub(crate) static DEBUG_LEVEL: AtomicI32 = AtomicI32::new(0);
pub(crate) static DEBUG_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// Returns true while this thread handles an overflow: nothing may be allocated or freed.
pub(crate) fn is_handling() -> bool {
    match HANDLING.with(Cell::get) {
        0 => false,
        signal if is_blocked(signal) => true,
        // The program's handler was left by siglongjmp(3), which restores what was blocked before.
        _ => {
            HANDLING.with(|handling| handling.set(0));
            false
        }
    }
}

/// Returns true if this thread gets no signals of a number, as in the handler of that.
fn is_blocked(signal: c_int) -> bool {
    SigSet::thread_get_mask().is_ok_and(|blocked| contains(&blocked, signal))
}

/// Calls the program's handler of overflows in the handler of a signal.
#[cfg(target_os = "linux")]
pub(crate) fn handling(signal: c_int, handler: impl FnOnce()) {
    HANDLING.with(|handling| handling.set(signal));
    handler();
    HANDLING.with(|handling| handling.set(0));
}

/// Returns true while this thread is inside of a function of the library.
#[cfg(target_os = "linux")]
pub(crate) fn is_inside() -> bool {
    PLACE.with(Cell::get) != Place::Outside
}

/// Returns true if this thread is inside of a function of the library: overflows are then handled when it leaves.
#[cfg(target_os = "linux")]
pub(crate) fn defer() -> bool {
    let inside = is_inside();
    if inside {
        PLACE.with(|place| place.set(Place::InsideDeferring));
    }
    inside
}

/// Leaves a function of the library, and has the overflows handled that came inside.
fn leave(place: &Cell<Place>, outer: Place) {
    let inner = place.replace(outer);
    if inner == Place::InsideDeferring {
        leave_deferring(outer);
    }
}

fn leave_deferring(outer: Place) {
    match outer {
        #[cfg(target_os = "linux")]
        Place::Outside => crate::overflow::handle_again(),
        _ => PLACE.with(|place| place.set(Place::InsideDeferring)),
    }
}

/// Turns an error of the facade into a code and remembers what it says.
pub(crate) fn refused(error: &Error) -> Code {
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
pub(crate) fn refused_as(code: Code, error: &Error) -> Code {
    REFUSAL.with(|refusal| *refusal.borrow_mut() = Some((code, error.clone())));
    code
}

/// Runs what a function does inside of the library.
fn inside<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let outcome = PLACE.with(|place| {
        let outer = place.replace(Place::Inside);
        let outcome = panic::catch_unwind(AssertUnwindSafe(body));
        leave(place, outer);
        outcome
    });
    outcome.unwrap_or_else(|payload| {
        // A payload of another type might panic when it is dropped.
        std::mem::forget(payload);
        Err(EBUG)
    })
}

/// Runs what a function does and returns its value or code.
pub(crate) fn call(body: impl FnOnce() -> Outcome<c_int>) -> c_int {
    inside(body).unwrap_or_else(failed)
}

/// Runs what a function does that returns [`OK`].
pub(crate) fn done(body: impl FnOnce() -> Outcome) -> c_int {
    match inside(body) {
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
fn failed(code: Code) -> c_int {
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
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn text(code: c_int) -> &'static str {
    entry(code)
        .and_then(|text| text.to_str().ok())
        .unwrap_or("an unknown code")
}

fn entry(code: c_int) -> Option<&'static CStr> {
    let index = usize::try_from(code.checked_neg()?).ok()?;
    let known = match LIBRARY.version() {
        V7_2.. => &TEXTS[..],
        _ => &TEXTS[..TEXTS.len() - 1],
    };
    known.get(index).copied()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_strerror(code: c_int) -> *const c_char {
    entry(code).map_or(std::ptr::null(), CStr::as_ptr)
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
