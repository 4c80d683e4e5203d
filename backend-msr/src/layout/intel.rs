//! Intel: the P6 family, and architectural performance monitoring.

use quipu_hal::{Result, X86Select};
use quipu_pmu::Slot;

use super::{
    Bases, Control, Counter, FIXED_FIELD, Gate, Global, Layout, cycles, mask, origin, unusable,
};
use crate::allow_list::{self as allow, AllowList};
use crate::{MsrBus, address};

/// Pentium Pro to Pentium III: Intel SDM volume 3, "Performance Monitoring (P6 Family Processor)".
pub(super) fn p6() -> Layout {
    let counter = |number| Counter::general(number, 40, &LEGACY, allow::SELECT_BITS);
    Layout {
        name: "Intel P6, two counters of 40 bits".into(),
        gate: Gate::First,
        counters: (0..2).map(counter).collect(),
        allowed: AllowList::new(&[
            (&allow::P6_SELECTS, 2, u64::MAX),
            (&allow::P6_COUNTERS, 2, u64::MAX),
        ]),
        pulse: cycles(0x79),
    }
}

/// CPUID leaf 0xA: Intel SDM volume 2, CPUID; volume 3, "Architectural Performance
/// Monitoring".
struct Leaf {
    version: u8,
    general: u8,
    width: u8,
    /// The fixed counters, as a bit mask.
    fixed: u32,
    fixed_width: u8,
}

impl Leaf {
    fn parse([eax, _, ecx, edx]: [u32; 4]) -> Self {
        let version = eax as u8;
        let contiguous = (edx & 0x1f).min(16);
        // From version 5 on there is a bit mask besides (SDM, "Architectural Performance Monitoring
        // Version 5").
        let listed = if version >= 5 { ecx } else { 0 };
        Self {
            version,
            general: (eax >> 8) as u8,
            width: (eax >> 16) as u8,
            fixed: if version >= 2 {
                ((1 << contiguous) - 1) | listed
            } else {
                0
            },
            fixed_width: (edx >> 5) as u8,
        }
    }

    /// Returns the numbers of the counters, general and fixed. From version 6 on leaf 0x23 may list them, with
    /// gaps (SDM volume 2, CPUID leaf 23H, sub-leaf 1; Linux `update_pmu_cap`).
    fn numbers(&self, bus: &impl MsrBus) -> Result<[Vec<u8>; 2]> {
        let v6 = self.version >= 6;
        let (general_most, fixed_most) = if v6 { (16, 8) } else { (8, 4) };
        let (mut general, mut fixed) = ((1 << self.general.min(general_most)) - 1, self.fixed);
        if v6 && bus.cpuid(0x23, 0)?[0] >> 1 & 1 == 1 {
            let [listed, listed_fixed, ..] = bus.cpuid(0x23, 1)?;
            if listed != 0 {
                (general, fixed) = (listed, listed_fixed);
            }
        }
        let set = |bits: u32, most: u8| (0..most).filter(|n| bits >> n & 1 == 1).collect();
        Ok([set(general, general_most), set(fixed, fixed_most)])
    }
}

/// Registers of all versions.
const LEGACY: Bases = Bases {
    select: address::INTEL_SELECT,
    counter: address::INTEL_COUNTER,
    writing: address::INTEL_COUNTER,
    step: 1,
    full_width: false,
};

/// Registers of CPUs whose counters can be written in their full width.
const FULL_WIDTH: Bases = Bases {
    writing: address::INTEL_FULL_COUNTER,
    full_width: true,
    ..LEGACY
};

/// Registers from version 6 on: aliases of the others.
const VERSION_6: Bases = Bases {
    select: address::INTEL_V6_SELECT,
    counter: address::INTEL_V6_COUNTER,
    writing: address::INTEL_V6_COUNTER,
    step: address::INTEL_V6_STEP,
    full_width: true,
};

fn fixed(number: u8, width: u8, first: u32, step: u32) -> Counter {
    let address = first + step * u32::from(number);
    Counter {
        slot: Slot::fixed(number, width),
        address,
        writing: address,
        origin: origin(width),
        control: Control::Field {
            address: address::INTEL_FIXED_CONTROL,
            shift: 4 * u32::from(number),
            bits: FIXED_FIELD,
        },
        bit: 1 << (32 + u32::from(number)),
        barred: &[],
    }
}

