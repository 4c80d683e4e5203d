//! Kernels since 2019 with several CPUs: every CPU is counted, by threads that get there.

use std::time::Duration;

use crate::support::{SimBackend, SimGroup, backend, named, values};
use quipu_hal::{
    Attributes, Backend, Count, ErrorKind, Features, Group, GroupSpec, Part, Target, TargetKinds,
    total,
};
use quipu_pctr::Control;
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};

const MILLISECOND: Duration = Duration::from_millis(1);
const INSTRUCTIONS: u8 = 0xc0;
const BRANCHES: u8 = 0xc4;

/// A machine of so many CPUs, on which half a millisecond has passed.
fn machine(cpus: usize) -> SimMachine {
    SimMachine::new(Era::Amd64Of2019, Processor::Core, cpus)
}

fn open(backend: &SimBackend, name: &str, target: &Target) -> SimGroup {
    let spec = GroupSpec::single(named(name));
    backend.open_group(&spec, target).unwrap()
}

/// The readings of a group of one event, CPU by CPU, and their sum.
fn counts(group: &mut SimGroup) -> (Vec<Count>, Count) {
    let mut buf = group.read_buf();
    group.read(&mut buf).unwrap();
    let parts: Vec<Count> = (0..group.parts().len())
        .map(|part| buf[part][0].count())
        .collect();
    let sum = total(
        group
            .parts()
            .iter()
            .zip((0..parts.len()).map(|p| &buf[p][0])),
    );
    (parts, sum)
}

fn exact(values: &[u128]) -> Vec<Count> {
    values.iter().map(|&value| Count::Exact(value)).collect()
}

#[test]
fn every_cpu_is_counted_wherever_the_thread_is() {
    let machine = machine(4);
    let backend = backend(&machine);
    let targets = backend.capabilities().targets;
    assert!(targets.contains(TargetKinds::ALL_CPUS | TargetKinds::CPU | TargetKinds::CURRENT_CPU));
    assert!(
        backend
            .capabilities()
            .features
            .contains(Features::ANY_THREAD)
    );
    let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
    let cpus = [0, 2, 4, 6].map(Part::on_cpu);
    assert_eq!(group.parts(), cpus);
    for (cpu, times) in [10, 200, 3_000, 40_000].into_iter().enumerate() {
        machine.move_to(cpu);
        machine.occur(INSTRUCTIONS, 0, Level::User, times);
        machine.pass(MILLISECOND);
    }
    let sweeps = machine.sweeps();
    assert_eq!(
        counts(&mut group),
        (exact(&[10, 200, 3_000, 40_000]), Count::Exact(43_210))
    );
    assert_eq!(machine.sweeps() - sweeps, 1, "one look for all CPUs");

    // It stops everywhere at once, and goes on everywhere.
    machine.occur_on(1, INSTRUCTIONS, 0, Level::User, 1);
    group.disable().unwrap();
    machine.occur_on(2, INSTRUCTIONS, 0, Level::User, 1_000_000);
    let stopped = exact(&[10, 201, 3_000, 40_000]);
    assert_eq!(counts(&mut group).0, stopped);
    group.enable().unwrap();
    machine.occur_on(0, INSTRUCTIONS, 0, Level::User, 5);
    assert_eq!(counts(&mut group).0, exact(&[15, 201, 3_000, 40_000]));
    group.reset().unwrap();
    machine.occur_on(3, INSTRUCTIONS, 0, Level::User, 7);
    assert_eq!(counts(&mut group).0, exact(&[0, 0, 0, 7]));
    drop(group);
    for cpu in 0..4 {
        assert_eq!(machine.functions(cpu), [0; 4]);
    }
}

/// A CPU alone, or some of them; and that of the thread, which may leave it.
#[test]
fn some_cpus_are_counted_at_a_time_with_others() {
    let machine = machine(3);
    let backend = backend(&machine);
    let mut one = open(&backend, "INST_RETIRED", &Target::Cpu(2));
    let mut two = open(&backend, "BR_INST_RETIRED", &Target::Cpus(vec![4, 0]));
    for cpu in 0..3 {
        machine.occur_on(cpu, INSTRUCTIONS, 0, Level::User, 10 + cpu as u64);
        machine.occur_on(cpu, BRANCHES, 0, Level::User, 20 + cpu as u64);
    }
    assert_eq!(counts(&mut one), (exact(&[11]), Count::Exact(11)));
    assert_eq!(counts(&mut two), (exact(&[22, 20]), Count::Exact(42)));
    drop((one, two));
    let mut here = open(&backend, "INST_RETIRED", &Target::CurrentCpu);
    machine.occur(INSTRUCTIONS, 0, Level::User, 10);
    machine.move_to(1);
    machine.occur(INSTRUCTIONS, 0, Level::User, 1_000);
    assert_eq!(values(&mut here), [10]);
    let refused = backend
        .open_group(&GroupSpec::single(named("INST_RETIRED")), &Target::Cpu(1))
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSuchTarget);
}

