//! Programs, starts, stops, verifies and restores the counters of one CPU.

use quipu_hal::{Error, ErrorKind, Result, X86Select};
use quipu_pmu::InUse;

use crate::MsrBus;
use crate::guard::{Guard, RestoreStep};
use crate::layout::{Control, Counter, Gate, Global};

/// The counters of one CPU, by way of the guard.
pub(crate) struct CpuCounters<'a, B> {
    pub(crate) guard: &'a Guard<B>,
    pub(crate) gate: Gate,
    pub(crate) counters: &'a [Counter],
    pub(crate) cpu: u32,
}

/// The registers of one CPU: their saved values, and the values written to them.
#[derive(Debug)]
pub(crate) struct SavedRegisters {
    pub(super) found: Box<[SavedCounter]>,
    /// The saved global control.
    pub(super) global: u64,
    /// The saved overflow bits.
    pub(super) status: u64,
    /// By slot: the control while the counter counts.
    pub(super) words: Box<[u64]>,
    /// By slot: the value last written to the control.
    pub(crate) written: Box<[u64]>,
    pub(super) counting: Box<[bool]>,
    /// By slot: true if a register was written and has to be restored.
    pub(super) touched: Box<[bool]>,
    /// By slot: true if another program has taken the counter since it was acquired.
    pub(super) lost: Box<[bool]>,
    /// The slots that were not restored, because another program has taken them since.
    pub(super) left: Vec<usize>,
}

/// The saved registers of one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavedCounter {
    pub(super) control: u64,
    pub(super) value: u64,
}

impl SavedRegisters {
    pub(super) fn new(found: Vec<SavedCounter>, global: u64, status: u64) -> Self {
        let slots = found.len();
        Self {
            words: vec![0; slots].into(),
            written: found.iter().map(|found| found.control).collect(),
            counting: vec![false; slots].into(),
            touched: vec![false; slots].into(),
            lost: vec![false; slots].into(),
            left: Vec::new(),
            found: found.into(),
            global,
            status,
        }
    }
}

