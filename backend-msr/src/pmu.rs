//! The counters as a register driver.

mod driver;
mod probe;
mod registers;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_hal::{CpuModel, Error, ErrorKind, Result};
use quipu_pmu::Slot;

pub(crate) use self::registers::{CpuCounters, SavedRegisters};
use crate::guard::Guard;
use crate::journal::{Journal, Record};
use crate::layout::{Counter, Gate, Layout, unusable};
use crate::{MsrBus, address};

/// The slot after those of the counters. Its register is read, and never written.
const TIME_STAMP: Slot = Slot::free_running(0, 64);

/// Options of acquiring counters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Options {
    /// The directory in which the values of registers are recorded before they are first written, so
    /// that [`restore`](crate::restore) can restore them after this process was killed. It also keeps
    /// two processes from acquiring the same CPU. [`runtime_directory`](crate::runtime_directory) on
    /// real machines; `None` records nothing.
    pub journal: Option<PathBuf>,
    /// Acquires counters that are already enabled as well, which ends the measurement of the program
    /// that enabled them.
    pub take_enabled: bool,
    /// The CPUs to count on; `None` means all that the bus reaches. On a hybrid CPU these must be
    /// the ones of a single core type.
    pub cpus: Option<Vec<u32>>,
}

impl Options {
    /// Sets the directory of the journal.
    #[must_use]
    pub fn with_journal(mut self, directory: impl Into<PathBuf>) -> Self {
        self.journal = Some(directory.into());
        self
    }

    /// Sets that counters are acquired that are already enabled.
    #[must_use]
    pub fn taking_enabled(mut self) -> Self {
        self.take_enabled = true;
        self
    }

    /// Sets the CPUs to count on.
    #[must_use]
    pub fn on_cpus(mut self, cpus: impl Into<Vec<u32>>) -> Self {
        self.cpus = Some(cpus.into());
        self
    }
}

/// The counters of x86 CPUs by way of their model-specific registers: a
/// [`Pmu`](quipu_pmu::Pmu) for [`VirtualPmu`](quipu_pmu::VirtualPmu).
///
/// Its slots are the counters, then the time stamp counter.
///
/// Nothing is written before a group is opened on a CPU. Then its registers are saved, and restored
/// when the last group there is dropped.
///
/// ```
/// use quipu_hal::{Encoding, X86Select};
/// use quipu_msr::sim::{Generation, Level, SimulatedMsrs, Stretch};
/// use quipu_msr::{MsrPmu, Options};
/// use quipu_pmu::Pmu;
///
/// let bus = SimulatedMsrs::new(Generation::AmdK7, 2);
/// let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default().on_cpus([0]))?;
/// let instructions = X86Select::new(0xc0, 0).with_flags(X86Select::USER);
/// let (mut begin, mut end) = ([0], [0]);
/// pmu.acquire(0)?;
/// pmu.program(0, 1, &Encoding::X86(instructions))?;
/// pmu.clear(0, 1)?;
/// pmu.start(0, &[1], &mut begin)?;
/// bus.run(0, &Stretch::new(Level::User, 100).occurring(0xc0, 3));
/// pmu.stop(0, &[1], &mut end)?;
/// assert_eq!(end[0] - begin[0], 300);
/// pmu.release(0)?;
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub struct MsrPmu<B: MsrBus> {
    guard: Guard<B>,
    layout: Layout,
    /// Those of the layout's counters that no other program uses.
    counters: Box<[Counter]>,
    slots: Box<[Slot]>,
    /// The others, each with a CPU on which it is enabled.
    in_use: Vec<(Counter, u32)>,
    numbers: Box<[u32]>,
    /// In the order of `numbers`.
    cpus: Box<[CpuState]>,
    journal: Option<Journal>,
    take_enabled: bool,
    taken_over: Mutex<Vec<(u32, Slot)>>,
    /// By CPU: counters that were not restored.
    not_restored: Mutex<Vec<(u32, Error)>>,
}

struct CpuState {
    number: u32,
    holding: Mutex<Option<Acquired>>,
    /// True once its counters have been seen counting.
    probed: AtomicBool,
}

/// A CPU whose counters are acquired.
struct Acquired {
    taken: SavedRegisters,
    record: Option<Record>,
}

impl<B: MsrBus> MsrPmu<B> {
    /// Creates a PMU of the CPUs that a bus reaches, which are of this model. It reads which of their
    /// counters are free, and writes nothing.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the CPUs have no counters that this crate
    /// knows, or visibly have none that work; [`Busy`](ErrorKind::Busy) when other programs use all
    /// of them; or else what the bus refuses.
    pub fn new(bus: B, model: &CpuModel, options: Options) -> Result<Self> {
        let pmu = Self::for_probing(bus, model, options)?;
        let read = || pmu.guard.read(pmu.numbers[0], address::TIME_STAMP);
        if read()? | read()? == 0 {
            return Err(probe::dead("even the time stamp counter reads 0"));
        }
        Ok(pmu)
    }

