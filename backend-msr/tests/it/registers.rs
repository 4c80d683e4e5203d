//! The bits that each generation is driven by, and those it must not be.

use std::sync::Arc;

use quipu_hal::{
    Encoding, Event, FixedCounter, Group, GroupSpec, P5Function, SlotClass, Target, X86Select,
};
use quipu_msr::sim::{EventNames, Generation, Level, SimulatedMsrs, Stretch};
use quipu_msr::{MsrBus, MsrPmu, Options};
use quipu_pmu::{ManualClock, Pmu, VirtualPmu};

use crate::support::{accepts, acquired, user, values};

#[test]
fn the_pentiums_two_functions_go_into_one_register_and_leave_the_rest_of_it() {
    let (bus, pmu) = acquired(Generation::P5);
    // Another program's pin control bits.
    bus.write(0, 0x11, 0x0200_0200).unwrap();
    let function = |event, flags| Encoding::P5(P5Function::new(event).with_flags(flags));
    pmu.program(0, 0, &function(0x16, P5Function::USER))
        .unwrap();
    pmu.program(
        0,
        1,
        &function(0x28, P5Function::KERNEL | P5Function::CLOCKS),
    )
    .unwrap();
    assert_eq!(values(&bus, [0x11]), [0x0200_0200]);
    pmu.start(0, &[1], &mut [0]).unwrap();
    assert_eq!(values(&bus, [0x11]), [0x0368_0200]);
    pmu.start(0, &[0], &mut [0]).unwrap();
    assert_eq!(values(&bus, [0x11]), [0x0368_0296]);
    pmu.stop(0, &[1], &mut [0]).unwrap();
    assert_eq!(values(&bus, [0x11]), [0x0200_0296]);
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x11]), [0x0200_0200]);
}

#[test]
fn the_p6_counts_with_counter_1_alone_by_the_enable_of_counter_0() {
    let (bus, pmu) = acquired(Generation::P6);
    pmu.program(0, 1, &user(0xc0)).unwrap();
    assert_eq!(values(&bus, [0x186, 0x187]), [0, 0x1_00c0]);
    pmu.start(0, &[1], &mut [0]).unwrap();
    assert_eq!(values(&bus, [0x186, 0x187]), [0x40_0000, 0x1_00c0]);
    bus.run(0, &Stretch::new(Level::User, 10).occurring(0xc0, 3));
    let mut raw = [0];
    pmu.stop(0, &[1], &mut raw).unwrap();
    assert_eq!(raw, [30]);
    assert_eq!(values(&bus, [0x186]), [0]);
}

#[test]
fn global_control_starts_and_stops_all_counters_of_a_group_with_one_write() {
    for (generation, control) in [
        (Generation::ALL[5], 0x38f),
        (Generation::ALL[11], 0xc000_0301),
    ] {
        let (bus, pmu) = acquired(generation);
        for slot in 0..4 {
            pmu.program(0, slot, &user(0xc0)).unwrap();
            pmu.clear(0, slot).unwrap();
        }
        bus.run(0, &Stretch::new(Level::User, 10).occurring(0xc0, 1));
        let (_, writes) = bus.accesses();
        pmu.start(0, &[0, 1, 2, 3], &mut [0; 4]).unwrap();
        assert_eq!(bus.accesses().1, writes + 1, "{generation:?}");
        assert_eq!(values(&bus, [control]), [0xf]);
        bus.run(0, &Stretch::new(Level::User, 10).occurring(0xc0, 1));
        let mut raw = [0; 4];
        pmu.stop(0, &[0, 1, 2, 3], &mut raw).unwrap();
        assert_eq!(bus.accesses().1, writes + 2, "{generation:?}");
        assert_eq!(raw, [(1 << 46) + 10; 4]);
    }
}

