//! Answers about components: `PAPI_component_info_t`, and the functions that disable one.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};

use quipu::NativeEvents;
use quipu::text::libpfm4;

use crate::abi::{ComponentInfo, PartialComponentInfo, V7_2};
use crate::boundary::call::{call, call_or, done};
#[cfg(target_os = "linux")]
use crate::boundary::inside::overflow_signal;
use crate::boundary::pointer::{c_text, caller_text, put};
use crate::code::{ECMP, ENOCMP, ENOINIT, Outcome};
use crate::component::disabled::disabled;
use crate::component::*;
use crate::event::list::number_listed;
use crate::event::preset;
use crate::library::{LIBRARY, lock};

/// Bits of the flags of `PAPI_component_info_t`.
mod flag {
    /// The counters report overflows.
    #[cfg(target_os = "linux")]
    pub(super) const HARDWARE_INTERRUPT: u32 = 1;
    pub(super) const KERNEL_MULTIPLEX: u32 = 1 << 4;
    /// Counters are read without a system call.
    pub(super) const FAST_COUNTER_READ: u32 = 1 << 5;
    pub(super) const FAST_REAL_TIMER: u32 = 1 << 6;
    pub(super) const ATTACH: u32 = 1 << 8;
    /// Asks programs to stop and continue with ptrace(2) what they attach to, as PAPI's perf_event does.
    pub(super) const ATTACH_MUST_PTRACE: u32 = 1 << 9;
    pub(super) const UMASKS: u32 = 1 << 10;
    pub(super) const CPU: u32 = 1 << 11;
    pub(super) const INHERIT: u32 = 1 << 12;
}

/// Returns the number of counters: those of the CPU where they can be used, else as many events of the
/// operating system as there are, for which nothing is lacking.
pub(crate) fn counters(component: usize) -> c_int {
    if component != CPU {
        return 0;
    }
    if !preset::has_counters() {
        return clamp(number_listed(CPU));
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

/// The struct that describes a component, in each version. Programs have its address, so that it is never freed.
struct PublishedInfo(Box<(ComponentInfo, PartialComponentInfo)>);

// SAFETY: the pointers in it are to texts that live as long as the process and are only read.
unsafe impl Send for PublishedInfo {}

/// Returns the address of the description of a component, up to date, in the version that the program has asked for.
pub(crate) fn info(component: usize) -> *const c_void {
    static PUBLISHED: [Mutex<Option<PublishedInfo>>; COMPONENTS] =
        [const { Mutex::new(None) }; COMPONENTS];
    let mut published = lock(&PUBLISHED[component]);
    let zeroed = || {
        PublishedInfo(Box::new((
            ComponentInfo::zeroed(),
            PartialComponentInfo::zeroed(),
        )))
    };
    let (info, partial) = &mut *published.get_or_insert_with(zeroed).0;
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
    info.num_native_events = clamp(number_listed(component));
    info.flags = flag::ATTACH | flag::CPU | flag::INHERIT | flag::KERNEL_MULTIPLEX;
    if component == CPU {
        info.num_preset_events = clamp(preset::available());
        info.flags |= flag::UMASKS | flag::ATTACH_MUST_PTRACE;
        #[cfg(target_os = "linux")]
        {
            info.flags |= flag::HARDWARE_INTERRUPT;
            info.hardware_intr_sig = overflow_signal();
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
        let mut names = vec![c_text(libpfm4::PMU)];
        if preset::has_counters() {
            for table in NativeEvents::this().tables().unwrap_or_default() {
                let known = table.pmu_names().last();
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
