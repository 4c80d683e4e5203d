//! An event of the ARMv8 PMU: what goes into `PMEVTYPER<n>_EL0`.
//!
//! Arm Architecture Reference Manual (DDI 0487), `PMEVTYPER<n>_EL0`; Linux `include/linux/perf/arm_pmuv3.h`.

/// An event type register: the event in bits 0-15, and where it is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Armv8Event(
    /// The register's bits.
    pub u32,
);

impl Armv8Event {
    /// Do not count at EL1 (P, bit 31).
    pub const EXCLUDE_EL1: u32 = 1 << 31;
    /// Do not count at EL0 (U, bit 30).
    pub const EXCLUDE_EL0: u32 = 1 << 30;
    /// Count at EL2 (NSH, bit 27).
    pub const INCLUDE_EL2: u32 = 1 << 27;

    /// An event with no filter set.
    pub const fn new(event: u16) -> Self {
        Self(event as u32)
    }

    /// The same with filter bits set.
    #[must_use]
    pub const fn with_flags(self, flags: u32) -> Self {
        Self(self.0 | (flags & 0xff00_0000))
    }

    /// The event number.
    pub const fn event(self) -> u16 {
        self.0 as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_sit_above_the_event_number() {
        let event = Armv8Event::new(0x8031).with_flags(Armv8Event::EXCLUDE_EL1 | 0xff);
        assert_eq!(event.0, 0x8000_8031);
        assert_eq!(event.event(), 0x8031);
    }
}
