//! The registers of one simulated CPU, and when they count.

use quipu_hal::{P5Function, X86Select};

use super::Level;
use super::era::Processor;
use crate::abi::MAX_COUNTERS;
use crate::function::CounterKind;

/// The select registers and counters of a CPU, and its permission of `rdpmc` in user mode.
#[derive(Debug, Clone, Default)]
pub(super) struct SimCpu {
    /// Select words; on a Pentium the halves of the CESR.
    pub(super) select: [u32; MAX_COUNTERS],
    pub(super) counter: [u64; MAX_COUNTERS],
    pub(super) time_stamp: u64,
    /// CR4.PCE.
    pub(super) user_rdpmc: bool,
    /// True while the interrupt of a set is still to be taken.
    pub(super) is_interrupted: bool,
}

impl SimCpu {
    /// Sets a function, which zeroes the counter.
    pub(super) fn set(&mut self, counter: usize, word: u32) {
        self.select[counter] = word;
        self.counter[counter] = 0;
    }

    /// An event occurs: the counters that are set to it count it.
    pub(super) fn occur(
        &mut self,
        processor: Processor,
        event: u8,
        unit_mask: u8,
        level: Level,
        times: u64,
    ) {
        let mask = u64::MAX >> (64 - processor.width());
        for i in 0..MAX_COUNTERS {
            if self.counts(processor, i, event, unit_mask, level) {
                self.counter[i] = self.counter[i].wrapping_add(times) & mask;
            }
        }
    }

    fn counts(
        &self,
        processor: Processor,
        i: usize,
        event: u8,
        unit_mask: u8,
        level: Level,
    ) -> bool {
        let word = self.select[i];
        let wanted = |enabled| enabled && selects(word, event, unit_mask, level);
        match processor.kind() {
            Some(CounterKind::P5) => {
                let flag = match level {
                    Level::User => P5Function::USER,
                    Level::Kernel => P5Function::KERNEL,
                };
                i < 2 && word & 0x3f == u32::from(event) && word & u32::from(flag) != 0
            }
            Some(CounterKind::P6) => i < 2 && wanted(self.enabled(0)) && p6_counts(i, word),
            Some(CounterKind::Core) => i < 2 && wanted(self.enabled(i)),
            Some(CounterKind::Amd) => wanted(self.enabled(i)),
            None => false,
        }
    }

    fn enabled(&self, i: usize) -> bool {
        u64::from(self.select[i]) & X86Select::ENABLE != 0
    }
}

/// Returns false for what a P6 counts nothing of: an event that only the other counter counts (Intel SDM
/// volume 3, "P6 Family Processor Performance-Monitoring Events"), and one of cache states without any.
const fn p6_counts(counter: usize, word: u32) -> bool {
    match word & 0xff {
        0x10 | 0x14 | 0xc1 => counter == 0,
        0x11..=0x13 => counter == 1,
        0x28..=0x2a | 0x2e => word & 0x0f00 != 0,
        _ => true,
    }
}

/// Returns true if a select word takes an event that occurs once a cycle: in its level, in one of the unit
/// mask's cases, and as often in a cycle as its counter mask wants.
fn selects(word: u32, event: u8, unit_mask: u8, level: Level) -> bool {
    let word = X86Select {
        select: word.into(),
        extra: Vec::new(),
    };
    let flag = match level {
        Level::User => X86Select::USER,
        Level::Kernel => X86Select::KERNEL,
    };
    let enough = if word.select & X86Select::INVERT == 0 {
        word.counter_mask() <= 1
    } else {
        word.counter_mask() > 1
    };
    word.event() == u16::from(event)
        && word.select & flag != 0
        && (unit_mask == 0 || word.unit_mask() & unit_mask != 0)
        && enough
}
