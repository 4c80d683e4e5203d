//! A simulated register file of every generation as a subject, under the msr backend.
//!
//! Only names of the crates below are used here, so that the backend's own tests can include this file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quipu_conformance::subjects::Turns;
use quipu_conformance::{Subject, Workload};
use quipu_hal::{
    Clock, DynBackend, Event, EventSpec, Filter, ManualClock, Pmu, PmuEvent, Result, SlotClass,
    SlotSet, Target, VirtualPmu,
};
use quipu_msr::sim::{EventNames, Generation, Level, SimulatedMsrs, Stretch};
use quipu_msr::{MsrBus, MsrPmu, Options};

const CPU: u32 = 0;
const INTERVAL: u64 = 4_000_000;
/// How long a workload takes, in nanoseconds, before and after what it does.
const WORK: u64 = 500;
/// The most of the rapid event in a second.
const RAPID: u64 = 5_000_000_000;

/// A machine of one generation. Its fixed counters are in use by somebody else, so that one slot is
/// as good as another.
pub(crate) struct Machine {
    inner: Arc<Inner>,
    generation: Generation,
    backend: Arc<VirtualPmu<MsrPmu<SimulatedMsrs>, ManualClock>>,
    turns: Turns,
}

/// What workloads work with.
struct Inner {
    bus: SimulatedMsrs,
    clock: ManualClock,
    map: EventNames,
    /// What happened, in user and kernel mode.
    truth: Mutex<HashMap<u64, [u64; 2]>>,
}

impl Inner {
    fn happen(&self, event: u64, level: Level, cycles: u64, times: u64) {
        self.bus
            .run(CPU, &Stretch::new(level, cycles).occurring(event, times));
        let mut truth = self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        truth.entry(event).or_default()[level as usize] += cycles * times;
    }

    /// Time passes, in which the steady event occurs once a nanosecond.
    fn elapse(&self, ns: u64) {
        self.clock.advance(Duration::from_nanos(ns));
        if let Some(steady) = self.map.bits("STEADY") {
            self.happen(steady, Level::User, ns - ns / 4, 1);
            self.happen(steady, Level::Kernel, ns / 4, 1);
        }
    }
}

impl Machine {
    pub(crate) fn new(generation: Generation) -> Result<Self> {
        let bus = SimulatedMsrs::new(generation, 2);
        for cpu in 0..2 {
            occupy_fixed_counters(&bus, generation, cpu)?;
            scribble(&bus, cpu)?;
        }
        let map = || {
            EventNames::new(bus.model())
                .any("STEADY", 0x01)
                .any("FIRST", 0x02)
                .any("SECOND", 0x06)
                .with("LEFTMOST", 0x04, SlotSet::one(SlotClass::General, 0), None)
                .with("RAPID", 0x05, SlotSet::ANY_GENERAL, Some(RAPID))
        };
        let clock = ManualClock::new();
        let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default())?;
        let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map()))?;
        Ok(Self {
            inner: Arc::new(Inner {
                map: map(),
                bus,
                clock,
                truth: Mutex::default(),
            }),
            generation,
            backend: Arc::new(backend),
            turns: Turns::new(INTERVAL),
        })
    }

    /// What kind of counters it has, in a few words.
    pub(crate) fn description(&self) -> &str {
        self.backend.pmu().description()
    }

    fn bits(&self, event: &EventSpec) -> Option<u64> {
        match &event.event {
            Event::Named(name) => self.inner.map.bits(name),
            _ => None,
        }
    }
}

/// Lets fixed counters count for somebody else.
fn occupy_fixed_counters(bus: &SimulatedMsrs, generation: Generation, cpu: u32) -> Result<()> {
    if generation.fixed() == 0 {
        return Ok(());
    }
    let fixed = (0..generation.fixed()).fold(0, |bits, n| bits | 3 << (4 * n));
    bus.write(cpu, 0x38d, fixed)?;
    let all = (1 << (32 + generation.fixed())) - 1;
    bus.write(cpu, 0x38f, all & (!0 << 32) | 1)
}

/// Leaves values in general counters that stand still, and events in their select registers.
fn scribble(bus: &SimulatedMsrs, cpu: u32) -> Result<()> {
    for (address, held) in bus.dump(cpu) {
        let left = match address {
            0x12..=0x13 | 0xc1..=0xc8 | 0xc001_0004..=0xc001_0007 => {
                held + 0x1234 + u64::from(address & 7)
            }
            0x186..=0x18d | 0xc001_0000..=0xc001_0003 => 0x3_0005,
            _ => continue,
        };
        bus.write(cpu, address, left)?;
    }
    Ok(())
}

