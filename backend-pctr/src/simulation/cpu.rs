//! The registers of one simulated CPU, and when they count.

use quipu_hal::{P5Function, X86Select};

use super::Level;
use super::era::Processor;
use crate::abi::MAX_COUNTERS;

/// The select registers and counters of a CPU, and its permission of `rdpmc` in user mode.
#[derive(Debug, Clone, Default)]
pub(super) struct SimCpu {
    /// Select words; on a Pentium the halves of the CESR.
    pub(super) select: [u32; MAX_COUNTERS],
    pub(super) counter: [u64; MAX_COUNTERS],
    pub(super) time_stamp: u64,
    /// CR4.PCE.
    pub(super) user_rdpmc: bool,
}

impl SimCpu {
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
        match processor {
            Processor::P5 => {
                let flag = match level {
                    Level::User => P5Function::USER,
                    Level::Kernel => P5Function::KERNEL,
                };
                i < 2 && word & 0x3f == u32::from(event) && word & u32::from(flag) != 0
            }
            Processor::P6 => i < 2 && self.enabled(0) && selects(word, event, unit_mask, level),
            Processor::Core => i < 2 && self.enabled(i) && selects(word, event, unit_mask, level),
            Processor::K8 => self.enabled(i) && selects(word, event, unit_mask, level),
            Processor::TimeStampOnly | Processor::None => false,
        }
    }

    fn enabled(&self, i: usize) -> bool {
        u64::from(self.select[i]) & X86Select::ENABLE != 0
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
