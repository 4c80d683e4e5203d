//! Every event of the man page of 2003, programmed and read back through the simulated driver.

use crate::support::backend;
use crate::support::pctr4::{On, P5_EVENTS, P6_EVENTS, UnitMask};
use quipu_hal::{ErrorKind, Event, Group, GroupSpec, Target};
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};

#[test]
fn every_event_of_the_pentium_is_programmed_and_read_back() {
    assert_eq!(P5_EVENTS.len(), 38);
    for era in [Era::I386Of1996, Era::I386Of2003, Era::I386Of2008] {
        let machine = SimMachine::new(era, Processor::P5, 1);
        let backend = backend(&machine);
        for (code, name) in P5_EVENTS {
            let spec = GroupSpec::single(Event::Named(name.to_owned()));
            let mut group = backend.open_group(&spec, &Target::CurrentCpu).unwrap();
            // The other counter is its witness.
            let word = 0xc0 | u32::from(code);
            assert_eq!(machine.functions(0), [word, word, 0, 0], "{name}");
            machine.occur(code, 0, Level::User, 1_000 + u64::from(code));
            machine.occur(code ^ 1, 0, Level::User, 77);
            let mut buf = group.read_buf();
            group.read(&mut buf).unwrap();
            assert_eq!(buf[0][0].value, 1_000 + u64::from(code), "{name}");
        }
    }
}

#[test]
fn every_event_of_the_p6_is_programmed_and_read_back_on_each_counter_that_can() {
    assert_eq!(P6_EVENTS.len(), 68);
    for era in [Era::I386Of1996, Era::I386Of2003, Era::I386Of2008] {
        let machine = SimMachine::new(era, Processor::P6, 1);
        let backend = backend(&machine);
        for (code, name, on, unit_mask) in P6_EVENTS {
            let event = || Event::Named(name.to_owned());
            let states = if unit_mask == UnitMask::Mesi {
                0x0f00
            } else {
                0
            };
            let word = 0x0043_0000 | states | u32::from(code);
            let mut group = backend
                .open_group(&GroupSpec::single(event()), &Target::CurrentCpu)
                .unwrap();
            let functions = match on {
                On::Any => [word, word, 0, 0],
                On::Counter0 => [word, 0, 0, 0],
                On::Counter1 => [0x0040_0000, word, 0, 0],
            };
            assert_eq!(machine.functions(0), functions, "{name}");
            machine.occur(code, if states == 0 { 0 } else { 0x4 }, Level::Kernel, 500);
            machine.occur(code ^ 1, 0, Level::Kernel, 77);
            let mut buf = group.read_buf();
            group.read(&mut buf).unwrap();
            assert_eq!(buf[0][0].value, 500, "{name}");
            drop(group);

            let twice =
                backend.open_group(&GroupSpec::new([event(), event()]), &Target::CurrentCpu);
            match (on, twice) {
                (On::Any, Ok(_)) => {
                    assert_eq!(machine.functions(0), [word, word, 0, 0], "{name}");
                }
                (On::Counter0 | On::Counter1, Err(e)) => {
                    assert_eq!(e.kind(), ErrorKind::TooManyEvents, "{name}");
                }
                (_, twice) => panic!("{name}: {:?}", twice.map(|_| ())),
            }
        }
    }
}