impl<B: MsrBus> CpuCounters<'_, B> {
    /// Returns the values of the registers before anything is written.
    pub(super) fn save(&self) -> Result<SavedRegisters> {
        let (mut global, mut status) = (0, 0);
        if let Gate::Global(registers) = self.gate {
            global = self.guard.read(self.cpu, registers.control)?;
            status = self.guard.read(self.cpu, registers.status)?;
        }
        let mut found = Vec::with_capacity(self.counters.len());
        for counter in self.counters {
            let control = self.control(counter)?;
            let value = self.guard.read(self.cpu, counter.address)?;
            if let Control::Select { address, .. } = counter.control {
                self.guard.check_found(self.cpu, address, control)?;
            }
            self.guard.check_found(self.cpu, counter.writing, value)?;
            found.push(SavedCounter { control, value });
        }
        Ok(SavedRegisters::new(found, global, status))
    }

    /// Returns the slots whose counters counted when saved.
    pub(super) fn enabled(&self, taken: &SavedRegisters) -> Vec<usize> {
        let controls: Vec<u64> = taken.found.iter().map(|found| found.control).collect();
        self.gate.in_use(self.counters, &controls)
    }

    /// Closes the global gate, so that counters do not count as soon as they are programmed.
    pub(super) fn close(&self) -> Result<()> {
        if let Gate::Global(global) = self.gate {
            self.guard.merge(self.cpu, global.control, self.bits(), 0)?;
        }
        Ok(())
    }

    /// Programs a counter without starting it.
    pub(crate) fn program(&self, taken: &mut SavedRegisters, slot: usize, word: u64) -> Result<()> {
        let counter = &self.counters[slot];
        if self.is_anothers(taken, slot)? {
            taken.lost[slot] = true;
            return Err(self.changed(ErrorKind::Busy, slot).with_reason(
                "another program has enabled it since it was acquired, so it is left alone",
            ));
        }
        if taken.counting[slot]
            && let Gate::Global(global) = self.gate
        {
            // It was abandoned without being stopped, as after an interference.
            self.guard.merge(self.cpu, global.control, counter.bit, 0)?;
        }
        taken.counting[slot] = false;
        taken.words[slot] = word;
        self.set(taken, slot, self.standing(taken, slot))
    }

    /// Sets a counter to the value from which it counts.
    pub(crate) fn clear(&self, taken: &mut SavedRegisters, slot: usize) -> Result<()> {
        taken.touched[slot] = true;
        let counter = &self.counters[slot];
        self.guard.put(self.cpu, counter.writing, counter.origin)
    }

    pub(crate) fn read(&self, slot: usize) -> Result<u64> {
        self.guard.read(self.cpu, self.counters[slot].address)
    }

    /// Starts programmed counters from the values they have.
    pub(crate) fn start(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<()> {
        match self.gate {
            Gate::Global(global) => {
                let bits = self.bits_of(slots);
                self.guard.merge(self.cpu, global.control, bits, bits)?;
            }
            Gate::Each => {
                for &slot in slots {
                    self.set(taken, slot, taken.words[slot])?;
                }
            }
            Gate::First => self.start_first(taken, slots)?,
            Gate::Cesr => {
                for &slot in slots {
                    taken.written[slot] = taken.words[slot];
                }
                self.set_together(slots.iter().copied(), |slot| taken.words[slot])?;
            }
        }
        for &slot in slots {
            taken.counting[slot] = true;
        }
        Ok(())
    }

    /// Starts counters of a CPU whose counter 0 gates the others: the others first, so that all of them start with
    /// the gate if it was closed.
    fn start_first(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<()> {
        let Some(first) = self.first() else {
            return Ok(());
        };
        for &slot in slots.iter().filter(|&&slot| slot != first) {
            self.set(taken, slot, taken.words[slot] & !X86Select::ENABLE)?;
        }
        if slots.contains(&first) {
            self.set(taken, first, taken.words[first] | X86Select::ENABLE)?;
        } else if !taken.counting[first] && taken.written[first] != X86Select::ENABLE {
            self.set(taken, first, X86Select::ENABLE)?;
        }
        Ok(())
    }

    /// Returns the control of the counter that gates the others while it does not count itself: the gate stays open
    /// for those that go on when `slots` stop.
    fn gate_word(&self, taken: &SavedRegisters, first: usize, slots: &[usize]) -> u64 {
        let goes_on = |slot: usize| slot != first && taken.counting[slot] && !slots.contains(&slot);
        match (0..self.counters.len()).any(goes_on) {
            true => X86Select::ENABLE,
            false => 0,
        }
    }

    /// Stops counters, or fails with interference if another program changed them.
    pub(crate) fn stop(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<()> {
        let intact = match self.gate {
            Gate::Global(global) => self.stop_global(global, taken, slots),
            Gate::Each => self.stop_each(taken, slots),
            Gate::First => self.stop_first(taken, slots),
            Gate::Cesr => self.stop_cesr(taken, slots),
        };
        for &slot in slots {
            taken.counting[slot] = false;
        }
        match intact? {
            None => Ok(()),
            Some(slot) => Err(self.interference(taken, slots, slot)),
        }
    }

    /// Each of these returns the slot that another program changed, if any.
    fn stop_global(
        &self,
        global: Global,
        taken: &SavedRegisters,
        slots: &[usize],
    ) -> Result<Option<usize>> {
        let before = self
            .guard
            .merge(self.cpu, global.control, self.bits_of(slots), 0)?;
        let mut changed = None;
        let mut foreign = 0;
        for &slot in slots {
            let counter = &self.counters[slot];
            let held = self.control(counter)?;
            if before & counter.bit == 0 || held != taken.written[slot] {
                changed = Some(slot);
            }
            if held != taken.written[slot] && counter.enabled(held) {
                foreign |= before & counter.bit;
            }
        }
        if foreign != 0 {
            self.guard
                .merge(self.cpu, global.control, foreign, foreign)?;
        }
        Ok(changed)
    }

    fn stop_each(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<Option<usize>> {
        let mut changed = Ok(None);
        for &slot in slots {
            let stopped = self.control(&self.counters[slot]).and_then(|held| {
                if held != taken.written[slot] {
                    return Ok(Some(slot));
                }
                self.set(taken, slot, self.standing(taken, slot))?;
                Ok(None)
            });
            // All are stopped, and the first error is returned.
            changed = changed.and_then(|before: Option<usize>| Ok(before.or(stopped?)));
        }
        changed
    }

    /// Closes the gate if nothing else goes on, which stops all at once.
    fn stop_first(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<Option<usize>> {
        let Some(first) = self.first() else {
            return Ok(None);
        };
        let held = self.control(&self.counters[first])?;
        let expected = taken.written[first];
        let gate = self.gate_word(taken, first, slots);
        let stays = taken.counting[first] && !slots.contains(&first);
        if held == expected && !stays && held != gate {
            self.set(taken, first, gate)?;
        }
        if held != expected || !self.counters[first].enabled(expected) {
            return Ok(Some(first));
        }
        let mut changed = None;
        for &slot in slots.iter().filter(|&&slot| slot != first) {
            match self.control(&self.counters[slot])? == taken.written[slot] {
                true => self.set(taken, slot, 0)?,
                false => changed = changed.or(Some(slot)),
            }
        }
        Ok(changed)
    }

    fn stop_cesr(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<Option<usize>> {
        let Some(&first) = slots.first() else {
            return Ok(None);
        };
        let address = self.counters[first].control.address();
        let held = self.guard.read(self.cpu, address)?;
        let part = |slot: usize| self.counters[slot].control.part(held);
        let own = |&slot: &usize| part(slot) == taken.written[slot];
        let changed = slots.iter().copied().find(|slot| !own(slot));
        self.set_together(slots.iter().copied().filter(own), |_| 0)?;
        for &slot in slots {
            if part(slot) == taken.written[slot] {
                taken.written[slot] = 0;
            }
        }
        Ok(changed)
    }

    /// Checks that running counters still have the values written to them.
    pub(super) fn verify(&self, taken: &mut SavedRegisters, slots: &[usize]) -> Result<()> {
        let mut changed = self.changed_control(taken, slots.iter().copied())?;
        match self.gate {
            Gate::Global(global) => {
                let held = self.guard.read(self.cpu, global.control)?;
                let stopped = |&&slot: &&usize| held & self.counters[slot].bit == 0;
                changed = changed.or(slots.iter().find(stopped).copied());
            }
            Gate::First => changed = changed.or(self.changed_control(taken, self.first())?),
            Gate::Each | Gate::Cesr => {}
        }
        changed.map_or(Ok(()), |slot| Err(self.interference(taken, slots, slot)))
    }

    /// Restores the saved values, except of counters that another program has taken since.
    pub(super) fn put_back(&self, taken: &mut SavedRegisters) -> Result<()> {
        let Gate::Global(global) = self.gate else {
            return self.put_back_slots(taken);
        };
        let own = self.own_bits(taken);
        let closed = self.guard.merge(self.cpu, global.control, own, 0);
        let slots = self.put_back_slots(taken);
        let opened = self.put_back_global(global, own, taken);
        closed.map(drop).and(slots).and(opened)
    }

    /// Returns the bits of the counters that no other program has taken since. A counter that cannot
    /// be read is assumed to be ours.
    fn own_bits(&self, taken: &SavedRegisters) -> u64 {
        let own = |slot: &usize| !self.is_anothers(taken, *slot).unwrap_or(false);
        let slots = (0..self.counters.len()).filter(own);
        slots.fold(0, |bits, slot| bits | self.counters[slot].bit)
    }

    /// Returns true if another program has taken a counter since it was written last.
    fn is_anothers(&self, taken: &SavedRegisters, slot: usize) -> Result<bool> {
        let counter = &self.counters[slot];
        let held = self.control(counter)?;
        if held == taken.written[slot] {
            return Ok(false);
        }
        match (self.gate, self.first()) {
            // Only counter 0 has an enable.
            (Gate::First, Some(first)) if first != slot => self.is_anothers(taken, first),
            _ => Ok(counter.enabled(held)),
        }
    }

    /// Returns true if another program has taken a counter, or the enable that it needs.
    fn is_lost(&self, taken: &SavedRegisters, slot: usize) -> Result<bool> {
        let gate = self.first().filter(|_| self.gate == Gate::First);
        self.is_anothers(taken, gate.unwrap_or(slot))
    }

    /// Restores the registers of the counters alone.
    pub(super) fn put_back_slots(&self, taken: &mut SavedRegisters) -> Result<()> {
        let mut result = Ok(());
        for slot in 0..self.counters.len() {
            if taken.touched[slot] {
                let done = self.put_back_slot(taken, slot);
                taken.touched[slot] = done.is_err();
                result = result.and(done);
            }
        }
        result
    }

    fn put_back_slot(&self, taken: &mut SavedRegisters, slot: usize) -> Result<()> {
        if self.is_anothers(taken, slot)? {
            taken.left.push(slot);
            return Ok(());
        }
        let found = taken.found[slot];
        for step in self.slot_steps(slot, found) {
            self.guard.apply(self.cpu, step)?;
        }
        taken.written[slot] = found.control;
        taken.counting[slot] = false;
        Ok(())
    }

    fn put_back_global(&self, global: Global, own: u64, taken: &SavedRegisters) -> Result<()> {
        let overflowed = self.guard.read(self.cpu, global.status)? & own & !taken.status;
        if overflowed != 0 {
            self.guard.put(self.cpu, global.clear, overflowed)?;
        }
        self.guard
            .merge(self.cpu, global.control, own, taken.global)?;
        Ok(())
    }

    /// Returns the writes that restore the saved values, in order, for another process.
    pub(super) fn steps(&self, taken: &SavedRegisters) -> Vec<RestoreStep> {
        let global = |value| match self.gate {
            Gate::Global(global) => Some(RestoreStep {
                address: global.control,
                mask: self.bits(),
                value: value & self.bits(),
            }),
            _ => None,
        };
        let slots = taken.found.iter().enumerate();
        let slots = slots.flat_map(|(slot, &found)| self.slot_steps(slot, found));
        global(0)
            .into_iter()
            .chain(slots)
            .chain(global(taken.global))
            .collect()
    }

    /// Disable, value, control.
    fn slot_steps(&self, slot: usize, found: SavedCounter) -> [RestoreStep; 3] {
        let counter = &self.counters[slot];
        let (address, mask) = (counter.control.address(), counter.control.mask());
        let value = match counter.control {
            Control::Select { .. } => found.control,
            Control::Field { shift, .. } => found.control << shift,
        };
        let step = |address, mask, value| RestoreStep {
            address,
            mask,
            value,
        };
        [
            step(address, mask, 0),
            step(counter.writing, u64::MAX, found.value),
            step(address, mask, value),
        ]
    }

    /// Returns the control of a counter that is programmed and does not count.
    fn standing(&self, taken: &SavedRegisters, slot: usize) -> u64 {
        let word = taken.words[slot];
        let some_count = taken.counting.contains(&true);
        match self.gate {
            Gate::Global(_) => word,
            Gate::First if some_count && self.first() == Some(slot) => X86Select::ENABLE,
            Gate::First if some_count => 0,
            Gate::Each | Gate::First => word & !X86Select::ENABLE,
            Gate::Cesr => 0,
        }
    }

    pub(crate) fn control(&self, counter: &Counter) -> Result<u64> {
        let held = self.guard.read(self.cpu, counter.control.address())?;
        Ok(counter.control.part(held))
    }

    fn set(&self, taken: &mut SavedRegisters, slot: usize, word: u64) -> Result<()> {
        taken.touched[slot] = true;
        match self.counters[slot].control {
            Control::Select { address, .. } => self.guard.put(self.cpu, address, word)?,
            Control::Field {
                address,
                shift,
                bits,
            } => {
                self.guard
                    .merge(self.cpu, address, bits << shift, word << shift)?;
            }
        }
        taken.written[slot] = word;
        Ok(())
    }

    /// Sets fields of the one register they are in by one write.
    fn set_together(
        &self,
        slots: impl IntoIterator<Item = usize>,
        word: impl Fn(usize) -> u64,
    ) -> Result<()> {
        let (mut register, mut mask, mut value) = (None, 0, 0);
        for slot in slots {
            if let Control::Field {
                address,
                shift,
                bits,
            } = self.counters[slot].control
            {
                register = Some(address);
                mask |= bits << shift;
                value |= word(slot) << shift;
            }
        }
        if let Some(address) = register {
            self.guard.merge(self.cpu, address, mask, value)?;
        }
        Ok(())
    }

    fn changed_control(
        &self,
        taken: &SavedRegisters,
        slots: impl IntoIterator<Item = usize>,
    ) -> Result<Option<usize>> {
        for slot in slots {
            if self.control(&self.counters[slot])? != taken.written[slot] {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Returns the slot of counter 0.
    fn first(&self) -> Option<usize> {
        self.counters
            .iter()
            .position(|counter| counter.slot.number == 0)
    }

    fn bits(&self) -> u64 {
        self.counters
            .iter()
            .fold(0, |bits, counter| bits | counter.bit)
    }

    fn bits_of(&self, slots: &[usize]) -> u64 {
        slots
            .iter()
            .fold(0, |bits, &slot| bits | self.counters[slot].bit)
    }

    /// Returns the slots that are in use: those that were enabled when acquired and have not been written
    /// since, and those that another program has taken since and not given up yet.
    pub(super) fn in_use(&self, taken: &mut SavedRegisters) -> InUse {
        for slot in 0..self.counters.len() {
            taken.lost[slot] = taken.lost[slot] && self.is_lost(taken, slot).unwrap_or(true);
        }
        let bits = |slots: &mut dyn Iterator<Item = usize>| slots.fold(0, |bits, s| bits | 1 << s);
        let enabled = self.enabled(taken).into_iter();
        let lost = 0..self.counters.len();
        InUse::new(
            bits(&mut enabled.filter(|slot| !taken.touched[*slot])),
            bits(&mut lost.filter(|slot| taken.lost[*slot])),
        )
    }

    /// Returns the error for a slot that another program changed, and leaves to it what it has taken.
    #[cold]
    fn interference(&self, taken: &mut SavedRegisters, slots: &[usize], slot: usize) -> Error {
        let all = 0..self.counters.len();
        for slot in all.filter(|slot| self.gate == Gate::First || slots.contains(slot)) {
            taken.lost[slot] |= self.is_lost(taken, slot).unwrap_or(false);
        }
        let likely_owner = self.guard.bus().likely_owner();
        self.changed(ErrorKind::Interference, slot)
            .with_reason(format!(
                "its registers were changed, probably by {}",
                likely_owner.name
            ))
            .with_hint(likely_owner.remedy)
    }

    #[cold]
    fn changed(&self, kind: ErrorKind, slot: usize) -> Error {
        let slot = self.counters[slot].slot;
        Error::new(kind, format!("count with {slot} of CPU {}", self.cpu))
    }
}
