#![doc = include_str!("../README.md")]
#![cfg(unix)]
#![deny(clippy::multiple_unsafe_ops_per_block)]

pub mod abi;
mod control;
mod device;
mod events;
pub mod function;
mod hazard;
mod instructions;
mod locks;
mod node;
mod on_demand;
mod pmu;
pub mod simulation;
mod sweep;
mod sys;

use std::path::Path;
use std::sync::Arc;

use quipu_hal::{EventMap, Result};
use quipu_pmu::{Clock, MonotonicClock, VirtualPmu};

pub use control::{Control, Discovery};
pub use device::{Arch, Claimed, Driver, Errno, PctrDevice, SetScope, witness_on};
pub use events::PctrEvents;
pub use function::CounterKind;
pub use hazard::OPEN_ANYWAY;
pub use node::{DEFAULT_PATH, NodeDevice};
pub use on_demand::OnDemand;
pub use pmu::{LostValue, PctrPmu, UnrestoredCounter};

/// The backend over a device node.
pub type PctrBackend = VirtualPmu<PctrPmu<NodeDevice>>;

/// Returns the backend over the device at `path`, with the events of this machine's CPU from `map`.
///
/// It opens the device for writing where it may and else for reading; then, or without a map, it has
/// the time stamp counter only, and says of everything else why.
///
/// # Errors
/// When the device cannot be opened or does not speak the protocol of pctr(4).
///
/// ```no_run
/// use std::path::Path;
///
/// use quipu_hal::Backend;
///
/// let backend = quipu_pctr::open(Path::new(quipu_pctr::DEFAULT_PATH), None)?;
/// println!("{:?}", backend.capabilities());
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub fn open(path: &Path, map: Option<Arc<dyn EventMap>>) -> Result<PctrBackend> {
    with_device(NodeDevice::open(path)?, map, MonotonicClock::new())
}

/// Returns the backend over any device, such as a [simulated](simulation) one, with times from any clock.
///
/// # Errors
/// When the device does not speak the protocol of pctr(4).
pub fn with_device<D: PctrDevice>(
    device: D,
    map: Option<Arc<dyn EventMap>>,
    clock: impl Clock,
) -> Result<VirtualPmu<PctrPmu<D>>> {
    let pmu =
        PctrPmu::new(device, map.as_deref().map(EventMap::cpu))?.with_max_rates_of(map.clone());
    let events = PctrEvents::new(&pmu, map);
    VirtualPmu::new(pmu, clock, Arc::new(events))
}
