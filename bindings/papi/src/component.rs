//! Components: what counts, what each offers, and why one is disabled.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, OnceLock};

use quipu::{Machine, NativeEvents};

use crate::abi::{ComponentInfo, PartialComponentInfo, V7_2};
use crate::code::{
    Code, ECMP, ENOCMP, ENOINIT, Outcome, c_text, call, call_or, caller_text, done, put,
};
use crate::library::{LIBRARY, lock};
use crate::{enumerate, preset};

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

/// Bits of the flags of `PAPI_component_info_t`.
mod flag {
    /// The counters tell of overflows.
    #[cfg(target_os = "linux")]
    pub(super) const HARDWARE_INTERRUPT: u32 = 1;
    pub(super) const KERNEL_MULTIPLEX: u32 = 1 << 4;
    /// Counters are read without a system call.
    pub(super) const FAST_COUNTER_READ: u32 = 1 << 5;
    pub(super) const FAST_REAL_TIMER: u32 = 1 << 6;
    pub(super) const ATTACH: u32 = 1 << 8;
    /// Tells programs to stop and continue with ptrace(2) what they attach to, as PAPI's perf_event does.
    pub(super) const ATTACH_MUST_PTRACE: u32 = 1 << 9;
    pub(super) const UMASKS: u32 = 1 << 10;
    pub(super) const CPU: u32 = 1 << 11;
    pub(super) const INHERIT: u32 = 1 << 12;
}

