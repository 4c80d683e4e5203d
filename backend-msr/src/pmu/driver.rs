//! Implements [`Pmu`] for [`MsrPmu`].

use std::time::Duration;

use quipu_hal::{Encoding, Error, ErrorKind, Result, Simultaneity, SlotSet};
use quipu_pmu::assign::MAX_SLOTS;
use quipu_pmu::{Access, InUse, Pmu, Slot};

use super::{Acquired, CpuCounters, MsrPmu, TIME_STAMP};
use crate::layout::Counter;
use crate::{MsrBus, address};

/// The interval at which registers are verified that are not read. It takes about twice as long as
/// reading, so that once a second is negligible.
const VERIFY_INTERVAL: Duration = Duration::from_secs(1);

/// The interval after which a read verifies too. Reading a register takes 0.3 to 3 microseconds, and
/// verifying four counters five of them: a sixth of the time of a program that reads all the time, at worst.
const READ_VERIFY_INTERVAL: Duration = Duration::from_micros(100);

impl<B: MsrBus> MsrPmu<B> {
    /// Calls `work` with the registers of an acquired CPU.
    fn with<T>(
        &self,
        cpu: u32,
        work: impl FnOnce(&CpuCounters<'_, B>, &mut Acquired) -> Result<T>,
    ) -> Result<T> {
        let mut holding = self.cpu(cpu)?.lock();
        let holding = holding.as_mut().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidConfiguration,
                format!("use the counters of CPU {cpu}"),
            )
            .with_reason("they have not been taken")
        })?;
        work(&self.registers(cpu), holding)
    }

    /// Returns true for the slot of the time stamp counter, which is not set.
    fn is_time_stamp(&self, slot: usize) -> bool {
        slot == self.counters.len()
    }

    /// Copies those of these slots that are counters into `room`.
    fn counters_of<'r>(&self, slots: &[usize], room: &'r mut [usize]) -> Result<&'r [usize]> {
        let mut number = 0;
        let counters = slots.iter().filter(|slot| !self.is_time_stamp(**slot));
        for (&slot, room) in counters.zip(&mut *room) {
            self.counter(slot)?;
            *room = slot;
            number += 1;
        }
        Ok(&room[..number])
    }

    /// Returns the register that a slot is read from.
    fn address(&self, slot: usize) -> Result<u32> {
        if self.is_time_stamp(slot) {
            return Ok(address::TIME_STAMP);
        }
        Ok(self.counter(slot)?.address)
    }

    /// Calls `work` with the counters among `slots`, if there are any.
    fn with_counters(
        &self,
        cpu: u32,
        slots: &[usize],
        work: impl FnOnce(&CpuCounters<'_, B>, &mut Acquired, &[usize]) -> Result<()>,
    ) -> Result<()> {
        let mut room = [0; MAX_SLOTS];
        match self.counters_of(slots, &mut room)? {
            [] => Ok(()),
            counters => self.with(cpu, |registers, holding| work(registers, holding, counters)),
        }
    }

    fn counter(&self, slot: usize) -> Result<&Counter> {
        self.counters.get(slot).ok_or_else(|| {
            Error::new(ErrorKind::InvalidConfiguration, format!("use slot {slot}"))
                .with_reason(format!("there are {} slots", self.slots.len()))
        })
    }
}

impl<B: MsrBus> Pmu for MsrPmu<B> {
    fn name(&self) -> &'static str {
        "msr"
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn cpus(&self) -> &[u32] {
        &self.numbers
    }

    fn current_cpu(&self) -> Result<u32> {
        self.bus().current_cpu()
    }

    fn access(&self) -> Access {
        Access::AnyThread
    }

    fn pin(&self, cpu: u32) -> bool {
        self.bus().pin(cpu)
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        if *encoding == Encoding::TimeStamp {
            return Ok(SlotSet::one(TIME_STAMP.class, TIME_STAMP.number));
        }
        let able = self.counters.iter().filter(|c| c.word(encoding).is_some());
        Ok(able.fold(SlotSet::EMPTY, |set, counter| {
            set.with(counter.slot.class, counter.slot.number)
        }))
    }

