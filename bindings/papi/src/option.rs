//! Options: `PAPI_set_opt`, `PAPI_get_opt`, and the functions that are short for them.

use std::ffi::{c_int, c_ulong};

use crate::abi::{AttachOption, MultiplexOption, PapiOption, ScopeOption};
use crate::boundary::call::{call, done};
use crate::code::Outcome;
use crate::component::CPU;
use crate::event_set::sets::SETS;
use crate::library::ITIMER;
use number::{ATTACH, DEBUG, DEFDOM, DEFGRN, DETACH, MULTIPLEX};

mod get;
pub(crate) mod number;
mod set;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_opt(option: c_int, pointer: *mut PapiOption) -> c_int {
    // SAFETY: the caller's pointer is null or to what the option is of.
    done(|| unsafe { set::set(option, pointer) })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_opt(option: c_int, pointer: *mut PapiOption) -> c_int {
    // SAFETY: the caller's pointer is null or to what the option is of.
    call(|| unsafe { get::get(option, pointer) })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_cmp_opt(
    option: c_int,
    pointer: *mut PapiOption,
    component: c_int,
) -> c_int {
    // SAFETY: the caller's pointer is null or to what the option is of.
    call(|| unsafe { get::of_component(option, pointer, component) })
}

/// Sets an option from a struct of this library's own.
fn set_own(option: c_int, mut value: PapiOption) -> Outcome {
    // SAFETY: the value is one of the option's.
    unsafe { set::set(option, &raw mut value) }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_debug(level: c_int) -> c_int {
    use std::sync::atomic::Ordering::Relaxed;

    let handler = crate::boundary::call::DEBUG_HANDLER.load(Relaxed);
    let debug = crate::abi::DebugOption { level, handler };
    done(|| set_own(DEBUG, PapiOption { debug }))
}

fn scope(component: c_int, scope: c_int) -> PapiOption {
    PapiOption {
        scope: ScopeOption {
            def_cidx: component,
            eventset: crate::abi::NULL,
            scope,
        },
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_domain(domain: c_int) -> c_int {
    done(|| set_own(DEFDOM, scope(CPU as c_int, domain)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_cmp_domain(domain: c_int, component: c_int) -> c_int {
    done(|| set_own(DEFDOM, scope(component, domain)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_granularity(granularity: c_int) -> c_int {
    done(|| set_own(DEFGRN, scope(CPU as c_int, granularity)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_cmp_granularity(granularity: c_int, component: c_int) -> c_int {
    done(|| set_own(DEFGRN, scope(component, granularity)))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_attach(eventset: c_int, tid: c_ulong) -> c_int {
    let attach = AttachOption { eventset, tid };
    done(|| set_own(ATTACH, PapiOption { attach }))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_detach(eventset: c_int) -> c_int {
    let attach = AttachOption { eventset, tid: 0 };
    done(|| set_own(DETACH, PapiOption { attach }))
}

/// The kernel multiplexes by itself.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_multiplex_init() -> c_int {
    done(|| Ok(()))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_set_multiplex(eventset: c_int) -> c_int {
    use std::sync::atomic::Ordering::Relaxed;

    done(|| {
        let multiplex = MultiplexOption {
            eventset,
            ns: ITIMER[2].load(Relaxed),
            flags: 0,
        };
        SETS.with(eventset, |set| set.component().map(drop))?;
        set_own(MULTIPLEX, PapiOption { multiplex })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_multiplex(eventset: c_int) -> c_int {
    let is_multiplexed = |set: &mut crate::event_set::set::Set| {
        Ok(c_int::from(
            set.state & crate::event_set::set::MULTIPLEXING != 0,
        ))
    };
    call(|| SETS.with(eventset, is_multiplexed)).max(0)
}
