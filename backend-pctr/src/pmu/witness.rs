//! Witnesses: free counters that count the event of another counter too. A process that zeroes one of the two leaves
//! them apart, whatever has been counted since.
//!
//! No other process is kept from the counter of a witness. Those that count with Quipu see by a lock of its own
//! ([`witness_on`]) that it is free to them; the function that another program sets there stays.

use quipu_hal::{MaxRate, Result};
use quipu_pmu::{Access, Pmu};

use super::checks::CYCLES_A_SECOND;
use super::cpu::CpuState;
use super::{PctrPmu, disturbed};
use crate::abi::Status;
use crate::device::{PctrDevice, witness_on};

/// The driver reads all counters with interrupts disabled, so that these cycles are more than pass between two of them.
const READ_APART: u64 = 256;

impl<D: PctrDevice> PctrPmu<D> {
    /// Sets a free counter to the function of one that was just set. Returns false if it is not free after all, or
    /// might not begin at zero.
    pub(super) fn begin_witness(&self, cpu: u32, counter: usize, by: usize) -> Result<bool> {
        let state = self.cpu(cpu)?;
        let word = state.word(counter);
        // That of a P6 which gates the others was set for that. Where a CPU may be out of reach it could not be ended.
        let is_used = state.is_touched(by) || state.word(by) != 0 || state.is_lost(by);
        if word == 0 || is_used || self.access() != Access::AnyThread {
            return Ok(false);
        }
        let (device, theirs) = (self.control.device(), witness_on(by));
        if device.claim(by as u8).is_err() {
            return Ok(false);
        }
        let may_have = |word| self.looks.as_ref().is_some_and(|l| l.may_have(by, word));
        let is_free = !may_have(word)
            && self.status(cpu).is_ok_and(|s| self.function(&s, by) == 0)
            && device.claim(theirs).is_ok();
        if !is_free {
            device.unclaim(theirs);
            device.unclaim(by as u8);
            return Ok(false);
        }
        for &cpu in &self.cpu_numbers {
            self.readings(cpu)?.forget_ahead(counter);
        }
        state.begin_witness(by);
        self.set_on(cpu, by, word)?;
        state.set_witness(counter, Some(by));
        device.unclaim(by as u8);
        Ok(true)
    }

    /// Stops witnesses that are counters of a set of bits.
    pub(super) fn end_witnesses(&self, cpu: u32, counters: u32, status: &Status) -> Result<()> {
        let (state, device) = (self.cpu(cpu)?, self.control.device());
        for by in (0..self.counters).filter(|by| (state.witnesses() & counters) >> by & 1 == 1) {
            let now = self.function(status, by);
            // Who counts with Quipu may have set the same function.
            if device.claim(by as u8).is_err() || now != 0 && now != state.word(by) {
                self.lose_witness(state, by, now);
                continue;
            }
            if now != 0 {
                self.set_on(cpu, by, 0)?;
            }
            state.untouch(by);
            state.end_witness(by);
            device.unclaim(witness_on(by));
            device.unclaim(by as u8);
        }
        Ok(())
    }

    /// Ends the witnesses of counters that are about to be started, and those on these counters.
    pub(super) fn end_witnesses_for(&self, cpu: u32, slots: &[usize]) -> Result<()> {
        let state = self.cpu(cpu)?;
        let mut ending = self.bits(slots);
        for counter in 0..self.counters {
            let by = state.witness(counter);
            let starts = slots.contains(&counter);
            if starts || by.is_some_and(|by| slots.contains(&by)) {
                ending |= by.map_or(0, |by| 1 << by);
                state.set_witness(counter, None);
            }
        }
        match state.witnesses() & ending {
            0 => Ok(()),
            ending => self.end_witnesses(cpu, ending, &self.status(cpu)?),
        }
    }

    /// Leaves the counter of a witness to another process, which has set it to this function.
    fn lose_witness(&self, state: &CpuState, by: usize, now: u32) {
        let device = self.control.device();
        device.unclaim(by as u8);
        state.lose(by, now);
        state.end_witness(by);
        for counter in (0..self.counters).filter(|c| state.witness(*c) == Some(by)) {
            state.set_witness(counter, None);
        }
        device.unclaim(witness_on(by));
    }

    /// Leaves those witnesses of slots to another process which it has set.
    pub(super) fn leave_changed_witnesses(
        &self,
        state: &CpuState,
        slots: &[usize],
        status: &Status,
    ) {
        while let Some((by, now)) = self.changed_witness(state, slots, status) {
            self.lose_witness(state, by, now);
        }
    }

    /// Returns the first witness of slots whose function is not what it was set to, and that function.
    pub(super) fn changed_witness(
        &self,
        state: &CpuState,
        slots: &[usize],
        status: &Status,
    ) -> Option<(usize, u32)> {
        self.counters_of(slots)
            .filter_map(|counter| state.witness(counter))
            .map(|by| (by, self.function(status, by)))
            .find(|&(by, now)| now != state.word(by))
    }

    /// Refuses a status of a CPU in which a counter is not as far ahead of its witness as before, or behind it where
    /// there is no before: the witness was set after it. The status was read since the number of sets was `sets`.
    pub(super) fn check_witnesses(
        &self,
        cpu: u32,
        slots: &[usize],
        status: &Status,
        sets: u64,
    ) -> Result<()> {
        let (state, seen) = (self.cpu(cpu)?, self.readings(cpu)?);
        for counter in self.counters_of(slots) {
            let Some(by) = state.witness(counter) else {
                continue;
            };
            let (word, witness) = (self.function(status, counter), self.function(status, by));
            if word == 0 || witness != word || !self.sets.unchanged(sets) {
                continue;
            }
            let unused = 64 - u32::from(self.slots[counter].width);
            let [count, witnessed] = [counter, by].map(|c| status.counters[c] << unused);
            let ahead = count.wrapping_sub(witnessed).cast_signed() >> unused;
            if seen.is_ahead(counter, ahead, apart(state.rate(counter))) {
                continue;
            }
            if self.control.device().claimed(by as u8).is_some() {
                self.lose_witness(state, by, witness);
                continue;
            }
            let reason = format!(
                "it has {} and {}, which counts the same, {}: another process has zeroed one of them",
                status.counters[counter], self.slots[by], status.counters[by]
            );
            return Err(disturbed(cpu, self.slots[counter], reason));
        }
        Ok(())
    }
}

/// Returns the most that counters of one event can differ by for being read one after the other.
fn apart(rate: MaxRate) -> u64 {
    let Some(rate) = rate.increments_per_second() else {
        return u64::MAX;
    };
    let events = u128::from(rate) * u128::from(READ_APART) / u128::from(CYCLES_A_SECOND);
    u64::try_from(events).unwrap_or(u64::MAX)
}