/// Version 1 has select registers only, version 2 adds fixed counters and global control, version 6
/// further addresses.
pub(super) fn architectural(bus: &impl MsrBus) -> Result<Layout> {
    let leaf = Leaf::parse(bus.cpuid(0xa, 0)?);
    if leaf.version == 0 || leaf.general == 0 || !(32..=64).contains(&leaf.width) {
        return Err(unusable()
            .with_reason("CPUID leaf 0xA reports no counters, as in a virtual machine without them")
            .with_hint("count on the host, or have the hypervisor pass its counters on"));
    }
    let v6 = leaf.version >= 6;
    let [general_numbers, fixed_numbers] = leaf.numbers(bus)?;
    let select = select_bits(bus, leaf.version)?;
    let full = !v6 && full_width(bus)?;
    let bases = match (v6, full) {
        (true, _) => &VERSION_6,
        (false, true) => &FULL_WIDTH,
        (false, false) => &LEGACY,
    };
    let mut counters: Vec<Counter> = general_numbers
        .iter()
        .map(|&n| Counter::general(n, leaf.width, bases, select & !only_elsewhere(n)))
        .collect();
    let (first, step) = if v6 {
        (address::INTEL_V6_FIXED_COUNTER, address::INTEL_V6_STEP)
    } else {
        (address::INTEL_FIXED_COUNTER, 1)
    };
    let fixed_width = if (32..=64).contains(&leaf.fixed_width) {
        leaf.fixed_width
    } else {
        leaf.width
    };
    counters.extend(
        fixed_numbers
            .iter()
            .map(|&n| fixed(n, fixed_width, first, step)),
    );
    let bits = counters.iter().fold(0, |bits, counter| bits | counter.bit);
    let behind = |numbers: &[u8]| numbers.last().map_or(0, |n| n + 1);
    let (general_most, fixed_most) = (behind(&general_numbers), behind(&fixed_numbers));
    let fixed_bits = fixed_numbers
        .iter()
        .fold(0, |bits, n| bits | FIXED_FIELD << (4 * n));
    let (width, fixed_width) = (mask(leaf.width), mask(fixed_width));
    let mut rows = if v6 {
        vec![
            (&allow::INTEL_V6_SELECTS, general_most, select),
            (&allow::INTEL_V6_COUNTERS, general_most, width),
            (&allow::INTEL_V6_FIXED_COUNTERS, fixed_most, fixed_width),
        ]
    } else {
        vec![
            (&allow::INTEL_SELECTS, general_most, select),
            (&allow::INTEL_COUNTERS, general_most, width),
            (
                &allow::INTEL_FULL_COUNTERS,
                if full { general_most } else { 0 },
                width,
            ),
            (&allow::INTEL_FIXED_COUNTERS, fixed_most, fixed_width),
        ]
    };
    let gate = if leaf.version >= 2 {
        rows.extend([
            (&allow::INTEL_FIXED_CONTROL, 1, fixed_bits),
            (&allow::INTEL_GLOBAL_CONTROL, 1, bits),
            (&allow::INTEL_GLOBAL_CLEAR, 1, bits),
        ]);
        Gate::Global(Global {
            control: address::INTEL_GLOBAL_CONTROL,
            status: address::INTEL_GLOBAL_STATUS,
            clear: address::INTEL_GLOBAL_CLEAR,
        })
    } else {
        Gate::Each
    };
    Ok(Layout {
        name: format!(
            "Intel architectural version {}, {} general and {} fixed counters of {} bits",
            leaf.version,
            general_numbers.len(),
            fixed_numbers.len(),
            leaf.width
        ),
        gate,
        counters,
        allowed: AllowList::new(&rows),
        pulse: cycles(0x3c),
    })
}

/// Returns the bits that a select register lacks and another one has: excluding aborted transactions
/// is for counter 2 only (SDM volume 3, "IA32_PERFEVTSELx MSRs, Intel TSX"; Linux
/// `hsw_get_event_constraints`).
const fn only_elsewhere(number: u8) -> u64 {
    match number {
        2 => 0,
        _ => X86Select::IN_TRANSACTION_CHECKPOINTED,
    }
}

/// Returns the bits of a select register that this CPU implements.
fn select_bits(bus: &impl MsrBus, version: u8) -> Result<u64> {
    let mut bits = allow::SELECT_BITS;
    // Restricted transactional memory: leaf 7, EBX bit 11.
    if bus.cpuid(7, 0)?[1] >> 11 & 1 == 1 {
        bits |= allow::TRANSACTION_BITS;
    }
    if version >= 6 {
        let [_, ebx, ..] = bus.cpuid(0x23, 0)?;
        if ebx & 1 == 1 {
            bits |= allow::SECOND_UNIT_MASK_BITS;
        }
        if ebx >> 1 & 1 == 1 {
            bits |= allow::EQUAL_BIT;
        }
    }
    Ok(bits)
}

