//! A simulated register file: an [`MsrBus`] of plain memory whose counters count a scripted workload.
//!
//! It speaks addresses and bits as the CPUs do: registers that do not exist and values with reserved
//! bits fault, writes to narrow counters are sign-extended, enables gate, every CPU has registers of
//! its own. Nothing counts unless [`run`](SimulatedMsrs::run) lets a CPU execute something, so every
//! value is known exactly.

mod cpu;
mod generation;
mod names;
mod stretch;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_hal::{CpuModel, Error, Result};

use self::cpu::SimCpu;
pub use self::generation::Generation;
pub use self::names::EventNames;
pub use self::stretch::{Level, Stretch};
use crate::MsrBus;
use crate::bus::errors::{KernelDriver, Operation, Settings};

/// Registers of plain memory. Clones are the same machine.
///
/// ```
/// use quipu_msr::MsrBus;
/// use quipu_msr::sim::{Generation, Level, SimulatedMsrs, Stretch};
///
/// let bus = SimulatedMsrs::new(Generation::AmdK7, 1);
/// bus.write(0, 0xc001_0000, 0x43_00c0)?; // instructions, user and kernel, enabled
/// bus.run(0, &Stretch::new(Level::User, 100).occurring(0xc0, 2));
/// assert_eq!(bus.read(0, 0xc001_0004)?, 200);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Clone)]
pub struct SimulatedMsrs {
    machine: Arc<Machine>,
}

struct Machine {
    generation: Generation,
    numbers: Vec<u32>,
    cpus: Vec<Mutex<SimCpu>>,
    current: AtomicU32,
    reads: AtomicU64,
    writes: AtomicU64,
    behaviour: Mutex<Behaviour>,
}

/// A defect of the simulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Defect {
    /// Nothing.
    #[default]
    None,
    /// Every register reads 0 and no write does anything, without a fault.
    Hollow,
    /// Only the counting registers are like that.
    HollowCounters,
    /// Registers keep what is written, and never count.
    Standstill,
}

#[derive(Debug, Default)]
struct Behaviour {
    defect: Defect,
    refuse_writes: bool,
    /// Accesses until one fails, and its error number.
    fault: Option<(u64, i32)>,
}

impl SimulatedMsrs {
    /// Creates a machine of a number of CPUs, with no counter enabled.
    pub fn new(generation: Generation, cpus: u32) -> Self {
        let cpu = |_| Mutex::new(SimCpu::new(generation));
        Self {
            machine: Arc::new(Machine {
                generation,
                numbers: (0..cpus).collect(),
                cpus: (0..cpus).map(cpu).collect(),
                current: AtomicU32::new(0),
                reads: AtomicU64::new(0),
                writes: AtomicU64::new(0),
                behaviour: Mutex::default(),
            }),
        }
    }

    /// Returns the CPU model.
    pub fn model(&self) -> CpuModel {
        self.machine.generation.model()
    }

    /// Lets a CPU execute a stretch; does nothing if there is no such CPU.
    pub fn run(&self, cpu: u32, stretch: &Stretch) {
        let standstill = self.machine.behaviour().defect == Defect::Standstill;
        if let Some(mut cpu) = self.machine.cpu(cpu) {
            cpu.run(stretch, standstill);
        }
    }

    /// Returns the events that the counters of a CPU count now, each once, as a [`Stretch`] names them.
    pub fn counted(&self, cpu: u32) -> Vec<u64> {
        let counted = self.machine.cpu(cpu).map(|cpu| cpu.counted());
        let mut events = counted.unwrap_or_default();
        events.sort_unstable();
        events.dedup();
        events
    }

    /// Returns every register of a CPU with its value, without the time stamp counter.
    pub fn dump(&self, cpu: u32) -> Vec<(u32, u64)> {
        self.machine
            .cpu(cpu)
            .map(|cpu| cpu.dump())
            .unwrap_or_default()
    }

