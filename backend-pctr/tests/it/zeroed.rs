//! Counters that others zero without changing their function, and what other processes are left with.

use std::time::Duration;

use crate::support::{backend, named, open, two_events, values, with_counters};
use quipu_hal::{Backend, Count, ErrorKind, EventMap, Group, GroupSpec, Target};
use quipu_pctr::abi::Layout;
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
use quipu_pctr::{Control, PctrPmu, with_device};
use quipu_pmu::Pmu;

const MICROSECOND: Duration = Duration::from_micros(1);

/// A way to zero counters, by its name.
type Way = (&'static str, fn(&SimMachine));

/// Zeroes counters in ways that leave the function as it was.
fn ways_to_zero() -> [Way; 3] {
    [
        ("the same function set", |machine| {
            let words = machine.functions(0);
            for (counter, word) in words.into_iter().enumerate() {
                machine.overwrite(0, counter, word);
            }
        }),
        ("another function set and put back", |machine| {
            let control = Control::new(machine.open()).unwrap();
            let counter = machine.functions(0).iter().position(|w| *w != 0).unwrap();
            let word = machine.functions(0)[counter];
            control.set(counter as u8, word ^ 1).unwrap();
            control.set(counter as u8, word).unwrap();
        }),
        ("a suspended machine", |machine| {
            machine.suspend();
            machine.pass(Duration::from_secs(1));
        }),
    ]
}

/// The drop to zero is no wrap: what was counted before stands, the span is not running time, and it is
/// reported once.
#[test]
fn a_counter_that_was_zeroed_is_told_and_nothing_is_made_up() {
    for (era, processor) in with_counters() {
        let [(name, code), _] = two_events(processor);
        for (way, zero) in ways_to_zero() {
            let told = format!("{era:?} {processor:?} {way}");
            let machine = SimMachine::new(era, processor, 2);
            let backend = backend(&machine);
            let mut group = open(&backend, &[name]);
            machine.pass(MICROSECOND);
            machine.occur(code, 0, Level::User, 1_000);
            assert_eq!(values(&mut group), [1_000], "{told}");
            machine.pass(MICROSECOND);
            zero(&machine);
            machine.pass(MICROSECOND);
            machine.occur(code, 0, Level::User, 5);
            let mut buf = group.read_buf();
            let refused = group.read(&mut buf).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Interference, "{told}");
            machine.pass(MICROSECOND);
            machine.occur(code, 0, Level::User, 20);
            group.read(&mut buf).unwrap();
            let reading = buf[0][0];
            assert_eq!(reading.value, 1_020, "{told}");
            assert!(reading.time_running < reading.time_enabled, "{told}");
            assert!(matches!(reading.count(), Count::Estimated(_)), "{told}");
        }
    }
}

/// Zeroing is noticed in the last span too, which only stopping reads.
#[test]
fn a_counter_that_was_zeroed_before_it_is_stopped_is_told() {
    for (era, processor) in with_counters() {
        let [(name, code), _] = two_events(processor);
        for (way, zero) in ways_to_zero() {
            let machine = SimMachine::new(era, processor, 2);
            let backend = backend(&machine);
            let mut group = open(&backend, &[name]);
            machine.occur(code, 0, Level::User, 1_000);
            assert_eq!(values(&mut group), [1_000]);
            zero(&machine);
            let refused = group.disable().unwrap_err();
            assert_eq!(
                refused.kind(),
                ErrorKind::Interference,
                "{era:?} {processor:?} {way}"
            );
            assert_eq!(values_of_any(&mut group), [1_000]);
        }
    }
}

fn values_of_any(group: &mut impl Group) -> Vec<u64> {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    buf[0].iter().map(|reading| reading.value).collect()
}

/// As fast as any counter counts, and through every wrap: nothing true is refused.
#[test]
fn a_counter_that_wraps_at_full_speed_is_believed() {
    for (era, processor) in with_counters() {
        let [(name, code), _] = two_events(processor);
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        let width = era.arch().visible_width(processor.width());
        let (step, mut truth) = ((1u64 << width) / 3, 0);
        for _ in 0..10 {
            // 16 in each of two cycles a nanosecond, at a steady rate, and looked at in time.
            let (mut left, mut moment) = (step, 1 << 30);
            while left > 0 {
                let now = left.min(moment);
                machine.pass(Duration::from_nanos(now / 32 + 1));
                machine.occur(code, 0, Level::User, now);
                backend.tick().unwrap();
                (left, moment) = (left - now, (moment + moment / 2).min(1 << 34));
            }
            truth += step;
            assert_eq!(values(&mut group), [truth], "{era:?} {processor:?}");
        }
    }
}

