//! The virtual PMU against a model of it that is too simple to be wrong: any sequence of opening,
//! enabling, disabling, resetting, ticking and closing gives exactly the model's values and times.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use quipu_hal::{Attributes, ErrorKind, Event, Group, GroupSpec, SlotClass, SlotSet, Target};
use quipu_pmu::{
    ManualClock, Rate, Script, SimEvent, SimModel, SimPmu, SimRegister, SimSelect, Slot,
    VirtualGroup, VirtualPmu,
};

/// The events: how many a microsecond, and on which of the four slots; on none of them, the free-running one.
const EVENTS: [(&str, u64, u64); 5] = [
    ("ANYWHERE", 3000, 0b1111),
    ("FIRST", 1600, 0b0001),
    ("LOW", 7, 0b0011),
    ("HIGH", 41, 0b1100),
    ("FREE", 500, 0),
];

#[derive(Debug, Clone)]
struct Shape {
    events: Vec<usize>,
    pinned: bool,
    exclusive: bool,
    disabled: bool,
}

#[derive(Debug, Clone)]
enum Step {
    /// Opens a group, or closes the one there is.
    Toggle(usize, Shape),
    Enable(usize),
    Disable(usize),
    Reset(usize),
    Read(usize),
    Wait(u64),
    Tick,
}

const GROUPS: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    let shape = (
        prop::collection::vec(0..EVENTS.len(), 1..4),
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.15),
        any::<bool>(),
    );
    let shape = shape.prop_map(|(events, pinned, exclusive, disabled)| Shape {
        events,
        pinned,
        exclusive,
        disabled,
    });
    prop_oneof![
        2 => (0..GROUPS, shape).prop_map(|(group, shape)| Step::Toggle(group, shape)),
        2 => (0..GROUPS).prop_map(Step::Enable),
        1 => (0..GROUPS).prop_map(Step::Disable),
        1 => (0..GROUPS).prop_map(Step::Reset),
        2 => (0..GROUPS).prop_map(Step::Read),
        3 => (0..100u64).prop_map(Step::Wait),
        3 => Just(Step::Tick),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Off,
    Inactive,
    Active,
    Error,
}

/// One group as the model sees it.
#[derive(Debug, Clone)]
struct Modelled {
    shape: Shape,
    state: State,
    enabled: u64,
    running: u64,
    at_reset: (u64, u64),
    values: Vec<u64>,
}

#[derive(Debug, Default)]
struct Model {
    groups: [Option<Modelled>; GROUPS],
    pinned: Vec<usize>,
    free: Vec<usize>,
    ring: Vec<usize>,
}

impl Model {
    fn group(&mut self, index: usize) -> &mut Modelled {
        self.groups[index].as_mut().unwrap()
    }

    fn enable(&mut self, index: usize) {
        let group = self.group(index);
        if matches!(group.state, State::Off | State::Error) {
            group.state = State::Inactive;
            if group.shape.pinned {
                self.pinned.push(index);
            } else if self.is_free(index) {
                self.free.push(index);
            } else {
                self.ring.push(index);
            }
            self.arrange();
        }
    }

    fn disable(&mut self, index: usize) {
        self.pinned.retain(|&i| i != index);
        self.free.retain(|&i| i != index);
        self.ring.retain(|&i| i != index);
        let group = self.group(index);
        if group.state != State::Error {
            group.state = State::Off;
        }
        self.arrange();
    }

    fn tick(&mut self) {
        let waits = |&i: &usize| self.groups[i].as_ref().unwrap().state == State::Inactive;
        if self.ring.iter().any(waits) {
            self.ring.rotate_left(1);
            self.arrange();
        }
    }

    /// Decides again which groups count.
    fn arrange(&mut self) {
        let mut on: Vec<usize> = Vec::new();
        for index in std::mem::take(&mut self.pinned) {
            if self.fits(&on, index) {
                on.push(index);
                self.pinned.push(index);
            } else {
                self.group(index).state = State::Error;
            }
        }
        on.extend(&self.free);
        for &index in &self.ring {
            if !self.fits(&on, index) {
                break;
            }
            on.push(index);
        }
        for index in [&self.pinned[..], &self.free, &self.ring].concat() {
            let state = if on.contains(&index) {
                State::Active
            } else {
                State::Inactive
            };
            self.group(index).state = state;
        }
    }

    /// Groups that need no counter are never in another's way.
    fn is_free(&self, index: usize) -> bool {
        let events = &self.groups[index].as_ref().unwrap().shape.events;
        events.iter().all(|&event| EVENTS[event].2 == 0)
    }

    fn fits(&self, on: &[usize], index: usize) -> bool {
        let shape = |i: usize| &self.groups[i].as_ref().unwrap().shape;
        if self.is_free(index) {
            return true;
        }
        let on: Vec<usize> = on.iter().copied().filter(|&i| !self.is_free(i)).collect();
        let alone = on.iter().any(|&i| shape(i).exclusive);
        if alone || (shape(index).exclusive && !on.is_empty()) {
            return false;
        }
        let all = on.iter().chain([&index]);
        let events: Vec<usize> = all.flat_map(|&i| shape(i).events.clone()).collect();
        assignable(&events, 0)
    }

    fn wait(&mut self, micros: u64) {
        for group in self.groups.iter_mut().flatten() {
            if matches!(group.state, State::Inactive | State::Active) {
                group.enabled += micros * 1000;
            }
            if group.state == State::Active {
                group.running += micros * 1000;
                for (value, &event) in group.values.iter_mut().zip(&group.shape.events) {
                    *value += micros * EVENTS[event].1;
                }
            }
        }
    }
}

