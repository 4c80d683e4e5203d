//! The whole conformance suite on every era of the driver with every CPU it knows counters of.
#![cfg(unix)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_conformance::{Ability, Missing, Subject, Workload, all, run};
use quipu_hal::{
    Backend, Capabilities, Clock, DynBackend, Event, EventSpec, Features, Filter, GroupSpec, Pmu,
    PmuEvent, Result, Simultaneity, Target, TargetKinds,
};
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
use support::{Events, RAPID_RATE, SimBackend, backend};

/// How long a group counts before another has its turn.
const INTERVAL: u64 = 4_000_000;
/// How long a workload takes.
const WORK: Duration = Duration::from_nanos(500);

/// A simulated machine, the backend over its device, and what happens on it.
struct PctrSubject {
    machine: SimMachine,
    backend: Shared,
    waited: AtomicU64,
}

/// The backend, of which the subject keeps a handle to let its ring turn.
struct Shared(Arc<SimBackend>);

impl Backend for Shared {
    type Group = <SimBackend as Backend>::Group;

    fn name(&self) -> &'static str {
        Backend::name(&*self.0)
    }

    fn capabilities(&self) -> &Capabilities {
        Backend::capabilities(&*self.0)
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Self::Group> {
        Backend::open(&*self.0, spec, target)
    }
}

