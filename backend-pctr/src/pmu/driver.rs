//! Implements [`Pmu`] for [`PctrPmu`].

use std::thread;
use std::time::Duration;

use quipu_hal::{Encoding, Error, ErrorKind, MaxRate, Result, Simultaneity, SlotClass, SlotSet};
use quipu_pmu::{Access, InUse, Pmu, Slot};

use super::cpu::CpuState;
use super::looks::{CpuSnapshot, Looks};
use super::{
    IDLE, LostValue, PctrPmu, TIME_STAMP, UnrestoredCounter, disturbed, lock, out_of_reach,
};
use crate::abi::{MAX_COUNTERS, Status};
use crate::device::{Claimed, PctrDevice, SetScope};
use crate::events;
use crate::function::{self, ENABLE};

/// The interval after which a read in user mode is followed by one of the driver, which takes about a
/// microsecond.
const VERIFY_INTERVAL: Duration = Duration::from_micros(100);

/// The longest time between two looks at counters that are not read, each of which is one call of the driver.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The number of looks before counters that are all claimed are taken to be in use: a process also claims a free counter
/// while it sets a witness there, on each CPU.
const LOOKS_FOR_COUNTERS: u32 = 20;

/// The time between two of these looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

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

    /// One CPU, and several that are set together, are reached by any thread.
    fn access(&self) -> Access {
        match &*self.cpu_numbers {
            [_] => Access::AnyThread,
            _ if self.sets_all_cpus() => Access::AnyThread,
            _ => Access::MeasuringThread,
        }
    }

    fn sets_all_cpus(&self) -> bool {
        self.looks.is_some()
    }

    /// Checks each CPU: a counter that is zeroed is zeroed on all of them, and some CPU shows it.
    fn look_at(&self, cpus: &[u32], slots: &[usize]) -> Result<()> {
        let Some(looks) = &self.looks else {
            return Ok(());
        };
        looks.look(&self.control, &self.sets, cpus)?;
        let mut raw = vec![0; slots.len()];
        for &cpu in cpus {
            match self.read_look(looks, cpu, slots, &mut raw) {
                // A CPU that is out of reach has no count when it is read.
                Err(e) if e.kind() != ErrorKind::WrongThread => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    /// Knows no events: which counters can count one is the event map's to say.
    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        match encoding {
            Encoding::TimeStamp => return Ok(SlotSet::one(SlotClass::FreeRunning, TIME_STAMP)),
            encoding if *encoding == events::IDLE_PASSES => {
                return Ok(SlotSet::one(SlotClass::FreeRunning, IDLE));
            }
            _ => {}
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
        let mut held = lock(&state.held);
        if held.is_some() {
            return busy("this process has taken them already".to_owned());
        }
        let mut looks = 1;
        let found = loop {
            let (found, all_claimed) = self.look_for_counters(cpu, state)?;
            match all_claimed {
                None => break found,
                Some(_) if looks < LOOKS_FOR_COUNTERS => looks += 1,
                Some(claimed) => return busy(format!("{claimed}, and no counter is free")),
            }
            thread::sleep(BETWEEN_LOOKS);
        };
        *held = Some(found);
        Ok(())
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        if slot >= self.counters {
            return Ok(());
        }
        let word = self.known_kind()?.word(encoding)?;
        let rate = match &self.map {
            Some(map) => map.max_rate(encoding),
            None => MaxRate::of(encoding),
        };
        self.cpu(cpu)?.want(slot, word, rate);
        Ok(())
    }

    /// Does nothing: setting a function zeroes the counter, if it is another than was set.
    fn clear(&self, _: u32, _: usize) -> Result<()> {
        Ok(())
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let state = self.cpu(cpu)?;
        self.end_witnesses_for(cpu, slots)?;
        for counter in self.counters_of(slots) {
            if let Err(claimed) = self.control.device().claim(counter as u8) {
                state.lose(counter, 0);
                return Err(disturbed(cpu, self.slots[counter], claimed.to_string()));
            }
        }
        let before = self.status(cpu)?;
        for counter in self.counters_of(slots) {
            let now = self.function_of_others(&before, counter);
            if now != 0 && (state.is_lost(counter) || now != state.word(counter)) {
                self.leave(cpu, state, counter, now);
                let reason = format!("another process has set it to {now:#x}");
                return Err(disturbed(cpu, self.slots[counter], reason));
            }
        }
        if self.is_p6() && self.counters_of(slots).next().is_some() && !slots.contains(&0) {
            self.open_gate(cpu)?;
        }
        for counter in self.counters_of(slots) {
            if !state.is_touched(counter) {
                self.note_value(cpu, counter, &before);
            }
        }
        if let Some(looks) = &self.looks {
            self.let_go(looks, cpu, slots, &before)?;
        }
        for counter in self.counters_of(slots) {
            self.set_on(cpu, counter, state.wanted(counter))?;
        }
        if let Some(looks) = &self.looks {
            return self.start_all(looks, slots, raw);
        }
        for &slot in slots {
            state.forget(slot);
        }
        self.read(cpu, slots, raw)
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let state = self.cpu(cpu)?;
        if let Some(looks) = &self.looks {
            looks.keep(self.bits(slots), &self.sets);
        }
        let (kept, sets) = (self.readings(cpu)?.kept(), self.sets.now());
        let read = self.status(cpu);
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
        let found = status.map(|status| {
            self.check_undisturbed(cpu, slots, status)?;
            match self.looks {
                // That is asked of each CPU when it is read.
                Some(_) => Ok(()),
                None => self.check_witnesses(cpu, slots, status, sets),
            }
        });
        // On a P6 counter 0 gates those that go on, and is closed by the last.
        let gates = self.is_p6() && self.counters_of(slots).next().is_some();
        let witnesses = state.witnesses();
        let goes_on = |counter: &usize| {
            !slots.contains(counter) && words[*counter] != 0 && witnesses >> *counter & 1 == 0
        };
        let closed = match gates && (1..self.counters).any(|counter| goes_on(&counter)) {
            true => ENABLE,
            false => 0,
        };
        let gate = gates && !slots.contains(&0) && closed == 0 && words[0] == ENABLE;
        for counter in self.counters_of(slots).rev().chain(gate.then_some(0)) {
            // A function that another program has set is left alone.
            let ours = |s: &Status| self.function(s, counter) == words[counter];
            if touched[counter] && status.is_none_or(ours) {
                let word = if counter == 0 { closed } else { 0 };
                self.set_on(cpu, counter, word)?;
            }
        }
        let status = read?;
        let witnesses = self.counters_of(slots).filter_map(|c| state.witness(c));
        let witnesses = witnesses.fold(0, |bits, by| bits | 1 << by);
        self.end_witnesses(cpu, witnesses, &status)?;
        self.values(&status, slots, raw);
        found.unwrap_or(Ok(()))?;
        if self.looks.is_some() {
            // So is that.
            return Ok(());
        }
        self.check_reached(cpu, slots, raw, status.time_stamp, kept)
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        if let Some(looks) = &self.looks {
            return self.read_look(looks, cpu, slots, raw);
        }
        let kept = self.readings(cpu)?.kept();
        if self.may_read_in_user_mode(cpu, slots)?
            && let Some(time) = self.read_in_user_mode(slots, raw)
        {
            return self.check_reached(cpu, slots, raw, time, kept);
        }
        let sets = self.sets.now();
        let status = self.settled(self.cpu(cpu)?, slots, || self.read_on(cpu))?;
        self.values(&status, slots, raw);
        self.check_undisturbed(cpu, slots, &status)?;
        self.check_witnesses(cpu, slots, &status, sets)?;
        self.check_reached(cpu, slots, raw, status.time_stamp, kept)
    }

    fn in_use(&self, cpu: u32) -> InUse {
        let Ok(state) = self.cpu(cpu) else {
            return InUse::default();
        };
        if state.lost() != 0
            && let Ok(status) = self.status(cpu)
        {
            for counter in (0..self.counters).filter(|c| state.is_lost(*c)) {
                let claimed = self.control.device().claimed(counter as u8);
                if self.function_of_others(&status, counter) == 0 && claimed.is_none() {
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
        let sets = self.sets.now();
        let status = self.settled(self.cpu(cpu)?, slots, || self.status(cpu))?;
        self.check_undisturbed(cpu, slots, &status)?;
        match self.looks {
            // It may be of any CPU.
            Some(_) => Ok(()),
            None => self.check_witnesses(cpu, slots, &status, sets),
        }
    }

    fn witness(&self, cpu: u32, slot: usize, by: usize) -> bool {
        let are_counters = slot.max(by) < self.counters;
        are_counters && self.begin_witness(cpu, slot, by).unwrap_or(false)
    }

    /// Setting a function zeroes its counter.
    fn look_interval(&self) -> Option<Duration> {
        Some(LOOK_INTERVAL)
    }

    fn look_here(&self, slots: &[usize], raw: &mut [u64]) -> Result<bool> {
        let cpu = self.control.device().cpu()?;
        let (functions, state) = (self.cpu(cpu)?, self.readings(cpu)?);
        let (kept, sets) = (state.kept(), self.sets.now());
        let status = self.settled(functions, slots, || self.control.read())?;
        self.check_undisturbed(cpu, slots, &status)?;
        if self.control.device().cpu()? != cpu {
            return Ok(false);
        }
        self.check_witnesses(cpu, slots, &status, sets)?;
        let has_counted = |slot| state.last(slot).is_some_and(|(value, _)| value > 0);
        let shown = self.counters_of(slots).all(has_counted);
        self.values(&status, slots, raw);
        // No counter wraps between two looks.
        let went_back = |(slot, now): &(&usize, &u64)| {
            state.last(**slot).is_some_and(|(before, _)| **now < before)
        };
        let back = slots.iter().zip(&*raw).find(went_back);
        if let Some((&slot, _)) = back.filter(|_| state.kept() == kept) {
            let reason = "its value went back, as when another process zeroes it";
            return Err(disturbed(cpu, self.slots[slot], reason.to_owned()));
        }
        self.check_reached(cpu, slots, raw, status.time_stamp, kept)?;
        Ok(shown)
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
        if state.witnesses() != 0 {
            self.end_witnesses(cpu, u32::MAX, &self.status(cpu)?)?;
        }
        let restored = self.restore(cpu, &found);
        if restored.is_ok() {
            *held = None;
            for counter in 0..self.counters {
                self.control.device().unclaim(counter as u8);
            }
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

impl<D: PctrDevice> PctrPmu<D> {
    /// Returns the functions that others have set, and the claim of another process if there is one to each counter.
    fn look_for_counters(
        &self,
        cpu: u32,
        state: &CpuState,
    ) -> Result<([u32; MAX_COUNTERS], Option<Claimed>)> {
        let status = self.status(cpu)?;
        let mut found = [0; MAX_COUNTERS];
        let mut claims = Vec::new();
        for (counter, found) in found.iter_mut().enumerate().take(self.counters) {
            *found = self.function_of_others(&status, counter);
            match self.control.device().claimed(counter as u8) {
                Some(claimed) => {
                    state.lose(counter, *found);
                    claims.push(claimed);
                }
                None => state.regain(counter, *found),
            }
        }
        let are_all = claims.len() == self.counters;
        Ok((found, claims.into_iter().next().filter(|_| are_all)))
    }
}

/// Several CPUs that are set together.
impl<D: PctrDevice> PctrPmu<D> {
    pub(super) fn bits(&self, slots: &[usize]) -> u32 {
        self.counters_of(slots).fold(0, |bits, c| bits | 1 << c)
    }

    /// Makes sure that no CPU has a word that counters are about to be set to: setting it again would not zero them.
    fn let_go(&self, looks: &Looks, cpu: u32, slots: &[usize], before: &Status) -> Result<()> {
        let state = self.cpu(cpu)?;
        let mut some_may_have = false;
        for counter in self.counters_of(slots) {
            let wanted = state.wanted(counter);
            if self.function(before, counter) == wanted {
                self.set_on(cpu, counter, 0)?;
                some_may_have = true;
            }
            some_may_have |= looks.may_have(counter, wanted);
        }
        if !some_may_have {
            return Ok(());
        }
        match looks.look_at_all(&self.control, &self.sets)? {
            Some(unreached) => Err(out_of_reach(unreached)),
            None => Ok(()),
        }
    }

    /// Stores what slots begin at that were just set: counters at 0 on every CPU, which is not read.
    fn start_all(&self, looks: &Looks, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        looks.forget(self.bits(slots));
        let time = self.control.read()?.time_stamp;
        for (&slot, raw) in slots.iter().zip(raw) {
            *raw = if slot < self.counters { 0 } else { time };
            for &cpu in looks.cpus() {
                self.readings(cpu)?.keep(slot, *raw, time);
            }
        }
        Ok(())
    }

    /// Reads a CPU as it was when it was last looked at, or when the slots were stopped.
    fn read_look(&self, looks: &Looks, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let (kept, sets) = (self.readings(cpu)?.kept(), self.sets.now());
        let status = match looks.stopped(cpu, self.bits(slots)) {
            Some(CpuSnapshot::Status(status)) => status,
            Some(CpuSnapshot::OutOfReach | CpuSnapshot::Unseen) => return Err(out_of_reach(cpu)),
            None => {
                let state = self.cpu(cpu)?;
                let status = self.settled(state, slots, || {
                    let status = looks.status(&self.control, &self.sets, cpu)?;
                    status.ok_or_else(|| out_of_reach(cpu))
                })?;
                self.check_undisturbed(cpu, slots, &status)?;
                status
            }
        };
        self.check_witnesses(cpu, slots, &status, sets)?;
        self.values(&status, slots, raw);
        self.check_reached(cpu, slots, raw, status.time_stamp, kept)
    }
}
