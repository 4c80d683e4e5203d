//! Counters that others use too, and threads that are moved: what is left alone, what is reported, and what
//! is put back where.

use std::time::Duration;

use crate::support::{backend, named, open, two_events, values, with_counters};
use quipu_hal::{Attributes, Backend, Count, ErrorKind, Group, GroupSpec, Target};
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
use quipu_pmu::Pmu;

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn a_counter_that_is_not_needed_is_left_counting() {
    let machine = SimMachine::new(Era::Amd64Of2016, Processor::K8, 1);
    machine.overwrite(0, 3, 0x0043_0076);
    machine.occur(0x76, 0, Level::User, 50);
    let backend = backend(&machine);
    let group = open(&backend, &["RETIRED_INSTRUCTIONS"]);
    machine.occur(0x76, 0, Level::User, 50);
    drop(group);
    let status = backend.pmu().control().read().unwrap();
    assert_eq!(
        (status.functions[3], status.counters[3]),
        (0x0043_0076, 100)
    );
}

#[test]
fn a_function_changed_by_another_program_is_told_and_not_counted() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(name, code), (_, other)] = two_events(processor);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        machine.occur(code, 0, Level::User, 10);
        assert_eq!(values(&mut group), [10]);
        let ours = machine.functions(0)[0];
        let theirs =
            ours & !0xff | u32::from(other) | if processor == Processor::P5 { 0xc0 } else { 0 };
        machine.overwrite(0, 0, theirs);
        machine.occur(other, 0, Level::User, 1_000_000);
        let mut buf = group.read_buf();
        let told = group.read(&mut buf).unwrap_err();
        assert_eq!(
            told.kind(),
            ErrorKind::Interference,
            "{era:?} {processor:?}"
        );
        group.read(&mut buf).unwrap();
        assert!(buf[0][0].value <= 10, "{era:?} {processor:?}");
        machine.occur(code, 0, Level::User, 5);
        let before = buf[0][0].value;
        group.read(&mut buf).unwrap();
        assert_eq!(buf[0][0].value, before + 5, "it counts again");
    }
}

#[test]
fn a_function_that_another_program_has_set_is_left_in_the_end() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    machine.overwrite(0, 0, 0x0043_003c);
    let backend = backend(&machine);
    let group = open(&backend, &["FP_COMP_OPS_EXE"]);
    machine.overwrite(0, 0, 0x0041_00c4);
    drop(group);
    assert_eq!(machine.functions(0)[0], 0x0041_00c4);
    let told = backend.pmu().unrestored_counters();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].found, told[0].taken_over),
        (Some(0x0043_003c), Some(0x0041_00c4))
    );
    assert!(
        told[0]
            .to_string()
            .contains("another program has set it to 0x4100c4")
    );
    let failures = backend.restore_failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].kind(), ErrorKind::Interference);
    assert_eq!(failures[0].attempted(), "put back counter 0 of CPU 0");
}

#[test]
fn a_thread_that_has_migrated_is_told_and_its_counts_are_not_mixed() {
    for (era, processor) in with_counters().filter(|(era, _)| *era != Era::Amd64Of2019) {
        let machine = SimMachine::new(era, processor, 2);
        let [(name, code), _] = two_events(processor);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        let mut buf = group.read_buf();
        machine.occur(code, 0, Level::User, 10);
        machine.move_to(1);
        machine.occur(code, 0, Level::User, 1_000);
        let told = group.read(&mut buf).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::WrongThread, "{era:?} {processor:?}");
        assert!(told.to_string().contains("migrated to CPU 2"), "{told}");
        machine.move_to(0);
        machine.occur(code, 0, Level::User, 1);
        assert_eq!(values(&mut group), [11], "{era:?} {processor:?}");
    }
}

#[test]
fn a_call_during_which_the_thread_was_moved_is_made_again() {
    let machine = SimMachine::new(Era::Amd64Of2016, Processor::Core, 2);
    let backend = backend(&machine);
    let mut group = open(&backend, &["INST_RETIRED"]);
    machine.occur(0xc0, 0, Level::User, 10);
    // The look before the read is the first, the one after it the second: by then the thread is on
    // the other CPU; by the third it is back.
    machine.move_later(1, 1);
    machine.move_later(2, 0);
    let calls = machine.calls();
    assert_eq!(values(&mut group), [10]);
    assert_eq!(machine.calls() - calls, 2);
}