fn named(name: &str) -> EventSpec {
    EventSpec::new(Event::Named(name.into()))
}

impl Subject for Machine {
    fn backend(&self) -> &dyn DynBackend {
        &*self.backend
    }

    fn target(&self) -> Target {
        Target::Cpu(CPU)
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        vec![named("FIRST"), named("SECOND")]
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        self.workload_at(event, Filter::USER, times)
    }

    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        let (event, inner) = (self.bits(event)?, Arc::clone(&self.inner));
        let level = if level == Filter::KERNEL {
            Level::Kernel
        } else {
            Level::User
        };
        Some(Box::new(move || {
            inner.elapse(WORK);
            inner.happen(event, level, 1, times);
            inner.elapse(WORK);
        }))
    }

    fn pass(&self, nanoseconds: u64) {
        let turn = || {
            // What goes wrong with a group is told by its next read.
            let _ = self.backend.tick();
        };
        self.turns
            .pass(nanoseconds, |step| self.inner.elapse(step), turn);
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(named("STEADY"))
    }

    fn rotation_interval(&self) -> u64 {
        self.turns.interval()
    }

    fn now(&self) -> Option<u64> {
        Some(self.inner.clock.now())
    }

    fn occurred(&self, event: &EventSpec) -> Option<u64> {
        let select = self.bits(event)?;
        let truth = self
            .inner
            .truth
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let [user, kernel] = truth.get(&select).copied().unwrap_or_default();
        let counts = |level, times| {
            if event.filter.contains(level) {
                times
            } else {
                0
            }
        };
        Some(counts(Filter::USER, user) + counts(Filter::KERNEL, kernel))
    }

    fn wraps_after(&self, _event: &EventSpec) -> Option<u64> {
        Some(1 << self.generation.width())
    }

    fn hidden_wrap(&self) -> Option<(EventSpec, u64, Workload)> {
        let (event, inner) = (named("RAPID"), Arc::clone(&self.inner));
        let (select, times) = (self.bits(&event)?, (1 << self.generation.width()) + 5);
        let work: Workload = Box::new(move || {
            inner.elapse(times / RAPID * 1_000_000_000);
            inner.happen(select, Level::User, 1, times);
            inner.elapse(2_000_000_000);
        });
        Some((event, times, work))
    }

    fn conflicting(&self) -> Option<Vec<EventSpec>> {
        Some(vec![named("LEFTMOST"), named("LEFTMOST")])
    }

    fn puzzle(&self) -> Option<Vec<EventSpec>> {
        Some(vec![named("FIRST"), named("LEFTMOST")])
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            Event::Named("NO_SUCH_EVENT".into()),
            PmuEvent::new("no_such_pmu").with("event").into(),
        ]
    }

    fn resources(&self) -> Option<u64> {
        let pmu = self.backend.pmu();
        let mut held = 0;
        for &cpu in pmu.cpus() {
            // Who can take it finds it free.
            match pmu.acquire(cpu) {
                Ok(()) => pmu.release(cpu).ok()?,
                Err(_) => held += 1,
            }
        }
        Some(held)
    }

    fn scribble(&self) -> bool {
        scribble(&self.inner.bus, CPU).is_ok()
    }

    fn registers(&self) -> Option<String> {
        let mut held = self.inner.bus.dump(CPU);
        // What the fixed counters count is somebody else's.
        held.retain(|(address, _)| !matches!(address, 0x309..=0x30c | 0x1980..=0x198f | 0x38e));
        Some(format!("{held:x?}"))
    }

    fn inject(&self, operations: u64, errno: i32) -> bool {
        self.inner.bus.fail(operations, errno);
        true
    }

    fn withdraw(&self) -> bool {
        self.inner.bus.withdraw()
    }

    fn second_owner(&self) -> Option<Result<()>> {
        let pmu = self.backend.pmu();
        Some(pmu.acquire(CPU).and_then(|()| pmu.release(CPU)))
    }

    /// Clears what makes counters count, which is noticed after a second at the latest.
    fn interfere(&self) -> bool {
        let control = match self.generation {
            Generation::P5 => 0x11,
            Generation::AmdPerfMonV2 { .. } => 0xc000_0301,
            Generation::Intel { version: 2.., .. } => 0x38f,
            Generation::P6 | Generation::Intel { .. } => 0x186,
            Generation::AmdK7 | Generation::Amd10h | Generation::Amd15h => 0xc001_0000,
        };
        if self.inner.bus.write(CPU, control, 0).is_err() {
            return false;
        }
        self.inner.elapse(1_000_000_000);
        self.backend.tick().is_ok()
    }
}
