//! A simulated pctr(4) device to count with: what `quipu stat` does on OpenBSD, on any system.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quipu::events::{Database, Interface};
use quipu::hal::{DynBackend, EventMap, MonotonicClock};
use quipu::pctr::simulation::{Processor, SimMachine};
use quipu::posix::PosixBackend;

use crate::failure::Failure;
use crate::pctr::simulate::{Simulated, let_it_occur};

/// The simulated time in which the events occur.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The machine, and the backends there would be on it.
pub(super) struct SimulatedPctr {
    machine: SimMachine,
    backends: [Arc<dyn DynBackend>; 2],
}

impl SimulatedPctr {
    /// With counter 0 set to something, as if somebody else had left it counting.
    pub(super) fn new(simulated: Simulated) -> Result<Self, Failure> {
        let machine = simulated.machine();
        let somebodys = match machine.processor() {
            Processor::P5 => 0x96,
            _ => 0x0041_0079,
        };
        if machine.cpu_model().is_some() {
            machine.overwrite(0, 0, somebodys);
        }
        let events = match simulated.cpu_id() {
            Some(id) => {
                let events = Database::open(None)?.cpu(id)?.events_for(Interface::Pctr);
                Some(Arc::new(events) as Arc<dyn EventMap>)
            }
            None => None,
        };
        let pctr = quipu::pctr::over(machine.open(), events, MonotonicClock::new())?;
        Ok(Self {
            machine,
            backends: [Arc::new(pctr), Arc::new(PosixBackend::new())],
        })
    }

    pub(super) fn backends(&self) -> Vec<Arc<dyn DynBackend>> {
        self.backends.to_vec()
    }

    /// Lets what the counters are set to occur, in a millisecond.
    pub(super) fn events_occur(&self) {
        self.machine.pass(MILLISECOND);
        for word in self.machine.functions(0) {
            if word != 0 {
                let_it_occur(&self.machine, word);
            }
        }
    }

    /// What each counter was set to through the device, in order.
    pub(super) fn log(&self) -> Vec<String> {
        let log = self.machine.log();
        (0..4)
            .filter_map(|counter| {
                let words = log.iter().filter(|(of, _)| *of == counter);
                let words: Vec<String> = words.map(|(_, word)| format!("{word:#x}")).collect();
                (!words.is_empty()).then(|| {
                    format!(
                        "simulated counter {counter} was set to {}",
                        words.join(", ")
                    )
                })
            })
            .collect()
    }
}

impl fmt::Debug for SimulatedPctr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimulatedPctr").field(&self.machine).finish()
    }
}
