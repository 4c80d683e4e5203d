//! Components: what counts, and what each offers.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32};

use crate::code::{ENOCMP, Outcome};

pub(crate) mod disabled;
pub(crate) mod info;

/// Counts threads, processes and CPUs: the events of cores and of the operating system.
pub(crate) const CPU: usize = 0;
/// Counts units outside of the cores.
pub(crate) const UNCORE: usize = 1;
/// Has no events, but says what the machine is made of.
pub(crate) const SYSDETECT: usize = 2;
/// The number of components.
pub(crate) const COMPONENTS: usize = 3;

pub(crate) const DOM_USER: c_int = 1;
pub(crate) const DOM_KERNEL: c_int = 2;
pub(crate) const DOM_SUPERVISOR: c_int = 8;
pub(crate) const DOM_ALL: c_int = 15;
pub(crate) const GRN_THR: c_int = 1;
pub(crate) const GRN_SYS: c_int = 8;

/// Returns the number of events that one multiplexed set may have.
pub(crate) const fn multiplexed(component: usize) -> c_int {
    match component {
        SYSDETECT => 0,
        _ => 384,
    }
}

/// Properties of a component that the program may change.
pub(crate) struct Defaults {
    pub(crate) domain: AtomicI32,
    pub(crate) granularity: AtomicI32,
    pub(crate) disabled: AtomicBool,
}

pub(crate) static DEFAULTS: [Defaults; COMPONENTS] = [
    defaults(DOM_USER, GRN_THR),
    defaults(DOM_ALL, GRN_SYS),
    defaults(0, 0),
];

const fn defaults(domain: c_int, granularity: c_int) -> Defaults {
    Defaults {
        domain: AtomicI32::new(domain),
        granularity: AtomicI32::new(granularity),
        disabled: AtomicBool::new(false),
    }
}

/// Returns the name of a component.
pub(crate) fn name(component: usize) -> &'static str {
    match component {
        CPU if cfg!(target_os = "linux") => "perf_event",
        CPU if cfg!(target_os = "openbsd") => "pctr",
        CPU => "posix",
        UNCORE => "perf_event_uncore",
        _ => "sysdetect",
    }
}

/// Returns the component that a name's prefix stands for: its name or its short name.
pub(crate) fn component_of_prefix(prefix: &str) -> Option<usize> {
    let is = |component: &usize| prefix == name(*component) || prefix == short_name(*component);
    (0..COMPONENTS).find(is)
}

fn short_name(component: usize) -> &'static str {
    match component {
        CPU if cfg!(target_os = "linux") => "perf",
        UNCORE => "peu",
        other => name(other),
    }
}

/// Returns a component by its index.
pub(crate) fn valid(index: c_int) -> Outcome<usize> {
    usize::try_from(index)
        .ok()
        .filter(|index| *index < COMPONENTS)
        .ok_or(ENOCMP)
}

/// Returns the domains that a component counts.
pub(crate) fn domains(component: usize) -> c_int {
    match component {
        CPU => DOM_USER | DOM_KERNEL | DOM_SUPERVISOR,
        UNCORE => DOM_ALL,
        _ => 0,
    }
}

/// Returns the granularities that a component offers.
pub(crate) fn granularities(component: usize) -> c_int {
    match component {
        CPU => GRN_THR | GRN_SYS,
        UNCORE => GRN_SYS,
        _ => 0,
    }
}
