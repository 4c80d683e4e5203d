//! A simulated pctr(4) of every era and CPU as a subject, under the pctr backend.
//!
//! Only names of the crates below are used here, so that the backend's own tests can include this file.

use std::sync::Arc;
use std::time::Duration;

use quipu_conformance::subjects::Turns;
use quipu_conformance::{Subject, Workload};
use quipu_hal::{
    Clock, CpuModel, DynBackend, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, EventSpec,
    Filter, ManualClock, P5Function, Pmu, PmuEvent, ResolvedEvent, Result, SlotClass, SlotSet,
    Target, VirtualPmu, X86Select,
};
use quipu_pctr::simulation::{Era, Level, Processor, SimDevice, SimMachine};
use quipu_pctr::{PctrPmu, over};

/// How long a group counts before another has its turn, in nanoseconds.
const INTERVAL: u64 = 4_000_000;
/// How long a workload takes before and after what it does.
const WORK: Duration = Duration::from_nanos(500);
/// The most of the rapid event in a second.
const RAPID: u64 = 5_000_000_000;

/// Two CPUs of one kind, with a kernel of one era.
pub(crate) struct Machine {
    machine: SimMachine,
    backend: Arc<VirtualPmu<PctrPmu<SimDevice>, ManualClock>>,
    turns: Turns,
}

/// The events that the checks need, by names of their own.
struct Events {
    cpu: CpuModel,
    processor: Processor,
}

/// An event's code and the counters that can count it. The codes are of events that every CPU of the
/// kind has.
fn find(processor: Processor, name: &str) -> Option<(u8, SlotSet)> {
    let only = |counter| SlotSet::one(SlotClass::General, counter);
    let any = SlotSet::ANY_GENERAL;
    Some(match (processor, name) {
        (Processor::P5, "FIRST") => (0x16, any),
        (Processor::P5, "SECOND") => (0x12, any),
        (Processor::P5, "STEADY") => (0x00, any),
        (Processor::P5, "RAPID") => (0x15, any),
        (_, "FIRST") => (0xc0, any),
        (Processor::K8, "SECOND") => (0xc2, any),
        (Processor::K8, "STEADY") => (0x76, any),
        (Processor::K8, "RAPID") => (0x20, any),
        (_, "SECOND") => (0xc4, any),
        (Processor::P6, "STEADY") => (0x79, any),
        (_, "STEADY") => (0x3c, any),
        (_, "RAPID") => (0x06, any),
        (Processor::P6 | Processor::Core, "LEFT") => (0x10, only(0)),
        (Processor::P6 | Processor::Core, "RIGHT") => (0x12, only(1)),
        _ => return None,
    })
}

impl EventMap for Events {
    fn cpu(&self) -> &CpuModel {
        &self.cpu
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let found = match event {
            Event::Named(name) => find(self.processor, name).map(|found| (name.as_str(), found)),
            _ => None,
        };
        let Some((name, (code, slots))) = found else {
            let error = Error::new(ErrorKind::UnsupportedEvent, format!("count {event}"));
            return Err(error.with_reason("this CPU has no such event"));
        };
        let (user, kernel) = (
            filter.contains(Filter::USER),
            filter.contains(Filter::KERNEL),
        );
        let encoding = if self.processor == Processor::P5 {
            let flag = |asked, bit| if asked { bit } else { 0 };
            let flags = flag(user, P5Function::USER) | flag(kernel, P5Function::KERNEL);
            Encoding::P5(P5Function::new(code).with_flags(flags))
        } else {
            let flag = |asked, bit| if asked { bit } else { 0 };
            let flags = flag(user, X86Select::USER) | flag(kernel, X86Select::KERNEL);
            Encoding::X86(X86Select::new(code.into(), 0).with_flags(flags))
        };
        let info = EventInfo::counter(name).honouring(Filter::LEVELS);
        Ok(ResolvedEvent {
            encoding,
            slots,
            info: EventInfo {
                max_rate: (name == "RAPID").then_some(RAPID),
                ..info
            },
        })
    }
}

