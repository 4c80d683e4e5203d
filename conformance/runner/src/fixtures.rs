//! Fixtures of the runner: the backends of this machine, and simulated machines.

#[cfg(target_os = "freebsd")]
mod hwpmc;
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
mod msr;
#[cfg(unix)]
mod pctr;
#[cfg(unix)]
mod simulated_msr;
#[cfg(unix)]
mod simulated_pctr;
#[cfg(unix)]
mod this_system;

use std::fmt;
use std::path::Path;
#[cfg(unix)]
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Result;
#[cfg(not(target_os = "linux"))]
use anyhow::bail;
use quipu_conformance::Fixture;
#[cfg(unix)]
use quipu_conformance::fixtures::RoundsBackend;
use quipu_conformance::fixtures::SimFixture;
#[cfg(unix)]
#[cfg(unix)]
use quipu_msr::sim::Generation;
#[cfg(unix)]
use quipu_pctr::simulation::{Era, Processor, parse_machine};

/// A fixture, with the PMU's name where the machine does not know it.
pub(crate) struct Tested {
    pub(crate) fixture: Arc<dyn Fixture>,
    pub(crate) pmu: Option<String>,
}

/// The calling thread, and those that it starts, run on these CPUs alone.
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
fn stay_on(cpus: &[u32]) -> nix::Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};

    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize)?;
    }
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
}

/// A backend by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendName {
    /// hwpmc(4) of this machine.
    Hwpmc,
    /// `perf_event_open` of this machine.
    Linux,
    /// The model-specific registers of this machine.
    Msr,
    /// The virtual PMU over the simulated one.
    Sim,
    /// The msr backend over a simulated register file.
    #[cfg(unix)]
    SimMsr(Generation),
    /// getrusage(2) and clocks.
    #[cfg(unix)]
    Posix,
    /// A pctr(4) device.
    #[cfg(unix)]
    Pctr,
    /// The pctr backend over a simulated device.
    #[cfg(unix)]
    SimPctr(Era, Processor),
}

impl FromStr for BackendName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "hwpmc" => Ok(Self::Hwpmc),
            "linux" => Ok(Self::Linux),
            "msr" => Ok(Self::Msr),
            "sim" => Ok(Self::Sim),
            #[cfg(unix)]
            _ if name.starts_with("sim-msr:") => generation(name).map(Self::SimMsr),
            #[cfg(unix)]
            "posix" => Ok(Self::Posix),
            #[cfg(unix)]
            "pctr" => Ok(Self::Pctr),
            #[cfg(unix)]
            _ if name.starts_with("sim-pctr:") => {
                let (era, processor) = parse_machine(&name["sim-pctr:".len()..])?;
                Ok(Self::SimPctr(era, processor))
            }
            _ => Err(
                "the backends are hwpmc, linux, msr, pctr, posix, sim, sim-msr:GENERATION and \
                 sim-pctr:ERA:CPU"
                    .into(),
            ),
        }
    }
}

#[cfg(unix)]
fn generation(name: &str) -> Result<Generation, String> {
    let wanted = name.split_once(':').map(|(_, generation)| generation);
    let found = Generation::ALL
        .iter()
        .copied()
        .find(|g| Some(g.name()) == wanted);
    found.ok_or_else(|| {
        let names: Vec<_> = Generation::ALL.iter().map(|g| g.name()).collect();
        format!("the generations are {}", names.join(", "))
    })
}

/// As it is given on the command line.
impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hwpmc => f.write_str("hwpmc"),
            Self::Linux => f.write_str("linux"),
            Self::Msr => f.write_str("msr"),
            Self::Sim => f.write_str("sim"),
            #[cfg(unix)]
            Self::SimMsr(generation) => write!(f, "sim-msr:{}", generation.name()),
            #[cfg(unix)]
            Self::Posix => f.write_str("posix"),
            #[cfg(unix)]
            Self::Pctr => f.write_str("pctr"),
            #[cfg(unix)]
            Self::SimPctr(era, processor) => {
                write!(f, "sim-pctr:{}:{}", era.name(), processor.name())
            }
        }
    }
}

