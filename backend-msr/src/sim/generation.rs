//! The generations of counters, and how a CPU of each describes itself.

use quipu_hal::{CounterBank, CpuIdentity, CpuModel, Scheme, SlotClass};

use super::{Level, Stretch};
use crate::allow_list as bits;

/// A generation of x86 counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Generation {
    /// Pentium.
    P5,
    /// Pentium Pro to Pentium III.
    P6,
    /// Intel architectural performance monitoring, as CPUID leaf 0xA describes it.
    Intel {
        /// 1 to 6.
        version: u8,
        /// The number of general counters.
        general: u8,
        /// The number of fixed counters.
        fixed: u8,
        /// The width of both in bits.
        width: u8,
        /// True if counters can be written in their full width.
        full_width: bool,
    },
    /// AMD K7 and K8: four counters.
    AmdK7,
    /// AMD family 10h: four counters, events of twelve bits.
    Amd10h,
    /// AMD family 15h on: six core counters.
    Amd15h,
    /// AMD Zen 4 on: PerfMonV2.
    AmdPerfMonV2 {
        /// The number of core counters.
        counters: u8,
    },
}

impl Generation {
    /// One of each, with the counters that typical CPUs of it have.
    pub const ALL: &'static [Self] = &[
        Self::P5,
        Self::P6,
        Self::intel(1, 2, 0, 40, false),
        Self::intel(2, 2, 3, 40, false),
        Self::intel(3, 4, 3, 48, false),
        Self::intel(4, 8, 3, 48, true),
        Self::intel(5, 8, 4, 48, true),
        Self::intel(6, 10, 4, 48, true),
        Self::AmdK7,
        Self::Amd10h,
        Self::Amd15h,
        Self::AmdPerfMonV2 { counters: 6 },
    ];

    const fn intel(version: u8, general: u8, fixed: u8, width: u8, full_width: bool) -> Self {
        Self::Intel {
            version,
            general,
            fixed,
            width,
            full_width,
        }
    }

    /// Returns a short name: `p5`, `intel-v4`, `amd-15h`. Those in [`ALL`](Self::ALL) have different ones.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P5 => "p5",
            Self::P6 => "p6",
            Self::Intel { version, .. } => match version {
                1 => "intel-v1",
                2 => "intel-v2",
                3 => "intel-v3",
                4 => "intel-v4",
                5 => "intel-v5",
                _ => "intel-v6",
            },
            Self::AmdK7 => "amd-k7",
            Self::Amd10h => "amd-10h",
            Self::Amd15h => "amd-15h",
            Self::AmdPerfMonV2 { .. } => "amd-perfmonv2",
        }
    }

    /// Returns the model, as a database would describe it.
    pub fn model(self) -> CpuModel {
        let [vendor, family, model] = self.identity();
        let bank = |class, number, width| CounterBank {
            class,
            number,
            width,
        };
        let mut counters = vec![bank(SlotClass::General, self.general(), self.width())];
        if self.fixed() > 0 {
            counters.push(bank(SlotClass::Fixed, self.fixed(), self.width()));
        }
        CpuModel::new(
            CpuIdentity::X86 {
                vendor: if vendor == 0 {
                    "GenuineIntel"
                } else {
                    "AuthenticAMD"
                }
                .into(),
                family,
                model,
                stepping: 1,
            },
            match self {
                Self::P5 => Scheme::P5,
                Self::P6 => Scheme::P6,
                Self::Intel { .. } => Scheme::IntelArchitectural,
                Self::AmdK7 => Scheme::AmdK7,
                Self::Amd10h | Self::Amd15h | Self::AmdPerfMonV2 { .. } => Scheme::Amd10h,
            },
            counters,
        )
    }

    /// Vendor (0 Intel, 1 AMD), family, model.
    const fn identity(self) -> [u16; 3] {
        match self {
            Self::P5 => [0, 5, 4],
            Self::P6 => [0, 6, 8],
            Self::Intel { .. } => [0, 6, 0x55],
            Self::AmdK7 => [1, 0xf, 5],
            Self::Amd10h => [1, 0x10, 2],
            Self::Amd15h => [1, 0x15, 2],
            Self::AmdPerfMonV2 { .. } => [1, 0x19, 0x11],
        }
    }

    /// Returns the number of general counters.
    pub const fn general(self) -> u8 {
        match self {
            Self::P5 | Self::P6 => 2,
            Self::Intel { general, .. } => general,
            Self::AmdK7 | Self::Amd10h => 4,
            Self::Amd15h => 6,
            Self::AmdPerfMonV2 { counters } => counters,
        }
    }

    /// Returns the number of fixed counters.
    pub const fn fixed(self) -> u8 {
        match self {
            Self::Intel { fixed, .. } => fixed,
            _ => 0,
        }
    }

    /// Returns the width of the counters in bits.
    pub const fn width(self) -> u8 {
        match self {
            Self::P5 | Self::P6 => 40,
            Self::Intel { width, .. } => width,
            _ => 48,
        }
    }

    /// Returns the select bits of the event that occurs once in every cycle; `None` on the Pentium.
    pub const fn cycles(self) -> Option<u64> {
        match self {
            Self::P5 => None,
            Self::P6 => Some(0x79),
            Self::Intel { .. } => Some(0x3c),
            _ => Some(0x76),
        }
    }

    /// Returns the select bits of the event that counts instructions.
    pub const fn instructions(self) -> u64 {
        match self {
            Self::P5 => 0x16,
            _ => 0xc0,
        }
    }

    /// Returns the mask of the bits that select an event.
    pub(super) const fn event_bits(self) -> u64 {
        match self {
            Self::P5 => 0x3f,
            Self::Intel { version: 6.., .. } => 0xffff | 0xff << 40,
            Self::P6 | Self::Intel { .. } | Self::AmdK7 => 0xffff,
            _ => 0xffff | 0xf << 32,
        }
    }

    /// Returns the mask of the bits of a select register that are not reserved.
    pub(super) const fn select_bits(self) -> u64 {
        let pin_and_interrupt = 0x18_0000;
        let any_thread = 0x20_0000;
        let all = bits::SELECT_BITS | pin_and_interrupt;
        match self {
            Self::P5 | Self::P6 | Self::AmdK7 | Self::Intel { version: ..=2, .. } => all,
            Self::Intel { version: 6.., .. } => {
                all | any_thread | bits::EQUAL_BIT | bits::SECOND_UNIT_MASK_BITS
            }
            Self::Intel { .. } => all | any_thread,
            _ => all | bits::AMD_SELECT_BITS,
        }
    }

    /// Returns a short stretch of kernel code.
    pub(super) fn pulse(self) -> Stretch {
        Stretch::new(Level::Kernel, 1000).occurring(self.instructions(), 1)
    }

    /// Returns a CPUID leaf.
    pub(super) fn cpuid(self, leaf: u32, subleaf: u32) -> [u32; 4] {
        match (self, leaf, subleaf) {
            // Leaf 1 ECX bit 15: there is IA32_PERF_CAPABILITIES.
            (Self::Intel { version: 2.., .. }, 1, _) => [0, 0, 1 << 15, 0],
            (
                Self::Intel {
                    version,
                    general,
                    fixed,
                    width,
                    ..
                },
                0xa,
                _,
            ) => {
                let [version_, general, width_] = [version, general, width].map(u32::from);
                let fixed_mask = if version >= 5 { (1 << fixed) - 1 } else { 0 };
                let fixed_ = u32::from(fixed) | width_ << 5;
                let eax = version_ | general << 8 | width_ << 16 | 7 << 24;
                [eax, 0, fixed_mask, if version >= 2 { fixed_ } else { 0 }]
            }
            // Second unit mask, equality.
            (Self::Intel { version: 6.., .. }, 0x23, 0) => [0, 3, 0, 0],
            (Self::Amd15h | Self::AmdPerfMonV2 { .. }, 0x8000_0001, _) => [0, 0, 1 << 23, 0],
            (Self::AmdPerfMonV2 { counters }, 0x8000_0022, _) => [1, counters.into(), 0, 0],
            _ => [0; 4],
        }
    }
}