#[test]
fn amds_events_of_twelve_bits_go_where_their_generation_has_them() {
    let event = user(0x1d0);
    for (generation, select, takes) in [
        (Generation::AmdK7, 0xc001_0000, false),
        (Generation::Amd10h, 0xc001_0000, true),
        (Generation::Amd15h, 0xc001_0200, true),
    ] {
        let (bus, pmu) = acquired(generation);
        assert_eq!(accepts(&pmu, 0, &event), takes, "{generation:?}");
        if takes {
            pmu.program(0, 0, &event).unwrap();
            assert_eq!(values(&bus, [select]), [0x1_0001_00d0]);
            pmu.start(0, &[0], &mut [0]).unwrap();
            assert_eq!(values(&bus, [select]), [0x1_0041_00d0]);
        }
    }
}

#[test]
fn the_sixth_core_counter_of_amd_is_reached() {
    let (bus, pmu) = acquired(Generation::Amd15h);
    pmu.program(0, 5, &user(0xc0)).unwrap();
    pmu.start(0, &[5], &mut [0]).unwrap();
    assert_eq!(values(&bus, [0xc001_020a]), [0x41_00c0]);
    bus.run(0, &Stretch::new(Level::User, 4).occurring(0xc0, 4));
    let mut raw = [0];
    pmu.read(0, &[5], &mut raw).unwrap();
    assert_eq!(raw, [16]);
}

#[test]
fn version_6_is_driven_by_its_own_addresses_and_takes_its_own_bits() {
    let (bus, pmu) = acquired(Generation::ALL[7]);
    let select = X86Select::new(0xc0, 0)
        .with_flags(X86Select::USER | X86Select::EQUAL)
        .with_counter_mask(2)
        .with_second_unit_mask(0x81);
    pmu.program(0, 9, &Encoding::X86(select.clone())).unwrap();
    assert_eq!(
        values(&bus, [0x1901 + 36]),
        [select.select | X86Select::ENABLE]
    );
    let (_, older) = acquired(Generation::ALL[6]);
    assert!(!accepts(&older, 0, &Encoding::X86(select)));
}

#[test]
fn fixed_counters_count_their_event_where_their_bits_say() {
    for generation in Generation::ALL.iter().copied().filter(|g| g.fixed() > 0) {
        let bus = SimulatedMsrs::new(generation, 1);
        let map = EventNames::new(bus.model())
            .fixed("INSTRUCTIONS", 0)
            .fixed("CYCLES", 1)
            .any("ALL", 0xc0);
        let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default()).unwrap();
        let before = bus.dump(0);
        let backend = VirtualPmu::new(pmu, ManualClock::new(), Arc::new(map)).unwrap();
        let names = ["INSTRUCTIONS", "CYCLES", "ALL"];
        let spec = GroupSpec::new(names.map(|name| Event::Named(name.into())));
        let mut group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
        assert_eq!(values(&bus, [0x38d]), [0x33]);
        bus.run(0, &Stretch::new(Level::User, 10).occurring(0xc0, 3));
        bus.run(0, &Stretch::new(Level::Kernel, 1).occurring(0xc0, 3));
        let mut out = group.read_buf();
        group.read(&mut out).unwrap();
        let values = [0, 1, 2].map(|member| out[0][member].value);
        assert_eq!(values, [33, 11, 33], "{generation:?}");
        drop(group);
        assert_eq!(bus.dump(0), before, "{generation:?}");
    }
}

#[test]
fn a_fixed_counter_takes_no_event_but_its_own() {
    let (_bus, pmu) = acquired(Generation::ALL[5]);
    let fixed = |index, control| Encoding::Fixed(FixedCounter { index, control });
    assert!(accepts(&pmu, 8, &fixed(0, FixedCounter::USER)));
    assert!(!accepts(&pmu, 8, &fixed(1, FixedCounter::USER)));
    assert!(!accepts(&pmu, 8, &fixed(0, FixedCounter::ANY_THREAD)));
    assert!(!accepts(&pmu, 8, &user(0xc0)));
    assert!(!accepts(&pmu, 0, &fixed(0, FixedCounter::USER)));
}

