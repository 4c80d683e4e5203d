//! Measuring through the virtual PMU: what is counted, what is put back in the end, what is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{
    Events, MAX_RATE, SimGroup, backend, named, open, two_events, values, with_counters,
};
use quipu_hal::{
    Attributes, Backend, Count, ErrorKind, EventSpec, Filter, Group, GroupSpec, RawEvent, Target,
};
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
use quipu_pctr::{PctrPmu, with_device};

#[test]
fn what_occurs_is_counted_and_what_was_found_is_put_back() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(first, first_code), (second, second_code)] = two_events(processor);
        let found = [0x41, 0xc5, 0x42, 0].map(|w| {
            if processor == Processor::P5 {
                w
            } else {
                w | 0x41_0000
            }
        });
        for (counter, word) in found.into_iter().enumerate().take(era.counters(processor)) {
            machine.overwrite(0, counter, word);
        }
        let before = machine.functions(0);
        let backend = backend(&machine);
        let mut group = open(&backend, &[first, second]);
        machine.occur(first_code, 0, Level::User, 1_000);
        machine.occur(first_code, 0, Level::Kernel, 10);
        machine.occur(second_code, 0, Level::User, 5);
        assert_eq!(values(&mut group), [1_010, 5], "{era:?} {processor:?}");
        group.disable().unwrap();
        machine.occur(first_code, 0, Level::User, 99);
        assert_eq!(values(&mut group), [1_010, 5]);
        group.enable().unwrap();
        machine.occur(second_code, 0, Level::User, 2);
        assert_eq!(values(&mut group), [1_010, 7]);
        group.reset().unwrap();
        machine.occur(first_code, 0, Level::User, 3);
        assert_eq!(values(&mut group), [3, 0]);
        assert_ne!(machine.functions(0), before);
        drop(group);
        assert_eq!(machine.functions(0), before, "{era:?} {processor:?}");
        assert_eq!(backend.pmu().unrestored_counters(), []);
    }
}

#[test]
fn a_filter_is_honoured() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(name, code), _] = two_events(processor);
        let only = |level| named(name).with_filter(Filter::all().with_levels(level));
        let spec = GroupSpec::new([only(Filter::USER), only(Filter::KERNEL)]);
        let mut group = backend(&machine)
            .open_group(&spec, &Target::CurrentCpu)
            .unwrap();
        machine.occur(code, 0, Level::User, 100);
        machine.occur(code, 0, Level::Kernel, 7);
        assert_eq!(values(&mut group), [100, 7], "{era:?} {processor:?}");
    }
}

#[test]
fn a_panic_puts_back_what_was_found() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    machine.overwrite(0, 0, 0x0041_0079);
    let backend = backend(&machine);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _group = open(&backend, &["INST_RETIRED", "BR_INST_RETIRED"]);
        assert_eq!(machine.functions(0)[0] & 0xff, 0xc0);
        panic!("in the middle of a measurement");
    }));
    assert!(panicked.is_err());
    assert_eq!(machine.functions(0), [0x0041_0079, 0, 0, 0]);
}

/// SIGINT as a tool takes it: a flag is set, the measurement ends, and with it the group. This is the
/// only test of the program that takes it.
#[test]
fn an_interrupted_tool_puts_back_what_was_found() {
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&interrupted)).unwrap();
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let found = if processor == Processor::P5 {
            0x96
        } else {
            0x0041_00c0
        };
        for counter in 0..4 {
            machine.overwrite(0, counter, found);
        }
        let backend = backend(&machine);
        let mut group = open(&backend, &[two_events(processor)[1].0]);
        interrupted.store(false, Ordering::SeqCst);
        let mut rounds = 0;
        while !interrupted.load(Ordering::SeqCst) {
            machine.pass(Duration::from_micros(1));
            values(&mut group);
            rounds += 1;
            if rounds == 10 {
                signal_hook::low_level::raise(signal_hook::consts::SIGINT).unwrap();
            }
        }
        assert_ne!(machine.functions(0)[0], found);
        drop(group);
        assert_eq!(machine.functions(0), [found; 4], "{era:?} {processor:?}");
        assert_eq!(rounds, 10);
    }
}

#[test]
fn a_counter_may_wrap_at_its_width() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(name, code), _] = two_events(processor);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        assert_eq!(values(&mut group), [0]);
        // The virtual PMU sees a jump of the counter as so many events.
        let width = era.arch().visible_width(processor.width());
        let almost = (1u64 << width) - 10;
        for counter in 0..4 {
            machine.preset(counter, almost);
        }
        machine.pass(Duration::from_nanos(almost));
        // Exact it is not: nothing was looked at for hours.
        let mut buf = group.read_buf();
        group.read(&mut buf).unwrap();
        assert_eq!(buf[0][0].value, almost, "{era:?} {processor:?}");
        assert!(buf[0][0].count().is_estimate(), "{era:?} {processor:?}");
        group.reset().unwrap();
        machine.occur(code, 0, Level::User, 25);
        assert_eq!(values(&mut group), [25], "{era:?} {processor:?}");
    }
    assert_eq!(
        Era::Amd64Of2019.arch().visible_width(Processor::K8.width()),
        48
    );
    assert_eq!(
        Era::I386Of2008.arch().visible_width(Processor::K8.width()),
        40
    );
}

