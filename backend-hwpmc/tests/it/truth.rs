//! No exact number is below the truth, whatever processes and threads do.

use proptest::prelude::*;
use quipu_hal::{Attributes, Backend, Count, Group, GroupSpec, Hardware, ReadBuf, Target};

use crate::events::backend;
use crate::simulated::{Conceals, Sim, own};

/// Something that happens; numbers choose among what there is.
#[derive(Debug, Clone, Copy)]
enum Step {
    Work(usize, u64),
    Sleep(usize),
    Wake(usize),
    Spawn,
    Fork,
    EndThread(usize),
    ChangeOwner,
    Reap,
    Read,
    Reset,
    Toggle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![
        6 => (any::<usize>(), 1..1_000_u64).prop_map(|(at, amount)| Step::Work(at, amount)),
        4 => any::<usize>().prop_map(Step::Sleep),
        4 => any::<usize>().prop_map(Step::Wake),
        1 => Just(Step::Spawn),
        1 => Just(Step::Fork),
        1 => any::<usize>().prop_map(Step::EndThread),
        1 => Just(Step::ChangeOwner),
        1 => Just(Step::Reap),
        6 => Just(Step::Read),
        1 => Just(Step::Reset),
        1 => Just(Step::Toggle),
    ];
    prop::collection::vec(one, 1..60)
}

/// A wrong number that passed as right.
#[derive(Debug, PartialEq)]
struct Wrong {
    count: Count,
    truth: u64,
}

/// Counts a process, or this one, through some steps.
fn wrong_count(sim: &Sim, of_this: bool, inherit: bool, steps: &[Step]) -> Option<Wrong> {
    let pid = match of_this {
        true => own(),
        false => sim.lock().asleep(),
    };
    let truth = || sim.lock().truth(pid, inherit);
    let attributes = Attributes::default().with_inherit(inherit);
    let spec = GroupSpec::single(Hardware::Instructions).with_attributes(attributes);
    let backend = backend(sim).expect("a backend");
    let mut group = backend.open(&spec, &Target::Process(pid)).expect("a group");
    let mut buf = group.read_buf();
    // The truth of what is enabled since the last reset; closed spans, and the beginning of the open one.
    let (mut closed, mut begun) = (0, Some(truth()));
    for step in steps {
        let tasks = all_tasks(sim, pid);
        let at = |index: usize| (!tasks.is_empty()).then(|| tasks[index % tasks.len()]);
        match *step {
            Step::Work(index, amount) => {
                if let Some((process, thread, true)) = at(index) {
                    sim.lock().work(process, thread, amount);
                }
            }
            // Who reads runs.
            Step::Sleep(index) => match at(index) {
                Some((process, thread, _)) if thread != own() => sim.lock().sleep(process, thread),
                _ => {}
            },
            Step::Wake(index) => {
                if let Some((process, thread, false)) = at(index) {
                    sim.lock().wake(process, thread);
                }
            }
            Step::Spawn if !sim.lock().threads_of(pid).is_empty() => {
                sim.lock().spawn(pid);
            }
            Step::Fork if !sim.lock().threads_of(pid).is_empty() => {
                sim.lock().fork(pid);
            }
            Step::EndThread(index) => match at(index) {
                Some((process, thread, _)) if thread != own() => sim.lock().end(process, thread),
                _ => {}
            },
            Step::ChangeOwner if !of_this => sim.lock().change_owner(pid),
            Step::Reap if !of_this && sim.lock().threads_of(pid).is_empty() => {
                let all = closed + begun.map_or(0, |begun| truth() - begun);
                sim.lock().reap(pid);
                return check(&mut *group, &mut buf, all);
            }
            Step::Read => {
                let all = closed + begun.map_or(0, |begun| truth() - begun);
                if let Some(wrong) = check(&mut *group, &mut buf, all) {
                    return Some(wrong);
                }
            }
            Step::Reset => {
                group.reset().expect("it resets");
                closed = 0;
                begun = begun.map(|_| truth());
            }
            Step::Toggle => match begun.take() {
                Some(since) => {
                    group.disable().expect("it stops");
                    closed += truth() - since;
                }
                None => {
                    group.enable().expect("it starts");
                    begun = Some(truth());
                }
            },
            _ => {}
        }
    }
    None
}

/// The threads of a process and of its children, each with whether it runs.
fn all_tasks(sim: &Sim, pid: i32) -> Vec<(i32, i32, bool)> {
    let system = sim.lock();
    let of = |pid: i32| {
        system
            .threads_of(pid)
            .into_iter()
            .map(move |(id, runs)| (pid, id, runs))
    };
    let children = system.children_of(pid);
    of(pid).chain(children.into_iter().flat_map(of)).collect()
}

