//! A CPU of the event database, described for C.

use std::ffi::{CString, c_char};

use quipu_events::CpuTable;
use quipu_hal::{CpuIdentity, Scheme, SlotClass};

use crate::boundary::{self, Versioned};
use crate::failure::{pointer, text};

/// The scheme in which a CPU's events are encoded.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_scheme {
    /// None that this version of the header knows.
    QUIPU_SCHEME_OTHER = 0,
    /// Pentium: two 9-bit functions in one register.
    QUIPU_SCHEME_P5 = 1,
    /// Pentium Pro to Pentium III and their like.
    QUIPU_SCHEME_P6 = 2,
    /// Intel architectural performance monitoring.
    QUIPU_SCHEME_INTEL = 3,
    /// AMD K7 and K8: 8-bit events.
    QUIPU_SCHEME_AMD_K7 = 4,
    /// AMD family 10h and later: 12-bit events.
    QUIPU_SCHEME_AMD_10H = 5,
    /// ARMv8 PMUv3.
    QUIPU_SCHEME_ARMV8 = 6,
}

/// A CPU of the database. Set `size` first (QUIPU_INIT). Texts stay until the handle that was asked is
/// closed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_cpu_info {
    /// sizeof (quipu_cpu_info).
    pub size: usize,
    /// Its id in the database: "intel-p5".
    pub id: *const c_char,
    /// Its name for people.
    pub name: *const c_char,
    /// The vendor as CPUID says it: "GenuineIntel"; null for what is not x86.
    pub vendor: *const c_char,
    /// The core type on a hybrid CPU: "core", "atom"; else null.
    pub core_type: *const c_char,
    /// The source of the facts about its events.
    pub source: *const c_char,
    /// The main id register (MIDR_EL1); 0 for what is not ARM.
    pub midr: u64,
    /// x86: family, with the extended one added in.
    pub family: u32,
    /// x86: model, with the extended one added in.
    pub model: u32,
    /// x86: stepping.
    pub stepping: u32,
    /// The encoding of its events: a quipu_scheme.
    pub scheme: u32,
    /// The number of counters that take any event, and their width in bits; 0 if it is not known.
    pub general_counters: u32,
    /// See general_counters.
    pub general_width: u32,
    /// The number of counters that are for one event each, and their width in bits.
    pub fixed_counters: u32,
    /// See fixed_counters.
    pub fixed_width: u32,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_cpu_info {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

/// A CPU with its texts.
pub(crate) struct Described {
    pub(crate) info: quipu_cpu_info,
    /// The texts that the pointers point to.
    _texts: [Option<CString>; 5],
}

// SAFETY: its pointers are to its own texts, which are never changed.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

impl Described {
    pub(crate) fn new(table: &CpuTable) -> Self {
        let model = table.model();
        let mut info: quipu_cpu_info = boundary::zeroed();
        let vendor = match &model.identity {
            CpuIdentity::X86 {
                vendor,
                family,
                model,
                stepping,
            } => {
                info.family = (*family).into();
                info.model = (*model).into();
                info.stepping = (*stepping).into();
                Some(text(vendor))
            }
            CpuIdentity::Arm { midr } => {
                info.midr = *midr;
                None
            }
            _ => None,
        };
        for bank in &model.counters {
            let (number, width) = (bank.number.into(), bank.width.into());
            match bank.class {
                SlotClass::General => (info.general_counters, info.general_width) = (number, width),
                SlotClass::Fixed => (info.fixed_counters, info.fixed_width) = (number, width),
                _ => {}
            }
        }
        info.scheme = scheme(table.scheme()) as u32;
        let texts = [
            Some(text(table.id())),
            Some(text(table.name())),
            vendor,
            model.core_type.as_deref().map(text),
            Some(text(table.source())),
        ];
        [info.id, info.name, info.vendor, info.core_type, info.source] =
            texts.each_ref().map(|text| pointer(text.as_ref()));
        Self {
            info,
            _texts: texts,
        }
    }
}

fn scheme(scheme: Scheme) -> quipu_scheme {
    match scheme {
        Scheme::P5 => quipu_scheme::QUIPU_SCHEME_P5,
        Scheme::P6 => quipu_scheme::QUIPU_SCHEME_P6,
        Scheme::IntelArchitectural => quipu_scheme::QUIPU_SCHEME_INTEL,
        Scheme::AmdK7 => quipu_scheme::QUIPU_SCHEME_AMD_K7,
        Scheme::Amd10h => quipu_scheme::QUIPU_SCHEME_AMD_10H,
        Scheme::Armv8 => quipu_scheme::QUIPU_SCHEME_ARMV8,
        _ => quipu_scheme::QUIPU_SCHEME_OTHER,
    }
}
