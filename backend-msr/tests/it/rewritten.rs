//! Registers whose writes are changed on the way.

use quipu_hal::Result;
use quipu_msr::MsrBus;

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
