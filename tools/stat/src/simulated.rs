//! Simulated machines to count with: what `quipu stat` does with a device or registers that this machine lacks, or that
//! only root may use.

mod msr;
pub mod pctr;

use std::str::FromStr;
use std::sync::Arc;

use quipu::msr::sim::Generation;
use quipu_hal::{Backend, Event};
use quipu_shell::Failure;
use quipu_text::EventNames;

use self::msr::SimulatedMsr;
use self::pctr::SimulatedPctr;

/// The name of a simulated machine.
#[derive(Debug, Clone, Copy)]
pub enum Simulated {
    /// A pctr(4) device: `amd64-2019:core`.
    Pctr(pctr::Simulated),
    /// Raw registers: `msr:intel-v5`.
    Msr(Generation),
}

impl FromStr for Simulated {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(name) = text.strip_prefix("msr:") else {
            return text.parse().map(Self::Pctr).map_err(|reason| {
                format!("{reason}; raw registers are msr:intel-v5 and the like")
            });
        };
        let mut all = Generation::ALL.iter().copied();
        let found = all.find(|generation| generation.name() == name);
        found.map(Self::Msr).ok_or_else(|| {
            let names: Vec<_> = Generation::ALL.iter().map(|g| g.name()).collect();
            format!("the generations of registers are {}", names.join(", "))
        })
    }
}

/// A simulated machine, and the backends there would be on it.
#[derive(Debug)]
pub enum SimulatedMachine {
    Pctr(SimulatedPctr),
    Msr(SimulatedMsr),
}

impl SimulatedMachine {
    pub fn new(simulated: Simulated) -> Result<Self, Failure> {
        Ok(match simulated {
            Simulated::Pctr(pctr) => Self::Pctr(SimulatedPctr::new(pctr)?),
            Simulated::Msr(generation) => Self::Msr(SimulatedMsr::new(generation)?),
        })
    }

    pub fn backends(&self) -> Vec<Arc<dyn Backend>> {
        match self {
            Self::Pctr(pctr) => pctr.backends(),
            Self::Msr(msr) => msr.backends(),
        }
    }

    /// Lets the events that the counters are set to occur, 1000 times in user mode and 10 times in the kernel.
    pub fn events_occur(&self) {
        match self {
            Self::Pctr(pctr) => pctr.events_occur(),
            Self::Msr(msr) => msr.events_occur(),
        }
    }

    /// Returns the values that were written through the device or to the registers, in order.
    pub fn log(&self) -> Vec<String> {
        match self {
            Self::Pctr(pctr) => pctr.log(),
            Self::Msr(msr) => msr.log(),
        }
    }
}

/// The unit masks of the simulated CPU.
impl EventNames for SimulatedMachine {
    fn ends_in_mask(&self, name: &str) -> bool {
        match self {
            Self::Pctr(pctr) => pctr.ends_in_mask(name),
            Self::Msr(msr) => msr.ends_in_mask(name),
        }
    }

    fn generalized(&self, name: &str) -> Option<Event> {
        match self {
            Self::Pctr(pctr) => pctr.generalized(name),
            Self::Msr(msr) => msr.generalized(name),
        }
    }
}