/// A look is made for all CPUs when the words change, so that each turn is counted on each of them.
#[test]
fn more_events_than_counters_take_turns_on_every_cpu() {
    let machine = machine(2);
    for (event, rate) in [(INSTRUCTIONS, 300), (BRANCHES, 50), (0x3c, 1_000)] {
        machine.steady(event, Level::User, rate);
    }
    let backend = backend(&machine);
    let names = ["INST_RETIRED", "BR_INST_RETIRED", "CPU_CLK_UNHALTED"];
    let mut groups = names.map(|name| open(&backend, name, &Target::AllCpus));
    for _ in 0..30 {
        machine.pass(MILLISECOND);
        backend.tick().unwrap();
    }
    for (group, expected) in groups.iter_mut().zip([9_000_000, 1_500_000, 30_000_000]) {
        let estimates = vec![Count::Estimated(expected / 1_000 * 1_000); 2];
        assert_eq!(counts(group).0, estimates);
    }
}

/// The driver sends a set to the other CPUs by an interrupt, in which each looks whether its word is another: one that
/// takes the interrupts of two sets at once, to 0 and back, goes on counting from where it was.
#[test]
fn a_cpu_that_takes_its_interrupts_late_begins_at_zero_all_the_same() {
    let machine = machine(3);
    let backend = backend(&machine);
    let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
    let mut counted = 0;
    for times in [1_000, 20, 3] {
        machine.pass(MILLISECOND);
        for cpu in 0..3 {
            machine.occur_on(cpu, INSTRUCTIONS, 0, Level::User, times);
        }
        machine.pass(MILLISECOND);
        counted += u128::from(times);
        assert_eq!(counts(&mut group).0, exact(&[counted; 3]));
        machine.hold_interrupts(true);
        group.disable().unwrap();
        group.enable().unwrap();
        machine.hold_interrupts(false);
    }
    // One that no thread gets to may have the word still.
    group.disable().unwrap();
    machine.keep_off(Some(2));
    let refused = group.enable().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::WrongThread);
    machine.keep_off(None);
    group.enable().unwrap();
}

/// The count of a CPU that no thread gets to is reported as missing; the next look may find it again.
#[test]
fn a_cpu_that_no_thread_gets_to_has_no_count() {
    let machine = machine(3);
    let backend = backend(&machine);
    let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
    let occur = |times| {
        machine.pass(MILLISECOND);
        for cpu in 0..3 {
            machine.occur_on(cpu, INSTRUCTIONS, 0, Level::User, times);
        }
        machine.pass(MILLISECOND);
    };
    occur(100);
    machine.keep_off(Some(1));
    let partial = Count::Partial {
        value: 200,
        estimated: false,
        missing: 1,
        parts: 3,
    };
    assert_eq!(counts(&mut group).1, partial);
    machine.keep_off(None);
    assert_eq!(counts(&mut group).1, Count::Exact(300));

    // What it counted from the last look on is lost when it is stopped, which is reported.
    occur(50);
    machine.keep_off(Some(1));
    let told = group.disable().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::WrongThread, "{told}");
    assert!(told.to_string().contains("CPU 2"), "{told}");
    let (parts, sum) = counts(&mut group);
    assert_eq!((parts[0], parts[2]), (Count::Exact(150), Count::Exact(150)));
    assert_eq!(parts[1], Count::Estimated(200), "100 in half of the time");
    assert!(sum.is_estimate());
}

/// Setting a function that is set already does not zero its counter: what was counted before is not ours.
#[test]
fn a_function_that_was_found_begins_at_zero() {
    let machine = machine(2);
    let control = Control::new(machine.open()).unwrap();
    for counter in 0..2 {
        control.set(counter, 0x0043_00c0).unwrap();
    }
    for cpu in 0..2 {
        machine.occur_on(cpu, INSTRUCTIONS, 0, Level::User, 1_000);
    }
    let backend = backend(&machine);
    let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
    machine.occur_on(1, INSTRUCTIONS, 0, Level::User, 3);
    assert_eq!(counts(&mut group).0, exact(&[0, 3]));
    drop(group);
    for cpu in 0..2 {
        assert_eq!(machine.functions(cpu)[..2], [0x0043_00c0; 2]);
    }
}

