//! Probes whether counters count: in a virtual machine they may exist and not work.

use quipu_hal::{Encoding, Error, FixedCounter, Result};

use super::registers::{CpuCounters, SavedRegisters};
use crate::MsrBus;
use crate::layout::{Counter, unusable};

/// A value that no counter has by chance, and that any width holds without its sign.
const PATTERN: u64 = 0x2a5a_5a5a;

/// Writes one counter and lets it count for a moment: `pulse`, which occurs whenever a CPU executes,
/// or the event of a fixed counter.
pub(super) fn probe<B: MsrBus>(
    registers: &CpuCounters<'_, B>,
    taken: &mut SavedRegisters,
    pulse: &Encoding,
) -> Result<()> {
    let usable = |counter: &Counter| {
        let fixed = FixedCounter {
            index: counter.slot.number,
            control: FixedCounter::USER | FixedCounter::KERNEL,
        };
        counter
            .word(pulse)
            .or_else(|| counter.word(&Encoding::Fixed(fixed)))
    };
    let mut counters = registers.counters.iter().enumerate();
    let Some((slot, word)) = counters.find_map(|(slot, counter)| Some((slot, usable(counter)?)))
    else {
        return Ok(());
    };
    let counter = &registers.counters[slot];
    registers.program(taken, slot, word)?;
    if registers.control(counter)? != taken.written[slot] {
        return Err(dead(
            "a select register does not keep what is written to it",
        ));
    }
    registers
        .guard
        .put(registers.cpu, counter.address, PATTERN)?;
    if registers.read(slot)? != PATTERN {
        return Err(dead("a counter does not keep what is written to it"));
    }
    registers.start(taken, &[slot])?;
    let exercised = registers.guard.bus().exercise(registers.cpu);
    let stopped = registers.stop(taken, &[slot]);
    exercised.and(stopped)?;
    if registers.read(slot)? == PATTERN {
        return Err(dead("a counter stands still while it is enabled"));
    }
    Ok(())
}

/// Returns the error of counters that exist and do not count.
pub(super) fn dead(what: &str) -> Error {
    unusable()
        .with_reason(format!(
            "the counters do not work: {what}, as in a virtual machine without them"
        ))
        .with_hint("count on the host, or have the hypervisor pass its counters on")
}