#[test]
fn more_events_than_counters_take_turns_at_the_readers_ticks() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    machine.steady(0xc0, Level::User, 1_000);
    let backend = backend(&machine);
    let spec = || GroupSpec::single(named("INST_RETIRED"));
    let mut groups: Vec<SimGroup> = (0..3)
        .map(|_| backend.open_group(&spec(), &Target::CurrentCpu).unwrap())
        .collect();
    for _ in 0..30 {
        machine.pass(Duration::from_millis(1));
        backend.tick().unwrap();
    }
    for group in &mut groups {
        let mut buf = group.read_buf();
        group.read(&mut buf).unwrap();
        let reading = buf[0][0];
        assert_eq!(reading.time_enabled, 30_000_000);
        assert_eq!(reading.time_running, 20_000_000);
        assert_eq!(reading.count(), Count::Estimated(30_000_000));
    }
    drop(groups);
    assert_eq!(machine.functions(0), [0; 4]);
}

#[test]
fn counter_1_of_a_p6_counts_alone_only_with_counter_0_enabled() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let backend = backend(&machine);
    let mut group = open(&backend, &["MUL"]);
    assert_eq!(machine.functions(0), [0x0040_0000, 0x0043_0012, 0, 0]);
    machine.occur(0x12, 0, Level::User, 6);
    assert_eq!(values(&mut group), [6]);
    group.disable().unwrap();
    assert_eq!(machine.functions(0), [0; 4]);
    drop(group);
    let mut both = open(&backend, &["MUL", "FLOPS"]);
    machine.occur(0x12, 0, Level::User, 6);
    machine.occur(0xc1, 0, Level::User, 8);
    assert_eq!(values(&mut both), [6, 8]);
    let refused = backend
        .open(
            &GroupSpec::new(["FLOPS", "CYCLES_DIV_BUSY"].map(named)),
            &Target::CurrentCpu,
        )
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooManyEvents);
    assert!(
        refused.to_string().contains("both need counter 0"),
        "{refused}"
    );
}

/// Whatever call fails, once: in the end the functions are those that were found.
#[test]
fn a_fault_at_any_call_leaves_the_device_as_it_was_found() {
    for (era, processor) in with_counters() {
        let [(first, _), (second, _)] = two_events(processor);
        let found = if processor == Processor::P5 {
            0x96
        } else {
            0x0041_00c0
        };
        for call in 0.. {
            let machine = SimMachine::new(era, processor, 1);
            machine.overwrite(0, 0, found);
            machine.fail_after(call, libc::EIO);
            let made = with_device(machine.open(), Events::of(&machine), machine.clock());
            let Ok(backend) = made else {
                assert!(!machine.withdraw_fault());
                assert_eq!(machine.functions(0), [found, 0, 0, 0]);
                continue;
            };
            if let Ok(mut group) = backend.open(
                &GroupSpec::new([first, second].map(named)),
                &Target::CurrentCpu,
            ) {
                let mut buf = group.read_buf();
                let _ = group.read(&mut buf);
                let _ = group.disable();
                let _ = group.enable();
                let _ = group.reset();
                let _ = group.read(&mut buf);
            }
            let came = !machine.withdraw_fault();
            assert_eq!(
                machine.functions(0),
                [found, 0, 0, 0],
                "{era:?} {processor:?} {call}"
            );
            drop(open(&backend, &[first]));
            assert_eq!(machine.functions(0), [found, 0, 0, 0]);
            if !came {
                assert!(call > 12, "only {call} calls");
                break;
            }
        }
    }
}

#[test]
fn the_bound_of_the_map_is_that_of_the_readings() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let mut group = open(&backend, &two_events(processor).map(|(name, _)| name));
        let mut buf = group.read_buf();
        group.read(&mut buf).unwrap();
        assert_eq!([0, 1].map(|event| buf[0][event].max_rate), [MAX_RATE; 2]);
    }
}

#[test]
fn the_time_stamp_counter_is_an_event_everywhere_it_exists() {
    for (era, processor) in Era::machines() {
        let machine = SimMachine::new(era, processor, 1);
        machine.pass(Duration::from_nanos(50));
        let opened = with_device(machine.open(), Events::of(&machine), machine.clock());
        if processor == Processor::None {
            let refused = opened.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
            continue;
        }
        let backend = opened.unwrap();
        let mut group = open(&backend, &["tsc"]);
        machine.pass(Duration::from_nanos(70));
        assert_eq!(values(&mut group), [140], "{era:?} {processor:?}");
        let refused = backend
            .open(
                &named("tsc").with_filter(Filter::USER_ONLY).into(),
                &Target::CurrentCpu,
            )
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    }
}

