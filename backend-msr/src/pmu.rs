//! The counters as a register driver.

mod driver;
mod registers;
mod taken;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_hal::{CpuModel, Error, ErrorKind, Result, Slot};

pub(crate) use self::registers::Registers;
pub(crate) use self::taken::Taken;
use crate::guard::Guard;
use crate::journal::{Journal, Record};
use crate::layout::{Counter, Gate, Layout, unusable};
use crate::{MsrBus, address, probe};

/// How counters are taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The directory in which is written down what registers held before they were first written,
    /// so that [`restore`](crate::restore) can repair what a killed process left. It also keeps two
    /// processes from taking the same CPU. [`runtime_directory`](crate::runtime_directory) on real
    /// machines; without one nothing is written down.
    pub journal: Option<PathBuf>,
    /// Takes counters that are enabled already as well, which ends what somebody else counts with
    /// them.
    pub take_enabled: bool,
    /// The CPUs to count on; nothing means all that the bus reaches. On a hybrid CPU these must be
    /// the ones of a single core type.
    pub cpus: Option<Vec<u32>>,
}

/// The counters of x86 CPUs by way of their model-specific registers: a
/// [`Pmu`](quipu_hal::Pmu) for [`VirtualPmu`](quipu_hal::VirtualPmu).
///
/// Nothing is written before a group is opened on a CPU. Then its registers are saved, and put back
/// when the last group there is dropped.
pub struct MsrPmu<B: MsrBus> {
    guard: Guard<B>,
    layout: Layout,
    /// Those of the layout's counters that nobody else uses.
    counters: Box<[Counter]>,
    slots: Box<[Slot]>,
    spoken_for: Vec<Slot>,
    numbers: Box<[u32]>,
    /// In the order of `numbers`.
    cpus: Box<[Cpu]>,
    journal: Option<Journal>,
    take_enabled: bool,
    taken_over: Mutex<Vec<(u32, Slot)>>,
    /// By CPU, what to say about what was not put back.
    not_restored: Mutex<Vec<(u32, String)>>,
}

struct Cpu {
    number: u32,
    holding: Mutex<Option<Holding>>,
    /// Whether its counters have been seen counting.
    probed: AtomicBool,
}

/// A CPU whose counters are taken.
struct Holding {
    taken: Taken,
    record: Option<Record>,
}

impl<B: MsrBus> MsrPmu<B> {
    /// The counters of the CPUs that a bus reaches, which are of this model. Looks which of them
    /// are free, and only reads for that.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the CPUs have no counters that this crate
    /// knows, or visibly have none that work; [`Busy`](ErrorKind::Busy) when somebody else uses all
    /// of them; or else what the bus refuses.
    pub fn new(bus: B, model: &CpuModel, options: Options) -> Result<Self> {
        let pmu = Self::on_trial(bus, model, options)?;
        let read = || pmu.guard.read(pmu.numbers[0], address::TIME_STAMP);
        if read()? | read()? == 0 {
            return Err(probe::dead("even the time stamp counter reads 0"));
        }
        Ok(pmu)
    }

    /// The same even where the counters visibly do not work: [`acquire`](quipu_hal::Pmu::acquire)
    /// tries them out on each CPU anyway, with a write, and says how they fail.
    ///
    /// # Errors
    /// As [`new`](Self::new), but for that.
    pub fn on_trial(bus: B, model: &CpuModel, options: Options) -> Result<Self> {
        let layout = Layout::detect(model, &bus)?;
        let numbers = options.cpus.unwrap_or_else(|| bus.cpus().to_vec());
        let Some(&first) = numbers.first() else {
            return Err(unusable().with_reason("no CPU is named"));
        };
        let boot = bus.boot();
        let guard = Guard::new(bus, layout.allowed.clone());
        let mut enabled = vec![None; layout.counters.len()];
        if !options.take_enabled {
            for &cpu in &numbers {
                look_for_enabled(&guard, &layout, cpu, &mut enabled)?;
            }
        }
        let (mut counters, mut spoken_for) = (Vec::new(), Vec::new());
        for (counter, enabled) in layout.counters.iter().zip(&enabled) {
            match enabled {
                Some(_) => spoken_for.push(counter.slot),
                None => counters.push(counter.clone()),
            }
        }
        if counters.is_empty() {
            let cpu = enabled.iter().flatten().next().copied().unwrap_or(first);
            return Err(busy(guard.bus(), cpu, "every counter is enabled already"));
        }
        Ok(Self {
            slots: counters.iter().map(|counter| counter.slot).collect(),
            counters: counters.into(),
            spoken_for,
            cpus: numbers.iter().map(|&number| Cpu::new(number)).collect(),
            numbers: numbers.into(),
            journal: options
                .journal
                .map(|directory| Journal::new(directory, boot)),
            take_enabled: options.take_enabled,
            taken_over: Mutex::default(),
            not_restored: Mutex::default(),
            layout,
            guard,
        })
    }

    /// What kind of counters these are, in a few words.
    pub fn description(&self) -> &str {
        &self.layout.name
    }

    /// The counters that somebody else had enabled on some CPU when this was made. They are left
    /// alone.
    pub fn spoken_for(&self) -> &[Slot] {
        &self.spoken_for
    }

    /// The counters that somebody else had enabled when they were taken all the same
    /// ([`Options::take_enabled`]), each with its CPU. They are given back as they were found.
    pub fn taken_over(&self) -> Vec<(u32, Slot)> {
        let taken_over = self.taken_over.lock();
        taken_over.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The way to the registers.
    pub fn bus(&self) -> &B {
        self.guard.bus()
    }

    fn registers(&self, cpu: u32) -> Registers<'_, B> {
        Registers {
            guard: &self.guard,
            gate: self.layout.gate,
            counters: &self.counters,
            cpu,
        }
    }

