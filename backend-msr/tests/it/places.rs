//! Which counter an event gets, beside counters that another program had enabled, and the time stamp counter, which needs
//! none.

use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Count, Event, Group, GroupSpec, SlotClass, SlotSet, Target};
use quipu_msr::sim::{EventNames, Generation, Level, SimulatedMsrs, Stretch};
use quipu_msr::{MsrBus, MsrPmu, Options};
use quipu_pmu::{ManualClock, VirtualGroup, VirtualPmu};

type Backend = VirtualPmu<MsrPmu<SimulatedMsrs>>;

fn backend(bus: &SimulatedMsrs) -> (Backend, ManualClock) {
    let first = SlotSet::one(SlotClass::General, 0);
    let map = EventNames::new(bus.model())
        .any("ANY", 0x16)
        .with("FIRST", 0x04, first, None);
    let pmu = MsrPmu::new(
        bus.clone(),
        &bus.model(),
        Options::default().taking_enabled(),
    )
    .unwrap();
    let clock = ManualClock::new();
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
    (backend, clock)
}

fn open(backend: &Backend, events: &[&str]) -> VirtualGroup<MsrPmu<SimulatedMsrs>> {
    let events = events.iter().map(|event| Event::Named((*event).into()));
    backend
        .open_group(&GroupSpec::new(events), &Target::Cpu(0))
        .unwrap()
}

fn count(group: &mut impl Group, member: usize) -> Count {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    buf[0][member].count()
}

/// Enables general counters as another program would.
fn occupy(bus: &SimulatedMsrs, generation: Generation, counters: &[u32]) {
    for &counter in counters {
        match generation {
            Generation::P5 => {
                let held = bus.read(0, 0x11).unwrap();
                bus.write(0, 0x11, held | 0xd2 << (16 * counter))
            }
            Generation::P6 | Generation::Intel { .. } => bus.write(0, 0x186 + counter, 0x53_0079),
            Generation::AmdPerfMonV2 { .. } | Generation::Amd15h => {
                bus.write(0, 0xc001_0200 + 2 * counter, 0x53_0079)
            }
            _ => bus.write(0, 0xc001_0000 + counter, 0x53_0079),
        }
        .unwrap();
    }
    let enabled = counters.iter().fold(0, |bits, counter| bits | 1 << counter);
    match generation {
        Generation::Intel { version: 2.., .. } => bus.write(0, 0x38f, enabled).unwrap(),
        Generation::AmdPerfMonV2 { .. } => bus.write(0, 0xc000_0301, enabled).unwrap(),
        _ => {}
    }
}

#[test]
fn an_event_of_one_counter_counts_beside_one_of_any_whichever_were_enabled() {
    for &generation in Generation::ALL {
        for occupied in [&[][..], &[0], &[1], &[0, 1]] {
            for order in [["ANY", "FIRST"], ["FIRST", "ANY"]] {
                let bus = SimulatedMsrs::new(generation, 1);
                occupy(&bus, generation, occupied);
                let (backend, clock) = backend(&bus);
                let mut groups = order.map(|event| open(&backend, &[event]));
                clock.advance(Duration::from_micros(10));
                let stretch = Stretch::new(Level::User, 10);
                bus.run(0, &stretch.occurring(0x16, 3).occurring(0x04, 2));
                for (group, event) in groups.iter_mut().zip(order) {
                    let expected = if event == "ANY" { 30 } else { 20 };
                    let said = format!("{generation:?}, {occupied:?} enabled, {order:?}");
                    assert_eq!(count(group, 0), Count::Exact(expected), "{said}");
                }
            }
        }
    }
}

#[test]
fn the_time_stamp_counter_is_an_event_that_waits_for_no_counter() {
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 1);
        let before = bus.dump(0);
        let (backend, clock) = backend(&bus);
        let mut crowd: Vec<_> = (0..3).map(|_| open(&backend, &["FIRST", "tsc"])).collect();
        let mut alone = open(&backend, &["TSC"]);
        for _ in 0..30 {
            clock.advance(Duration::from_millis(4));
            bus.run(0, &Stretch::new(Level::Kernel, 1_000));
            backend.tick().unwrap();
        }
        assert_eq!(count(&mut alone, 0), Count::Exact(30_000), "{generation:?}");
        // A group that needs a counter waits with all that it has.
        let estimate = Count::Estimated(30_000);
        assert_eq!(count(&mut crowd[0], 1), estimate, "{generation:?}");
        drop(crowd);
        drop(alone);
        assert_eq!(bus.dump(0), before, "{generation:?}");
    }
}
