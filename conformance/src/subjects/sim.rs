//! The simulated PMU behind the virtual one: everything is known, and nothing moves by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_hal::{
    Access, Backend, Capabilities, Clock, DynBackend, Event, EventMap, EventSpec, Filter, Gating,
    GroupSpec, ManualClock, Pmu, PmuEvent, Rate, Result, Script, SimEvent, SimModel, SimOperation,
    SimPmu, SimRegister, SimSelect, Slot, SlotSet, Target, VirtualPmu,
};

use super::turns::Turns;
use crate::{Subject, Workload};

/// The CPU on which everything happens.
const CPU: u32 = 0;
/// The width of its counters: few enough bits to see them wrap.
const WIDTH: u8 = 32;
/// How long the virtual PMU lets a group count before another has its turn.
const INTERVAL: u64 = 4_000_000;
/// How long a workload takes.
const WORK: Duration = Duration::from_nanos(500);

/// Steady, on any slot.
const STEADY: u32 = 1;
/// These happen only when they are made to; the last four on some slots only.
const FIRST: u32 = 2;
const SECOND: u32 = 3;
const LEFT: u32 = 4;
const LEFTMOST: u32 = 5;
const MIDDLE: u32 = 6;
const RIGHT: u32 = 7;
/// Can happen so fast that its counter wraps in a second.
const RAPID: u32 = 8;

/// A backend over the simulated PMU: four counters of 32 bits on each of two CPUs.
pub struct SimSubject {
    pmu: SimPmu,
    clock: ManualClock,
    backend: Box<dyn DynBackend>,
    tick: Box<dyn Fn() -> Result<()> + Send + Sync>,
    turns: Turns,
    /// The number of the operation that an injected fault is to strike.
    fault: AtomicU64,
}

/// What stands between the suite and the simulated PMU, where it is not the virtual PMU alone.
pub struct Altered<D, M, B> {
    /// From the simulated PMU to the driver that the virtual PMU uses.
    pub driver: D,
    /// From its event map to the one that the virtual PMU uses.
    pub map: M,
    /// From the virtual PMU to the backend under test.
    pub backend: B,
}

type Same<T> = fn(T) -> T;
type Unaltered = Altered<Same<SimPmu>, Same<Arc<dyn EventMap>>, Same<Box<dyn DynBackend>>>;

const UNALTERED: Unaltered = Altered {
    driver: |pmu| pmu,
    map: |map| map,
    backend: |backend| backend,
};

impl SimSubject {
    /// The virtual PMU over the simulated one.
    pub fn new() -> Self {
        Self::build(model(), UNALTERED)
    }

    /// The same with counters that one enable gates, and that only the measuring thread reaches: as
    /// those of the P6 behind pctr(4).
    pub fn tied_to_its_thread() -> Self {
        let model = SimModel {
            gating: Gating::Shared,
            access: Access::MeasuringThread,
            ..model()
        };
        Self::build(model, UNALTERED)
    }

    /// The same with something between the parts: what is there to be found out by the suite.
    ///
    /// # Panics
    /// When the driver describes a PMU that cannot be.
    pub fn altered<P: Pmu>(
        altered: Altered<
            impl FnOnce(SimPmu) -> P,
            impl FnOnce(Arc<dyn EventMap>) -> Arc<dyn EventMap>,
            impl FnOnce(Box<dyn DynBackend>) -> Box<dyn DynBackend>,
        >,
    ) -> Self {
        Self::build(model(), altered)
    }

    fn build<P: Pmu>(
        model: SimModel,
        altered: Altered<
            impl FnOnce(SimPmu) -> P,
            impl FnOnce(Arc<dyn EventMap>) -> Arc<dyn EventMap>,
            impl FnOnce(Box<dyn DynBackend>) -> Box<dyn DynBackend>,
        >,
    ) -> Self {
        let clock = ManualClock::new();
        let pmu = SimPmu::with_model(model, clock.clone());
        let map = (altered.map)(Arc::new(pmu.event_map()));
        let driver = (altered.driver)(pmu.clone());
        let virtual_pmu = VirtualPmu::new(driver, clock.clone(), map);
        let shared = Arc::new(virtual_pmu.expect("the simulated PMU is a proper one"));
        let ticked = Arc::clone(&shared);
        let subject = Self {
            pmu,
            clock,
            backend: (altered.backend)(Box::new(Shared(shared))),
            tick: Box::new(move || ticked.tick()),
            turns: Turns::new(INTERVAL),
            fault: AtomicU64::new(0),
        };
        // Counters that are not cleared before they count shall show it.
        subject.scribble();
        subject
    }

    fn operations(&self) -> u64 {
        let calls = SimOperation::ALL.map(|operation| self.pmu.calls(operation));
        calls.iter().sum()
    }
}

impl Default for SimSubject {
    fn default() -> Self {
        Self::new()
    }
}

fn model() -> SimModel {
    let never = || Script::steady(Rate::default());
    let steady = Script::steady(Rate::new(60, 40));
    let only = |number, name: &str, slots| {
        SimEvent::new(number, name, never()).on_slots(SlotSet::general(slots))
    };
    SimModel {
        slots: (0..4).map(|n| Slot::general(n, WIDTH)).collect(),
        events: vec![
            SimEvent::new(STEADY, "STEADY", steady).with_max_rate(100_000_000),
            SimEvent::new(FIRST, "FIRST", never()),
            SimEvent::new(SECOND, "SECOND", never()),
            only(LEFT, "LEFT", 0b0011),
            only(LEFTMOST, "LEFTMOST", 0b0001),
            only(MIDDLE, "MIDDLE", 0b0110),
            only(RIGHT, "RIGHT", 0b1100),
            SimEvent::new(RAPID, "RAPID", never()).with_max_rate(5_000_000_000),
        ],
        ..SimModel::default()
    }
}

