//! Raw model-specific registers, by name only: writing them taints a Linux kernel, so nothing
//! counts with them unless it was asked to.

use std::sync::Arc;

use quipu_events::Interface;
use quipu_hal::{CpuModel, Error, ErrorKind, EventMap, MonotonicClock, Result, VirtualPmu};

use crate::NativeEvents;

pub use quipu_msr::{
    LinuxMsr, MsrBus, MsrPmu, NoMsr, Options, Repair, Suspect, SystemMsr, runtime_directory, sim,
};

/// The backend over the registers of this machine.
pub type MsrBackend = VirtualPmu<MsrPmu<SystemMsr>, MonotonicClock>;

/// The backend over the registers of this machine, with the events of its CPU and a journal in
/// [`runtime_directory`]. Nothing is written before a group is opened.
///
/// # Errors
/// What [`MsrPmu::new`] refuses; [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) on a hybrid
/// CPU, whose core types have different registers, or one that the event database does not know.
pub fn open() -> Result<MsrBackend> {
    open_with(NativeEvents::this())
}

pub(crate) fn open_with(native: &NativeEvents) -> Result<MsrBackend> {
    let bus = SystemMsr::open()?;
    let events = events(native)?;
    let options = Options {
        journal: Some(runtime_directory().to_owned()),
        ..Options::default()
    };
    let pmu = MsrPmu::new(bus, events.cpu(), options)?;
    VirtualPmu::new(pmu, MonotonicClock::new(), events)
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
    let mut maps = native.maps(Interface::Msr)?;
    match (maps.pop(), maps.is_empty()) {
        (Some(map), true) => Ok(map),
        _ => Err(Error::new(
            ErrorKind::UnsupportedFeature,
            "count with model-specific registers",
        )
        .with_reason("the core types of a hybrid CPU have different registers")
        .with_hint("count with perf_event, which knows which core is which")),
    }
}
