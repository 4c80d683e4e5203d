//! Intel's architectural events, which CPUID leaf 0xA lists one by one.
//!
//! Intel SDM volume 3, "Pre-defined Architectural Performance Events"; volume 2, CPUID leaf 0xA, EBX
//! and EAX bits 24-31.

use quipu_events_format::Bits;

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

/// The architectural events that a CPU lists in CPUID leaf 0xA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ArchitecturalEvents {
    /// The number of events it lists (leaf 0xA, EAX bits 24-31).
    pub listed: u8,
    /// Bit n: the n-th is not available (EBX).
    pub unavailable: u32,
}

impl ArchitecturalEvents {
    /// Returns the bits of EBX that are defined.
    fn known(self) -> u32 {
        1_u32
            .checked_shl(self.listed.into())
            .map_or(u32::MAX, |bit| bit - 1)
    }

    /// Returns the events that cannot be counted. On a CPU whose own events are not known (`only_these`),
    /// those that it does not list cannot be counted either.
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
    /// Returns the reason why the event of these bits, counted with a general counter, cannot be counted.
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
