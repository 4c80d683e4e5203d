//! Regions of a program, for C.

use std::ffi::c_char;

use quipu::ErrorKind;
use quipu_regions::{Region, Report};

use crate::boundary::{self, check_array, guarded};
use crate::failure::Failure;
use crate::quipu_status::{self, QUIPU_EBUSY};

/// The number that QUIPU_REGION_BEGIN keeps where regions are off.
pub const QUIPU_REGION_OFF: u32 = 0xffff_ffff;

/// The form of a report of regions.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_region_format {
    /// A table for people.
    QUIPU_REGION_TABLE = 0,
    /// JSON, a line: by thread, with the kind of each count.
    QUIPU_REGION_JSON = 1,
    /// Lines with commas, one for each thread, region and event.
    QUIPU_REGION_CSV = 2,
}

/// Runs what begins or ends a region. A signal handler that came while the thread did so is refused without the thread's last
/// error, which would allocate memory.
fn in_region(call: impl FnOnce() -> Result<quipu::Result<()>, Failure>) -> quipu_status {
    let mut is_interrupted = false;
    let status = guarded(|| match call()? {
        Err(error) if error.kind() == ErrorKind::Busy => {
            is_interrupted = true;
            Ok(())
        }
        done => Ok(done?),
    });
    match is_interrupted {
        true => QUIPU_EBUSY,
        false => status,
    }
}

/// Returns a number for the region of a name, from 1, by which quipu_region_enter() and quipu_region_leave() know it. It is
/// the same for each call and thread, and never closed.
///
/// Returns 0, which cannot be entered, if `name` is null or not UTF-8, or in a signal handler that came while the thread
/// looked up a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_region(name: *const c_char) -> u32 {
    let mut number = 0;
    guarded(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name, "name") }?;
        number = Region::named(name).number();
        Ok(())
    });
    number
}

/// Enters a region in the calling thread, until quipu_region_leave(). The first time, the thread's counters are opened, as
/// QUIPU_REGION_EVENTS of the environment or quipu_region_events() say. Regions may be inside of others and of themselves.
///
/// After the first time of a region in the one around it nothing is allocated, and a signal handler may call it too.
/// Returns QUIPU_EBUSY in one that came while the thread entered or left a region, which is not the thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn quipu_region_enter(region: u32) -> quipu_status {
    in_region(|| Ok(Region::of_number(region).begin()))
}

/// Leaves a region, the last one that the calling thread has entered and not left.
///
/// Returns QUIPU_EINVAL if it is not: another one is inside of it, it was left already, or another thread entered it.
/// Nothing is left then, and the report says so. QUIPU_EBUSY as quipu_region_enter().
#[unsafe(no_mangle)]
pub extern "C" fn quipu_region_leave(region: u32) -> quipu_status {
    in_region(|| Ok(Region::of_number(region).end()))
}

/// Enters the region of a name: quipu_region_enter(quipu_region(name)), which looks the name up each time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_region_begin(name: *const c_char) -> quipu_status {
    in_region(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name, "name") }?;
        Ok(Region::named(name).begin())
    })
}

/// Leaves the region of a name: quipu_region_leave(quipu_region(name)).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_region_end(name: *const c_char) -> quipu_status {
    in_region(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name, "name") }?;
        Ok(Region::named(name).end())
    })
}

/// Chooses the events of regions, as quipu_set_add() takes them, and turns QUIPU_REGION_BEGIN on; null are
/// "task-clock,page-faults,instructions,cycles". QUIPU_REGION_EVENTS of the environment goes before them.
///
/// Returns QUIPU_EINVAL if they are malformed, or a region was entered already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_region_events(events: *const c_char) -> quipu_status {
    guarded(|| {
        // SAFETY: the caller's promise.
        if let Some(events) = unsafe { boundary::optional_text(events, "events") }? {
            quipu_regions::choose_events(events)?;
        }
        quipu_regions::turn_on();
        Ok(())
    })
}

/// Returns quipu_region() of a name if regions are on, and QUIPU_REGION_OFF if not: they are on where QUIPU_REGIONS is in the
/// environment, and after quipu_region_events(). QUIPU_REGION_BEGIN asks once for each place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_region_if_on(name: *const c_char) -> u32 {
    match quipu_regions::is_on() {
        // SAFETY: the caller's promise.
        true => unsafe { quipu_region(name) },
        false => QUIPU_REGION_OFF,
    }
}

/// Writes what was counted in regions up to now to the `size` bytes at `text`, with a NUL at its end, as a
/// quipu_region_format: of other threads, up to the last time that they entered or left one. `needed` becomes the
/// number of bytes that the text takes, and may be null; with a `size` of 0 `text` may be.
///
/// Returns QUIPU_EINVAL when that is more than `size`: nothing is written then but `needed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_region_report(
    format: u32,
    text: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> quipu_status {
    guarded(|| {
        let attempted = "write the report of regions";
        let report = Report::now();
        let written = match format {
            0 => report.to_string(),
            1 => String::from_utf8_lossy(&report.json().map_err(|error| {
                quipu::Error::new(ErrorKind::Os, attempted).with_io_error(&error)
            })?)
            .into_owned(),
            2 => report.csv(),
            other => {
                let reason = format!("there is no format {other}");
                return Err(Failure::invalid(attempted, reason));
            }
        };
        let takes = written.len() + 1;
        if !needed.is_null() {
            // SAFETY: the caller's promise.
            unsafe { boundary::write(needed, takes, "needed") }?;
        }
        if takes > size {
            let reason = format!("it takes {takes} bytes and there are {size}");
            return Err(Failure::invalid(attempted, reason));
        }
        check_array(text, size, "text")?;
        // SAFETY: `text` has `size` bytes by the caller's promise, one more at least than is copied.
        unsafe {
            written
                .as_ptr()
                .copy_to_nonoverlapping(text.cast(), written.len());
            text.add(written.len()).write(0);
        }
        Ok(())
    })
}
