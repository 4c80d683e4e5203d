//! Names to codes and back, of all events: presets, native ones and those of the user.

use std::ffi::{c_char, c_int};

use crate::abi::MAX_STR_LEN;
use crate::boundary::call::done;
use crate::boundary::pointer::{caller_text, write};
use crate::code::{EINVAL, Outcome};
use crate::component::CPU;
use crate::event::name::code_of;
use crate::event::native::{is_native, native};
use crate::event::{preset, user_events};
use crate::library::LIBRARY;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_event_name_to_code(name: *const c_char, code: *mut c_int) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(name) }?;
        if code.is_null() {
            return Err(EINVAL);
        }
        LIBRARY.require()?;
        let found = any_code_of(&name)?;
        // SAFETY: not null, and the caller's to be written.
        unsafe { write(code, found) }
    })
}

/// Returns the code of a preset, an event of the user's own or a native event by its name.
pub(crate) fn any_code_of(name: &str) -> Outcome<c_int> {
    match preset::code_of(name).or_else(|| user_events::code_of(name)) {
        Some(code) => Ok(code),
        None => code_of(name),
    }
}

/// Returns the name of an event by its code.
pub(crate) fn name_of(code: c_int) -> Outcome<String> {
    match is_native(code) {
        true => native(code, |native| native.name.clone()),
        false => match user_events::by_code(code) {
            Some(event) => Ok(event.name.clone()),
            None => preset::by_code(code).map(|(_, preset)| preset.to_owned()),
        },
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_event_code_to_name(code: c_int, out: *mut c_char) -> c_int {
    done(|| {
        if out.is_null() {
            return Err(EINVAL);
        }
        let name = name_of(code)?;
        let mut text = [0; MAX_STR_LEN];
        crate::boundary::pointer::put(&mut text, &name);
        let length = text.iter().position(|c| *c == 0).unwrap_or(MAX_STR_LEN - 1) + 1;
        // SAFETY: the caller's buffer takes a name and its NUL, of `PAPI_MAX_STR_LEN` at most.
        unsafe { out.copy_from_nonoverlapping(text.as_ptr(), length) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_event_component(code: c_int) -> c_int {
    crate::boundary::call::call(|| {
        let component = match preset::is_preset(code) || preset::is_user_defined(code) {
            true => CPU,
            false => native(code, |native| native.component)?,
        };
        Ok(component as c_int)
    })
}

/// Returns a code if there is no such event here.
pub(crate) fn query(code: c_int) -> Outcome {
    match is_native(code) {
        true => native(code, |_| ()),
        false if user_events::by_code(code).is_some() => Ok(()),
        false => match preset::by_code(code) {
            Ok((index, _)) => preset::query(index),
            Err(code) => Err(code),
        },
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_query_event(code: c_int) -> c_int {
    done(|| query(code))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_query_named_event(name: *const c_char) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(name) }?;
        LIBRARY.require()?;
        query(any_code_of(&name)?)
    })
}
