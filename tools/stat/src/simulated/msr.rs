//! Simulated model-specific registers: counting with the backend `msr`, without root and without the counters.

use std::sync::{Arc, Mutex, PoisonError};

use quipu::msr::sim::{Generation, Level, SimulatedMsrs, Stretch};
use quipu::msr::{MsrBus, MsrPmu, Options};
use quipu_events::identify::Core;
use quipu_events::{CpuEvents, Database, Interface};
use quipu_hal::{Backend, Event, EventMap, Result};
use quipu_pmu::{MonotonicClock, VirtualPmu};
use quipu_posix::PosixBackend;
use quipu_shell::Failure;
use quipu_text::EventNames;

/// The one CPU of the machine.
const CPU: u32 = 0;

/// The registers, and the backends there would be on the machine.
#[derive(Debug)]
pub struct SimulatedMsr {
    registers: LoggedMsrs,
    events: Arc<CpuEvents>,
    backends: [Arc<dyn Backend>; 2],
}

impl SimulatedMsr {
    pub fn new(generation: Generation) -> Result<Self, Failure> {
        let registers = LoggedMsrs::new(SimulatedMsrs::new(generation, 1));
        let core = Core::new(generation.model().identity);
        let events = Arc::new(
            Database::open(None)?
                .identify(&core)?
                .events_for(Interface::Msr),
        );
        let pmu = MsrPmu::new(registers.clone(), events.cpu(), Options::default())?;
        // What the counters were tried out with.
        registers.forget();
        let map: Arc<dyn EventMap> = events.clone();
        let msr = VirtualPmu::new(pmu, MonotonicClock::new(), map)?;
        Ok(Self {
            registers,
            events,
            backends: [Arc::new(msr), Arc::new(PosixBackend::new())],
        })
    }

    pub fn backends(&self) -> Vec<Arc<dyn Backend>> {
        self.backends.to_vec()
    }

    /// Lets the counted events occur once in each of 1000 cycles in user mode and 10 in the kernel.
    pub fn events_occur(&self) {
        for (level, cycles) in [(Level::User, 1000), (Level::Kernel, 10)] {
            let counted = self.registers.msrs.counted(CPU);
            let stretch = counted
                .into_iter()
                .fold(Stretch::new(level, cycles), |stretch, event| {
                    stretch.occurring(event, 1)
                });
            self.registers.msrs.run(CPU, &stretch);
        }
    }

    /// Returns the values that were written to each register, in order.
    pub fn log(&self) -> Vec<String> {
        let written = self.registers.lock();
        let mut addresses: Vec<u32> = written.iter().map(|(address, _)| *address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let line = |address: u32| {
            let values = written.iter().filter(|(of, _)| *of == address);
            let values: Vec<String> = values.map(|(_, value)| format!("{value:#x}")).collect();
            format!(
                "simulated register {address:#x} was set to {}",
                values.join(", ")
            )
        };
        addresses.into_iter().map(line).collect()
    }
}

/// The unit masks of the simulated CPU.
impl EventNames for SimulatedMsr {
    fn ends_in_mask(&self, name: &str) -> bool {
        self.events.ends_in_mask(name)
    }

    fn generalized(&self, name: &str) -> Option<Event> {
        self.events.generalized(name)
    }
}

/// Registers that keep what is written to them.
#[derive(Debug, Clone)]
struct LoggedMsrs {
    msrs: SimulatedMsrs,
    /// Address and value of each write.
    written: Arc<Mutex<Vec<(u32, u64)>>>,
}

impl LoggedMsrs {
    fn new(msrs: SimulatedMsrs) -> Self {
        let written = Arc::default();
        Self { msrs, written }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(u32, u64)>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        self.lock().clear();
    }
}

impl MsrBus for LoggedMsrs {
    fn cpus(&self) -> &[u32] {
        self.msrs.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        self.msrs.current_cpu()
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        self.msrs.read(cpu, address)
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        self.lock().push((address, value));
        self.msrs.write(cpu, address, value)
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        self.msrs.cpuid(leaf, subleaf)
    }

    fn exercise(&self, cpu: u32) -> Result<()> {
        self.msrs.exercise(cpu)
    }
}
