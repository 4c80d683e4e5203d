//! Implements [`Pmu`] for [`PctrPmu`].

use std::time::Duration;

use quipu_hal::{Encoding, Error, ErrorKind, Result, Simultaneity, SlotClass, SlotSet};
use quipu_pmu::{Access, Gating, InUse, Pmu, Slot};

use super::{LostValue, PctrPmu, UnrestoredCounter, disturbed, lock};
use crate::abi::{MAX_COUNTERS, Status};
use crate::device::{PctrDevice, SetScope};
use crate::function::{self, ENABLE};

/// The interval after which a read in user mode is followed by one of the driver, which takes about a
/// microsecond.
const VERIFY_INTERVAL: Duration = Duration::from_micros(100);

impl<D: PctrDevice> Pmu for PctrPmu<D> {
    fn name(&self) -> &'static str {
        "pctr"
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn cpus(&self) -> &[u32] {
        &self.cpu_numbers
    }

    fn current_cpu(&self) -> Result<u32> {
        self.control.device().cpu()
    }

    fn gating(&self) -> Gating {
        if self.is_p6() {
            Gating::Shared
        } else {
            Gating::PerSlot
        }
    }

    fn access(&self) -> Access {
        Access::MeasuringThread
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    /// Knows no events: which counters can count one is the event map's to say.
    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        if *encoding == Encoding::TimeStamp {
            return Ok(SlotSet::one(SlotClass::TimeStamp, 0));
        }
        let kind = self.known_kind()?;
        function::check(kind, 0, kind.word(encoding)?, ENABLE)?;
        Ok(SlotSet::general((1 << self.counters) - 1))
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
        let busy = |reason: String| {
            let attempted = format!("take the counters of CPU {cpu}");
            Err(Error::new(ErrorKind::Busy, attempted).with_reason(reason))
        };
        if let Some(other) = self.held_elsewhere(cpu) {
            return busy(format!(
                "this process has taken those of CPU {other}, and the driver sets all CPUs together"
            ));
        }
        let mut held = lock(&state.held);
        if held.is_some() {
            return busy("this process has taken them already".to_owned());
        }
        let status = self.read_on(cpu)?;
        let mut found = [0; MAX_COUNTERS];
        for (counter, found) in found.iter_mut().enumerate().take(self.counters) {
            *found = self.function(&status, counter);
            state.regain(counter, *found);
        }
        *held = Some(found);
        Ok(())
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        if slot >= self.counters {
            return Ok(());
        }
        let word = self.known_kind()?.word(encoding)?;
        self.cpu(cpu)?.want(slot, word);
        Ok(())
    }

    /// Does nothing: setting a function zeroes the counter, if it is another than was set.
    fn clear(&self, _: u32, _: usize) -> Result<()> {
        Ok(())
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let state = self.cpu(cpu)?;
        let before = self.read_on(cpu)?;
        for counter in self.counters_of(slots) {
            let now = self.function(&before, counter);
            if now != 0 && now != state.word(counter) {
                self.leave(cpu, state, counter, now);
                let reason = format!("another process has set it to {now:#x}");
                return Err(disturbed(cpu, self.slots[counter], reason));
            }
        }
        if self.is_p6() && self.counters_of(slots).next().is_some() {
            // A counter that was set here and could not be stopped must not go on counting.
            for other in (1..self.counters).filter(|c| !slots.contains(c)) {
                if state.is_touched(other) && state.word(other) != 0 {
                    self.set_on(cpu, other, 0)?;
                }
            }
            if !slots.contains(&0) {
                self.open_gate(cpu)?;
            }
        }
        for counter in self.counters_of(slots) {
            if !state.is_touched(counter) {
                self.note_value(cpu, counter, &before);
            }
            self.set_on(cpu, counter, state.wanted(counter))?;
        }
        for &slot in slots {
            state.forget(slot);
        }
        self.read(cpu, slots, raw)
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let state = self.cpu(cpu)?;
        let read = self.read_on(cpu);
        let scope = self.control.device().driver().scope;
        let status = match &read {
            // The CPU cannot be reached from here.
            Err(_) if scope == SetScope::ThisCpu => return read.map(|_| ()),
            Err(_) => None,
            Ok(status) => Some(status),
        };
        // The next line may leave some to others.
        let words: [u32; MAX_COUNTERS] = std::array::from_fn(|counter| state.word(counter));
        let touched: [bool; MAX_COUNTERS] = std::array::from_fn(|c| state.is_touched(c));
        let found = status.map(|status| self.check_undisturbed(cpu, slots, status));
        let gate = self.is_p6() && !slots.contains(&0) && state.is_touched(0);
        for counter in self.counters_of(slots).rev().chain(gate.then_some(0)) {
            // A function that another program has set is left alone.
            let ours = |s: &Status| self.function(s, counter) == words[counter];
            if touched[counter] && status.is_none_or(ours) {
                self.set_on(cpu, counter, 0)?;
            }
        }
        let status = read?;
        self.values(&status, slots, raw);
        found.unwrap_or(Ok(()))?;
        self.check_reached(cpu, slots, raw, status.time_stamp)
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        if self.may_read_in_user_mode(cpu, slots)?
            && let Some(time) = self.read_in_user_mode(cpu, slots, raw)?
        {
            return self.check_reached(cpu, slots, raw, time);
        }
        let status = self.read_on(cpu)?;
        self.values(&status, slots, raw);
        self.check_undisturbed(cpu, slots, &status)?;
        self.check_reached(cpu, slots, raw, status.time_stamp)
    }

    fn in_use(&self, cpu: u32) -> InUse {
        let Ok(state) = self.cpu(cpu) else {
            return InUse::default();
        };
        if state.lost() != 0
            && let Ok(status) = self.read_on(cpu)
        {
            for counter in (0..self.counters).filter(|c| state.lost() >> c & 1 == 1) {
                if self.function(&status, counter) == 0 {
                    state.regain(counter, 0);
                    if let Some(found) = lock(&state.held).as_mut() {
                        found[counter] = 0;
                    }
                }
            }
        }
        let set = |c: &usize| state.word(*c) != 0 && !state.is_touched(*c);
        let found = (0..self.counters)
            .filter(set)
            .fold(0, |all, c| all | 1 << c);
        let taken = u64::from(state.lost());
        InUse::new(found & !taken, taken)
    }

    fn verify(&self, cpu: u32, slots: &[usize]) -> Result<()> {
        self.check_undisturbed(cpu, slots, &self.read_on(cpu)?)
    }

    /// Reading by the driver says what is set; reading in user mode does not.
    fn read_verify_interval(&self) -> Option<Duration> {
        self.reads_in_user_mode.then_some(VERIFY_INTERVAL)
    }

    fn release(&self, cpu: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
        let mut held = lock(&state.held);
        let Some(found) = *held else {
            return Ok(());
        };
        let restored = self.restore(cpu, &found);
        if restored.is_ok() {
            *held = None;
        } else {
            for counter in (0..self.counters).filter(|c| state.is_touched(*c)) {
                self.note(cpu, counter, Some(found[counter]), None);
            }
        }
        restored
    }

    fn restore_failures(&self) -> Vec<Error> {
        let functions = self.unrestored_counters();
        let values = self.lost_values();
        let functions = functions.iter().map(UnrestoredCounter::error);
        functions
            .chain(values.iter().map(LostValue::error))
            .collect()
    }
}