/// The events of a CPU that the checks need, by name.
struct Names {
    exact: [&'static str; 2],
    steady: &'static str,
    rapid: &'static str,
    conflicting: Option<[&'static str; 2]>,
    puzzle: Option<[&'static str; 2]>,
}

fn names(processor: Processor) -> Names {
    match processor {
        Processor::P5 => Names {
            exact: ["Instructions executed", "Branches"],
            steady: "Data read",
            rapid: support::RAPID_P5,
            conflicting: None,
            puzzle: None,
        },
        Processor::P6 => Names {
            exact: ["INST_RETIRED", "BR_INST_RETIRED"],
            steady: "CPU_CLK_UNHALTED",
            rapid: support::RAPID,
            conflicting: Some(["FLOPS", "CYCLES_DIV_BUSY"]),
            puzzle: Some(["INST_RETIRED", "FLOPS"]),
        },
        Processor::K8 => Names {
            exact: ["RETIRED_INSTRUCTIONS", "RETIRED_BRANCHES"],
            steady: "CPU_CLK_UNHALTED",
            rapid: support::RAPID,
            conflicting: None,
            puzzle: None,
        },
        _ => Names {
            exact: ["INST_RETIRED", "BR_INST_RETIRED"],
            steady: "CPU_CLK_UNHALTED",
            rapid: support::RAPID,
            conflicting: Some(["MUL", "FP_ASSIST"]),
            puzzle: Some(["INST_RETIRED", "FP_COMP_OPS_EXE"]),
        },
    }
}

fn event(name: &str) -> EventSpec {
    Event::Named(name.to_owned()).into()
}

impl PctrSubject {
    fn new(era: Era, processor: Processor) -> Self {
        let machine = SimMachine::new(era, processor, 2);
        let steady = Events::code(processor, names(processor).steady);
        machine.steady(steady, Level::User, 60);
        machine.steady(steady, Level::Kernel, 40);
        Self {
            backend: Shared(Arc::new(backend(&machine))),
            machine,
            waited: AtomicU64::new(0),
        }
    }

    fn names(&self) -> Names {
        names(self.machine.processor())
    }

    fn pmu(&self) -> &impl Pmu {
        self.backend.0.pmu()
    }

    fn code(&self, event: &EventSpec) -> Option<u8> {
        let Event::Named(name) = &event.event else {
            return None;
        };
        Some(Events::code(self.machine.processor(), name))
    }

    fn width(&self) -> u8 {
        let arch = self.machine.era().arch();
        arch.visible_width(self.machine.processor().width())
    }
}

impl Subject for PctrSubject {
    fn backend(&self) -> &dyn DynBackend {
        &self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentCpu
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        self.names().exact.map(event).to_vec()
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        self.workload_at(event, Filter::USER, times)
    }

    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        let (code, machine) = (self.code(event)?, self.machine.clone());
        let level = match level {
            Filter::KERNEL => Level::Kernel,
            _ => Level::User,
        };
        Some(Box::new(move || {
            machine.pass(WORK);
            machine.occur(code, 0, level, times);
            machine.pass(WORK);
        }))
    }

    fn pass(&self, nanoseconds: u64) {
        let mut left = nanoseconds;
        while left > 0 {
            let waited = self.waited.load(Ordering::Relaxed);
            let step = left.min(INTERVAL - waited);
            self.machine.pass(Duration::from_nanos(step));
            left -= step;
            let waited = (waited + step) % INTERVAL;
            self.waited.store(waited, Ordering::Relaxed);
            if waited == 0 {
                // What goes wrong with a group is told by its next read.
                let _ = self.backend.0.tick();
            }
        }
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(event(self.names().steady))
    }

    fn rotation_interval(&self) -> u64 {
        INTERVAL
    }

    fn now(&self) -> Option<u64> {
        Some(self.machine.clock().now())
    }

    fn occurred(&self, event: &EventSpec) -> Option<u64> {
        let code = self.code(event)?;
        let at = |flag, level| {
            let counts = event.filter.contains(flag);
            if counts {
                self.machine.occurred(code, level)
            } else {
                0
            }
        };
        Some(at(Filter::USER, Level::User) + at(Filter::KERNEL, Level::Kernel))
    }

    fn wraps_after(&self, _: &EventSpec) -> Option<u64> {
        Some(1 << self.width())
    }

    fn hidden_wrap(&self) -> Option<(EventSpec, u64, Workload)> {
        let machine = self.machine.clone();
        let rapid = event(self.names().rapid);
        let code = self.code(&rapid)?;
        let times = (1 << self.width()) + 5;
        let long = Duration::from_secs(2 * times / RAPID_RATE);
        let work: Workload = Box::new(move || {
            machine.pass(long);
            machine.occur(code, 0, Level::User, times);
            machine.pass(long);
        });
        Some((rapid, times, work))
    }

    fn conflicting(&self) -> Option<Vec<EventSpec>> {
        Some(self.names().conflicting?.map(event).to_vec())
    }

    fn puzzle(&self) -> Option<Vec<EventSpec>> {
        Some(self.names().puzzle?.map(event).to_vec())
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            Event::Named("NO_SUCH_EVENT".into()),
            PmuEvent::new("no_such_pmu").with("event").into(),
        ]
    }

    fn resources(&self) -> Option<u64> {
        // Who can take the counters finds them free.
        match self.pmu().acquire(0) {
            Ok(()) => self.pmu().release(0).ok().map(|()| 0),
            Err(_) => Some(1),
        }
    }

    fn scribble(&self) -> bool {
        let p5 = self.machine.processor() == Processor::P5;
        self.machine
            .overwrite(0, 0, if p5 { 0x8f } else { 0x0041_0085 });
        self.machine
            .overwrite(0, 1, if p5 { 0x45 } else { 0x0002_0060 });
        true
    }

    fn registers(&self) -> Option<String> {
        Some(format!("{:x?}", self.machine.functions(0)))
    }

    fn inject(&self, operations: u64, errno: i32) -> bool {
        self.machine.fail_after(operations, errno);
        true
    }

    fn withdraw(&self) -> bool {
        self.machine.withdraw_fault()
    }

    fn second_owner(&self) -> Option<Result<()>> {
        let taken = self.pmu().acquire(0);
        Some(taken.and_then(|()| self.pmu().release(0)))
    }

    fn interfere(&self) -> bool {
        let functions = self.machine.functions(0);
        let exact = self
            .names()
            .exact
            .map(|n| Events::code(self.machine.processor(), n));
        let counting = |word: &u32| exact.contains(&((*word & self.event_mask()) as u8));
        let Some(counter) = functions.iter().position(counting) else {
            return false;
        };
        let steady = u32::from(Events::code(self.machine.processor(), self.names().steady));
        let word = functions[counter] & !self.event_mask() | steady;
        self.machine.overwrite(0, counter, word);
        true
    }
}

impl PctrSubject {
    /// The bits of a function word that are the event.
    fn event_mask(&self) -> u32 {
        match self.machine.processor() {
            Processor::P5 => 0x3f,
            _ => 0xff,
        }
    }
}

/// Runs the suite; what was skipped has to have a reason that this machine has.
fn conforms(era: Era, processor: Processor) {
    let subject: Arc<dyn Subject> = Arc::new(PctrSubject::new(era, processor));
    let report = run(&subject, all());
    assert_eq!(
        report.failed().count(),
        0,
        "{era:?} {processor:?}\n{report}"
    );

    let tasks = TargetKinds::CURRENT_THREAD | TargetKinds::THREAD | TargetKinds::PROCESS;
    let other_cpus = TargetKinds::CPU | TargetKinds::ALL_CPUS | TargetKinds::CGROUP;
    let absent = Features::INHERIT | Features::ENABLE_ON_EXEC | Features::ANY_THREAD;
    let unconstrained = matches!(processor, Processor::P5 | Processor::K8);
    for (check, missing) in report.skipped() {
        assert!(
            !missing.is_claimed_by(subject.backend().capabilities()),
            "{}",
            check.id
        );
        let excused = match missing {
            Missing::Target(kinds) => (tasks | other_cpus).contains(kinds),
            Missing::Features(features) => absent.contains(features),
            Missing::Ability(Ability::Conflict | Ability::Puzzle) => unconstrained,
            Missing::Ability(ability) => ability == Ability::InheritanceProbe,
            // The driver reads one counter after the other.
            Missing::Simultaneity(Simultaneity::Atomic) => true,
            Missing::Inapplicable(_) => true,
            _ => false,
        };
        assert!(
            excused,
            "{era:?} {processor:?}: {} was skipped: {missing}",
            check.id
        );
    }
}

#[test]
fn every_era_conforms_on_every_cpu_with_counters() {
    let machines = Era::machines().filter(|(era, processor)| era.counters(*processor) > 0);
    let mut number = 0;
    for (era, processor) in machines {
        conforms(era, processor);
        number += 1;
    }
    assert_eq!(number, 18);
}