/// Properties of a component that the program may change.
pub(crate) struct Defaults {
    pub(crate) domain: AtomicI32,
    pub(crate) granularity: AtomicI32,
    disabled: AtomicBool,
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

/// Returns the code and the reason of a component that is disabled.
pub(crate) fn disabled(component: usize) -> Option<(Code, String)> {
    if DEFAULTS[component].disabled.load(Ordering::Relaxed) {
        return Some((Code::new(1), "disabled by the program".to_owned()));
    }
    match component {
        CPU => {
            let missing = Machine::this().require().err();
            missing.map(|error| (ECMP, format!("{error:#}")))
        }
        UNCORE if enumerate::number_listed(UNCORE) == 0 => Some((
            ECMP,
            "there is no PMU of a unit outside of the cores".to_owned(),
        )),
        _ => None,
    }
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

/// Returns the number of counters: those of the CPU where they can be used, else as many events of the
/// operating system as there are, for which nothing is lacking.
pub(crate) fn counters(component: usize) -> c_int {
    if component != CPU {
        return 0;
    }
    if !preset::has_counters() {
        return clamp(enumerate::number_listed(CPU));
    }
    let tables = NativeEvents::this().tables().unwrap_or_default();
    let number = tables.first().map_or(4, |table| {
        table
            .model()
            .counters
            .iter()
            .map(|bank| usize::from(bank.number))
            .sum()
    });
    clamp(number)
}

fn clamp(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// The struct that tells of a component, in each version. Programs have its address, so that it is never freed.
struct Told(Box<(ComponentInfo, PartialComponentInfo)>);

// SAFETY: the pointers in it are to texts that live as long as the process and are only read.
unsafe impl Send for Told {}

/// Returns the address of what is told of a component, written anew, in the version that the program has asked for.
pub(crate) fn info(component: usize) -> *const c_void {
    static TOLD: [Mutex<Option<Told>>; COMPONENTS] = [const { Mutex::new(None) }; COMPONENTS];
    let mut told = lock(&TOLD[component]);
    let zeroed = || {
        Told(Box::new((
            ComponentInfo::zeroed(),
            PartialComponentInfo::zeroed(),
        )))
    };
    let (info, partial) = &mut *told.get_or_insert_with(zeroed).0;
    fill(info, component);
    match LIBRARY.version() {
        V7_2.. => {
            *partial = PartialComponentInfo::from(&*info);
            (&raw const *partial).cast()
        }
        _ => (&raw const *info).cast(),
    }
}

fn fill(info: &mut ComponentInfo, component: usize) {
    put(&mut info.name, name(component));
    put(&mut info.short_name, short_name(component));
    put(
        &mut info.description,
        match component {
            CPU => "Events of the CPU and of the operating system, by Quipu",
            UNCORE => "Events of units outside of the cores, by Quipu",
            _ => "The parts of the machine, by Quipu",
        },
    );
    put(&mut info.version, env!("CARGO_PKG_VERSION"));
    put(&mut info.support_version, env!("CARGO_PKG_VERSION"));
    let disabled = disabled(component);
    info.disabled = disabled.as_ref().map_or(0, |(code, _)| code.number());
    put(
        &mut info.disabled_reason,
        disabled.as_ref().map_or("", |(_, reason)| reason),
    );
    info.initialized = c_int::from(disabled.is_none());
    info.cmp_idx = clamp(component);
    info.num_cntrs = counters(component);
    info.default_domain = DEFAULTS[component].domain.load(Ordering::Relaxed);
    info.available_domains = domains(component);
    info.default_granularity = DEFAULTS[component].granularity.load(Ordering::Relaxed);
    info.available_granularities = granularities(component);
    if component == SYSDETECT {
        return;
    }
    info.num_mpx_cntrs = multiplexed(component);
    info.num_native_events = clamp(enumerate::number_listed(component));
    info.flags = flag::ATTACH | flag::CPU | flag::INHERIT | flag::KERNEL_MULTIPLEX;
    if component == CPU {
        info.num_preset_events = clamp(preset::available());
        info.flags |= flag::UMASKS | flag::ATTACH_MUST_PTRACE;
        #[cfg(target_os = "linux")]
        {
            info.flags |= flag::HARDWARE_INTERRUPT;
            info.hardware_intr_sig = crate::overflow::signal::number();
        }
        if preset::has_user_reads() {
            info.flags |= flag::FAST_COUNTER_READ;
        }
        if cfg!(target_arch = "x86_64") {
            info.flags |= flag::FAST_REAL_TIMER;
        }
        for (to, name) in info.pmu_names.iter_mut().zip(pmus()) {
            *to = name.as_ptr().cast_mut();
        }
    }
}

/// Returns the names of the PMUs that the CPU component counts with.
fn pmus() -> &'static [CString] {
    static PMUS: OnceLock<Vec<CString>> = OnceLock::new();
    PMUS.get_or_init(|| {
        let mut names = vec![c_text(crate::generalized::PMU)];
        if preset::has_counters() {
            for table in NativeEvents::this().tables().unwrap_or_default() {
                let known = crate::pmu_names::pmu_names(table.id()).last();
                names.push(c_text(known.copied().unwrap_or(table.id())));
            }
        }
        names
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_num_components() -> c_int {
    clamp(COMPONENTS)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_component_info(index: c_int) -> *const c_void {
    call_or(std::ptr::null(), || {
        valid(index).map_or(std::ptr::null(), info)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_component_index(text: *const c_char) -> c_int {
    call(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let text = unsafe { caller_text(text) }?;
        let found = (0..COMPONENTS).find(|component| name(*component) == text);
        found.map(clamp).ok_or(ENOCMP)
    })
}

fn disable(component: usize) -> Outcome {
    DEFAULTS[component].disabled.store(true, Ordering::Relaxed);
    Ok(())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_disable_component(index: c_int) -> c_int {
    done(|| match LIBRARY.is_initialized() {
        true => Err(ENOINIT),
        false => disable(valid(index)?),
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_disable_component_by_name(text: *const c_char) -> c_int {
    done(|| {
        if LIBRARY.is_initialized() {
            return Err(ENOINIT);
        }
        // SAFETY: null, or a text that ends with a NUL.
        let text = unsafe { caller_text(text) }?;
        let found = (0..COMPONENTS).find(|component| name(*component) == text);
        disable(found.ok_or(ENOCMP)?)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_num_cmp_hwctrs(index: c_int) -> c_int {
    call(|| valid(index).map(counters).map_err(|_| ECMP))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_num_hwctrs() -> c_int {
    call(|| Ok(counters(CPU)))
}