/// A counter that was set meanwhile is its setter's: the group goes on with a free one, and in the end
/// theirs is left as they set it.
#[test]
fn a_counter_that_a_later_user_took_is_left_and_a_free_one_goes_on() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(name, code), (_, other)] = two_events(processor);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        machine.occur(code, 0, Level::User, 10);
        assert_eq!(values(&mut group), [10]);
        let ours = machine.functions(0)[0];
        let theirs = ours & !0x3f | u32::from(other & 0x3f);
        machine.overwrite(0, 0, theirs);
        machine.occur(other, 0, Level::User, 77);
        let mut buf = group.read_buf();
        let told = group.read(&mut buf).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Interference);
        assert_eq!(machine.functions(0)[0], theirs, "{era:?} {processor:?}");
        assert_eq!(machine.functions(0)[1] & 0xff, ours & 0xff);
        machine.occur(code, 0, Level::User, 5);
        group.read(&mut buf).unwrap();
        assert_eq!(buf[0][0].value, 15);
        group.disable().unwrap();
        group.enable().unwrap();
        drop(group);
        let left = Control::new(machine.open()).unwrap().read().unwrap();
        assert_eq!(left.functions, [theirs, 0, 0, 0]);
        assert_eq!(left.counters[0], 77, "it went on counting for them");
        let told = backend.pmu().unrestored_counters();
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].taken_over, Some(theirs));
    }
}

/// With no other counter the event waits, until they are done.
#[test]
fn a_group_waits_for_a_counter_that_a_later_user_took() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let backend = backend(&machine);
    let mut group = open(&backend, &["FLOPS"]);
    machine.pass(MICROSECOND);
    machine.overwrite(0, 0, 0x0041_00c4);
    let mut buf = group.read_buf();
    assert!(group.read(&mut buf).is_err());
    for _ in 0..3 {
        machine.pass(MICROSECOND);
        backend.tick().unwrap();
        machine.occur(0xc1, 0, Level::User, 9);
        group.read(&mut buf).unwrap();
        assert_eq!((buf[0][0].value, buf[0][0].time_running), (0, 0));
        assert_eq!(machine.functions(0)[0], 0x0041_00c4);
    }
    machine.overwrite(0, 0, 0);
    backend.tick().unwrap();
    machine.pass(MICROSECOND);
    machine.occur(0xc1, 0, Level::User, 4);
    group.read(&mut buf).unwrap();
    assert_eq!(buf[0][0].value, 4);
    assert!(buf[0][0].time_running > 0);
}

/// Also where it was set while the group was not on: between two turns, or before it is enabled.
#[test]
fn a_counter_that_was_taken_between_two_turns_is_left() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(name, code), (_, other)] = two_events(processor);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        let word = machine.functions(0)[0] & !0x3f | u32::from(other & 0x3f);
        group.disable().unwrap();
        machine.overwrite(0, 0, word);
        group.enable().unwrap();
        assert_eq!(machine.functions(0)[0], word, "{era:?} {processor:?}");
        machine.occur(code, 0, Level::User, 3);
        assert_eq!(values_of_any(&mut group), [3]);
        assert_eq!(machine.functions(0)[0], word);
    }
}

#[test]
fn free_counters_are_used_before_those_that_were_found_set() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let [(name, code), (_, other)] = two_events(processor);
        let gate = if processor == Processor::P5 {
            0xc0
        } else {
            0x0043_0000
        };
        let found = gate | u32::from(other);
        machine.overwrite(0, 0, found);
        machine.occur(other, 0, Level::User, 77_777);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name]);
        machine.occur(code, 0, Level::User, 6);
        assert_eq!(values(&mut group), [6]);
        let status = Control::new(machine.open()).unwrap().read().unwrap();
        assert_eq!(
            (status.functions[0], status.counters[0]),
            (found, 77_777),
            "{era:?} {processor:?}"
        );
        drop(group);
        assert_eq!(backend.restore_failures(), []);

        // All of them are needed: its last value is reported.
        let all = vec![name; era.counters(processor)];
        drop(open(&backend, &all));
        assert_eq!(machine.functions(0), [found, 0, 0, 0]);
        let lost = backend.pmu().lost_values();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].function, lost[0].value), (found, 77_777));
        let told = backend.restore_failures();
        assert_eq!(told.len(), 1);
        assert!(
            told[0].to_string().contains("it stood at 77777"),
            "{}",
            told[0]
        );
    }
}

