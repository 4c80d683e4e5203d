//! The layout of the simulated select registers, and so of [`Encoding::Simulated`](quipu_hal::Encoding).

use quipu_hal::Filter;

/// The contents of a simulated select register: the event in bits 0 to 31, and a bit each for
/// leaving out user mode (32) and kernel mode (33), so that an event's number alone counts it
/// everywhere. 0 is no event.
///
/// Exhaustive: it is the layout of a register of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SimSelect {
    /// The event's number.
    pub event: u32,
    /// Set to count in user mode.
    pub user: bool,
    /// Set to count in kernel mode.
    pub kernel: bool,
}

impl SimSelect {
    const NO_USER: u64 = 1 << 32;
    const NO_KERNEL: u64 = 1 << 33;

    /// Returns an event counted everywhere.
    pub const fn new(event: u32) -> Self {
        Self {
            event,
            user: true,
            kernel: true,
        }
    }

    /// Sets the modes to those of a filter.
    #[must_use]
    pub const fn filtered(mut self, filter: Filter) -> Self {
        self.user = filter.contains(Filter::USER);
        self.kernel = filter.contains(Filter::KERNEL);
        self
    }

    /// Decodes the bits of a register; bits from 34 on are ignored.
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            event: bits as u32,
            user: bits & Self::NO_USER == 0,
            kernel: bits & Self::NO_KERNEL == 0,
        }
    }

    /// Returns the bits of the register.
    pub const fn bits(self) -> u64 {
        let user = if self.user { 0 } else { Self::NO_USER };
        let kernel = if self.kernel { 0 } else { Self::NO_KERNEL };
        self.event as u64 | user | kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_go_both_ways_and_a_number_alone_counts_everywhere() {
        assert_eq!(SimSelect::new(7).bits(), 7);
        for filter in [Filter::empty(), Filter::USER, Filter::KERNEL, Filter::all()] {
            let select = SimSelect::new(u32::MAX).filtered(filter);
            assert_eq!(SimSelect::from_bits(select.bits()), select);
        }
    }
}