#[test]
fn what_another_program_does_on_any_cpu_is_told() {
    for zero in [true, false] {
        let machine = machine(2);
        let backend = backend(&machine);
        let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
        machine.pass(MILLISECOND);
        for cpu in 0..2 {
            machine.occur_on(cpu, INSTRUCTIONS, 0, Level::User, 1_000);
        }
        assert_eq!(counts(&mut group).1, Count::Exact(2_000));
        machine.pass(MILLISECOND);
        if zero {
            let word = machine.functions(1)[0];
            machine.overwrite(1, 0, word);
        } else {
            Control::new(machine.open())
                .unwrap()
                .set(0, 0x41_00c4)
                .unwrap();
        }
        let mut buf = group.read_buf();
        let told = group.read(&mut buf).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::Interference, "{told}");
        machine.pass(MILLISECOND);
        machine.occur_on(1, INSTRUCTIONS, 0, Level::User, 1);
        let (parts, _) = counts(&mut group);
        assert!(parts[1].is_estimate(), "{parts:?}");
        // A counter that was taken is its taker's.
        let taken = machine.functions(0)[0] == 0x41_00c4;
        assert_eq!(taken, !zero);
        drop(group);
        assert_eq!(machine.functions(0)[0] == 0x41_00c4, !zero);
    }
}

/// A process that counts with Quipu claims its counters: others take those that are free, or say who has them.
#[test]
fn counters_are_claimed_and_those_of_others_left() {
    let machine = machine(2);
    machine.claim_for(0, Some(4711));
    let backend = backend(&machine);
    let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
    assert_eq!(machine.functions(0)[..2], [0, 0x0043_00c0]);
    assert_eq!(machine.own_claims(), 0b10);
    machine.occur(INSTRUCTIONS, 0, Level::User, 9);
    assert_eq!(counts(&mut group).1, Count::Exact(9));
    // The second event waits for the counter of the other, who ends.
    let mut second = open(&backend, "BR_INST_RETIRED", &Target::AllCpus);
    machine.pass(MILLISECOND);
    machine.claim_for(0, None);
    backend.tick().unwrap();
    machine.occur(BRANCHES, 0, Level::User, 4);
    let mut buf = second.read_buf();
    second.read(&mut buf).unwrap();
    assert_eq!(buf[0][0].value, 4);
    assert_eq!(machine.own_claims(), 0b11);
    drop((group, second));
    assert_eq!((machine.own_claims(), machine.functions(0)), (0, [0; 4]));

    machine.claim_for(0, Some(4711));
    machine.claim_for(1, Some(4712));
    let spec = GroupSpec::single(named("INST_RETIRED"));
    let refused = backend.open_group(&spec, &Target::AllCpus).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.to_string().contains("process 4711"), "{refused}");
    machine.claim_for(1, None);
    drop(open(&backend, "INST_RETIRED", &Target::AllCpus));
}

/// A process that sets a witness on the last free counter claims it as long as that takes.
#[test]
fn a_counter_that_is_claimed_for_a_moment_is_waited_for() {
    let machine = machine(2);
    machine.claim_for(0, Some(4711));
    machine.claim_for(1, Some(4711));
    machine.end_claim_after(5, 1);
    let backend = backend(&machine);
    let group = open(&backend, "INST_RETIRED", &Target::AllCpus);
    assert_eq!(machine.own_claims(), 0b10);
    drop(group);
    assert_eq!(machine.functions(0)[..2], [0, 0]);
}

/// Between two looks at who has a counter another process may claim it.
#[test]
fn a_counter_that_is_claimed_just_before_it_is_set_is_left() {
    let machine = machine(2);
    let backend = backend(&machine);
    let disabled = GroupSpec::single(named("INST_RETIRED"))
        .with_attributes(Attributes::default().with_disabled(true));
    let mut group = backend.open_group(&disabled, &Target::AllCpus).unwrap();
    machine.claim_for(0, Some(4711));
    group.enable().unwrap();
    assert_eq!(machine.functions(0)[..2], [0, 0x0043_00c0]);
    machine.occur(INSTRUCTIONS, 0, Level::User, 7);
    machine.pass(MILLISECOND);
    assert_eq!(counts(&mut group).1, Count::Exact(7));
}

