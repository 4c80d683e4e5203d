//! Identification of an x86 CPU and its counters by CPUID.
//!
//! Intel SDM volume 2, "CPUID", leaves 0, 1, 0xA and 0x1A; AMD APM volume 3, functions 8000_0001 and
//! 8000_0022.

use quipu_events_format::isa_of;
use quipu_hal::{CounterBank, CpuIdentity, SlotClass};

use super::{ArchitecturalEvents, Core, bank};

/// The four registers of one CPUID leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuidLeaf {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

/// Returns the CPU this runs on.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub(super) fn this_cpu() -> Option<Core> {
    from_cpuid(|leaf, subleaf| {
        let registers = raw_cpuid::native_cpuid::cpuid_count(leaf, subleaf);
        CpuidLeaf {
            eax: registers.eax,
            ebx: registers.ebx,
            ecx: registers.ecx,
            edx: registers.edx,
        }
    })
}

/// Returns `None`: this architecture has no CPUID.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub(super) fn this_cpu() -> Option<Core> {
    None
}

/// Returns a core as its CPUID leaves describe it; `leaf` reads one by leaf and subleaf.
///
/// `None` when leaf 1 does not exist.
pub fn from_cpuid(leaf: impl Fn(u32, u32) -> CpuidLeaf) -> Option<Core> {
    let first = leaf(0, 0);
    if first.eax < 1 {
        return None;
    }
    let mut vendor = Vec::new();
    for register in [first.ebx, first.edx, first.ecx] {
        vendor.extend(register.to_le_bytes());
    }
    let vendor = String::from_utf8_lossy(&vendor).into_owned();
    let mut core = Core::new(from_signature(&vendor, leaf(1, 0).eax));
    if vendor == "GenuineIntel" {
        if first.eax >= 0xa {
            let perfmon = leaf(0xa, 0);
            core.perfmon_version = perfmon.eax as u8;
            core.counters = intel_counters(perfmon);
            core.architectural_events = ArchitecturalEvents {
                listed: (perfmon.eax >> 24) as u8,
                unavailable: perfmon.ebx,
            };
        }
        // Leaf 7, EDX bit 15: a hybrid part.
        if first.eax >= 0x1a && leaf(7, 0).edx & (1 << 15) != 0 {
            let native = leaf(0x1a, 0).eax;
            core.core_type = match native >> 24 {
                0x20 => Some("atom".to_owned()),
                0x40 => Some("core".to_owned()),
                _ => None,
            };
            core.native_model = core.core_type.is_some().then_some(native & 0xff_ffff);
        }
    } else if vendor == "AuthenticAMD" || vendor == "HygonGenuine" {
        let extended = leaf(0x8000_0000, 0).eax;
        if extended >= 0x8000_0022 && leaf(0x8000_0022, 0).eax & 1 != 0 {
            core.perfmon_version = 2;
        }
        core.counters = amd_counters(extended, &leaf);
    }
    Some(core)
}

fn intel_counters(perfmon: CpuidLeaf) -> Vec<CounterBank> {
    let byte = |word: u32, shift: u32| word >> shift & 0xff;
    let general = bank(
        SlotClass::General,
        byte(perfmon.eax, 8),
        byte(perfmon.eax, 16),
    );
    let fixed = match byte(perfmon.eax, 0) {
        0 | 1 => None,
        _ => {
            // From version 5 on ECX lists the fixed counters one by one.
            let listed = 32 - perfmon.ecx.leading_zeros();
            let number = (perfmon.edx & 0x1f).max(listed);
            bank(SlotClass::Fixed, number, byte(perfmon.edx, 5))
        }
    };
    general.into_iter().chain(fixed).collect()
}

fn amd_counters(extended: u32, leaf: &impl Fn(u32, u32) -> CpuidLeaf) -> Vec<CounterBank> {
    const WIDTH: u32 = 48;
    // Function 8000_0001, ECX bit 23: six core counters.
    let mut number = if extended >= 0x8000_0001 && leaf(0x8000_0001, 0).ecx & (1 << 23) != 0 {
        6
    } else {
        4
    };
    // Function 8000_0022, EAX bit 0: version 2, with the number in EBX bits 0-3.
    if extended >= 0x8000_0022 {
        let perfmon = leaf(0x8000_0022, 0);
        if perfmon.eax & 1 != 0 {
            number = perfmon.ebx & 0xf;
        }
    }
    bank(SlotClass::General, number, WIDTH)
        .into_iter()
        .collect()
}

/// Returns an identity from the vendor and the signature in EAX of CPUID leaf 1 (OpenBSD's `machdep.cpuvendor`
/// and `machdep.cpuid`).
pub fn from_signature(vendor: &str, signature: u32) -> CpuIdentity {
    let base_family = signature >> 8 & 0xf;
    let family = match base_family {
        0xf => base_family + (signature >> 20 & 0xff),
        _ => base_family,
    };
    let base_model = signature >> 4 & 0xf;
    let model = match base_family {
        0x6 | 0xf => base_model | (signature >> 12 & 0xf0),
        _ => base_model,
    };
    CpuIdentity::X86 {
        vendor: vendor.to_owned(),
        family: family as u16,
        model: model as u16,
        stepping: (signature & 0xf) as u8,
    }
}

/// Returns an identity from its text, family in decimal, model and stepping in hexadecimal:
/// `GenuineIntel-6-8F-8`, as Linux's perf writes it; or a main id register, `0x00000000410fd0c0`; or an architecture
/// and the text of perf's for it, `powerpc 0x004e1202`.
pub fn from_text(text: &str) -> Option<CpuIdentity> {
    if let Some((isa, id)) = text.split_once(' ') {
        let scheme = isa_of(isa)?;
        let id = id.to_owned();
        return Some(CpuIdentity::Other { scheme, id });
    }
    if let Some(digits) = text.strip_prefix("0x") {
        let midr = u64::from_str_radix(digits, 16).ok()?;
        return Some(CpuIdentity::Arm { midr });
    }
    let mut parts = text.split('-');
    let vendor = parts.next().filter(|vendor| !vendor.is_empty())?;
    let family = parts.next()?.parse().ok()?;
    let model = u16::from_str_radix(parts.next()?, 16).ok()?;
    let stepping = match parts.next() {
        Some(digits) => u8::from_str_radix(digits, 16).ok()?,
        None => 0,
    };
    parts.next().is_none().then(|| CpuIdentity::X86 {
        vendor: vendor.to_owned(),
        family,
        model,
        stepping,
    })
}
