//! The Pentium's 9-bit event function, half of the CESR (MSR 0x11).
//!
//! pctr(4) of OpenBSD/i386, "Pentium counters"; Intel SDM volume 3, "Performance Monitoring
//! (Pentium Processors)".

/// One counter's function: the event in bits 0-5, where it counts, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct P5Function(
    /// The nine bits.
    pub u16,
);

impl P5Function {
    /// Count in kernel mode, rings 0 to 2 (K).
    pub const KERNEL: u16 = 0x40;
    /// Count in user mode, ring 3 (U).
    pub const USER: u16 = 0x80;
    /// Count clocks while the condition holds, instead of events (C).
    pub const CLOCKS: u16 = 0x100;

    /// A function of an event (6 bits) with no flag set.
    pub const fn new(event: u8) -> Self {
        Self((event & 0x3f) as u16)
    }

    /// The same with flags set.
    #[must_use]
    pub const fn with_flags(self, flags: u16) -> Self {
        Self(self.0 | (flags & 0x1c0))
    }

    /// The event number.
    pub const fn event(self) -> u8 {
        (self.0 & 0x3f) as u8
    }

    /// The CESR for the functions of counter 0 (low half) and counter 1 (high half).
    pub const fn cesr(counter0: Self, counter1: Self) -> u32 {
        counter0.0 as u32 | ((counter1.0 as u32) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_functions_share_one_register() {
        let hits = P5Function::new(0x29).with_flags(P5Function::USER | P5Function::KERNEL);
        let stalls = P5Function::new(0x19).with_flags(P5Function::USER | P5Function::CLOCKS);
        assert_eq!((hits.0, stalls.0), (0xe9, 0x199));
        assert_eq!(P5Function::cesr(hits, stalls), 0x0199_00e9);
        assert_eq!(hits.event(), 0x29);
    }
}