/// The time stamp counter is no counter that an event can be put on.
#[test]
fn capabilities_count_counters_alone() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let counters = era.counters(processor);
        assert_eq!(backend.capabilities().slots, Some(counters));
        let idle = usize::from(era.layout() == Layout::Legacy);
        assert_eq!(backend.pmu().slots().len(), counters + 1 + idle);
        let [(name, _), _] = two_events(processor);
        let spec = GroupSpec::new(vec![named(name); counters]);
        assert!(backend.open_group(&spec, &Target::CurrentCpu).is_ok());
    }
}

/// Some kernels take a Pentium 4 for a CPU with architectural counters: setting one would end them.
#[test]
fn functions_of_another_cpu_are_never_set() {
    let core = SimMachine::new(Era::Amd64Of2016, Processor::Core, 1);
    for era in [
        Era::I386Of2008,
        Era::Amd64Of2007,
        Era::Amd64Of2016,
        Era::Amd64Of2019,
    ] {
        let machine = SimMachine::new(era, Processor::P4, 1);
        assert_eq!(era.counters(Processor::P4), 2);
        let map = crate::support::Events::of(&core).unwrap();
        let model = EventMap::cpu(&*map).clone();
        let pmu = PctrPmu::new(machine.open(), Some(&model)).unwrap();
        assert_eq!(pmu.slots().len(), 1, "the time stamp counter");
        let backend = with_device(machine.open(), Some(map), machine.clock()).unwrap();
        let spec = GroupSpec::single(named("INST_RETIRED"));
        let refused = backend.open(&spec, &Target::CurrentCpu).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
        assert!(
            refused.to_string().contains("another vendor or family"),
            "{refused}"
        );
        assert!(!machine.has_crashed());
        Control::new(machine.open())
            .unwrap()
            .set(0, 0x0041_00c0)
            .unwrap();
        assert!(machine.has_crashed(), "what the refusal is for");
    }
}

/// A steady event that is zeroed at any time and not read meanwhile: once it was looked at that shows.
#[test]
fn a_counter_that_is_zeroed_between_two_looks_is_told() {
    for (era, processor) in with_counters() {
        for (way, zero) in ways_to_zero() {
            for zeroed_after in [25, 70, 200, 650, 900, 1_400, 4_000, 9_900] {
                let said = format!("{era:?} {processor:?} {way} after {zeroed_after} ms");
                let [(name, code), _] = two_events(processor);
                let machine = SimMachine::new(era, processor, 1);
                let backend = backend(&machine);
                let mut group = open(&backend, &[name]);
                for millisecond in 0..10_000 {
                    if millisecond == zeroed_after {
                        zero(&machine);
                    }
                    machine.pass(Duration::from_millis(1));
                    machine.occur(code, 0, Level::User, 1_000);
                    backend.tick().unwrap();
                }
                let mut buf = group.read_buf();
                let told = group.read(&mut buf).unwrap_err();
                assert_eq!(told.kind(), ErrorKind::Interference, "{said}");
                group.read(&mut buf).unwrap();
                let Count::Estimated(count) = buf[0][0].count() else {
                    panic!("{said}: {:?}", buf[0][0]);
                };
                // A suspended machine was enabled for a second more.
                assert!((9_990_000..11_010_001).contains(&count), "{said}: {count}");
            }
        }
    }
}

/// A count that was looked at too late may be too low: it is no fact.
#[test]
fn a_count_that_was_not_looked_at_in_time_is_not_exact() {
    for (era, processor) in with_counters() {
        let [(name, code), _] = two_events(processor);
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let mut group = open(&backend, &[name, name]);
        machine.occur(code, 0, Level::User, 5);
        for (unwatched, exact) in [(250, true), (251, false)] {
            group.reset().unwrap();
            group.disable().unwrap();
            group.enable().unwrap();
            machine.pass(Duration::from_millis(unwatched));
            machine.occur(code, 0, Level::User, 1_000);
            let mut buf = group.read_buf();
            group.read(&mut buf).unwrap();
            let said = format!("{era:?} {processor:?} {unwatched} ms");
            for reading in &buf[0] {
                assert_eq!(reading.count().value(), Some(1_000), "{said}");
                assert_eq!(reading.count().exact().is_some(), exact, "{said}");
            }
            // That of the time stamp counter is.
            let mut clock = open(&backend, &["tsc"]);
            machine.pass(Duration::from_secs(3));
            values(&mut clock);
        }
    }
}