/// Tries every assignment.
fn assignable(events: &[usize], taken: u64) -> bool {
    let Some((&first, rest)) = events.split_first() else {
        return true;
    };
    if EVENTS[first].2 == 0 {
        return assignable(rest, taken);
    }
    (0..4)
        .map(|slot| 1 << slot)
        .any(|bit| EVENTS[first].2 & !taken & bit != 0 && assignable(rest, taken | bit))
}

type Groups = [Option<VirtualGroup<SimPmu>>; GROUPS];

fn check(groups: &mut Groups, model: &Model, index: usize) -> Result<(), TestCaseError> {
    let (Some(group), Some(expected)) = (&mut groups[index], &model.groups[index]) else {
        return Ok(());
    };
    let mut out = group.read_buf();
    let got = group.read(&mut out);
    if expected.state == State::Error {
        prop_assert_eq!(got.unwrap_err().kind(), ErrorKind::CounterInErrorState);
        return Ok(());
    }
    got.unwrap();
    for (reading, &value) in out[0].iter().zip(&expected.values) {
        prop_assert_eq!(reading.value, value);
        prop_assert_eq!(reading.raw_time_enabled, expected.enabled);
        prop_assert_eq!(reading.raw_time_running, expected.running);
        prop_assert_eq!(reading.time_enabled, expected.enabled - expected.at_reset.0);
        prop_assert_eq!(reading.time_running, expected.running - expected.at_reset.1);
    }
    Ok(())
}

/// `found` are the counters that another program has left set.
fn follow(steps: &[Step], found: u64, width: u8) -> Result<(), TestCaseError> {
    let events = EVENTS
        .iter()
        .zip(1..)
        .map(|(&(name, rate, slots), number)| {
            let slots = match slots {
                0 => SlotSet::one(SlotClass::FreeRunning, 0),
                slots => SlotSet::general(slots),
            };
            SimEvent::new(number, name, Script::steady(Rate::new(rate, 0))).on_slots(slots)
        });
    let clock = ManualClock::new();
    let pmu = SimPmu::with_model(
        SimModel {
            slots: (0..4)
                .map(|n| Slot::general(n, width))
                .chain([Slot::free_running(0, 64)])
                .collect(),
            events: events.collect(),
            ..SimModel::default()
        },
        clock.clone(),
    );
    for slot in (0..4).filter(|slot| found >> slot & 1 == 1) {
        let left = SimRegister {
            select: SimSelect::new(1).bits(),
            counting: false,
            raw: 99,
        };
        pmu.overwrite(0, slot, left);
    }
    let registers = || pmu.registers(0)[..4].to_vec();
    let before = registers();
    let map = Arc::new(pmu.event_map());
    let backend = VirtualPmu::new(pmu.clone(), clock.clone(), map).unwrap();
    let mut groups: Groups = Default::default();
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Toggle(i, _) if groups[*i].is_some() => {
                groups[*i] = None;
                model.disable(*i);
                model.groups[*i] = None;
            }
            Step::Toggle(i, shape) => {
                let names = shape
                    .events
                    .iter()
                    .map(|&e| Event::Named(EVENTS[e].0.into()));
                let spec = GroupSpec::new(names).with_attributes(
                    Attributes::default()
                        .with_pinned(shape.pinned)
                        .with_exclusive(shape.exclusive)
                        .with_disabled(shape.disabled),
                );
                let opened = backend.open_group(&spec, &Target::Cpu(0));
                if !assignable(&shape.events, 0) {
                    prop_assert_eq!(opened.unwrap_err().kind(), ErrorKind::TooManyEvents);
                    continue;
                }
                groups[*i] = Some(opened.unwrap());
                model.groups[*i] = Some(Modelled {
                    state: State::Off,
                    enabled: 0,
                    running: 0,
                    at_reset: (0, 0),
                    values: vec![0; shape.events.len()],
                    shape: shape.clone(),
                });
                if !shape.disabled {
                    model.enable(*i);
                }
            }
            Step::Enable(i) => {
                if let Some(group) = &mut groups[*i] {
                    group.enable().unwrap();
                    model.enable(*i);
                }
            }
            Step::Disable(i) => {
                if let Some(group) = &mut groups[*i] {
                    group.disable().unwrap();
                    model.disable(*i);
                }
            }
            Step::Reset(i) => {
                if let Some(group) = &mut groups[*i] {
                    group.reset().unwrap();
                    let group = model.group(*i);
                    group.values.fill(0);
                    group.at_reset = (group.enabled, group.running);
                }
            }
            Step::Read(i) => check(&mut groups, &model, *i)?,
            Step::Wait(micros) => {
                clock.advance(Duration::from_micros(*micros));
                model.wait(*micros);
            }
            Step::Tick => {
                backend.tick().unwrap();
                model.tick();
            }
        }
    }
    for index in 0..GROUPS {
        check(&mut groups, &model, index)?;
    }
    drop(groups);
    prop_assert_eq!(registers(), before);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn values_and_times_are_the_models(
        steps in prop::collection::vec(step(), 1..80),
        found in 0..1u64 << 4,
    ) {
        follow(&steps, found, 48)?;
    }

    #[test]
    fn they_are_with_narrow_counters(
        steps in prop::collection::vec(step(), 1..80),
        found in 0..1u64 << 4,
    ) {
        follow(&steps, found, 32)?;
    }
}