#[test]
fn what_cannot_be_put_back_from_another_cpu_is_told_and_put_back_later() {
    let machine = SimMachine::new(Era::I386Of2008, Processor::Core, 2);
    machine.overwrite(0, 0, 0x0043_003c);
    machine.overwrite(1, 0, 0x0041_00c4);
    let backend = backend(&machine);
    let group = open(&backend, &["FP_COMP_OPS_EXE"]);
    machine.move_to(1);
    drop(group);
    assert_eq!(
        machine.functions(1)[0],
        0x0041_00c4,
        "the other CPU is left alone"
    );
    let told = backend.pmu().unrestored_counters();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].cpu, told[0].found, told[0].taken_over),
        (0, Some(0x0043_003c), None)
    );
    assert_eq!(backend.restore_failures()[0].kind(), ErrorKind::Os);

    machine.move_to(0);
    drop(open(&backend, &["FP_COMP_OPS_EXE"]));
    assert_eq!(machine.functions(0)[0], 0x0043_003c);
    assert_eq!(backend.pmu().unrestored_counters(), []);
}

#[test]
fn since_2019_it_is_put_back_from_any_cpu() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 2);
    for cpu in [0, 1] {
        machine.overwrite(cpu, 0, 0x0043_003c);
    }
    let backend = backend(&machine);
    let group = open(&backend, &["INST_RETIRED", "MUL"]);
    machine.move_to(1);
    drop(group);
    for cpu in [0, 1] {
        assert_eq!(machine.functions(cpu), [0x0043_003c, 0, 0, 0]);
    }
    assert_eq!(backend.pmu().unrestored_counters(), []);
}

#[test]
fn one_pmu_has_one_owner() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    let backend = backend(&machine);
    let _group = open(&backend, &["INST_RETIRED"]);
    let refused = backend.pmu().acquire(0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
}

/// On a P6 too, where counter 0 gates counter 1.
#[test]
fn what_another_program_counts_on_the_other_counter_of_a_p6_goes_on() {
    for (name, code, theirs) in [("INST_RETIRED", 0xc0, 1), ("MUL", 0x12, 0)] {
        let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
        machine.overwrite(0, 0, 0x0040_0000);
        machine.overwrite(0, theirs, 0x0041_0079);
        machine.occur(0x79, 0, Level::User, 50);
        let found = machine.functions(0);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        machine.occur(0x79, 0, Level::User, 50);
        machine.occur(code, 0, Level::User, 7);
        assert_eq!(values(&mut group), [7], "{name}");
        drop(group);
        assert!(
            machine
                .log()
                .iter()
                .all(|(set, _)| usize::from(*set) != theirs),
            "{name}"
        );
        assert_eq!(machine.functions(0), found, "{name}");
        let status = backend.pmu().control().read().unwrap();
        assert_eq!(status.counters[theirs], 100, "{name}");
    }
}

/// The set reaches the CPU that the thread has come to: there it is reported, and on the CPU it was meant for
/// nothing was changed, so there is nothing to put back and no interference.
#[test]
fn a_set_that_met_another_cpu_is_told() {
    let machine = SimMachine::new(Era::I386Of2008, Processor::Core, 2);
    machine.overwrite(0, 0, 0x0043_003c);
    machine.overwrite(1, 0, 0x0041_00c4);
    let backend = backend(&machine);
    // The first two calls read what is there, the third sets counter 0.
    machine.move_in_call(2, 1);
    let spec = GroupSpec::single(named("FP_COMP_OPS_EXE"));
    let refused = backend.open_group(&spec, &Target::CurrentCpu).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongThread);
    assert_eq!(machine.functions(0)[0], 0x0043_003c);
    assert_eq!(
        machine.functions(1)[0],
        0x0043_0010,
        "the moment cannot be taken back"
    );
    machine.move_to(0);
    backend.pmu().release(0).unwrap();
    assert_eq!(machine.functions(0)[0], 0x0043_003c);
    let told = backend.pmu().unrestored_counters();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (told[0].cpu, told[0].found, told[0].taken_over),
        (2, None, None)
    );
    assert!(
        told[0]
            .to_string()
            .contains("previous function is not known")
    );
}