    /// Sets the CPU that the calling threads are on.
    pub fn set_current_cpu(&self, cpu: u32) {
        self.machine.current.store(cpu, Ordering::SeqCst);
    }

    /// Sets the defect of the machine.
    pub fn set_defect(&self, defect: Defect) {
        self.machine.behaviour().defect = defect;
    }

    /// Sets whether writes are refused, as by `msr.allow_writes=off`.
    pub fn refuse_writes(&self, refuse: bool) {
        self.machine.behaviour().refuse_writes = refuse;
    }

    /// Makes one access fail with an error number, after so many that succeed.
    pub fn fail(&self, after: u64, errno: i32) {
        self.machine.behaviour().fault = Some((after, errno));
    }

    /// Cancels a pending failure; returns true if there was one.
    pub fn withdraw(&self) -> bool {
        self.machine.behaviour().fault.take().is_some()
    }

    /// Returns the numbers of reads and writes so far.
    pub fn accesses(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::SeqCst);
        (load(&self.machine.reads), load(&self.machine.writes))
    }
}

impl Machine {
    fn cpu(&self, number: u32) -> Option<MutexGuard<'_, SimCpu>> {
        let cpu = self.cpus.get(number as usize)?;
        Some(cpu.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the CPU for an access, unless that is to fail.
    fn access(&self, cpu: u32, operation: Operation) -> Result<(MutexGuard<'_, SimCpu>, Defect)> {
        let mut behaviour = self.behaviour();
        if let Some((after, errno)) = &mut behaviour.fault {
            if *after == 0 {
                let errno = *errno;
                behaviour.fault = None;
                return Err(refused(cpu, operation, errno, false));
            }
            *after -= 1;
        }
        if behaviour.refuse_writes && matches!(operation, Operation::Write(_)) {
            return Err(refused(cpu, operation, libc::EPERM, true));
        }
        let found = self.cpu(cpu);
        let found = found.ok_or_else(|| refused(cpu, Operation::Open, libc::ENXIO, false))?;
        Ok((found, behaviour.defect))
    }
}

/// Returns an error as msr(4) would give it.
#[cold]
fn refused(cpu: u32, operation: Operation, errno: i32, allow_writes_off: bool) -> Error {
    KernelDriver::Msr.error(cpu, operation, errno, || Settings {
        root: true,
        allow_writes: allow_writes_off.then(|| "off".into()),
        ..Settings::default()
    })
}

impl MsrBus for SimulatedMsrs {
    fn cpus(&self) -> &[u32] {
        &self.machine.numbers
    }

    fn current_cpu(&self) -> Result<u32> {
        Ok(self.machine.current.load(Ordering::SeqCst))
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        let operation = Operation::Read(address);
        self.machine.reads.fetch_add(1, Ordering::SeqCst);
        let (mut registers, defect) = self.machine.access(cpu, operation)?;
        match registers.read(address) {
            _ if defect == Defect::Hollow => Ok(0),
            Some(_) if defect == Defect::HollowCounters && registers.counts(address) => Ok(0),
            Some(value) => Ok(value),
            None => Err(refused(cpu, operation, libc::EIO, false)),
        }
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        let operation = Operation::Write(address);
        self.machine.writes.fetch_add(1, Ordering::SeqCst);
        let (mut registers, defect) = self.machine.access(cpu, operation)?;
        match defect {
            Defect::Hollow => Ok(()),
            Defect::HollowCounters if registers.counts(address) => Ok(()),
            _ if registers.write(address, value) => Ok(()),
            _ => Err(refused(cpu, operation, libc::EIO, false)),
        }
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        Ok(self.machine.generation.cpuid(leaf, subleaf))
    }

    fn exercise(&self, cpu: u32) -> Result<()> {
        self.run(cpu, &self.machine.generation.pulse());
        Ok(())
    }
}

impl fmt::Debug for SimulatedMsrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedMsrs")
            .field("generation", &self.machine.generation)
            .field("cpus", &self.machine.numbers.len())
            .finish_non_exhaustive()
    }
}