fn check(group: &mut dyn Group, buf: &mut ReadBuf, truth: u64) -> Option<Wrong> {
    group.read(buf).expect("it reads");
    let count = buf[0][0].count();
    let is_right = match count {
        Count::Exact(value) => value == u128::from(truth),
        _ => true,
    };
    (!is_right).then_some(Wrong { count, truth })
}

proptest! {
    #[test]
    fn exact_is_exact(of_this: bool, inherit: bool, steps in steps()) {
        prop_assert_eq!(wrong_count(&Sim::new(), of_this, inherit, &steps), None);
    }
}

/// Returns a command that sleeps, with its children counted.
fn command() -> (Sim, i32, Box<dyn Group>) {
    let sim = Sim::new();
    let backend = backend(&sim).expect("a backend");
    let pid = sim.lock().asleep();
    let spec = GroupSpec::single(Hardware::Instructions)
        .with_attributes(Attributes::default().with_inherit(true));
    let group = backend.open(&spec, &Target::Process(pid)).expect("a group");
    (sim, pid, group)
}

/// A program that runs alone from a sleep to its end is counted exactly.
#[test]
fn a_command_of_one_thread_is_exact() {
    let (sim, pid, mut group) = command();
    let mut buf = group.read_buf();
    let mut system = sim.lock();
    system.wake(pid, pid);
    system.work(pid, pid, 7_000);
    drop(system);
    group.read(&mut buf).expect("it reads");
    // It has not been switched from yet.
    assert_eq!(buf[0][0].count(), Count::AtLeast(0));
    sim.lock().end(pid, pid);
    group.read(&mut buf).expect("it reads");
    assert_eq!(buf[0][0].count(), Count::Exact(7_000));
    sim.lock().reap(pid);
    group.read(&mut buf).expect("it reads");
    assert_eq!(buf[0][0].count(), Count::Exact(7_000));
    assert_eq!(buf[0][0].time_enabled, 7_000);
}

/// A thread and a child lose their first turns, and the count says that it is a lower bound.
#[test]
fn first_turns_are_missed_and_it_says_so() {
    for fork in [false, true] {
        let (sim, pid, mut group) = command();
        let mut system = sim.lock();
        system.wake(pid, pid);
        system.work(pid, pid, 100);
        let (process, thread) = match fork {
            true => {
                let child = system.fork(pid);
                (child, child)
            }
            false => (pid, system.spawn(pid)),
        };
        system.work(process, thread, 20);
        system.sleep(process, thread);
        system.wake(process, thread);
        system.work(process, thread, 3);
        system.end(process, thread);
        system.end(pid, pid);
        drop(system);
        let mut buf = group.read_buf();
        group.read(&mut buf).expect("it reads");
        assert_eq!(buf[0][0].count(), Count::AtLeast(103), "a fork: {fork}");
    }
}

/// Backends that do not look at what makes counts short are caught: a lost first stretch, a stale value, a foreign owner.
#[test]
fn a_backend_that_does_not_look_is_caught() {
    let (wake, work) = (Step::Wake(0), Step::Work(0, 10));
    let end = [Step::EndThread(1), Step::EndThread(0), Step::Read];
    let first_turn = [&[wake, Step::Spawn, Step::Work(1, 10)][..], &end].concat();
    let stale = vec![wake, work, Step::Read];
    let foreign = vec![wake, Step::ChangeOwner, work, Step::Sleep(0), Step::Read];
    for (conceals, steps) in [
        (Conceals::Others, first_turn),
        (Conceals::Running, stale),
        (Conceals::Owner, foreign),
    ] {
        assert_eq!(wrong_count(&Sim::new(), false, false, &steps), None);
        let caught = wrong_count(&Sim::new().concealing(conceals), false, false, &steps);
        assert!(caught.is_some(), "{conceals:?}");
    }
}

/// A counter of 48 bits wraps; one that may have done so more than once since it was read last has a lower bound.
#[test]
fn counters_wrap_and_are_no_facts_after_too_long() {
    const RAN: u64 = (1 << 47) - 5;
    const LONG: u64 = 1 << 42;
    let sim = Sim::new();
    let backend = backend(&sim).expect("a backend");
    let pid = sim.lock().asleep();
    let spec = GroupSpec::single(Hardware::Instructions);
    let mut group = backend.open(&spec, &Target::Process(pid)).expect("a group");
    let mut buf = group.read_buf();
    let mut after = |instructions, time| {
        let mut system = sim.lock();
        system.wake(pid, pid);
        system.run(pid, pid, instructions, time);
        system.sleep(pid, pid);
        drop(system);
        group.read(&mut buf).expect("it reads");
        buf[0][0].count()
    };
    for times in 1..=3 {
        assert_eq!(after(RAN, LONG - 1), Count::Exact(u128::from(times * RAN)));
    }
    assert_eq!(after(1 << 48, LONG), Count::AtLeast(u128::from(3 * RAN)));
}