/// A function that another program set on counter 0 gates counter 1 only as long as it stays.
#[test]
fn a_gate_that_another_program_closes_is_told_and_opened_again() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    machine.overwrite(0, 0, 0x0041_0079 | 0x0040_0000);
    let backend = backend(&machine);
    let mut group = open(&backend, &["MUL"]);
    machine.occur(0x12, 0, Level::User, 3);
    assert_eq!(values(&mut group), [3]);
    machine.overwrite(0, 0, 0);
    let mut buf = group.read_buf();
    let told = group.read(&mut buf).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Interference);
    group.read(&mut buf).unwrap();
    let before = buf[0][0].value;
    machine.occur(0x12, 0, Level::User, 4);
    group.read(&mut buf).unwrap();
    assert_eq!(buf[0][0].value, before + 4, "it counts again");
    drop(group);
    assert_eq!(machine.functions(0), [0; 4], "as they left it");
    assert_eq!(backend.pmu().unrestored_counters(), []);
}

/// Setting and stopping one counter of a P6 sets the other to nothing else, and the gate stays open.
#[test]
fn counters_of_a_p6_that_share_a_gate_do_not_stop_each_other() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let backend = backend(&machine);
    // The first is on counter 1, since the second can only be on counter 0.
    let disabled = |name: &str| {
        let attributes = Attributes::default().with_disabled(true);
        let spec = GroupSpec::single(named(name)).with_attributes(attributes);
        backend.open_group(&spec, &Target::CurrentCpu).unwrap()
    };
    let (mut any, mut one) = (disabled("INST_RETIRED"), disabled("FP_COMP_OPS_EXE"));
    let functions = || machine.functions(0)[..2].to_vec();
    let (gate, of_any, of_one) = (0x0040_0000, 0x0043_00c0, 0x0043_0010);
    any.enable().unwrap();
    assert_eq!(functions(), [gate, of_any]);
    one.enable().unwrap();
    assert_eq!(functions(), [of_one, of_any]);
    one.disable().unwrap();
    assert_eq!(functions(), [gate, of_any]);
    one.enable().unwrap();
    any.disable().unwrap();
    assert_eq!(functions(), [of_one, 0]);
    one.disable().unwrap();
    assert_eq!(functions(), [0, 0]);
    any.enable().unwrap();
    any.disable().unwrap();
    assert_eq!(functions(), [0, 0], "the last closes the gate");
    let sets: Vec<(u8, u32)> = machine.log();
    let expected = [
        (0, gate),
        (1, of_any),
        (0, of_one),
        (0, gate),
        (0, of_one),
        (1, 0),
        (0, 0),
        (0, gate),
        (1, of_any),
        (1, 0),
        (0, 0),
    ];
    assert_eq!(sets, expected);
}

/// Whichever of the groups is read first.
#[test]
fn what_another_program_sets_on_the_gate_is_counted_by_no_group() {
    for first in [0, 1] {
        let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
        let backend = backend(&machine);
        let mut groups = ["FP_COMP_OPS_EXE", "INST_RETIRED"].map(|name| open(&backend, &[name]));
        machine.occur(0x10, 0, Level::User, 10);
        assert_eq!(groups.each_mut().map(values), [[10], [0]]);
        machine.overwrite(0, 0, 0x0043_0079);
        machine.occur(0x79, 0, Level::User, 1000);
        let mut errors = [None, None];
        for at in [first, 1 - first] {
            let mut buf = groups[at].read_buf();
            errors[at] = groups[at].read(&mut buf).err();
            groups[at].read(&mut buf).unwrap();
            let value = buf[0][0].value;
            assert!(value <= 10, "{first} {at}: {value}");
        }
        let told = errors[0].as_ref().map(quipu_hal::Error::kind);
        assert_eq!(told, Some(ErrorKind::Interference), "{first}");
    }
}

