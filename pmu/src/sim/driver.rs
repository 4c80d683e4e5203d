//! The simulated PMU as a register driver.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quipu_hal::{Encoding, Error, ErrorKind, Result, Simultaneity, SlotSet};

use super::{Cpu, Machine, SimOperation, SimPmu, SimRegister, SimSelect};
use crate::{Access, InUse, Pmu, Slot};

impl Pmu for SimPmu {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn slots(&self) -> &[Slot] {
        &self.machine.model.slots
    }

    fn cpus(&self) -> &[u32] {
        &self.machine.model.cpus
    }

    fn current_cpu(&self) -> Result<u32> {
        Ok(self.machine.current.load(Ordering::SeqCst))
    }

    fn access(&self) -> Access {
        self.machine.model.access
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        let known = match encoding {
            Encoding::Simulated(bits) => {
                let event = SimSelect::from_bits(*bits).event;
                self.machine.event(event).is_some()
            }
            _ => false,
        };
        let slots = self.slots().iter().filter(|_| known);
        Ok(slots.fold(SlotSet::EMPTY, |set, slot| {
            set.with(slot.class, slot.number)
        }))
    }

    fn look_interval(&self) -> Option<Duration> {
        self.machine.model.look_interval
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Acquire, cpu)?;
        let mut found = cpu.lock();
        let busy = |reason: String| {
            let attempted = format!("take the counters of CPU {}", cpu.number);
            Err(Error::new(ErrorKind::Busy, attempted).with_reason(reason))
        };
        if found.is_some() {
            return busy("another user has taken them".into());
        }
        let now = machine.clock.now();
        let mut content = Vec::with_capacity(cpu.registers.len());
        for (slot, register) in cpu.registers.iter().enumerate() {
            if register.is_counting() && !machine.is_free_running(slot) {
                let slot = machine.model.slots[slot];
                return busy(format!("{slot} counts for another user"));
            }
            content.push(SimRegister {
                select: register.select(),
                counting: false,
                raw: machine.raw(cpu, slot, now),
            });
        }
        *found = Some(content);
        cpu.programmed.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// A slot is in use if an event was selected there when it was acquired.
    fn in_use(&self, cpu: u32) -> InUse {
        let Ok(cpu) = self.machine.cpu(cpu) else {
            return InUse::default();
        };
        let programmed = cpu.programmed.load(Ordering::Relaxed);
        let selected = |slot: &usize| cpu.registers[*slot].select() != 0;
        let found = (0..cpu.registers.len())
            .filter(|slot| selected(slot) && !self.machine.is_free_running(*slot))
            .fold(0, |slots, slot| slots | 1 << slot);
        InUse::new(found & !programmed, 0)
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Program, cpu)?;
        machine.check_slots(&[slot])?;
        let Encoding::Simulated(bits) = *encoding else {
            let attempted = "program a simulated counter";
            return Err(Error::new(ErrorKind::UnsupportedEvent, attempted)
                .with_reason("the encoding is not a simulated one"));
        };
        if machine.is_free_running(slot) {
            return Ok(());
        }
        let _one_at_a_time = cpu.lock();
        cpu.programmed.fetch_or(1 << slot, Ordering::Relaxed);
        machine.change(cpu, |now| {
            machine.stop(cpu, slot, now);
            let event = machine.event(SimSelect::from_bits(bits).event);
            cpu.registers[slot].set_event(bits, event);
            cpu.registers[slot].note();
        });
        Ok(())
    }

    fn clear(&self, cpu: u32, slot: usize) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Clear, cpu)?;
        machine.check_slots(&[slot])?;
        if machine.is_free_running(slot) {
            return Ok(());
        }
        let _one_at_a_time = cpu.lock();
        machine.change(cpu, |_| cpu.registers[slot].set_value(0));
        Ok(())
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Start, cpu)?;
        machine.check_slots(slots)?;
        let _one_at_a_time = cpu.lock();
        machine.change(cpu, |now| {
            for (&slot, raw) in slots.iter().zip(raw) {
                if !machine.is_free_running(slot) {
                    machine.stop(cpu, slot, now);
                    machine.start(cpu, slot, now);
                    cpu.registers[slot].note();
                }
                *raw = machine.raw(cpu, slot, now);
            }
        });
        Ok(())
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Stop, cpu)?;
        machine.check_slots(slots)?;
        let _one_at_a_time = cpu.lock();
        let disturbed = machine.disturbed(cpu, slots);
        machine.change(cpu, |now| {
            for (&slot, raw) in slots.iter().zip(raw) {
                if !machine.is_free_running(slot) {
                    machine.stop(cpu, slot, now);
                    cpu.registers[slot].note();
                }
                *raw = machine.raw(cpu, slot, now);
            }
        });
        disturbed.map_or(Ok(()), Err)
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Read, cpu)?;
        machine.check_slots(slots)?;
        let whole = machine.snapshot(cpu, |now| {
            let mut whole = true;
            for (&slot, raw) in slots.iter().zip(&mut *raw) {
                whole &= !cpu.registers[slot].is_disturbed();
                *raw = machine.raw(cpu, slot, now);
            }
            whole
        });
        if whole {
            return Ok(());
        }
        machine.disturbed(cpu, slots).map_or(Ok(()), Err)
    }

    fn release(&self, cpu: u32) -> Result<()> {
        let machine = &self.machine;
        let cpu = machine.begin(SimOperation::Release, cpu)?;
        let mut found = cpu.lock();
        if let Some(content) = found.take() {
            machine.change(cpu, |now| {
                let content = content.into_iter().enumerate();
                for (slot, content) in content.filter(|(slot, _)| !machine.is_free_running(*slot)) {
                    machine.write(cpu, slot, content, now);
                    cpu.registers[slot].note();
                }
            });
        }
        Ok(())
    }
}

impl Machine {
    /// Begins an operation on a CPU: which one it is, or why it fails.
    fn begin(&self, operation: SimOperation, cpu: u32) -> Result<&Cpu> {
        self.faults.check(operation, cpu)?;
        if self.model.access == Access::MeasuringThread {
            let current = self.current.load(Ordering::SeqCst);
            if cpu != current {
                let attempted = format!("{operation} counters of CPU {cpu}");
                let reason =
                    format!("they are reached from that CPU only, and this is CPU {current}");
                return Err(Error::new(ErrorKind::WrongThread, attempted).with_reason(reason));
            }
        }
        self.cpu(cpu)
    }

    fn check_slots(&self, slots: &[usize]) -> Result<()> {
        let have = self.model.slots.len();
        match slots.iter().find(|&&slot| slot >= have) {
            None => Ok(()),
            Some(slot) => Err(Error::new(
                ErrorKind::InvalidConfiguration,
                format!("use slot {slot} of a simulated PMU"),
            )
            .with_reason(format!("it has {have} slots"))),
        }
    }

    /// The error for the first of these slots that another user has changed.
    fn disturbed(&self, cpu: &Cpu, slots: &[usize]) -> Option<Error> {
        let changed = |&&slot: &&usize| cpu.registers[slot].is_disturbed();
        let slot = self.model.slots[*slots.iter().find(changed)?];
        let attempted = format!("count with {slot} of CPU {}", cpu.number);
        Some(
            Error::new(ErrorKind::Interference, attempted)
                .with_reason("its select register does not hold what was programmed"),
        )
    }
}
