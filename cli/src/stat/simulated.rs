//! A simulated pctr(4) device to count with: what `quipu stat` does on OpenBSD, on any system.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quipu_events::{Database, Interface};
use quipu_hal::{Backend, EventMap};
use quipu_pctr::simulation::{Processor, SimMachine};
use quipu_pmu::MonotonicClock;
use quipu_posix::PosixBackend;

use crate::failure::Failure;
use crate::pctr::simulate::{Simulated, let_it_occur};

/// The simulated time in which the events occur.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The machine, and the backends there would be on it.
pub(super) struct SimulatedPctr {
    machine: SimMachine,
    backends: [Arc<dyn Backend>; 2],
}

impl SimulatedPctr {
    /// Returns a machine with counter 0 set, as if another program had left it counting.
    pub(super) fn new(simulated: Simulated) -> Result<Self, Failure> {
        Self::on(simulated.machine(), simulated)
    }

    fn on(machine: SimMachine, simulated: Simulated) -> Result<Self, Failure> {
        let left = match machine.processor() {
            Processor::P5 => 0x96,
            _ => 0x0041_0079,
        };
        if machine.cpu_model().is_some() {
            machine.overwrite(0, 0, left);
        }
        let events = match simulated.cpu_id() {
            Some(id) => {
                let events = Database::open(None)?.cpu(id)?.events_for(Interface::Pctr);
                Some(Arc::new(events) as Arc<dyn EventMap>)
            }
            None => None,
        };
        let pctr = quipu_pctr::with_device(machine.open(), events, MonotonicClock::new())?;
        Ok(Self {
            machine,
            backends: [Arc::new(pctr), Arc::new(PosixBackend::new())],
        })
    }

    pub(super) fn backends(&self) -> Vec<Arc<dyn Backend>> {
        self.backends.to_vec()
    }

    /// Lets the events that the counters are set to occur, in a millisecond.
    pub(super) fn events_occur(&self) {
        self.machine.pass(MILLISECOND);
        for word in self.machine.functions(0) {
            if word != 0 {
                let_it_occur(&self.machine, word);
            }
        }
    }

    /// Returns the values that each counter was set to through the device, in order.
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::ExitCode;
    use std::time::{Duration, Instant};

    use quipu_pctr::simulation::Era;

    use super::super::backend::Backends;
    use super::super::options::Options;
    use super::super::plan::Plan;
    use super::super::report::Output;
    use super::super::run::Session;
    use super::*;
    use crate::target::TargetOptions;

    /// Waits until counter 0 is set to count instructions.
    fn await_counting(machine: &SimMachine) {
        const LONG: Duration = Duration::from_secs(60);
        let start = Instant::now();
        while machine.functions(0)[0] & 0xff != 0xc0 {
            assert!(start.elapsed() < LONG, "nothing counts");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Moved to another CPU before the end, quipu can neither read what it counts nor, where a set
    /// reaches one CPU, put back what it found.
    #[test]
    fn a_measurement_that_was_moved_is_refused_and_what_it_leaves_is_told() {
        const FOUND: u32 = 0x0041_0079;
        for (era, puts_back) in [(Era::Amd64Of2016, false), (Era::Amd64Of2019, true)] {
            let directory = tempfile::tempdir().expect("a directory");
            let done = directory.path().join("done");
            let script = format!(
                "while [ ! -e {} ]; do sleep 0.01; done; exit 7",
                done.display()
            );
            let options = Options {
                event: vec!["instructions,page-faults".into()],
                target: TargetOptions {
                    command: ["sh", "-c", &script].map(Into::into).into(),
                    ..TargetOptions::default()
                },
                output: Some(directory.path().join("report")),
                ..Options::default()
            };
            let simulated: Simulated = format!("{}:core", era.name()).parse().expect("one");
            let machine = SimMachine::new(era, Processor::Core, 2);
            let device = SimulatedPctr::on(machine.clone(), simulated).expect("a device");
            let mut plan = Plan::new(&options).expect("a plan");
            plan.simulated = Some(device);
            let backends = Backends::of(&plan).expect("its backends");
            let output = Output::open(&options).expect("a report");
            let mover = {
                let machine = machine.clone();
                std::thread::spawn(move || {
                    await_counting(&machine);
                    machine.move_to(1);
                    File::create(done).expect("a file");
                })
            };
            let session = Session::new(&plan, &backends, output).expect("a session");
            let status = session.run().expect("no failure of its own");
            assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(7)));
            mover.join().expect("moved");
            let report = std::fs::read_to_string(directory.path().join("report"));
            let report = report.expect("a report");
            let line = |event| report.lines().find(|l| l.contains(event)).expect("a line");
            assert!(line("instructions").contains("<not counted>"), "{report}");
            assert!(report.contains("migrated to CPU 2"), "{report}");
            assert!(!line("page-faults").contains("<not"), "{report}");
            let left = plan.restore_warnings(&backends);
            let now = machine.functions(0)[0];
            if puts_back {
                assert_eq!((left.len(), now), (0, FOUND), "{left:?}");
            } else {
                assert!(now != FOUND && left.len() == 1, "{left:?}");
                let told = "cannot put back counter 0 of CPU 0: refused by the operating system: \
                            it was found set to 0x410079";
                assert!(left[0].starts_with(told), "{left:?}");
            }
        }
    }
}
