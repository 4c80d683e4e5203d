//! The most that an event's counter can grow in a time: by its entry, its bits, its number or its name.

use quipu_events_format::name::select;
use quipu_events_format::packed::EntryView;
use quipu_events_format::{Bits, flag};
use quipu_hal::{Encoding, FixedCounter, MaxRate, Scheme};

use crate::cpu_table::CpuTable;
use crate::encode::{PERF_TYPE_RAW, general};

/// Parts of the names of events that may add far more than one in a cycle.
const LARGE: [&str; 10] = [
    // Intel adds the entries of a queue in each cycle: requests to the uncore, fill buffers, page walkers, dividers
    // (perfmon lists; SDM, volume 3, chapter 20).
    "OUTSTANDING",
    "PEND_MISS",
    "PENDING",
    "OCCUPANCY",
    // AMD adds the allocated miss address buffers (PPR, PMCx05F).
    "ALLOC_MAB",
    // Intel's Atoms and AMX add the operations of an instruction (perfmon lists).
    "FP_FLOPS",
    "AMX_OPS",
    // Arm adds the elements of vectors, scaled by their length, and what is in progress (Arm ARM, D13, the
    // events 0x80C0-0x80EF and those named _PERCYC).
    "SCALE_OPS",
    "FIXED_OPS",
    "_PERCYC",
];

/// AMD's floating point operations. From family 17h on there may be more than 15 in a cycle, for which two
/// counters are merged (PPR, "Large Increment per Cycle Events").
pub(crate) const AMD_FLOPS: u16 = 0x003;

impl CpuTable {
    /// Returns the most that a counter of what an encoding selects can count in a time.
    pub(crate) fn max_rate(&self, encoding: &Encoding) -> MaxRate {
        let by_bits = MaxRate::of(encoding);
        if matches!(encoding, Encoding::Perf(config) if config.type_ != PERF_TYPE_RAW) {
            return by_bits;
        }
        let Ok((bits, _)) = self.take_apart(encoding) else {
            return by_bits;
        };
        let once = bits.counter_mask != 0 || bits.flags & (flag::EDGE | flag::CLOCKS) != 0;
        if once || self.counts_cycles(bits) {
            return MaxRate::CYCLES;
        }
        if let Some(index) = bits.fixed.checked_sub(1) {
            return MaxRate::of(&Encoding::Fixed(FixedCounter { index, control: 0 }));
        }
        let (mut exact, mut any) = (MaxRate::NONE, MaxRate::NONE);
        for (_, entry) in self.entries() {
            let own = general(entry.bits());
            if own.code == bits.code {
                let rate = self.of_entry(&entry);
                any = larger(any, rate);
                if own.unit_mask == bits.unit_mask && own.flags & flag::NEEDS_MASK == 0 {
                    exact = larger(exact, rate);
                }
            }
        }
        [exact, any]
            .into_iter()
            .find(|rate| *rate != MaxRate::NONE)
            .unwrap_or(by_bits)
    }

    /// Returns the bound of an entry: what its file says, or what its number or name tells.
    fn of_entry(&self, entry: &EntryView<'_>) -> MaxRate {
        let bits = entry.bits();
        let name = entry.name().to_ascii_uppercase();
        let amd_flops = self.scheme() == Scheme::Amd10h && bits.code == AMD_FLOPS;
        match bits.max_increment {
            0 if amd_flops || LARGE.iter().any(|part| name.contains(part)) => MaxRate::OTHER,
            0 => MaxRate::EVENTS,
            increment => MaxRate::per_cycle(increment),
        }
    }

    /// Returns true for the bits of the generalized event `cycles`.
    fn counts_cycles(&self, bits: Bits) -> bool {
        let numbers = |bits: Bits| {
            let masks = (bits.unit_mask, bits.second_mask);
            (
                bits.code,
                masks,
                bits.flags & flag::ENCODED & !flag::ANY_THREAD,
            )
        };
        let Some(Ok(cycles)) = self.generalized_event("cycles") else {
            return false;
        };
        let cycles = select(self, cycles);
        bits.fixed == 0 && cycles.is_ok_and(|cycles| numbers(general(cycles.bits)) == numbers(bits))
    }
}

fn larger(a: MaxRate, b: MaxRate) -> MaxRate {
    match a.increments_per_second() < b.increments_per_second() {
        true => b,
        false => a,
    }
}