    fn busy(&self, encoding: &Encoding, counters: SlotSet) -> Option<Error> {
        let able = |counter: &&Counter| {
            let Slot { class, number, .. } = counter.slot;
            counters.contains(class, number) && counter.word(encoding).is_some()
        };
        let busy = self.in_use.iter().filter(|(counter, _)| able(&counter));
        let (_, cpu) = busy.min_by_key(|(_, cpu)| *cpu)?;
        let what = "every counter that can count it is enabled already";
        Some(super::busy(self.bus(), *cpu, what))
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        let cpu = self.cpu(cpu)?;
        let mut holding = cpu.lock();
        if holding.is_some() {
            let attempted = format!("take the counters of CPU {}", cpu.number);
            return Err(
                Error::new(ErrorKind::Busy, attempted).with_reason("they are taken already")
            );
        }
        *holding = Some(self.take(cpu)?);
        Ok(())
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        if self.is_time_stamp(slot) && *encoding == Encoding::TimeStamp {
            return Ok(());
        }
        let word = self.counter(slot)?.word(encoding).ok_or_else(|| {
            Error::new(
                ErrorKind::UnsupportedEvent,
                format!("program {}", self.slots[slot]),
            )
            .with_reason("the encoding has bits that its registers do not take")
        })?;
        self.with(cpu, |registers, holding| {
            registers.program(&mut holding.taken, slot, word)
        })
    }

    fn clear(&self, cpu: u32, slot: usize) -> Result<()> {
        self.with_counters(cpu, &[slot], |registers, holding, _| {
            registers.clear(&mut holding.taken, slot)
        })
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.read(cpu, slots, raw)?;
        self.with_counters(cpu, slots, |registers, holding, counters| {
            registers.start(&mut holding.taken, counters)
        })
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.with_counters(cpu, slots, |registers, holding, counters| {
            registers.stop(&mut holding.taken, counters)
        })?;
        self.read(cpu, slots, raw)
    }

    #[inline]
    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        for (&slot, raw) in slots.iter().zip(raw) {
            *raw = self.bus().read(cpu, self.address(slot)?)?;
        }
        Ok(())
    }

    /// Takes registers that are just being written for intact: whoever writes them verifies them.
    fn verify(&self, cpu: u32, slots: &[usize]) -> Result<()> {
        let mut room = [0; MAX_SLOTS];
        let counters = self.counters_of(slots, &mut room)?;
        match self.cpu(cpu)?.holding.try_lock().as_deref_mut() {
            Ok(Some(holding)) if !counters.is_empty() => {
                self.registers(cpu).verify(&mut holding.taken, counters)
            }
            _ => Ok(()),
        }
    }

    fn verify_interval(&self) -> Option<Duration> {
        Some(VERIFY_INTERVAL)
    }

    fn read_verify_interval(&self) -> Option<Duration> {
        Some(READ_VERIFY_INTERVAL)
    }

    fn in_use(&self, cpu: u32) -> InUse {
        let in_use = |registers: &CpuCounters<'_, B>, holding: &mut Acquired| {
            Ok(registers.in_use(&mut holding.taken))
        };
        self.with(cpu, in_use).unwrap_or_default()
    }

    fn release(&self, cpu: u32) -> Result<()> {
        let mut holding = self.cpu(cpu)?.lock();
        let Some(held) = holding.as_mut() else {
            return Ok(());
        };
        let done = held.put_back(&self.registers(cpu));
        self.note_put_back(cpu, held, &done);
        if done.is_ok() {
            *holding = None;
        }
        done
    }

    fn restore_failures(&self) -> Vec<Error> {
        let list = self.lock_not_restored();
        list.iter().map(|(_, error)| error.clone()).collect()
    }
}
