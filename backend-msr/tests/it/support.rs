//! Simulated registers of which CPU 0 is acquired.

use quipu_hal::{Encoding, X86Select};
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
