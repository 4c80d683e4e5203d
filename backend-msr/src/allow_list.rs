//! The registers that may be written, and which of their bits.
//!
//! These constants are the whole of it. [`AllowList::new`] takes rows of this file and how many
//! counters there are, and [`Guard`](crate::guard::Guard) writes nothing that is not on the list: no
//! event database, no environment and no caller can add to it.
//!
//! Left out on purpose, though the registers hold them: pin control, interrupt on overflow and
//! counting of sibling threads (bits 19 to 21), and all registers of precise sampling, of branch
//! records and of units that CPUs share.

use crate::address;

/// Registers in a row: one for each counter, or one for all.
#[derive(Debug)]
pub(crate) struct Row {
    first: u32,
    step: u32,
    most: u8,
    bits: u64,
    kept: u64,
    sharing: Sharing,
}

/// The owner of the bits of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The counter that the register is for.
    Own,
    /// Several counters: the bits of others are left as they are.
    Shared,
}

/// Event, unit mask, user, kernel, edge, enable, invert, counter mask.
pub(crate) const SELECT_BITS: u64 = 0xffc7_ffff;
/// Pin control, interrupt, any thread: never set, and put back if they were found set.
pub(crate) const SELECT_KEPT: u64 = 0x0038_0000;
/// Transactions, on CPUs that have them.
pub(crate) const TRANSACTION_BITS: u64 = 0x3 << 32;
/// Intel's version 6: equality, second unit mask.
pub(crate) const EQUAL_BIT: u64 = 1 << 36;
pub(crate) const SECOND_UNIT_MASK_BITS: u64 = 0xff << 40;
/// Intel: a bit of transactions, adaptive records of precise sampling and the log of branches, found but never set.
const INTEL_KEPT: u64 = 0x7 << 33;
/// AMD from family 10h: the event's bits 8 to 11, guest only, host only.
pub(crate) const AMD_SELECT_BITS: u64 = SELECT_BITS | 0xf << 32 | 0x3 << 40;

const fn row(first: u32, step: u32, most: u8, bits: u64) -> Row {
    Row {
        first,
        step,
        most,
        bits,
        kept: 0,
        sharing: Sharing::Own,
    }
}

const fn select(first: u32, step: u32, most: u8, bits: u64, kept: u64) -> Row {
    Row {
        kept: kept | SELECT_KEPT,
        ..row(first, step, most, bits)
    }
}

const fn shared(address: u32, bits: u64) -> Row {
    Row {
        sharing: Sharing::Shared,
        ..row(address, 0, 1, bits)
    }
}

pub(crate) const P5_CESR: Row = shared(address::P5_CESR, 0x01ff_01ff);
pub(crate) const P5_COUNTERS: Row = row(address::P5_COUNTER, 1, 2, u64::MAX);

pub(crate) const P6_SELECTS: Row = select(address::INTEL_SELECT, 1, 2, SELECT_BITS, 0);
pub(crate) const P6_COUNTERS: Row = row(address::INTEL_COUNTER, 1, 2, u64::MAX);

const INTEL_SELECT_BITS: u64 = SELECT_BITS | TRANSACTION_BITS | EQUAL_BIT | SECOND_UNIT_MASK_BITS;
pub(crate) const INTEL_SELECTS: Row =
    select(address::INTEL_SELECT, 1, 8, INTEL_SELECT_BITS, INTEL_KEPT);
pub(crate) const INTEL_COUNTERS: Row = row(address::INTEL_COUNTER, 1, 8, u64::MAX);
pub(crate) const INTEL_FULL_COUNTERS: Row = row(address::INTEL_FULL_COUNTER, 1, 8, u64::MAX);
pub(crate) const INTEL_FIXED_COUNTERS: Row = row(address::INTEL_FIXED_COUNTER, 1, 4, u64::MAX);
pub(crate) const INTEL_V6_SELECTS: Row = select(
    address::INTEL_V6_SELECT,
    address::INTEL_V6_STEP,
    16,
    INTEL_SELECT_BITS,
    INTEL_KEPT,
);
pub(crate) const INTEL_V6_COUNTERS: Row = row(
    address::INTEL_V6_COUNTER,
    address::INTEL_V6_STEP,
    16,
    u64::MAX,
);
pub(crate) const INTEL_V6_FIXED_COUNTERS: Row = row(
    address::INTEL_V6_FIXED_COUNTER,
    address::INTEL_V6_STEP,
    8,
    u64::MAX,
);
/// Kernel and user of each fixed counter; any thread and interrupt are never set, and put back.
pub(crate) const INTEL_FIXED_CONTROL: Row = Row {
    kept: 0xcccc_cccc,
    ..shared(address::INTEL_FIXED_CONTROL, 0x3333_3333)
};
pub(crate) const INTEL_GLOBAL_CONTROL: Row = shared(address::INTEL_GLOBAL_CONTROL, 0xff_0000_ffff);
pub(crate) const INTEL_GLOBAL_CLEAR: Row = row(address::INTEL_GLOBAL_CLEAR, 0, 1, 0xff_0000_ffff);

