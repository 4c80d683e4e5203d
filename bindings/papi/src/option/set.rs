//! Setting options.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use crate::abi::PapiOption;
use crate::boundary::call::{DEBUG_HANDLER, DEBUG_LEVEL};
use crate::boundary::pointer::read;
use crate::code::{ECMP, EINVAL, EINVAL_DOM, ENOSUPP, Outcome};
use crate::component::{DEFAULTS, DOM_ALL, GRN_SYS, GRN_THR, domains, granularities, valid};
use crate::event_set::set::{ATTACHED, CPU_ATTACHED, MULTIPLEXING, Multiplexing, Set};
use crate::event_set::sets::SETS;
use crate::library::{ITIMER, LIBRARY};
use crate::option::number::{
    ATTACH, CPU_ATTACH, DATA_ADDRESS, DEBUG, DEF_ITIMER, DEF_ITIMER_NS, DEF_MPX_NS, DEFDOM, DEFGRN,
    DETACH, DOMAIN, GRANUL, INHERIT, INSTR_ADDRESS, MULTIPLEX, USER_EVENTS_FILE,
};

const GRN_MAX: c_int = 0x10;

/// Sets an option.
///
/// # Safety
/// `pointer` is null or points to the member that the option is of, which may be written.
pub(super) unsafe fn set(option: c_int, pointer: *mut PapiOption) -> Outcome {
    if option != DEBUG {
        LIBRARY.require()?;
    }
    if pointer.is_null() {
        return Err(EINVAL);
    }
    /// Reads a member of the caller's union.
    macro_rules! member {
        ($name:ident) => {
            // SAFETY: the caller's promise; any bytes are a value of the member.
            unsafe { read(&raw const (*pointer).$name) }?
        };
    }
    match option {
        DETACH => {
            let attach = member!(attach);
            SETS.with(attach.eventset, |set| {
                changeable(set, CPU_ATTACHED)?;
                if set.state & ATTACHED == 0 {
                    return Err(EINVAL);
                }
                set.change(|set| {
                    set.attached = 0;
                    set.state &= !ATTACHED;
                })
            })
        }
        ATTACH => {
            let attach = member!(attach);
            SETS.with(attach.eventset, |set| {
                set.component()?;
                set.require_stopped()?;
                if set.state & ATTACHED != 0 {
                    return Err(EINVAL);
                }
                changeable(set, CPU_ATTACHED)?;
                set.change(|set| {
                    set.attached = attach.tid;
                    set.state |= ATTACHED;
                })
            })
        }
        CPU_ATTACH => {
            let cpu = member!(cpu);
            SETS.with(cpu.eventset, |set| {
                set.component()?;
                if set.state & ATTACHED != 0 {
                    return Err(EINVAL);
                }
                set.require_stopped()?;
                set.change(|set| {
                    set.cpu = Some(cpu.cpu_num);
                    set.state |= CPU_ATTACHED;
                })
            })
        }
        // An interval for each set is not offered.
        DEF_MPX_NS => match member!(multiplex).ns {
            ..0 => Err(EINVAL),
            _ => Err(ENOSUPP),
        },
        DEF_ITIMER | DEF_ITIMER_NS => {
            let itimer = member!(itimer);
            if itimer.ns < 0 {
                return Err(EINVAL);
            }
            if option == DEF_ITIMER {
                ITIMER[0].store(itimer.itimer_num, Relaxed);
                ITIMER[1].store(itimer.itimer_sig, Relaxed);
            }
            if option == DEF_ITIMER_NS || itimer.ns > 0 {
                ITIMER[2].store(itimer.ns, Relaxed);
            }
            Ok(())
        }
        MULTIPLEX => {
            let multiplex = member!(multiplex);
            SETS.with(multiplex.eventset, |set| {
                set.component()?;
                set.require_stopped()?;
                if set.state & MULTIPLEXING != 0 || multiplex.ns < 0 {
                    return Err(EINVAL);
                }
                set.change(|set| {
                    set.multiplexing = Multiplexing {
                        ns: multiplex.ns,
                        flags: multiplex.flags,
                    };
                    set.state |= MULTIPLEXING;
                })
            })
        }
        DEBUG => {
            let debug = member!(debug);
            if !(0..=2).contains(&debug.level) {
                return Err(EINVAL);
            }
            DEBUG_LEVEL.store(debug.level, Relaxed);
            DEBUG_HANDLER.store(debug.handler, Relaxed);
            Ok(())
        }
        DEFDOM => {
            let defaults = member!(scope);
            check_range(defaults.scope, DOM_ALL, EINVAL)?;
            let component = valid(defaults.def_cidx)?;
            let domain = domain_of(component, defaults.scope).ok_or(ENOSUPP)?;
            DEFAULTS[component].domain.store(domain, Relaxed);
            Ok(())
        }
        DOMAIN => {
            let domain = member!(scope);
            check_range(domain.scope, DOM_ALL, EINVAL_DOM)?;
            SETS.with(domain.eventset, |set| {
                let component = set.component()?;
                let domain = domain_of(component, domain.scope).ok_or(EINVAL_DOM)?;
                set.require_stopped()?;
                set.change(|set| set.domain = domain)
            })
        }
        DEFGRN => {
            let defaults = member!(scope);
            check_range(defaults.scope, GRN_MAX, EINVAL)?;
            let component = valid(defaults.def_cidx)?;
            one_granularity(component, defaults.scope)?;
            DEFAULTS[component]
                .granularity
                .store(defaults.scope, Relaxed);
            Ok(())
        }
        GRANUL => {
            let granularity = member!(scope);
            check_range(granularity.scope, GRN_MAX, EINVAL)?;
            SETS.with(granularity.eventset, |set| {
                one_granularity(set.component()?, granularity.scope)?;
                set.require_stopped()?;
                match granularity.scope {
                    GRN_THR | GRN_SYS => set.change(|set| set.granularity = granularity.scope),
                    _ => Err(ECMP),
                }
            })
        }
        INHERIT => {
            let inherit = member!(inherit);
            SETS.with(inherit.eventset, |set| {
                changeable(set, CPU_ATTACHED)?;
                set.change(|set| set.inherit = inherit.inherit)
            })
        }
        DATA_ADDRESS | INSTR_ADDRESS => {
            let range = member!(addr);
            SETS.with(range.eventset, |set| {
                set.component()?;
                set.require_stopped()
            })?;
            Err(ENOSUPP)
        }
        // PAPI takes it and reads nothing.
        USER_EVENTS_FILE => Ok(()),
        _ => Err(EINVAL),
    }
}

/// Returns a code unless the set has a component, has not the state, and is stopped.
fn changeable(set: &Set, state: c_int) -> Outcome {
    set.component()?;
    if set.state & state != 0 {
        return Err(ECMP);
    }
    set.require_stopped()
}

fn check_range(value: c_int, most: c_int, code: crate::code::ErrorCode) -> Outcome {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(code),
    }
}

/// Returns a domain as the component counts it; all domains are those that it has.
fn domain_of(component: usize, domain: c_int) -> Option<c_int> {
    let offered = domains(component);
    match domain {
        DOM_ALL => Some(offered),
        _ => (domain & !offered == 0).then_some(domain),
    }
}

fn one_granularity(component: usize, granularity: c_int) -> Outcome {
    let is_one = granularity.count_ones() == 1;
    match granularity & !granularities(component) == 0 && is_one {
        true => Ok(()),
        false => Err(EINVAL),
    }
}