/// There is no other counter: the group waits, and the error names the process it waits for.
#[test]
fn who_claimed_the_last_counter_is_told() {
    let machine = machine(2);
    let backend = backend(&machine);
    let spec = |pinned| {
        let attributes = Attributes::default()
            .with_disabled(true)
            .with_pinned(pinned);
        GroupSpec::single(named("INST_RETIRED")).with_attributes(attributes)
    };
    let [mut waits, mut pinned] =
        [false, true].map(|p| backend.open_group(&spec(p), &Target::AllCpus).unwrap());
    machine.claim_for(0, Some(4711));
    machine.claim_for(1, Some(4712));
    let mut buf = waits.read_buf();
    waits.enable().unwrap();
    let told = waits.read(&mut buf).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Interference);
    assert!(told.to_string().contains("process 4712"), "{told}");
    machine.pass(MILLISECOND);
    waits.read(&mut buf).unwrap();
    assert_eq!(buf.total(0), Count::NotCounted);
    pinned.enable().unwrap();
    let told = pinned.read(&mut buf).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::CounterInErrorState);
    machine.claim_for(0, None);
    backend.tick().unwrap();
    machine.occur(INSTRUCTIONS, 0, Level::User, 3);
    machine.pass(MILLISECOND);
    waits.read(&mut buf).unwrap();
    assert_eq!(buf[0][0].value, 3);
}

/// A counter that is zeroed is zeroed on every CPU, so that a look at one shows it, without a sweep; but for an event that
/// does not occur there.
#[test]
fn a_counter_that_is_zeroed_shows_on_any_cpu() {
    for (here, sweeps_are_needed) in [(1, false), (0, true)] {
        for zeroed_after in [200, 650, 1_400, 4_000] {
            let said = format!("{here} here, after {zeroed_after} ms");
            let machine = machine(2);
            let backend = backend(&machine);
            let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
            let sweeps = machine.sweeps();
            for millisecond in 0..5_000 {
                if millisecond == zeroed_after {
                    let word = machine.functions(0)[0];
                    let theirs = Control::new(machine.open()).unwrap();
                    theirs.set(0, word ^ 1).unwrap();
                    theirs.set(0, word).unwrap();
                }
                machine.pass(MILLISECOND);
                machine.occur_on(0, INSTRUCTIONS, 0, Level::User, here);
                machine.occur_on(1, INSTRUCTIONS, 0, Level::User, 1_000);
                backend.tick().unwrap();
            }
            // One that begins counting again makes sure of every CPU first.
            let swept = machine.sweeps() - sweeps;
            assert_eq!(swept > 1, sweeps_are_needed, "{said}: {swept}");
            let mut buf = group.read_buf();
            let told = group.read(&mut buf).unwrap_err();
            assert_eq!(told.kind(), ErrorKind::Interference, "{said}");
            let (parts, _) = counts(&mut group);
            let Count::Estimated(count) = parts[1] else {
                panic!("{said}: {parts:?}");
            };
            assert!((4_990_000..5_010_000).contains(&count), "{said}: {count}");
        }
    }
}

/// If one CPU shows that the counters were zeroed, nothing of the others is taken for a count either.
#[test]
fn what_one_cpu_shows_is_known_of_all() {
    let stop = |group: &mut SimGroup| group.disable().unwrap_err();
    let read = |group: &mut SimGroup| group.read(&mut group.read_buf()).unwrap_err();
    for learn in [stop, read] {
        let machine = machine(2);
        let backend = backend(&machine);
        let mut group = open(&backend, "INST_RETIRED", &Target::AllCpus);
        let run = |busy, idle| {
            machine.pass(90 * MILLISECOND);
            machine.occur_on(0, INSTRUCTIONS, 0, Level::User, busy);
            machine.occur_on(1, INSTRUCTIONS, 0, Level::User, idle);
        };
        run(100_000, 500);
        assert_eq!(counts(&mut group).0, exact(&[100_000, 500]));
        run(50_000, 0);
        let word = machine.functions(0)[0];
        let theirs = Control::new(machine.open()).unwrap();
        theirs.set(0, word ^ 1).unwrap();
        theirs.set(0, word).unwrap();
        // The busy one has passed what it had.
        run(120_000, 7);
        assert_eq!(learn(&mut group).kind(), ErrorKind::Interference);
        let mut buf = group.read_buf();
        group.read(&mut buf).unwrap();
        assert_eq!((buf[0][0].value, buf[1][0].value), (100_000, 500));
        assert!(buf[0][0].time_running < buf[0][0].time_enabled);
    }
}
