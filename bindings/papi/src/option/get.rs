//! Getting options.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering::Relaxed;

use crate::abi::{DebugOption, ItimerOption, PapiOption, PreloadInfo};
use crate::boundary::call::{DEBUG_HANDLER, DEBUG_LEVEL};
use crate::boundary::pointer::{put, read, write};
use crate::code::{ECMP, EINVAL, OK, Outcome};
use crate::component;
use crate::component::{CPU, DEFAULTS};
use crate::event_set::set::{ATTACHED, CPU_ATTACHED, MULTIPLEXING, Set};
use crate::event_set::sets::SETS;
use crate::library::{ITIMER, LIBRARY};
use crate::machine::{executable, hardware};
use crate::option::number::{
    ATTACH, CLOCKRATE, COMPONENTINFO, CPU_ATTACH, DEBUG, DEF_ITIMER, DEF_ITIMER_NS, DEF_MPX_NS,
    DEFDOM, DEFGRN, DETACH, DOMAIN, EXEINFO, GRANUL, HWINFO, INHERIT, LIB_VERSION, MAX_CPUS,
    MAX_HWCTRS, MAX_MPX_CTRS, MULTIPLEX, PRELOAD, SHLIBINFO,
};

/// Gets an option: writes it, or returns it.
///
/// # Safety
/// `pointer` is null or points to the member that the option is of, which may be written.
pub(super) unsafe fn get(option: c_int, pointer: *mut PapiOption) -> Outcome<c_int> {
    if option != DEBUG && option != LIB_VERSION {
        LIBRARY.require()?;
    }
    match option {
        LIB_VERSION => return Ok(LIBRARY.version()),
        CLOCKRATE => return Ok(hardware::max_mhz()),
        MAX_CPUS => return Ok(hardware::info().ncpu),
        MAX_HWCTRS | MAX_MPX_CTRS | DEFDOM | DEFGRN | SHLIBINFO | COMPONENTINFO => {
            // SAFETY: the caller's promise.
            return unsafe { of_component(option, pointer, CPU as c_int) };
        }
        _ => {}
    }
    if pointer.is_null() {
        return Err(EINVAL);
    }
    /// Writes a field of a member of the caller's union.
    macro_rules! fill {
        ($($path:ident).+ = $value:expr) => {
            // SAFETY: the caller's promise.
            unsafe { write(&raw mut (*pointer).$($path).+, $value) }
        };
    }
    match option {
        DETACH | ATTACH | CPU_ATTACH | MULTIPLEX | INHERIT | GRANUL | DOMAIN => {
            // SAFETY: the caller's promise.
            return unsafe { of_set(option, pointer) };
        }
        DEF_MPX_NS => fill!(multiplex.ns = ITIMER[2].load(Relaxed))?,
        DEF_ITIMER_NS => fill!(itimer.ns = ITIMER[2].load(Relaxed))?,
        DEF_ITIMER => fill!(
            itimer = ItimerOption {
                itimer_num: ITIMER[0].load(Relaxed),
                itimer_sig: ITIMER[1].load(Relaxed),
                ns: ITIMER[2].load(Relaxed),
                flags: 0,
            }
        )?,
        PRELOAD => {
            let mut preload = PreloadInfo::zeroed();
            put(&mut preload.lib_preload_env, "LD_PRELOAD");
            preload.lib_preload_sep = b' ' as c_char;
            put(&mut preload.lib_dir_env, "LD_LIBRARY_PATH");
            preload.lib_dir_sep = b':' as c_char;
            fill!(preload = preload)?;
        }
        DEBUG => fill!(
            debug = DebugOption {
                level: DEBUG_LEVEL.load(Relaxed),
                handler: DEBUG_HANDLER.load(Relaxed),
            }
        )?,
        EXEINFO => fill!(exe_info = executable::info())?,
        HWINFO => fill!(hw_info = hardware::info())?,
        _ => return Err(EINVAL),
    }
    Ok(OK)
}

/// Gets an option of an event set.
///
/// # Safety
/// `pointer` points to the member that the option is of, which may be written.
unsafe fn of_set(option: c_int, pointer: *mut PapiOption) -> Outcome<c_int> {
    // The set's number is first in each of these, but in scopes.
    let number = match option {
        // SAFETY: the caller's promise.
        GRANUL | DOMAIN => unsafe { read(&raw const (*pointer).scope.eventset) }?,
        // SAFETY: as above.
        _ => unsafe { read(&raw const (*pointer).attach.eventset) }?,
    };
    let is = |set: &Set, state: c_int| c_int::from(set.state & state != 0);
    SETS.with(number, |set| {
        // SAFETY: the caller's promise.
        unsafe {
            match option {
                DETACH => {
                    write(&raw mut (*pointer).attach.tid, set.attached)?;
                    Ok(c_int::from(is(set, ATTACHED) == 0))
                }
                ATTACH => {
                    write(&raw mut (*pointer).attach.tid, set.attached)?;
                    Ok(is(set, ATTACHED))
                }
                CPU_ATTACH => {
                    let cpu: c_uint = set.cpu.unwrap_or(0);
                    write(&raw mut (*pointer).cpu.cpu_num, cpu)?;
                    Ok(is(set, CPU_ATTACHED))
                }
                MULTIPLEX => {
                    write(&raw mut (*pointer).multiplex.ns, set.multiplexing.ns)?;
                    write(&raw mut (*pointer).multiplex.flags, set.multiplexing.flags)?;
                    Ok(is(set, MULTIPLEXING))
                }
                INHERIT => {
                    write(&raw mut (*pointer).inherit.inherit, set.inherit)?;
                    Ok(OK)
                }
                GRANUL => {
                    write(&raw mut (*pointer).scope.scope, set.granularity)?;
                    Ok(OK)
                }
                _ => {
                    write(&raw mut (*pointer).scope.scope, set.domain)?;
                    Ok(OK)
                }
            }
        }
    })
}

/// Gets an option of a component: writes it, or returns it.
///
/// # Safety
/// As [`get`].
pub(super) unsafe fn of_component(
    option: c_int,
    pointer: *mut PapiOption,
    index: c_int,
) -> Outcome<c_int> {
    let component = component::valid(index).map_err(|_| ECMP)?;
    match option {
        MAX_HWCTRS => return Ok(component::info::counters(component)),
        MAX_MPX_CTRS => return Ok(component::multiplexed(component)),
        DEFDOM => return Ok(DEFAULTS[component].domain.load(Relaxed)),
        DEFGRN => return Ok(DEFAULTS[component].granularity.load(Relaxed)),
        _ => {}
    }
    if pointer.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: the caller's promise.
    unsafe {
        match option {
            SHLIBINFO => write(
                &raw mut (*pointer).shlib_info,
                executable::shared_libraries(),
            )?,
            COMPONENTINFO => write(
                &raw mut (*pointer).cmp_info,
                component::info::info(component),
            )?,
            _ => return Err(EINVAL),
        }
    }
    Ok(OK)
}