fn event(number: u32) -> EventSpec {
    let model = model();
    let found = model.events.iter().find(|e| e.number == number);
    EventSpec::new(Event::Named(
        found.map_or_else(String::new, |e| e.name.clone()),
    ))
}

fn number(event: &EventSpec) -> Option<u32> {
    let Event::Named(name) = &event.event else {
        return None;
    };
    let model = model();
    let found = model.events.iter().find(|e| e.name == *name);
    found.map(|e| e.number)
}

impl Subject for SimSubject {
    fn backend(&self) -> &dyn DynBackend {
        &*self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentCpu
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        vec![event(FIRST), event(SECOND)]
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        self.workload_at(event, Filter::USER, times)
    }

    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        let (number, pmu, clock) = (number(event)?, self.pmu.clone(), self.clock.clone());
        let (user, kernel) = match level {
            Filter::KERNEL => (0, times),
            _ => (times, 0),
        };
        Some(Box::new(move || {
            clock.advance(WORK);
            pmu.happen(number, CPU, user, kernel);
            clock.advance(WORK);
        }))
    }

    fn pass(&self, nanoseconds: u64) {
        let turn = || {
            // What goes wrong with a group is told by its next read.
            let _ = (self.tick)();
        };
        self.turns.pass(
            nanoseconds,
            |step| self.clock.advance(Duration::from_nanos(step)),
            turn,
        );
    }

    fn slot_event(&self) -> Option<EventSpec> {
        Some(event(STEADY))
    }

    fn rotation_interval(&self) -> u64 {
        self.turns.interval()
    }

    fn now(&self) -> Option<u64> {
        Some(self.clock.now())
    }

    fn occurred(&self, event: &EventSpec) -> Option<u64> {
        let now = self.clock.now();
        Some(self.pmu.truth_at(number(event)?, CPU, event.filter, now))
    }

    fn wraps_after(&self, _event: &EventSpec) -> Option<u64> {
        Some(1 << WIDTH)
    }

    fn hidden_wrap(&self) -> Option<(EventSpec, u64, Workload)> {
        let (pmu, clock) = (self.pmu.clone(), self.clock.clone());
        let times = (1 << WIDTH) + 5;
        let work: Workload = Box::new(move || {
            clock.advance(Duration::from_secs(1));
            pmu.happen(RAPID, CPU, times, 0);
            clock.advance(Duration::from_secs(1));
        });
        Some((event(RAPID), times, work))
    }

    fn conflicting(&self) -> Option<Vec<EventSpec>> {
        Some(vec![event(LEFTMOST), event(LEFTMOST)])
    }

    fn puzzle(&self) -> Option<Vec<EventSpec>> {
        Some([LEFT, MIDDLE, RIGHT, LEFTMOST].map(event).to_vec())
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            Event::Named("NO_SUCH_EVENT".into()),
            PmuEvent::new("no_such_pmu").with("event").into(),
        ]
    }

    fn resources(&self) -> Option<u64> {
        let mut held = 0;
        let reachable = match self.pmu.access() {
            Access::AnyThread => self.pmu.cpus(),
            Access::MeasuringThread => &[CPU],
        };
        for &cpu in reachable {
            // Who can take it finds it free.
            match self.pmu.acquire(cpu) {
                Ok(()) => self.pmu.release(cpu).ok()?,
                Err(_) => held += 1,
            }
        }
        Some(held)
    }

    fn scribble(&self) -> bool {
        for slot in 0..self.pmu.slots().len() {
            let left_behind = SimRegister {
                select: SimSelect::new(SECOND).bits(),
                counting: false,
                raw: 1_000 + slot as u64,
            };
            self.pmu.overwrite(CPU, slot, left_behind);
        }
        true
    }

    fn registers(&self) -> Option<String> {
        Some(format!("{:?}", self.pmu.registers(CPU)))
    }

    fn inject(&self, operations: u64, errno: i32) -> bool {
        let nth = operations + 1;
        self.fault.store(self.operations() + nth, Ordering::Relaxed);
        self.pmu.fail_any(nth, errno);
        true
    }

    fn withdraw(&self) -> bool {
        let mut waiting = false;
        while self.operations() < self.fault.load(Ordering::Relaxed) {
            // Nothing is read; the operation is there to be struck.
            waiting |= self.pmu.read(CPU, &[], &mut []).is_err();
        }
        waiting
    }

    fn second_owner(&self) -> Option<Result<()>> {
        let taken = self.pmu.acquire(CPU);
        Some(taken.and_then(|()| self.pmu.release(CPU)))
    }

    fn interfere(&self) -> bool {
        let registers = self.pmu.registers(CPU);
        let Some(slot) = registers.iter().position(|register| register.counting) else {
            return false;
        };
        let content = SimRegister {
            select: SimSelect::new(STEADY).bits(),
            counting: true,
            raw: 77,
        };
        self.pmu.overwrite(CPU, slot, content);
        true
    }
}

/// The virtual PMU, of which the subject keeps a handle to let its ring turn.
struct Shared<P: Pmu, C: Clock>(Arc<VirtualPmu<P, C>>);

impl<P: Pmu, C: Clock> Backend for Shared<P, C> {
    type Group = <VirtualPmu<P, C> as Backend>::Group;

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