impl BackendName {
    /// Returns every simulated machine.
    pub(crate) fn simulated() -> Vec<Self> {
        #[allow(unused_mut, reason = "elsewhere than on a Unix there are no others")]
        let mut names = vec![Self::Sim];
        #[cfg(unix)]
        {
            names.extend(Generation::ALL.iter().copied().map(Self::SimMsr));
            for &era in Era::ALL {
                let machines = Processor::ALL
                    .iter()
                    .map(|&processor| Self::SimPctr(era, processor));
                let counts = |name: &Self| {
                    let known = name.to_string().parse::<Self>();
                    known.is_ok_and(|name| name.fixture(None).is_ok())
                };
                names.extend(machines.filter(counts));
            }
        }
        names
    }

    /// Returns the backends that a machine may have and that change nothing on it but counters.
    pub(crate) fn of_this_machine() -> Vec<Self> {
        #[allow(unused_mut, reason = "elsewhere than on a Unix there are no others")]
        let mut names = vec![Self::Linux];
        #[cfg(unix)]
        names.extend([Self::Pctr, Self::Posix]);
        names
    }

    /// Returns true for a simulated machine.
    pub(crate) fn is_simulated(self) -> bool {
        self.to_string().starts_with("sim")
    }

    /// Makes the fixture; `device` replaces /dev/pctr.
    pub(crate) fn fixture(self, device: Option<&Path>) -> Result<Tested> {
        #[cfg(not(unix))]
        let _ = device;
        match self {
            Self::Sim => Ok(Tested {
                fixture: Arc::new(SimFixture::new()),
                pmu: Some("simulated".into()),
            }),
            #[cfg(unix)]
            Self::SimMsr(generation) => {
                let machine = simulated_msr::SimulatedMsrFixture::new(generation)?;
                Ok(Tested {
                    pmu: Some(format!("simulated: {}", machine.description())),
                    fixture: Arc::new(machine),
                })
            }
            #[cfg(unix)]
            Self::Posix => this_system::posix(),
            #[cfg(unix)]
            Self::Pctr => pctr::fixture(device),
            #[cfg(unix)]
            Self::SimPctr(era, processor) => Ok(Tested {
                fixture: Arc::new(simulated_pctr::SimulatedPctrFixture::new(era, processor)?),
                pmu: Some(format!(
                    "simulated: {} behind the driver of {}",
                    processor.name(),
                    era.name()
                )),
            }),
            #[cfg(target_os = "freebsd")]
            Self::Hwpmc => hwpmc::fixture(),
            #[cfg(not(target_os = "freebsd"))]
            Self::Hwpmc => anyhow::bail!("hwpmc(4) is of FreeBSD, and this is another system"),
            #[cfg(target_os = "linux")]
            Self::Linux => this_system::linux(),
            #[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
            Self::Msr => msr::fixture(),
            #[cfg(not(target_os = "linux"))]
            Self::Linux => bail!("perf_event_open is of Linux, and this is another system"),
            #[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
            Self::Msr => bail!("this system gives programs no way to its model-specific registers"),
        }
    }
}

/// Returns a backend with its instructions in rounds, or says why they cannot be counted.
#[cfg(unix)]
fn or_say_why(rounds: quipu_hal::Result<RoundsBackend>) -> Option<RoundsBackend> {
    rounds
        .inspect_err(|error| crate::say(format_args!("no exact workload: {error:#}")))
        .ok()
}

/// Returns the number of open descriptors that a program started by this one has, beyond the three that every one has.
#[cfg(unix)]
fn inherited_descriptors() -> Option<u64> {
    const COUNT: &str = "for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2>&- && echo $fd; done; :";
    let said = Command::new("sh").args(["-c", COUNT]).output().ok()?;
    said.status
        .success()
        .then(|| said.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)
}