pub(crate) const AMD_K7_SELECTS: Row = select(address::AMD_SELECT, 1, 4, SELECT_BITS, 0);
pub(crate) const AMD_10H_SELECTS: Row = select(address::AMD_SELECT, 1, 4, AMD_SELECT_BITS, 0);
pub(crate) const AMD_COUNTERS: Row = row(address::AMD_COUNTER, 1, 4, u64::MAX);
pub(crate) const AMD_CORE_SELECTS: Row = select(
    address::AMD_CORE_SELECT,
    address::AMD_CORE_STEP,
    16,
    AMD_SELECT_BITS,
    0,
);
pub(crate) const AMD_CORE_COUNTERS: Row = row(
    address::AMD_CORE_COUNTER,
    address::AMD_CORE_STEP,
    16,
    u64::MAX,
);
pub(crate) const AMD_GLOBAL_CONTROL: Row = shared(address::AMD_GLOBAL_CONTROL, 0xffff);
pub(crate) const AMD_GLOBAL_CLEAR: Row = row(address::AMD_GLOBAL_CLEAR, 0, 1, 0xffff);

/// A register that may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writable {
    pub(crate) address: u32,
    /// The bits that may be set.
    pub(crate) bits: u64,
    /// The bits that may be put back besides.
    pub(crate) kept: u64,
    pub(crate) sharing: Sharing,
}

/// The registers of one kind of PMU that may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowList(Vec<Writable>);

impl AllowList {
    /// The list of these rows, each for a number of counters, and with no more bits than a mask has.
    pub(crate) fn new(rows: &[(&Row, u8, u64)]) -> Self {
        let mut list = Vec::new();
        for &(row, number, mask) in rows {
            list.extend((0..number.min(row.most)).map(|n| Writable {
                address: row.first + row.step * u32::from(n),
                bits: row.bits & mask,
                kept: match row.sharing {
                    Sharing::Own => row.kept,
                    Sharing::Shared => row.kept & mask,
                },
                sharing: row.sharing,
            }));
        }
        list.sort_unstable_by_key(|writable| writable.address);
        Self(list)
    }

    pub(crate) fn get(&self, address: u32) -> Option<Writable> {
        let found = self
            .0
            .binary_search_by_key(&address, |writable| writable.address);
        Some(self.0[found.ok()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_list_lets_an_interrupt_or_a_sibling_thread_in() {
        for selects in [
            &P6_SELECTS,
            &INTEL_SELECTS,
            &INTEL_V6_SELECTS,
            &AMD_K7_SELECTS,
            &AMD_10H_SELECTS,
            &AMD_CORE_SELECTS,
        ] {
            let list = AllowList::new(&[(selects, 2, u64::MAX)]);
            let first = list.get(selects.first).unwrap();
            assert_eq!(first.bits >> 19 & 7, 0, "{selects:?}");
            assert_eq!(first.bits >> 16 & 7, 7, "{selects:?}");
            assert_eq!(selects.kept >> 19 & 7, 7, "{selects:?}");
        }
        // Adaptive records of a counter's precise samples stay as they were, too.
        for selects in [&INTEL_SELECTS, &INTEL_V6_SELECTS] {
            assert_eq!(selects.kept >> 33 & 7, 7, "{selects:?}");
        }
    }

    #[test]
    fn a_list_ends_where_the_counters_or_the_row_end() {
        let list = AllowList::new(&[(&INTEL_SELECTS, 4, u64::MAX), (&AMD_COUNTERS, 200, 0xff)]);
        let addresses: Vec<_> = list.0.iter().map(|writable| writable.address).collect();
        let expected = [
            0x186,
            0x187,
            0x188,
            0x189,
            0xc001_0004,
            0xc001_0005,
            0xc001_0006,
            0xc001_0007,
        ];
        assert_eq!(addresses, expected);
        assert_eq!(list.get(0x18a), None);
        assert_eq!(list.get(0xc001_0007).unwrap().bits, 0xff);
    }
}