    fn cpu(&self, number: u32) -> Result<&Cpu> {
        // CPUs are mostly numbered from 0 without a gap, which makes this quick.
        let found = match self.cpus.get(number as usize) {
            Some(cpu) if cpu.number == number => Some(cpu),
            _ => self.cpus.iter().find(|cpu| cpu.number == number),
        };
        found.ok_or_else(|| {
            Error::new(
                ErrorKind::NoSuchTarget,
                format!("reach the registers of CPU {number}"),
            )
            .with_reason("it is not one of the CPUs this backend counts on")
        })
    }

    /// Takes the counters of a CPU: saves what they hold, writes it down, and sees whether they
    /// work.
    fn take(&self, cpu: &Cpu) -> Result<Holding> {
        let mut record = match &self.journal {
            Some(journal) => Some(journal.record(cpu.number)?),
            None => None,
        };
        let registers = self.registers(cpu.number);
        let taken = registers.save()?;
        let enabled = registers.enabled(&taken);
        if let Some(&slot) = enabled.first()
            && !self.take_enabled
        {
            let what = format!("{} is enabled already", self.slots[slot]);
            return Err(busy(self.bus(), cpu.number, &what));
        }
        if let Some(record) = &mut record {
            record.write(&registers.steps(&taken))?;
        }
        let mut holding = Holding { taken, record };
        if let Err(e) = self.make_ready(cpu, &registers, &mut holding.taken) {
            // The first error is the one to tell; the journal keeps what cannot be put back now.
            let _ = holding.put_back(&registers);
            return Err(e);
        }
        self.note_taken_over(cpu.number, &enabled);
        Ok(holding)
    }

    fn note_taken_over(&self, cpu: u32, enabled: &[usize]) {
        let taken_over = self.taken_over.lock();
        let mut taken_over = taken_over.unwrap_or_else(PoisonError::into_inner);
        for &slot in enabled {
            let counter = (cpu, self.slots[slot]);
            if !taken_over.contains(&counter) {
                taken_over.push(counter);
            }
        }
    }

    /// Keeps what there is to say about what was put back on a CPU, or not.
    fn note_put_back(&self, cpu: u32, holding: &Holding, done: &Result<()>) {
        let mut list = self.lock_not_restored();
        list.retain(|(noted, _)| *noted != cpu);
        match done {
            Ok(()) => list.extend(holding.taken.left.iter().map(|&slot| {
                let slot = self.slots[slot];
                let sentence = format!(
                    "{slot} of CPU {cpu} was not put back: somebody else has enabled it meanwhile"
                );
                (cpu, sentence)
            })),
            Err(e) => {
                let remedy = match &holding.record {
                    Some(_) => "; as root: quipu msr restore",
                    None => "",
                };
                let sentence =
                    format!("the counter registers of CPU {cpu} were not put back: {e}{remedy}");
                list.push((cpu, sentence));
            }
        }
    }

    fn lock_not_restored(&self) -> MutexGuard<'_, Vec<(u32, String)>> {
        let list = self.not_restored.lock();
        list.unwrap_or_else(PoisonError::into_inner)
    }

    fn make_ready(&self, cpu: &Cpu, registers: &Registers<'_, B>, taken: &mut Taken) -> Result<()> {
        registers.close()?;
        if !cpu.probed.load(Ordering::Relaxed) {
            probe::probe(registers, taken, &self.layout.pulse)?;
            registers.put_back_slots(taken)?;
            cpu.probed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl<B: MsrBus> Drop for MsrPmu<B> {
    fn drop(&mut self) {
        for cpu in &self.cpus {
            if let Some(mut holding) = cpu.lock().take() {
                // There is nobody to tell; the journal keeps what cannot be put back.
                let _ = holding.put_back(&self.registers(cpu.number));
            }
        }
    }
}

impl<B: MsrBus> fmt::Debug for MsrPmu<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MsrPmu")
            .field("description", &self.layout.name)
            .field("slots", &self.slots)
            .field("spoken_for", &self.spoken_for)
            .field("cpus", &self.numbers)
            .finish_non_exhaustive()
    }
}

impl Holding {
    fn put_back<B: MsrBus>(&mut self, registers: &Registers<'_, B>) -> Result<()> {
        registers.put_back(&mut self.taken)?;
        self.record.as_mut().map_or(Ok(()), Record::finish)
    }
}

impl Cpu {
    fn new(number: u32) -> Self {
        Self {
            number,
            holding: Mutex::new(None),
            probed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Holding>> {
        self.holding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes for each counter a CPU on which it is enabled.
fn look_for_enabled<B: MsrBus>(
    guard: &Guard<B>,
    layout: &Layout,
    cpu: u32,
    enabled: &mut [Option<u32>],
) -> Result<()> {
    let mut all = false;
    for (counter, enabled) in layout.counters.iter().zip(&mut *enabled) {
        let held = guard.read(cpu, counter.control.address())?;
        if counter.enabled(counter.control.part(held)) {
            *enabled = Some(cpu);
            all |= layout.gate == Gate::First && counter.slot.number == 0;
        }
    }
    if layout.gate == Gate::First {
        enabled.fill(all.then_some(cpu).or(enabled.first().copied().flatten()));
    }
    Ok(())
}

fn busy(bus: &impl MsrBus, cpu: u32, what: &str) -> Error {
    let suspect = bus.suspect();
    Error::new(ErrorKind::Busy, format!("take the counters of CPU {cpu}"))
        .with_reason(format!("{what}, probably by {}", suspect.who))
        .with_hint(suspect.remedy)
}