    /// Creates a PMU even if the counters visibly do not work: [`acquire`](quipu_pmu::Pmu::acquire)
    /// probes them on each CPU anyway, with a write, and reports how they fail.
    ///
    /// # Errors
    /// As [`new`](Self::new), except for counters that do not work.
    pub fn for_probing(bus: B, model: &CpuModel, options: Options) -> Result<Self> {
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
        let (mut counters, mut in_use) = (Vec::new(), Vec::new());
        for (counter, enabled) in layout.counters.iter().zip(&enabled) {
            match enabled {
                Some(cpu) => in_use.push((counter.clone(), *cpu)),
                None => counters.push(counter.clone()),
            }
        }
        if counters.is_empty() {
            let cpu = enabled.iter().flatten().next().copied().unwrap_or(first);
            return Err(busy(guard.bus(), cpu, "every counter is enabled already"));
        }
        Ok(Self {
            slots: counters
                .iter()
                .map(|counter| counter.slot)
                .chain([TIME_STAMP])
                .collect(),
            counters: counters.into(),
            in_use,
            cpus: numbers
                .iter()
                .map(|&number| CpuState::new(number))
                .collect(),
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

    /// Returns a short description of the counters.
    pub fn description(&self) -> &str {
        &self.layout.name
    }

    /// Returns the counters that another program had enabled on some CPU when this was created. They
    /// are left alone.
    pub fn in_use(&self) -> Vec<Slot> {
        self.in_use
            .iter()
            .map(|(counter, _)| counter.slot)
            .collect()
    }

    /// Returns the counters that another program had enabled and that were acquired all the same
    /// ([`Options::take_enabled`]), each with its CPU. They are restored on release.
    pub fn taken_over(&self) -> Vec<(u32, Slot)> {
        let taken_over = self.taken_over.lock();
        taken_over.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the bus.
    pub fn bus(&self) -> &B {
        self.guard.bus()
    }

    fn registers(&self, cpu: u32) -> CpuCounters<'_, B> {
        CpuCounters {
            guard: &self.guard,
            gate: self.layout.gate,
            counters: &self.counters,
            cpu,
        }
    }

    fn cpu(&self, number: u32) -> Result<&CpuState> {
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

    /// Acquires the counters of a CPU: saves and records their registers, and probes them.
    fn take(&self, cpu: &CpuState) -> Result<Acquired> {
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
        let mut holding = Acquired { taken, record };
        if let Err(e) = self.make_ready(cpu, &registers, &mut holding.taken) {
            // The first error is returned; the journal keeps what cannot be restored now.
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

    /// Notes the counters of a CPU that were not restored.
    fn note_put_back(&self, cpu: u32, holding: &Acquired, done: &Result<()>) {
        let mut list = self.lock_not_restored();
        list.retain(|(noted, _)| *noted != cpu);
        match done {
            Ok(()) => list.extend(holding.taken.left.iter().map(|&slot| {
                let attempted = format!("put back {} of CPU {cpu}", self.slots[slot]);
                let error = Error::new(ErrorKind::Interference, attempted)
                    .with_reason("another process has enabled it since");
                (cpu, error)
            })),
            Err(e) => {
                let attempted = format!("put back the counter registers of CPU {cpu}");
                let mut error = Error::new(ErrorKind::Os, attempted).with_reason(e.to_string());
                if holding.record.is_some() {
                    error = error.with_hint("as root: quipu msr restore");
                }
                list.push((cpu, error));
            }
        }
    }

    fn lock_not_restored(&self) -> MutexGuard<'_, Vec<(u32, Error)>> {
        let list = self.not_restored.lock();
        list.unwrap_or_else(PoisonError::into_inner)
    }

    fn make_ready(
        &self,
        cpu: &CpuState,
        registers: &CpuCounters<'_, B>,
        taken: &mut SavedRegisters,
    ) -> Result<()> {
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
                // An error cannot be returned; the journal keeps what cannot be restored.
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
            .field("in_use", &self.in_use())
            .field("cpus", &self.numbers)
            .finish_non_exhaustive()
    }
}

impl Acquired {
    fn put_back<B: MsrBus>(&mut self, registers: &CpuCounters<'_, B>) -> Result<()> {
        registers.put_back(&mut self.taken)?;
        self.record.as_mut().map_or(Ok(()), Record::finish)
    }
}

impl CpuState {
    fn new(number: u32) -> Self {
        Self {
            number,
            holding: Mutex::new(None),
            probed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Acquired>> {
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
    let control = |counter: &Counter| {
        let held = guard.read(cpu, counter.control.address())?;
        Ok(counter.control.part(held))
    };
    let controls = layout.counters.iter().map(control);
    let controls: Vec<u64> = controls.collect::<Result<_>>()?;
    for slot in layout.gate.in_use(&layout.counters, &controls) {
        match layout.gate {
            // Who has the one enable has all counters.
            Gate::First => enabled.fill(Some(cpu)),
            _ => enabled[slot] = Some(cpu),
        }
    }
    Ok(())
}

fn busy(bus: &impl MsrBus, cpu: u32, what: &str) -> Error {
    let likely_owner = bus.likely_owner();
    Error::new(ErrorKind::Busy, format!("take the counters of CPU {cpu}"))
        .with_reason(format!("{what}, probably by {}", likely_owner.name))
        .with_hint(likely_owner.remedy)
}
