//! Simulated registers of which CPU 0 is acquired, and registers whose writes are changed on the way.

use quipu_hal::{Encoding, Result, X86Select};
use quipu_msr::sim::{Generation, SimulatedMsrs};
use quipu_msr::{MsrBus, MsrPmu, Options};
use quipu_pmu::Pmu;

/// Returns a PMU that has acquired CPU 0.
pub(crate) fn acquired(generation: Generation) -> (SimulatedMsrs, MsrPmu<SimulatedMsrs>) {
    let bus = SimulatedMsrs::new(generation, 1);
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default()).unwrap();
    pmu.acquire(0).unwrap();
    (bus, pmu)
}

/// Returns the encoding of an event in user mode.
pub(crate) fn user(event: u16) -> Encoding {
    Encoding::X86(X86Select::new(event, 0).with_flags(X86Select::USER))
}

/// Returns the values of registers of CPU 0.
pub(crate) fn values<const N: usize>(bus: &SimulatedMsrs, addresses: [u32; N]) -> [u64; N] {
    addresses.map(|address| bus.read(0, address).unwrap())
}

/// Returns true if a slot can be programmed with an encoding.
pub(crate) fn accepts(pmu: &impl Pmu, slot: usize, encoding: &Encoding) -> bool {
    let prepared = pmu.prepare(encoding).unwrap();
    let slot = pmu.slots().get(slot);
    slot.is_some_and(|slot| prepared.contains(slot.class, slot.number))
}

/// Registers that are written by a function instead.
pub(crate) struct Rewritten<B, W> {
    pub(crate) bus: B,
    /// Called with the registers, the CPU, the address and the value.
    pub(crate) write: W,
}

impl<B: MsrBus, W> MsrBus for Rewritten<B, W>
where
    W: Fn(&B, u32, u32, u64) -> Result<()> + Send + Sync + 'static,
{
    fn cpus(&self) -> &[u32] {
        self.bus.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        self.bus.current_cpu()
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        self.bus.read(cpu, address)
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        (self.write)(&self.bus, cpu, address, value)
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        self.bus.cpuid(leaf, subleaf)
    }

    fn exercise(&self, cpu: u32) -> Result<()> {
        self.bus.exercise(cpu)
    }
}
