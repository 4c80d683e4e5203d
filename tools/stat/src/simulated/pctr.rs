//! A simulated pctr(4) device: what `quipu stat` does on OpenBSD, on any system.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use quipu_events::{CpuEvents, Database, Interface};
use quipu_hal::{Backend, Event, EventMap};
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine, parse_machine};
use quipu_pmu::MonotonicClock;
use quipu_posix::PosixBackend;
use quipu_shell::Failure;
use quipu_text::EventNames;

/// The simulated time in which the events occur.
const MILLISECOND: Duration = Duration::from_millis(1);

/// A driver's era and a CPU.
#[derive(Debug, Clone, Copy)]
pub struct Simulated {
    era: Era,
    processor: Processor,
}

impl FromStr for Simulated {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (era, processor) = parse_machine(text)?;
        Ok(Self { era, processor })
    }
}

impl Simulated {
    /// Returns a machine of one CPU.
    pub fn machine(self) -> SimMachine {
        let machine = SimMachine::new(self.era, self.processor, 1);
        machine.pass(MILLISECOND);
        machine
    }

    /// Returns the CPU in the event database.
    pub fn cpu_id(self) -> Option<&'static str> {
        match self.processor {
            Processor::P5 => Some("intel-p5"),
            Processor::P6 => Some("intel-piii"),
            Processor::Core => Some("intel-core2"),
            Processor::Skylake => Some("intel-skl"),
            Processor::K8 => Some("amd-k8"),
            Processor::K10 => Some("amd-10h"),
            Processor::Zen => Some("amd-zen3"),
            _ => None,
        }
    }
}

/// Returns the event of a function.
pub fn event_of(machine: &SimMachine, word: u32) -> u8 {
    let mask = match machine.processor() {
        Processor::P5 => 0x3f,
        _ => 0xff,
    };
    (word & mask) as u8
}

/// Lets an event occur 1000 times in user mode and 10 times in the kernel.
pub fn let_it_occur(machine: &SimMachine, event: u8) {
    machine.occur(event, 0, Level::User, 1000);
    machine.occur(event, 0, Level::Kernel, 10);
}

/// The machine, and the backends there would be on it.
pub struct SimulatedPctr {
    machine: SimMachine,
    events: Option<Arc<CpuEvents>>,
    backends: [Arc<dyn Backend>; 2],
}

impl SimulatedPctr {
    /// Returns a machine with all counters set, as if another program had left them counting.
    pub fn new(simulated: Simulated) -> Result<Self, Failure> {
        Self::on(simulated.machine(), simulated)
    }

    pub fn on(machine: SimMachine, simulated: Simulated) -> Result<Self, Failure> {
        let left = match machine.processor() {
            Processor::P5 => 0x96,
            _ => 0x0041_0079,
        };
        for counter in 0..machine.era().counters(machine.processor()) {
            machine.overwrite(0, counter, left);
        }
        let events = match simulated.cpu_id() {
            Some(id) => {
                let events = Database::open(None)?.cpu(id)?.events_for(Interface::Pctr);
                Some(Arc::new(events))
            }
            None => None,
        };
        let map = events.clone().map(|events| events as Arc<dyn EventMap>);
        let pctr = quipu_pctr::with_device(machine.open(), map, MonotonicClock::new())?;
        Ok(Self {
            machine,
            events,
            backends: [Arc::new(pctr), Arc::new(PosixBackend::new())],
        })
    }

    pub fn backends(&self) -> Vec<Arc<dyn Backend>> {
        self.backends.to_vec()
    }

    /// Lets the events that the counters are set to occur, in a millisecond.
    pub fn events_occur(&self) {
        self.machine.pass(MILLISECOND);
        let mut events: Vec<u8> = self
            .machine
            .functions(0)
            .into_iter()
            .filter(|word| *word != 0)
            .map(|word| event_of(&self.machine, word))
            .collect();
        events.sort_unstable();
        events.dedup();
        for event in events {
            let_it_occur(&self.machine, event);
        }
    }

    /// Returns the values that each counter was set to through the device, in order.
    pub fn log(&self) -> Vec<String> {
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

/// The unit masks of the simulated CPU.
impl EventNames for SimulatedPctr {
    fn ends_in_mask(&self, name: &str) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.ends_in_mask(name))
    }

    fn generalized(&self, name: &str) -> Option<Event> {
        self.events.as_ref()?.generalized(name)
    }
}
