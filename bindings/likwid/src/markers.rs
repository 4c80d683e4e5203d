//! The functions of likwid-marker.h.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_double, c_int};
use std::panic::{self, AssertUnwindSafe};

use quipu_regions::{Region, ThreadReport};

use crate::cpu;
use crate::file::region_of;
use crate::session::{self, Session};

/// The value that LIKWID returns where it has no markers, or no such region.
const REFUSED: c_int = -libc::EFAULT;

/// Runs what a function does while something is measured. A panic ends here.
fn measured(body: impl FnOnce(&Session) -> Option<()>) -> c_int {
    let done = panic::catch_unwind(AssertUnwindSafe(|| session::current().and_then(body)));
    match done {
        Ok(Some(())) => 0,
        Ok(None) => REFUSED,
        Err(payload) => {
            // One of another type might panic when it is dropped.
            std::mem::forget(payload);
            REFUSED
        }
    }
}

/// Runs what a function does with a region while something is measured.
fn with_region(tag: *const c_char, body: impl FnOnce(&Session, &str) -> Option<()>) -> c_int {
    measured(|session| {
        // SAFETY: null, or a text that ends with a NUL.
        let tag = unsafe { text(tag) }?;
        body(session, &tag)
    })
}

/// Returns the caller's text, where there is one.
///
/// # Safety
/// It is null or points to a text that ends with a NUL and stays unchanged for `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<Cow<'a, str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller's promise.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Writes a result where the caller wants it.
fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: not null, and the caller's variable; Fortran may have it at any address.
        unsafe { out.write_unaligned(value) };
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerInit() {
    // What goes wrong was said, or is a defect that must not end the program.
    drop(panic::catch_unwind(session::begin));
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerThreadInit() {
    measured(|_| {
        cpu::note();
        Some(())
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerNextGroup() {
    measured(|session| {
        session.next_group();
        Some(())
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerClose() {
    measured(|session| {
        session.close();
        Some(())
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerRegisterRegion(tag: *const c_char) -> c_int {
    with_region(tag, |_, tag| {
        cpu::note();
        Region::named(tag);
        Some(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerStartRegion(tag: *const c_char) -> c_int {
    with_region(tag, |_, tag| {
        cpu::note();
        Region::named(tag).begin().ok()
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerStopRegion(tag: *const c_char) -> c_int {
    with_region(tag, |_, tag| Region::named(tag).end().ok())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerResetRegion(tag: *const c_char) -> c_int {
    with_region(tag, |_, tag| Region::named(tag).reset().ok())
}

/// Fills in what the calling thread has counted in a region. An event that has no value is no number (NaN).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerGetRegion(
    tag: *const c_char,
    nr_events: *mut c_int,
    events: *mut c_double,
    time: *mut c_double,
    count: *mut c_int,
) {
    with_region(tag, |session, tag| {
        let thread = ThreadReport::now()?;
        let region = region_of(&thread, tag, session.events_of(session.active()))?;
        put(count, c_int::try_from(region.calls).unwrap_or(c_int::MAX));
        put(time, region.elapsed.as_secs_f64());
        if !nr_events.is_null() && !events.is_null() {
            // SAFETY: not null, and the caller's number, at any address.
            let room = usize::try_from(unsafe { nr_events.read_unaligned() }).unwrap_or(0);
            for (at, value) in region.values.iter().take(room).enumerate() {
                put(events.wrapping_add(at), *value);
            }
            let filled = region.values.len().min(room);
            put(nr_events, c_int::try_from(filled).unwrap_or(c_int::MAX));
        }
        Some(())
    });
}

/// Writes what was counted up to now, as LIKWID does at its end.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_markerWriteFile(path: *const c_char) -> c_int {
    use std::os::unix::ffi::OsStrExt as _;
    measured(|session| {
        if path.is_null() {
            return None;
        }
        // SAFETY: not null, and a text that ends with a NUL.
        let path = unsafe { CStr::from_ptr(path) };
        session
            .write(std::ffi::OsStr::from_bytes(path.to_bytes()).as_ref())
            .ok()
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_getProcessorId() -> c_int {
    cpu::current()
}

/// Binds the calling thread; returns 1, or 0 if it cannot be.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_pinThread(cpu: c_int) -> c_int {
    cpu::bind(cpu).into()
}

/// Binds the calling thread, whose later threads are bound too.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn likwid_pinProcess(cpu: c_int) -> c_int {
    cpu::bind(cpu).into()
}
