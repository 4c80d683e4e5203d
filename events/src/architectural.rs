//! Intel's architectural events: those that CPUID leaf 0xA speaks of one by one.
//!
//! Intel SDM volume 3, "Pre-defined Architectural Performance Events"; volume 2, CPUID leaf 0xA, EBX
//! and EAX bits 24-31.

use crate::source::model::Bits;

/// Name, event number and unit mask, in the order of the bits in EBX.
const EVENTS: [(&str, u16, u8); 13] = [
    ("core cycles", 0x3c, 0x00),
    ("instructions retired", 0xc0, 0x00),
    ("reference cycles", 0x3c, 0x01),
    ("last-level cache references", 0x2e, 0x4f),
    ("last-level cache misses", 0x2e, 0x41),
    ("branch instructions retired", 0xc4, 0x00),
    ("branch misses retired", 0xc5, 0x00),
    ("top-down slots", 0xa4, 0x01),
    ("top-down backend bound", 0xa4, 0x02),
    ("top-down bad speculation", 0x73, 0x00),
    ("top-down frontend bound", 0x9c, 0x01),
    ("top-down retiring", 0xc2, 0x02),
    ("last branch record inserts", 0xe4, 0x01),
];

/// What a CPU says of its architectural events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArchitecturalEvents {
    /// How many of them it speaks of (leaf 0xA, EAX bits 24-31).
    pub listed: u8,
    /// Bit n: the n-th is not available (EBX).
    pub unavailable: u32,
}

impl ArchitecturalEvents {
    /// The bits of EBX that say something.
    fn known(self) -> u32 {
        1_u32
            .checked_shl(self.listed.into())
            .map_or(u32::MAX, |bit| bit - 1)
    }

    /// Those that cannot be counted. Of a CPU whose own events are not known (`only_these`), those it
    /// does not speak of cannot either.
    pub(crate) fn refused(self, only_these: bool) -> Refused {
        let known = self.known();
        Refused {
            bits: self.unavailable & known | if only_these { !known } else { 0 },
        }
    }
}

/// Architectural events that cannot be counted on a CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Refused {
    bits: u32,
}

impl Refused {
    /// Why the event of these bits, counted with a general counter, cannot be counted.
    pub(crate) fn reason(self, bits: Bits) -> Option<String> {
        if self.bits == 0 {
            return None;
        }
        let at = EVENTS
            .iter()
            .position(|&(_, code, mask)| (code, mask) == (bits.code, bits.unit_mask))?;
        (self.bits >> at & 1 == 1).then(|| {
            format!(
                "the CPU says that it does not count {} (CPUID leaf 0xA, EBX bit {at})",
                EVENTS[at].0
            )
        })
    }
}
