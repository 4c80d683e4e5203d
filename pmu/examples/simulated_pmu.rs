//! Tests a tool that counts without any hardware: four events share two simulated counters, and what the tool would
//! report is compared with what really happened.
//!
//! ```text
//! cargo run -p quipu-pmu --example simulated_pmu
//! ```

use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Attributes, Backend, Count, Event, GroupSpec, Reading, Result, Target};
use quipu_pmu::{ManualClock, Rate, Script, SimEvent, SimModel, SimPmu, Slot, VirtualPmu};

const EVENTS: [&str; 4] = ["CYCLES", "LOADS", "BRANCHES", "MISSES"];

fn main() -> Result<()> {
    // A workload of our own: misses happen mostly in 3 ms of each 10, all else steadily.
    let ms = Duration::from_millis;
    let steady = |rate| Script::steady(Rate::new(rate, 0));
    let misses = Script::phases([(ms(3), Rate::new(50, 0)), (ms(7), Rate::new(1, 0))]);
    let scripts = [steady(3000), steady(700), steady(400), misses];
    let events = (1..).zip(EVENTS).zip(scripts);
    let model = SimModel {
        slots: (0..2).map(|number| Slot::general(number, 48)).collect(),
        events: events
            .map(|((number, name), script)| SimEvent::new(number, name, script))
            .collect(),
        ..SimModel::default()
    };
    let clock = ManualClock::new();
    let pmu = SimPmu::with_model(model, clock.clone());
    let map = Arc::new(pmu.event_map());
    let backend = VirtualPmu::new(pmu.clone(), clock.clone(), map)?;

    // Cycles keep their counter; the others take turns on the second.
    let open = |name: &str| {
        let attributes = Attributes::default().with_pinned(name == "CYCLES");
        let alone = GroupSpec::new([Event::Named(name.into())]).with_attributes(attributes);
        backend.open(&alone, &Target::Cpu(0))
    };
    let mut groups = EVENTS.map(open).into_iter().collect::<Result<Vec<_>>>()?;
    let mut read = || -> Result<Vec<Reading>> {
        let mut readings = Vec::new();
        for group in &mut groups {
            let mut out = group.read_buf();
            group.read(&mut out)?;
            readings.push(out[0][0]);
        }
        Ok(readings)
    };

    let mut before = read()?;
    for turn in 0..12 {
        clock.advance(ms(4));
        let now = read()?;
        let counted = |at: &usize| now[*at].time_running > before[*at].time_running;
        let names: Vec<_> = (0..EVENTS.len())
            .filter(counted)
            .map(|at| EVENTS[at])
            .collect();
        println!(
            "{:2} to {:2} ms: {}",
            4 * turn,
            4 * turn + 4,
            names.join(", ")
        );
        before = now;
        backend.tick()?;
    }

    println!(
        "{:8} {:>12} {:>12} {:>12} {:>12}",
        "event", "running", "counted", "reported", "happened"
    );
    for (number, (name, reading)) in (1..).zip(EVENTS.iter().zip(&before)) {
        let count = reading.count();
        let happened = pmu.truth(number, 0);
        println!(
            "{name:8} {:>3} of {:>2} ms {:>12} {count:>12} {happened:>12}",
            reading.time_running / 1_000_000,
            reading.time_enabled / 1_000_000,
            reading.value,
        );
        match *name {
            // Counted all of the time: a fact.
            "CYCLES" => assert_eq!(count, Count::Exact(happened.into())),
            // A steady event is estimated exactly, whatever share of the time it was counted.
            "LOADS" | "BRANCHES" => assert_eq!(count, Count::Estimated(happened.into())),
            _ => assert!(count.is_estimate()),
        }
    }
    Ok(())
}
