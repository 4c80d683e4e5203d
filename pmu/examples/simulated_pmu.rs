//! Tests a tool that counts without any hardware: three groups share four simulated counters,
//! and what the tool would report is compared with what really happened.
//!
//! ```text
//! cargo run -p quipu-pmu --example simulated_pmu
//! ```

use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Backend, Count, Event, GroupSpec, Result, Target};
use quipu_pmu::{ManualClock, Rate, Script, SimEvent, SimModel, SimPmu, VirtualPmu};

fn main() -> Result<()> {
    // A workload of our own: loads happen steadily, misses mostly in 5 ms of each 13.
    let ms = Duration::from_millis;
    let misses = Script::phases([(ms(5), Rate::new(50, 10)), (ms(8), Rate::new(1, 0))]);
    let model = SimModel {
        events: vec![
            SimEvent::new(1, "LOADS", Script::steady(Rate::new(700, 90))),
            SimEvent::new(2, "MISSES", misses),
        ],
        ..SimModel::default()
    };
    let clock = ManualClock::new();
    let pmu = SimPmu::with_model(model, clock.clone());
    let map = Arc::new(pmu.event_map());
    let backend = VirtualPmu::new(pmu.clone(), clock.clone(), map)?;

    // Three groups of two on four counters: each counts two thirds of the time.
    let pair = GroupSpec::new(["LOADS", "MISSES"].map(|name| Event::Named(name.into())));
    let open = |_| backend.open(&pair, &Target::Cpu(0));
    let mut groups = (0..3).map(open).collect::<Result<Vec<_>>>()?;
    for _ in 0..300 {
        clock.advance(ms(4));
        backend.tick()?;
    }

    for (n, group) in groups.iter_mut().enumerate() {
        let mut out = group.read_buf();
        group.read(&mut out)?;
        for (member, event) in (1..=2).enumerate() {
            let name = &group.members()[member].name;
            let truth = pmu.truth(event, 0);
            match out[0][member].count() {
                Count::Exact(value) => println!("group {n}: {value} {name}, a fact"),
                Count::Estimated(value) => {
                    let off = 100.0 * (value as f64 / truth as f64 - 1.0);
                    println!("group {n}: about {value} {name}, really {truth} ({off:+.1} %)");
                }
                _ => println!("group {n}: {name} was not counted"),
            }
        }
        // A steady event is estimated exactly, whatever share of the time it was counted.
        assert_eq!(out[0][0].count(), Count::Estimated(pmu.truth(1, 0).into()));
    }
    Ok(())
}
