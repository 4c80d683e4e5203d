//! The event database and the register driver together, on simulated registers.

use std::sync::Arc;

use quipu::msr::sim::{Generation, Level, SimulatedMsrs, Stretch};
use quipu::msr::{MsrPmu, Options};
use quipu::{EventSpec, Filter, GroupSpec, Hardware, Target};
use quipu_events::identify::Core;
use quipu_events::{Database, Interface};
use quipu_hal::{Backend, EventMap};
use quipu_pmu::{ManualClock, VirtualPmu};

#[test]
fn instructions_are_counted_by_level_on_every_generation() {
    let database = Database::embedded();
    for &generation in Generation::ALL {
        let bus = SimulatedMsrs::new(generation, 1);
        let table = database.identify(&Core::new(bus.model().identity)).unwrap();
        let map = Arc::new(table.events_for(Interface::Msr));
        let pmu = MsrPmu::new(bus.clone(), map.cpu(), Options::default()).unwrap();
        let backend = VirtualPmu::new(pmu, ManualClock::new(), map).unwrap();
        for (levels, counted) in [(Filter::USER, 30), (Filter::KERNEL, 500)] {
            let filter = Filter::default().with_levels(levels);
            let instructions = EventSpec::new(Hardware::Instructions).with_filter(filter);
            let spec = GroupSpec::single(instructions);
            let mut group = backend.open(&spec, &Target::Cpu(0)).unwrap();
            let event = generation.instructions();
            bus.run(0, &Stretch::new(Level::User, 10).occurring(event, 3));
            bus.run(0, &Stretch::new(Level::Kernel, 100).occurring(event, 5));
            let mut out = group.read_buf();
            group.read(&mut out).unwrap();
            assert_eq!(out[0][0].value, counted, "{generation:?}");
        }
    }
}

/// Restoring and trying out write registers, so that this is for machines where none can be reached.
#[test]
fn registers_that_cannot_be_reached_are_neither_restored_nor_tried_out() {
    let Err(why) = quipu::msr::SystemMsr::open() else {
        println!("SKIP registers that cannot be reached: they can be here");
        return;
    };
    let refused = quipu::msr::restore().expect_err("there is no bus");
    assert_eq!(refused.kind(), why.kind());
    let refused = quipu::msr::try_out().expect_err("there is no bus");
    assert_eq!(refused.kind(), why.kind());
}
