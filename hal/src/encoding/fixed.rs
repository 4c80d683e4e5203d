//! Intel's fixed-function counters: their index and the four control bits of each.
//!
//! Intel SDM volume 3, "Fixed-function Performance Counters" (`IA32_FIXED_CTR_CTRL`).

/// A fixed-function counter: it counts one event only, so its index is the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FixedCounter {
    /// Which counter: 0 instructions retired, 1 core cycles, 2 reference cycles, 3 top-down slots.
    pub index: u8,
    /// Its control bits: [`KERNEL`](Self::KERNEL), [`USER`](Self::USER) and so on.
    pub control: u8,
}

impl FixedCounter {
    /// Count in ring 0 (bit 0).
    pub const KERNEL: u8 = 1;
    /// Count in rings 1 to 3 (bit 1).
    pub const USER: u8 = 1 << 1;
    /// Count all threads of the core (bit 2).
    pub const ANY_THREAD: u8 = 1 << 2;
    /// Interrupt on overflow (bit 3).
    pub const INTERRUPT: u8 = 1 << 3;

    /// The control bits where this counter has them in `IA32_FIXED_CTR_CTRL`.
    pub const fn control_bits(self) -> u64 {
        ((self.control & 0xf) as u64) << (4 * (self.index & 0xf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_four_bits() {
        let cycles = FixedCounter {
            index: 1,
            control: FixedCounter::USER | FixedCounter::KERNEL,
        };
        assert_eq!(cycles.control_bits(), 0x30);
    }
}
