//! Raw model-specific registers, by name or after consent: writing them taints a Linux kernel, so nothing
//! counts with them unless it was asked to.

use std::sync::Arc;

use quipu_events::Interface;
use quipu_events::identify::this_machine;
use quipu_hal::{CpuIdentity, CpuModel, Error, ErrorKind, EventMap, Result};
use quipu_pmu::{MonotonicClock, Pmu, Slot, VirtualPmu};

use crate::NativeEvents;

pub use quipu_msr::{
    LikelyOwner, LinuxMsr, MsrBus, MsrPmu, NoMsr, Options, Repair, SystemMsr,
    restore as restore_on, runtime_directory, sim,
};

/// The backend over the registers of this machine.
pub type MsrBackend = VirtualPmu<MsrPmu<SystemMsr>>;

/// The backend over the registers of this machine, with the events of its CPU and a journal in
/// [`runtime_directory`]. Nothing is written before a group is opened.
///
/// # Errors
/// As [`MsrPmu::new`]; [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) on a hybrid
/// CPU, whose core types have different registers, or one that the event database does not know.
pub fn open() -> Result<MsrBackend> {
    open_with(NativeEvents::this(), options())
}

/// Opens the backend with other events and [`options`].
///
/// # Errors
/// As [`open`].
pub fn open_with(native: &NativeEvents, options: Options) -> Result<MsrBackend> {
    let bus = SystemMsr::open()?;
    let events = events(native)?;
    let pmu = MsrPmu::new(bus, events.cpu(), options)?;
    VirtualPmu::new(pmu, MonotonicClock::new(), events)
}

/// Returns how counters are taken on this machine: with a journal in [`runtime_directory`], on every CPU,
/// leaving alone what is enabled.
pub fn options() -> Options {
    Options::default().with_journal(runtime_directory().to_owned())
}

/// The result of trying out the counters of this machine.
#[derive(Debug)]
#[non_exhaustive]
pub struct Trial {
    /// The CPU.
    pub cpu: CpuIdentity,
    /// The kind of the counters, in a few words.
    pub description: String,
    /// The CPUs, each with why its counters cannot be used if they cannot.
    pub cpus: Vec<(u32, Result<()>)>,
    /// The counters that are enabled on some CPU already, and are left alone.
    pub in_use: Vec<Slot>,
    /// The program or driver that probably enabled them.
    pub likely_owner: LikelyOwner,
}

/// Tries out the counters of each CPU: programs one, lets it count for a moment, and puts back what
/// was there. Registers are written for that, which taints a Linux kernel.
///
/// # Errors
/// When the registers cannot be reached, or there are no counters to try.
pub fn try_out() -> Result<Trial> {
    let bus = SystemMsr::open()?;
    let events = events(NativeEvents::this())?;
    let pmu = MsrPmu::for_probing(bus, events.cpu(), options())?;
    let usable = |&cpu: &u32| (cpu, pmu.acquire(cpu).and_then(|()| pmu.release(cpu)));
    Ok(Trial {
        cpu: events.cpu().identity.clone(),
        description: pmu.description().to_owned(),
        cpus: pmu.cpus().iter().map(usable).collect(),
        in_use: pmu.in_use(),
        likely_owner: pmu.bus().likely_owner(),
    })
}

/// Puts back what killed processes left in the counters of this machine.
///
/// # Errors
/// As [`quipu_msr::restore`].
pub fn restore() -> Result<Vec<Repair>> {
    let bus = SystemMsr::open()?;
    let model: CpuModel = events(NativeEvents::this())?.cpu().clone();
    quipu_msr::restore(bus, &model, runtime_directory())
}

fn events(native: &NativeEvents) -> Result<Arc<dyn EventMap>> {
    // The table of another CPU is one, however many core types this machine has.
    only(native.maps(Interface::Msr)?, this_machine()?.len())
}

/// The map of the only core type.
fn only(mut maps: Vec<Arc<dyn EventMap>>, core_types: usize) -> Result<Arc<dyn EventMap>> {
    match (maps.pop(), maps.is_empty() && core_types < 2) {
        (Some(map), true) => Ok(map),
        _ => Err(Error::new(
            ErrorKind::UnsupportedFeature,
            "count with model-specific registers",
        )
        .with_reason("the core types of a hybrid CPU have different registers")
        .with_hint("count with perf_event, which knows which core is which")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_cpu_is_refused_also_with_one_table_for_all_of_it() {
        let map = || -> Arc<dyn EventMap> {
            Arc::new(sim::EventNames::new(sim::Generation::ALL[5].model()))
        };
        assert!(only(vec![map()], 1).is_ok());
        for (maps, core_types) in [(vec![map()], 2), (vec![map(), map()], 2), (Vec::new(), 1)] {
            let refused = only(maps, core_types).err().map(|e| e.kind());
            assert_eq!(refused, Some(ErrorKind::UnsupportedFeature));
        }
    }
}