fn event(name: &str) -> EventSpec {
    Event::Named(name.to_owned()).into()
}

impl Machine {
    /// Fails where the driver knows no counters.
    pub(crate) fn new(era: Era, processor: Processor) -> Result<Self> {
        let machine = SimMachine::new(era, processor, 2);
        let Some(cpu) = machine.cpu_model() else {
            let attempted = format!("test {} on {}", era.name(), processor.name());
            return Err(Error::new(ErrorKind::NoSuchDevice, attempted)
                .with_reason("this driver knows no counters on that CPU"));
        };
        if let Some((steady, _)) = find(processor, "STEADY") {
            machine.steady(steady, Level::User, 60);
            machine.steady(steady, Level::Kernel, 40);
        }
        let events: Arc<dyn EventMap> = Arc::new(Events { cpu, processor });
        Ok(Self {
            backend: Arc::new(over(machine.open(), Some(events), machine.clock())?),
            machine,
            turns: Turns::new(INTERVAL),
        })
    }

    fn code(&self, event: &EventSpec) -> Option<u8> {
        let Event::Named(name) = &event.event else {
            return None;
        };
        find(self.machine.processor(), name).map(|(code, _)| code)
    }

    fn width(&self) -> u8 {
        let arch = self.machine.era().arch();
        arch.visible_width(self.machine.processor().width())
    }

    /// These events, where the CPU has them all.
    fn those(&self, names: [&str; 2]) -> Option<Vec<EventSpec>> {
        let all = names
            .iter()
            .all(|n| find(self.machine.processor(), n).is_some());
        all.then(|| names.map(event).to_vec())
    }

    /// The bits of a function word that are the event.
    fn event_mask(&self) -> u32 {
        match self.machine.processor() {
            Processor::P5 => 0x3f,
            _ => 0xff,
        }
    }
}

impl Subject for Machine {
    fn backend(&self) -> &dyn DynBackend {
        &*self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentCpu
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        ["FIRST", "SECOND"].map(event).to_vec()
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
        let turn = || {
            // What goes wrong with a group is told by its next read.
            let _ = self.backend.tick();
        };
        self.turns.pass(
            nanoseconds,
            |step| self.machine.pass(Duration::from_nanos(step)),
            turn,
        );
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(event("STEADY"))
    }

    fn rotation_interval(&self) -> u64 {
        self.turns.interval()
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
        let rapid = event("RAPID");
        let code = self.code(&rapid)?;
        let times = (1 << self.width()) + 5;
        let long = Duration::from_secs(2 * times / RAPID);
        let work: Workload = Box::new(move || {
            machine.pass(long);
            machine.occur(code, 0, Level::User, times);
            machine.pass(long);
        });
        Some((rapid, times, work))
    }

    fn conflicting(&self) -> Option<Vec<EventSpec>> {
        self.those(["LEFT", "LEFT"])
    }

    fn puzzle(&self) -> Option<Vec<EventSpec>> {
        self.those(["FIRST", "LEFT"])
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            Event::Named("NO_SUCH_EVENT".into()),
            PmuEvent::new("no_such_pmu").with("event").into(),
        ]
    }

    fn resources(&self) -> Option<u64> {
        // Who can take the counters finds them free.
        match self.backend.pmu().acquire(0) {
            Ok(()) => self.backend.pmu().release(0).ok().map(|()| 0),
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
        let taken = self.backend.pmu().acquire(0);
        Some(taken.and_then(|()| self.backend.pmu().release(0)))
    }

    /// Another process sets a counter that counts an exact event to the steady one.
    fn interfere(&self) -> bool {
        let code = |name| self.code(&event(name)).map(u32::from);
        let exact = [code("FIRST"), code("SECOND")];
        let functions = self.machine.functions(0);
        let counting = |word: &u32| *word != 0 && exact.contains(&Some(word & self.event_mask()));
        let (Some(counter), Some(steady)) = (functions.iter().position(counting), code("STEADY"))
        else {
            return false;
        };
        let word = functions[counter] & !self.event_mask() | steady;
        self.machine.overwrite(0, counter, word);
        true
    }
}