/// Returns true if counters can be written in their full width: `IA32_PERF_CAPABILITIES` bit 13; that
/// register exists if ECX bit 15 of leaf 1 is set.
fn full_width(bus: &impl MsrBus) -> Result<bool> {
    if bus.cpuid(1, 0)?[2] >> 15 & 1 == 0 {
        return Ok(false);
    }
    let Some(&cpu) = bus.cpus().first() else {
        return Ok(false);
    };
    Ok(bus.read(cpu, address::INTEL_CAPABILITIES)? >> 13 & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{Encoding, Error, ErrorKind};

    /// A CPU with these CPUID leaves: number, subleaf, registers.
    struct Leaves(&'static [(u32, u32, [u32; 4])]);

    /// Version 3 with transactional memory.
    const HASWELL: Leaves = Leaves(&[
        (7, 0, [0, 1 << 11, 0, 0]),
        (0xa, 0, [0x0730_0403, 0, 0, 0x603]),
    ]);

    impl MsrBus for Leaves {
        fn cpus(&self) -> &[u32] {
            &[0]
        }

        fn current_cpu(&self) -> Result<u32> {
            Ok(0)
        }

        fn read(&self, _cpu: u32, _address: u32) -> Result<u64> {
            Ok(0)
        }

        fn write(&self, _cpu: u32, _address: u32, _value: u64) -> Result<()> {
            Err(Error::new(ErrorKind::Os, "write"))
        }

        fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
            let found = self.0.iter().find(|row| (row.0, row.1) == (leaf, subleaf));
            Ok(found.map_or([0; 4], |row| row.2))
        }
    }

    #[test]
    fn what_aborted_transactions_counted_is_left_out_by_counter_2_alone() {
        let layout = architectural(&HASWELL).unwrap();
        let takes = |flags| {
            let word = X86Select::new(0xc0, 0).with_flags(X86Select::USER | flags);
            let encoding = Encoding::X86(word);
            [0, 1, 2, 3].map(|n| layout.counters[n].word(&encoding).is_some())
        };
        assert_eq!(takes(X86Select::IN_TRANSACTION), [true; 4]);
        let checkpointed = X86Select::IN_TRANSACTION | X86Select::IN_TRANSACTION_CHECKPOINTED;
        assert_eq!(takes(checkpointed), [false, false, true, false]);
    }

    #[test]
    fn counters_that_version_6_lists_may_have_gaps() {
        let version_6 = Leaves(&[
            (0xa, 0, [0x0730_0406, 0, 0x7, 0x603]),
            (0x23, 0, [0x2, 0, 0, 0]),
            (0x23, 1, [0x105, 0x23, 0, 0]),
        ]);
        let layout = architectural(&version_6).unwrap();
        let counters = layout.counters.iter();
        let addresses: Vec<_> = counters.clone().map(|counter| counter.address).collect();
        assert_eq!(addresses, [0x1900, 0x1908, 0x1920, 0x1980, 0x1984, 0x1994]);
        let bits = counters.fold(0, |bits, counter| bits | counter.bit);
        assert_eq!(bits, 0x23_0000_0105);
        let takes = |address| layout.allowed.get(address).is_some();
        assert!(takes(0x1921) && !takes(0x1925) && takes(0x1994) && !takes(0x1998));
    }

    /// Leaf 0xA has the width of general counters in bits 16 to 23 of EAX, and that of fixed ones in bits 5 to 12 of EDX.
    #[test]
    fn counters_have_the_number_and_width_that_leaf_0xa_gives() {
        const MODELS: [(Leaves, &[u8], &[u8]); 5] = [
            (
                Leaves(&[(0xa, 0, [0x0728_0403, 0, 0, 0x603])]),
                &[40; 4],
                &[48; 3],
            ),
            (
                Leaves(&[(0xa, 0, [0x0730_0802, 0, 0, 0x501])]),
                &[48; 8],
                &[40; 1],
            ),
            // A width that no counter has is that of the others.
            (
                Leaves(&[(0xa, 0, [0x0728_0203, 0, 0, 0x003])]),
                &[40; 2],
                &[40; 3],
            ),
            // Version 1 has none that are fixed, and only from version 5 on does ECX list some.
            (
                Leaves(&[(0xa, 0, [0x0728_0201, 0, 0, 0x603])]),
                &[40; 2],
                &[],
            ),
            (
                Leaves(&[(0xa, 0, [0x0730_0404, 0, 0xf, 0x603])]),
                &[48; 4],
                &[48; 3],
            ),
        ];
        for (bus, general, fixed) in MODELS {
            let layout = architectural(&bus).unwrap();
            let widths = layout.counters.iter().map(|counter| counter.slot.width);
            assert_eq!(widths.collect::<Vec<_>>(), [general, fixed].concat());
        }
        const NONE: [Leaves; 4] = [
            Leaves(&[(0xa, 0, [0x0730_0400, 0, 0, 0x603])]),
            Leaves(&[(0xa, 0, [0x0730_0003, 0, 0, 0x603])]),
            Leaves(&[(0xa, 0, [0x071f_0403, 0, 0, 0x603])]),
            Leaves(&[(0xa, 0, [0x0741_0403, 0, 0, 0x603])]),
        ];
        for bus in NONE {
            assert!(architectural(&bus).is_err());
        }
    }
}