#[test]
fn interrupts_and_extra_registers_are_refused() {
    let (_bus, pmu) = acquired(Generation::ALL[5]);
    let plain = X86Select::new(0xb7, 1).with_flags(X86Select::USER);
    assert!(accepts(&pmu, 0, &Encoding::X86(plain.clone())));
    for flag in [X86Select::INTERRUPT, X86Select::ANY_THREAD, X86Select::PIN] {
        assert!(!accepts(
            &pmu,
            0,
            &Encoding::X86(plain.clone().with_flags(flag))
        ));
    }
    let mut offcore = plain;
    offcore.extra.push(quipu_hal::ExtraRegister {
        address: 0x1a6,
        value: 1,
    });
    assert!(!accepts(&pmu, 0, &Encoding::X86(offcore)));
}

#[test]
fn what_counters_held_comes_back_in_all_its_width_where_it_can_be_written() {
    let bus = SimulatedMsrs::new(Generation::ALL[5], 1);
    bus.write(0, 0x4c1, 0x9999_8888_7777).unwrap();
    let pmu = MsrPmu::new(bus.clone(), &bus.model(), Options::default()).unwrap();
    pmu.acquire(0).unwrap();
    pmu.program(0, 0, &user(0xc0)).unwrap();
    pmu.clear(0, 0).unwrap();
    assert_eq!(values(&bus, [0xc1]), [1 << 46]);
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0xc1]), [0x9999_8888_7777]);
}

#[test]
fn counters_begin_where_one_that_another_program_zeroes_has_gone_back() {
    let narrow = |generation| match generation {
        Generation::P5 | Generation::P6 => true,
        Generation::Intel { full_width, .. } => !full_width,
        _ => false,
    };
    for &generation in Generation::ALL {
        let (_bus, pmu) = acquired(generation);
        let counters = pmu
            .slots()
            .iter()
            .filter(|s| s.class != SlotClass::FreeRunning);
        let all: Vec<usize> = (0..counters.count()).collect();
        let mut raw = vec![0; all.len()];
        for &slot in &all {
            pmu.clear(0, slot).unwrap();
        }
        pmu.read(0, &all, &mut raw).unwrap();
        for (slot, raw) in pmu.slots().iter().zip(raw) {
            let narrow = narrow(generation) && slot.class == SlotClass::General;
            let width = if narrow { 32 } else { slot.width };
            assert_eq!(raw, 1 << (width - 2), "{slot} of {generation:?}");
        }
    }
}

#[test]
fn an_overflow_while_counting_is_not_left_behind() {
    let (bus, pmu) = acquired(Generation::ALL[5]);
    pmu.program(0, 0, &user(0xc0)).unwrap();
    pmu.clear(0, 0).unwrap();
    pmu.start(0, &[0], &mut [0]).unwrap();
    bus.run(0, &Stretch::new(Level::User, 1 << 48).occurring(0xc0, 1));
    assert_eq!(values(&bus, [0x38e]), [1]);
    pmu.stop(0, &[0], &mut [0]).unwrap();
    pmu.release(0).unwrap();
    assert_eq!(values(&bus, [0x38e]), [0]);
}

#[test]
fn operations_of_which_a_cycle_has_more_than_a_counter_takes_are_refused() {
    for (generation, takes) in [
        (Generation::Amd15h, true),
        (Generation::AmdPerfMonV2 { counters: 6 }, false),
    ] {
        let (_bus, pmu) = acquired(generation);
        for event in [0x003, 0xfff] {
            assert_eq!(accepts(&pmu, 0, &user(event)), takes, "{event:#x}");
        }
        assert!(accepts(&pmu, 0, &user(0x103)));
    }
}

#[test]
fn perfmon_v2_has_as_many_counters_as_it_says() {
    for counters in [4, 6, 8] {
        let (_bus, pmu) = acquired(Generation::AmdPerfMonV2 { counters });
        // And the time stamp counter.
        assert_eq!(pmu.slots().len(), usize::from(counters) + 1);
    }
}
