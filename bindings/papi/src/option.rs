//! Options: `PAPI_set_opt`, `PAPI_get_opt`, and the functions that are short for them.

mod get;
mod set;

use std::ffi::{c_int, c_ulong};
use std::sync::atomic::AtomicI32;

use crate::abi::{AttachOption, MultiplexOption, PapiOption, ScopeOption};
use crate::code::{Outcome, call, done};
use crate::component::CPU;
use crate::library::LIBRARY;

const DETACH: c_int = 1;
const DEBUG: c_int = 2;
const MULTIPLEX: c_int = 3;
pub(crate) const DEFDOM: c_int = 4;
pub(crate) const DOMAIN: c_int = 5;
pub(crate) const DEFGRN: c_int = 6;
pub(crate) const GRANUL: c_int = 7;
const DEF_MPX_NS: c_int = 8;
const MAX_MPX_CTRS: c_int = 11;
const PRELOAD: c_int = 13;
pub(crate) const CLOCKRATE: c_int = 14;
const MAX_HWCTRS: c_int = 15;
const HWINFO: c_int = 16;
pub(crate) const EXEINFO: c_int = 17;
const MAX_CPUS: c_int = 18;
const ATTACH: c_int = 19;
const SHLIBINFO: c_int = 20;
const LIB_VERSION: c_int = 21;
const COMPONENTINFO: c_int = 22;
const DATA_ADDRESS: c_int = 23;
const INSTR_ADDRESS: c_int = 24;
const DEF_ITIMER: c_int = 25;
const DEF_ITIMER_NS: c_int = 26;
const CPU_ATTACH: c_int = 27;
pub(crate) const INHERIT: c_int = 28;
const USER_EVENTS_FILE: c_int = 29;

/// The interval timer that software uses: its number, signal and nanoseconds.
pub(crate) static ITIMER: [AtomicI32; 3] = [
    AtomicI32::new(libc::ITIMER_PROF as c_int),
    AtomicI32::new(libc::SIGPROF),
    AtomicI32::new(10_000_000),
];

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

    let handler = crate::code::DEBUG_HANDLER.load(Relaxed);
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
        LIBRARY.with(eventset, |set| set.component().map(drop))?;
        set_own(MULTIPLEX, PapiOption { multiplex })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_multiplex(eventset: c_int) -> c_int {
    let is_multiplexed = |set: &mut crate::event_set::Set| {
        Ok(c_int::from(set.state & crate::event_set::MULTIPLEXING != 0))
    };
    call(|| LIBRARY.with(eventset, is_multiplexed)).max(0)
}
