//! Raw model-specific registers, by name or after consent: writing them taints a Linux kernel, so nothing
//! counts with them unless it was asked to.

use quipu_events::Interface;
use quipu_hal::{CpuIdentity, CpuModel, Result};
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
/// As [`MsrPmu::new`]; [`UnsupportedFeature`](quipu_hal::ErrorKind::UnsupportedFeature) on a hybrid
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
    let events = native.of_only_core(Interface::Msr)?;
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
    let events = NativeEvents::this().of_only_core(Interface::Msr)?;
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
    let model: CpuModel = NativeEvents::this()
        .of_only_core(Interface::Msr)?
        .cpu()
        .clone();
    quipu_msr::restore(bus, &model, runtime_directory())
}
