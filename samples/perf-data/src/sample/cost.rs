//! Cost of a sampled access or transaction: weights and transaction aborts.

use bitflags::bitflags;

/// Cost of a sampled access (`union perf_sample_weight`). The unit of the numbers depends on the
/// event; mostly cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Weight {
    /// One number ([`WEIGHT`](crate::SampleType::WEIGHT)).
    Full(u64),
    /// Three numbers ([`WEIGHT_STRUCT`](crate::SampleType::WEIGHT_STRUCT)).
    Parts {
        /// Mostly the latency of the memory access.
        first: u32,
        /// Mostly the latency of the instruction.
        second: u16,
        /// On some CPUs the cycles from dispatch to retirement.
        third: u16,
    },
}

impl Weight {
    pub(crate) fn parts(word: u64) -> Self {
        Self::Parts {
            first: word as u32,
            second: (word >> 32) as u16,
            third: (word >> 48) as u16,
        }
    }
}

/// Why a hardware transaction was aborted (`PERF_TXN_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transaction(pub u64);

bitflags! {
    /// The reasons for which a transaction was aborted, and its kind.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct AbortReason: u32 {
        /// It came from lock elision.
        const ELISION = 1;
        /// It was a transaction.
        const TRANSACTION = 1 << 1;
        /// The instruction was the cause.
        const SYNCHRONOUS = 1 << 2;
        /// The instruction was not the cause.
        const ASYNCHRONOUS = 1 << 3;
        /// Trying again may succeed.
        const RETRY = 1 << 4;
        /// A conflict with another thread.
        const CONFLICT = 1 << 5;
        /// Too much was written.
        const CAPACITY_WRITE = 1 << 6;
        /// Too much was read.
        const CAPACITY_READ = 1 << 7;
    }
}

impl Transaction {
    /// Returns the reasons.
    pub fn reason(self) -> AbortReason {
        AbortReason::from_bits_retain(self.0 as u32)
    }

    /// Returns the code that the program aborted it with.
    pub fn abort_code(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_where_the_header_splits_them() {
        assert_eq!(
            Weight::parts(0x0003_0002_0000_0001),
            Weight::Parts {
                first: 1,
                second: 2,
                third: 3
            }
        );
        let transaction = Transaction(0xabcd << 32 | 0x12);
        assert_eq!(transaction.abort_code(), 0xabcd);
        assert_eq!(
            transaction.reason(),
            AbortReason::TRANSACTION | AbortReason::RETRY
        );
    }
}