#[test]
fn without_counters_or_permission_the_rest_says_why_not() {
    let cycles = || GroupSpec::single(named("INST_RETIRED"));
    let timer = SimMachine::new(Era::I386Of2023, Processor::P6, 1);
    timer.pass(Duration::from_nanos(1));
    let refused = with_device(timer.open(), Events::of(&timer), timer.clock())
        .unwrap()
        .open_group(&cycles(), &Target::CurrentCpu)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);

    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    machine.pass(Duration::from_nanos(1));
    let refused = with_device(
        machine.open_read_only(),
        Events::of(&machine),
        machine.clock(),
    )
    .unwrap()
    .open_group(&cycles(), &Target::CurrentCpu)
    .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoPermission);
    assert!(refused.hint().is_some());

    let refused = with_device(machine.open(), None, machine.clock())
        .unwrap()
        .open_group(&cycles(), &Target::CurrentCpu)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
    assert!(refused.to_string().contains("not known"), "{refused}");
    assert_eq!(machine.functions(0), [0; 4]);
}

#[test]
fn words_that_make_no_sense_never_reach_the_driver() {
    let raw = |config| EventSpec::new(RawEvent::new(config));
    let cases = [
        (Era::I386Of2003, Processor::P6, 0x02, "no such event"),
        (Era::I386Of2003, Processor::P6, 0x29, "cache state"),
        (Era::I386Of2003, Processor::P5, 0x10, "no such event"),
        (Era::Amd64Of2019, Processor::Core, 0xff, "no such event"),
        (Era::I386Of2008, Processor::K8, 0xff, "no such event"),
        (
            Era::Amd64Of2019,
            Processor::Core,
            1 << 20 | 0xc0,
            "interrupts",
        ),
        (
            Era::Amd64Of2019,
            Processor::K8,
            1 << 32 | 0xc7,
            "more bits than the 8",
        ),
    ];
    for (era, processor, config, reason) in cases {
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let calls = machine.calls();
        let refused = backend
            .open_group(&raw(config).into(), &Target::CurrentCpu)
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
        assert!(refused.to_string().contains(reason), "{refused}");
        assert_eq!(machine.calls(), calls);
    }
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let nowhere = named("INST_RETIRED").with_filter(Filter::all().with_levels(Filter::empty()));
    let refused = backend(&machine)
        .open_group(&nowhere.into(), &Target::CurrentCpu)
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("excludes both user and kernel mode"),
        "{refused}"
    );
    // The event that counter 0 cannot count goes to counter 1.
    let group = backend(&machine)
        .open_group(&raw(0x12).into(), &Target::CurrentCpu)
        .unwrap();
    assert_eq!(machine.functions(0)[1], 0x0043_0012);
    drop(group);
    // On a Core the map knows which.
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    let _group = backend(&machine)
        .open_group(&raw(0x12).into(), &Target::CurrentCpu)
        .unwrap();
    assert_eq!(machine.functions(0)[..2], [0, 0x0043_0012]);
}

#[test]
fn tasks_and_other_cpus_are_refused() {
    let machine = SimMachine::new(Era::Amd64Of2016, Processor::Core, 2);
    let backend = backend(&machine);
    let spec = GroupSpec::single(named("INST_RETIRED"));
    for target in [
        Target::CurrentThread,
        Target::Process(1),
        Target::Cpu(2),
        Target::AllCpus,
    ] {
        let refused = backend.open_group(&spec, &target).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature, "{target}");
    }
    let inherit = spec.with_attributes(Attributes::default().with_inherit(true));
    let refused = backend
        .open_group(&inherit, &Target::CurrentCpu)
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
}

#[test]
fn the_counters_of_a_p6_start_and_stop_together_with_counter_0() {
    use quipu_hal::{Encoding, X86Select};
    use quipu_pmu::Pmu;

    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let pmu = PctrPmu::new(machine.open(), machine.cpu_model().as_ref()).unwrap();
    let mut raw = [0; 2];
    pmu.acquire(0).unwrap();
    let encoding = Encoding::X86(X86Select::new(0xc0, 0).with_flags(X86Select::USER));
    for slot in [0, 1] {
        pmu.program(0, slot, &encoding).unwrap();
    }
    machine.fail_after(2, libc::EIO);
    assert!(pmu.start(0, &[0, 1], &mut raw).is_err());
    assert_eq!(machine.functions(0), [0, 0x0041_00c0, 0, 0]);
    pmu.start(0, &[0, 1], &mut raw).unwrap();
    machine.fail_after(2, libc::EIO);
    assert!(pmu.stop(0, &[0, 1], &mut raw).is_err());
    assert_eq!(machine.functions(0), [0, 0x0041_00c0, 0, 0]);
    pmu.release(0).unwrap();
    assert_eq!(machine.functions(0), [0; 4]);
}
