//! The functions on event sets.

use std::ffi::{c_char, c_int, c_longlong};

use crate::boundary::call::{call, done};
use crate::boundary::inside::is_handling;
use crate::boundary::pointer::{caller_text, read, write};
use crate::code::{EINVAL, EISRUN, Outcome};
use crate::component::valid;
use crate::event::lookup::any_code_of;
use crate::event_set::set::Set;
use crate::event_set::sets::SETS;
use crate::library::LIBRARY;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_create_eventset(number: *mut c_int) -> c_int {
    done(|| {
        LIBRARY.require()?;
        // SAFETY: null, or the caller's number.
        if unsafe { read(number) }? != crate::abi::NULL {
            return Err(EINVAL);
        }
        if is_handling() {
            return Err(EISRUN);
        }
        let set = Set::for_this_thread()?;
        // SAFETY: as it was read.
        unsafe { write(number, SETS.insert(set)?) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_destroy_eventset(number: *mut c_int) -> c_int {
    done(|| {
        // SAFETY: null, or the caller's number.
        let at = unsafe { read(number) }?;
        SETS.with(at, |set| {
            set.require_stopped()?;
            match set.events.is_empty() {
                true => Ok(()),
                false => Err(EINVAL),
            }
        })?;
        SETS.remove(at);
        // SAFETY: as it was read.
        unsafe { write(number, crate::abi::NULL) }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_assign_eventset_component(number: c_int, component: c_int) -> c_int {
    done(|| {
        SETS.with(number, |set| {
            let component = valid(component)?;
            if set.component.is_some() {
                return Err(EINVAL);
            }
            set.assign(component);
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_eventset_component(number: c_int) -> c_int {
    call(|| {
        SETS.with(number, |set| {
            set.component().map(|component| component as c_int)
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_add_event(number: c_int, code: c_int) -> c_int {
    done(|| SETS.with(number, |set| set.add(code)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_remove_event(number: c_int, code: c_int) -> c_int {
    done(|| SETS.with(number, |set| set.remove(code)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_add_named_event(number: c_int, name: *const c_char) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(name) }?;
        LIBRARY.require()?;
        let code = any_code_of(&name)?;
        SETS.with(number, |set| set.add(code))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_remove_named_event(number: c_int, name: *const c_char) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(name) }?;
        LIBRARY.require()?;
        let code = any_code_of(&name)?;
        SETS.with(number, |set| set.remove(code))
    })
}

/// Returns the codes of an array, each read when it is asked for: an array may be shorter than the caller says if an event
/// of it is refused.
///
/// # Safety
/// `events` is null or points to as many codes, up to the last one that is asked for.
unsafe fn codes(events: *const c_int, length: c_int) -> Outcome<impl Iterator<Item = c_int>> {
    match usize::try_from(length) {
        Ok(length @ 1..) if !events.is_null() => {
            // SAFETY: the caller's promise.
            Ok((0..length).map(move |at| unsafe { events.add(at).read_unaligned() }))
        }
        _ => Err(EINVAL),
    }
}

/// Returns 0 if something was done with all events, the code of the refusal if with none, and else the number.
fn how_many((done, outcome): (usize, Outcome)) -> Outcome<c_int> {
    match (done, outcome) {
        (_, Ok(())) => Ok(0),
        (0, Err(code)) => Err(code),
        (done, Err(_)) => Ok(c_int::try_from(done).unwrap_or(c_int::MAX)),
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_add_events(
    number: c_int,
    events: *mut c_int,
    length: c_int,
) -> c_int {
    call(|| {
        // SAFETY: the caller's array is as long as it says.
        let codes = unsafe { codes(events, length) }?;
        SETS.with(number, |set| how_many(set.add_all(codes)))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_remove_events(
    number: c_int,
    events: *mut c_int,
    length: c_int,
) -> c_int {
    call(|| {
        // SAFETY: the caller's array is as long as it says.
        let codes = unsafe { codes(events, length) }?;
        SETS.with(number, |set| how_many(set.remove_all(codes)))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_cleanup_eventset(number: c_int) -> c_int {
    done(|| SETS.with(number, Set::clean_up))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_num_events(number: c_int) -> c_int {
    call(|| SETS.with(number, |set| Ok(set.events.len() as c_int)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_list_events(
    number: c_int,
    events: *mut c_int,
    length: *mut c_int,
) -> c_int {
    done(|| {
        // SAFETY: null, or the caller's number.
        let room = unsafe { read(length) }?;
        if room < 0 || (events.is_null() && room > 0) {
            return Err(EINVAL);
        }
        SETS.with(number, |set| {
            let mut written = set.events.len();
            if !events.is_null() && room > 0 {
                written = written.min(room as usize);
                // SAFETY: the array has room for as many as the caller says.
                unsafe { events.copy_from_nonoverlapping(set.events.as_ptr(), written) };
            }
            // SAFETY: as it was read.
            unsafe { write(length, written as c_int) }
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_start(number: c_int) -> c_int {
    done(|| SETS.with(number, |set| set.start(number)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_stop(number: c_int, values: *mut c_longlong) -> c_int {
    done(|| {
        SETS.with(number, |set| {
            set.overflow.disarm();
            let stopped = set.stop();
            if !values.is_null() && !set.is_running() {
                let last = set.last_values();
                // SAFETY: the caller's array has an element for each event of the set.
                unsafe { values.copy_from_nonoverlapping(last.as_ptr(), last.len()) };
            }
            stopped
        })
    })
}

/// Writes the values of a set.
///
/// # Safety
/// `values` is null or has an element for each event of the set.
unsafe fn read_into(set: &mut Set, values: *mut c_longlong) -> Outcome {
    set.component()?;
    if values.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { set.read_into(values) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_read(number: c_int, values: *mut c_longlong) -> c_int {
    // SAFETY: the caller's array has an element for each event of the set.
    done(|| SETS.with(number, |set| unsafe { read_into(set, values) }))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_read_ts(
    number: c_int,
    values: *mut c_longlong,
    cycles: *mut c_longlong,
) -> c_int {
    done(|| {
        SETS.with(number, |set| {
            // SAFETY: the caller's array has an element for each event of the set.
            unsafe { read_into(set, values) }?;
            // SAFETY: null, or the caller's to be written.
            unsafe { write(cycles, crate::machine::clock::real_cycles()) }
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_accum(number: c_int, values: *mut c_longlong) -> c_int {
    done(|| {
        SETS.with(number, |set| {
            set.component()?;
            if values.is_null() {
                return Err(EINVAL);
            }
            for (at, value) in set.values()?.iter().enumerate() {
                // SAFETY: not null, and the caller's array has an element for each event of the set.
                let sum = unsafe { &mut *values.add(at) };
                *sum = sum.wrapping_add(*value);
            }
            set.reset()
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_reset(number: c_int) -> c_int {
    done(|| SETS.with(number, Set::reset))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_write(number: c_int, values: *mut c_longlong) -> c_int {
    done(|| {
        SETS.with(number, |set| {
            set.component()?;
            match values.is_null() {
                true => Err(EINVAL),
                false => set.write(),
            }
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_state(number: c_int, state: *mut c_int) -> c_int {
    done(|| {
        if state.is_null() {
            return Err(EINVAL);
        }
        let now = SETS.with(number, |set| Ok(set.state))?;
        // SAFETY: not null, and the caller's to be written.
        unsafe { write(state, now) }
    })
}
