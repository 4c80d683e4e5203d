//! Checks of what was read: are the functions those that were set, and can the counters have got there.

use quipu_hal::{MaxRate, Result};

use super::cpu::CpuState;
use super::{PctrPmu, UNINTERRUPTED, disturbed, lock};
use crate::abi::Status;
use crate::device::PctrDevice;

/// A core runs at most this many times as fast as its time stamp counter.
const FASTER: u64 = 4;
/// Cycles of a core in a second, in the rates of [`MaxRate`]: it is of CPUs with 10 in a nanosecond.
pub(super) const CYCLES_A_SECOND: u64 = 10_000_000_000;

impl<D: PctrDevice> PctrPmu<D> {
    /// Reads a status, again if another thread has set functions meanwhile and what is read is not what was set.
    pub(super) fn settled(
        &self,
        state: &CpuState,
        slots: &[usize],
        read: impl Fn() -> Result<Status>,
    ) -> Result<Status> {
        loop {
            let sets = self.sets.now();
            let status = read()?;
            let differs = self.other_function(state, slots, &status).is_some()
                || self.changed_witness(state, slots, &status).is_some();
            if !differs || self.sets.unchanged(sets) {
                return Ok(status);
            }
            std::thread::yield_now();
        }
    }

    /// Returns the first counter whose function is not what it was set to, and that function. It may have been found
    /// when another event was read, of which counter 0 is the gate.
    pub(super) fn other_function(
        &self,
        state: &CpuState,
        slots: &[usize],
        status: &Status,
    ) -> Option<(usize, u32)> {
        let gate = self.is_p6() && self.counters_of(slots).next().is_some();
        let ours = |c: &usize| slots.contains(c) || gate && *c == 0;
        (0..self.counters)
            .filter(ours)
            .map(|counter| (counter, self.function(status, counter)))
            .find(|&(counter, now)| {
                now != state.word(counter) || slots.contains(&counter) && state.is_lost(counter)
            })
    }

    /// Refuses a status in which the function of a counter is not what it was set to. One that another process
    /// has set is left to it from now on.
    pub(super) fn check_undisturbed(
        &self,
        cpu: u32,
        slots: &[usize],
        status: &Status,
    ) -> Result<()> {
        let state = self.cpu(cpu)?;
        self.leave_changed_witnesses(state, slots, status);
        let Some((counter, now)) = self.other_function(state, slots, status) else {
            return Ok(());
        };
        let ours = match state.is_lost(counter) {
            true => state.wanted(counter),
            false => state.word(counter),
        };
        if now == 0 {
            state.found(counter, 0);
        } else if !state.is_lost(counter) {
            self.leave(cpu, state, counter, now);
        }
        let reason = format!("it was set to {ours:#x} and is now {now:#x}");
        Err(disturbed(cpu, self.slots[counter], reason))
    }

    /// Leaves a counter to another process, which has set it.
    pub(super) fn leave(&self, cpu: u32, state: &CpuState, counter: usize, now: u32) {
        if let Some(found) = lock(&state.held).as_mut() {
            if state.is_touched(counter) {
                self.note(cpu, counter, Some(found[counter]), Some(now));
            }
            found[counter] = now;
        }
        state.lose(counter, now);
        self.control.device().unclaim(counter as u8);
    }

    /// Refuses raw values that slots cannot have reached since they were read last: a counter was zeroed. The
    /// others are kept to compare the next with.
    ///
    /// `kept` is how often readings had been kept before these were made. Those that another thread has kept
    /// since are newer, and were compared.
    pub(super) fn check_reached(
        &self,
        cpu: u32,
        slots: &[usize],
        raw: &[u64],
        time: u64,
        kept: u64,
    ) -> Result<()> {
        let (functions, state) = (self.cpu(cpu)?, self.readings(cpu)?);
        if state.kept() != kept {
            return Ok(());
        }
        for (&slot, &now) in slots.iter().zip(raw) {
            let Some((before, at)) = state.last(slot) else {
                continue;
            };
            // A look at one CPU has come between a sweep and the read of what it saw there, and compared more.
            if self.looks.is_some() && (1..CYCLES_A_SECOND).contains(&at.saturating_sub(time)) {
                return Ok(());
            }
            let Some(cycles) = time.checked_sub(at) else {
                let reason = "the time stamp counter went back, as when the machine was suspended";
                return Err(disturbed(cpu, self.slots[slot], reason.to_owned()));
            };
            let mask = self.slots[slot].mask();
            let moved = now.wrapping_sub(before) & mask;
            if !can_count(functions.rate(slot), moved, cycles) {
                let reason = format!(
                    "it went from {before} to {now} in {cycles} cycles: another process has set it, or the \
                     machine was suspended"
                );
                return Err(disturbed(cpu, self.slots[slot], reason));
            }
        }
        for (&slot, &now) in slots.iter().zip(raw) {
            state.keep(slot, now, time);
        }
        Ok(())
    }
}

/// Returns true if a counter of events that occur at most at `rate` can have counted so many in these cycles of the time
/// stamp counter. One that was zeroed seems to have counted up to its wrap and beyond.
fn can_count(rate: MaxRate, counted: u64, cycles: u64) -> bool {
    let Some(rate) = rate.increments_per_second() else {
        return true;
    };
    let cycles = u128::from(cycles) + u128::from(UNINTERRUPTED);
    u128::from(counted) * u128::from(CYCLES_A_SECOND)
        <= u128::from(rate) * u128::from(FASTER) * cycles
}