/// The gate of counter 1 is the function of counter 0 at the start of counting, not an earlier one.
#[test]
fn a_gate_is_looked_at_when_counting_starts() {
    for set_meanwhile in [0x0041_00c4, 0x0041_0079 & !0x0040_0000, 0] {
        let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
        machine.overwrite(0, 0, 0x0041_0079);
        let backend = backend(&machine);
        let spec = GroupSpec::single(named("MUL"))
            .with_attributes(Attributes::default().with_disabled(true));
        let mut group = backend.open_group(&spec, &Target::CurrentCpu).unwrap();
        machine.overwrite(0, 0, set_meanwhile);
        group.enable().unwrap();
        machine.occur(0x12, 0, Level::User, 5);
        assert_eq!(values(&mut group), [5], "{set_meanwhile:#x}");
        drop(group);
        assert_eq!(machine.functions(0), [set_meanwhile, 0, 0, 0]);
    }
}

/// Counters that another program has left set are the last choice, and a choice.
#[test]
fn an_event_of_one_counter_counts_beside_one_of_any_whatever_was_found_set() {
    let p6 = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let core = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    for (machine, any) in [(p6, 0xc0), (core, 0xc0)] {
        for found in 0..1 << 2 {
            for order in [
                ["INST_RETIRED", "FP_COMP_OPS_EXE"],
                ["FP_COMP_OPS_EXE", "INST_RETIRED"],
            ] {
                for counter in (0..2).filter(|counter| found >> counter & 1 == 1) {
                    machine.overwrite(0, counter, 0x41_0079);
                }
                let before = machine.functions(0);
                let backend = backend(&machine);
                let mut groups = order.map(|event| open(&backend, &[event]));
                machine.pass(MILLISECOND);
                machine.occur(any, 0, Level::User, 30);
                machine.occur(0x10, 0, Level::User, 7);
                for (group, event) in groups.iter_mut().zip(order) {
                    let mut buf = group.read_buf();
                    group.read(&mut buf).unwrap();
                    let expected = if event == "INST_RETIRED" { 30 } else { 7 };
                    let said = format!("{order:?}, {found:02b} set, {:?}", buf[0][0]);
                    assert_eq!(buf[0][0].count(), Count::Exact(expected), "{said}");
                }
                drop(groups);
                assert_eq!(machine.functions(0), before);
                machine.overwrite(0, 0, 0);
                machine.overwrite(0, 1, 0);
            }
        }
    }
}

/// More events than counters: the turn after another program has set a counter leaves it, and those that follow.
#[test]
fn a_counter_that_was_taken_while_events_take_turns_is_left() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(first, _), (second, other)] = two_events(processor);
        let counters = era.counters(processor);
        for taken in 0..counters {
            let backend = backend(&machine);
            let names = [first, second].into_iter().cycle().take(counters + 1);
            let mut groups: Vec<_> = names.map(|name| open(&backend, &[name])).collect();
            machine.pass(MILLISECOND);
            backend.tick().unwrap();
            // Their event counts in both modes, which no group's does.
            let theirs = match processor {
                Processor::P5 => u32::from(other) | 0xc0 | 0x100,
                _ => 0x0047_0000 | u32::from(other),
            };
            machine.overwrite(0, taken, theirs);
            machine.occur(other, 0, Level::User, 70);
            for _ in 0..4 * counters {
                machine.pass(MILLISECOND);
                backend.tick().unwrap();
            }
            machine.occur(other, 0, Level::User, 7);
            let told = groups.iter_mut().filter_map(|group| {
                let mut buf = group.read_buf();
                group.read(&mut buf).err()
            });
            let told: Vec<_> = told.collect();
            let said = format!("{era:?} {processor:?}, counter {taken}: {told:?}");
            // On a P6 all that count are stopped together.
            let on_at_once = if processor == Processor::P6 {
                counters
            } else {
                1
            };
            assert!((1..=on_at_once).contains(&told.len()), "{said}");
            let of_interference = |e: &quipu_hal::Error| e.kind() == ErrorKind::Interference;
            assert!(told.iter().all(of_interference), "{said}");
            for mut group in groups {
                let mut buf = group.read_buf();
                group.read(&mut buf).unwrap();
                assert!(buf[0][0].time_running > 0, "{said}");
            }
            let left = backend.pmu().control().read().unwrap();
            assert_eq!(left.functions[taken], theirs, "{said}");
            assert_eq!(left.counters[taken], 77, "{said}");
            machine.overwrite(0, taken, 0);
        }
    }
}
