//! What the suite can be run over: the backends of this machine, and simulated machines.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
mod msr;
#[cfg(unix)]
mod pctr;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
mod simulated_msr;
#[cfg(unix)]
mod simulated_pctr;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Result;
#[cfg(not(target_os = "linux"))]
use anyhow::bail;
use quipu_conformance::Subject;
use quipu_conformance::subjects::SimSubject;
#[cfg(unix)]
use quipu_msr::sim::Generation;
#[cfg(unix)]
use quipu_pctr::simulation::{Era, Processor, parse_machine};

/// A subject, with what is known of its PMU where the machine does not say.
pub(crate) struct Tested {
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) pmu: Option<String>,
}

/// A backend by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendName {
    /// `perf_event_open` of this machine.
    Linux,
    /// The model-specific registers of this machine.
    Msr,
    /// The virtual PMU over the simulated one.
    Sim,
    /// The msr backend over a simulated register file.
    #[cfg(unix)]
    SimMsr(Generation),
    /// What getrusage(2) tells.
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
                "the backends are linux, msr, pctr, posix, sim, sim-msr:GENERATION and \
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
        .into_iter()
        .find(|g| Some(g.name()) == wanted);
    found.ok_or_else(|| {
        let names = Generation::ALL.map(Generation::name);
        format!("the generations are {}", names.join(", "))
    })
}

/// As it is given on the command line.
impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
    /// Every simulated machine.
    pub(crate) fn simulated() -> Vec<Self> {
        #[allow(unused_mut, reason = "elsewhere than on a Unix there are no others")]
        let mut names = vec![Self::Sim];
        #[cfg(unix)]
        {
            names.extend(Generation::ALL.map(Self::SimMsr));
            for era in Era::ALL {
                let machines = Processor::ALL.map(|processor| Self::SimPctr(era, processor));
                let counts = |name: &Self| {
                    let known = name.to_string().parse::<Self>();
                    known.is_ok_and(|name| name.subject(None).is_ok())
                };
                names.extend(machines.into_iter().filter(counts));
            }
        }
        names
    }

    /// Whether it runs on no machine's own counters.
    pub(crate) fn is_simulated(self) -> bool {
        self.to_string().starts_with("sim")
    }

    /// The subject around it; `device` is another one than pctr(4)'s own.
    pub(crate) fn subject(self, device: Option<&Path>) -> Result<Tested> {
        #[cfg(not(unix))]
        let _ = device;
        match self {
            Self::Sim => Ok(Tested {
                subject: Arc::new(SimSubject::new()),
                pmu: Some("simulated".into()),
            }),
            #[cfg(unix)]
            Self::SimMsr(generation) => {
                let machine = simulated_msr::Machine::new(generation)?;
                Ok(Tested {
                    pmu: Some(format!("simulated: {}", machine.description())),
                    subject: Arc::new(machine),
                })
            }
            #[cfg(unix)]
            Self::Posix => posix::subject(),
            #[cfg(unix)]
            Self::Pctr => pctr::subject(device),
            #[cfg(unix)]
            Self::SimPctr(era, processor) => Ok(Tested {
                subject: Arc::new(simulated_pctr::Machine::new(era, processor)?),
                pmu: Some(format!(
                    "simulated: {} behind the driver of {}",
                    processor.name(),
                    era.name()
                )),
            }),
            #[cfg(target_os = "linux")]
            Self::Linux => linux::subject(),
            #[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))]
            Self::Msr => msr::subject(),
            #[cfg(not(target_os = "linux"))]
            Self::Linux => bail!("perf_event_open is of Linux, and this is another system"),
            #[cfg(not(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly")))]
            Self::Msr => bail!("this system gives programs no way to its model-specific registers"),
        }
    }
}
