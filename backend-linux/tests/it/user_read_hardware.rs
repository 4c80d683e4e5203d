//! Reading in user space for real, where the machine has a PMU and lets user mode read it.

use std::hint::black_box;

use crate::machine::{backend, skip, user};
use quipu_hal::{Group, GroupSpec, Hardware, ReadBuf, Simultaneity, Target, UserReads};
use quipu_linux::{LinuxBackend, LinuxGroup};

/// The backend, where counters can be read in user space.
fn with_user_reads(test: &str) -> Option<LinuxBackend> {
    let backend = backend(test)?;
    match quipu_linux::user_read::available() {
        Ok(()) => Some(backend),
        Err(error) => {
            skip(test, format!("{error:#}"));
            None
        }
    }
}

/// An event that instructions of user mode cause, and nothing else.
fn steady(backend: &LinuxBackend) -> Hardware {
    let opens = |event| {
        let spec = GroupSpec::single(user(event));
        backend.open_group(&spec, &Target::CurrentThread).is_ok()
    };
    if opens(Hardware::Instructions) {
        Hardware::Instructions
    } else {
        Hardware::Cycles
    }
}

fn in_user_space(group: &mut LinuxGroup, buf: &mut ReadBuf) {
    let read = (0..1000).any(|_| {
        let read = group.read_in_user_space(buf).expect("a read");
        if !read {
            group.read_by_system_call(buf).expect("a read");
        }
        read
    });
    assert!(read, "never possible in user space");
}

/// Runs the loop that is measured: the same instructions in every round.
#[inline(never)]
fn spin(rounds: u64) {
    for i in 0..rounds {
        black_box(i);
    }
}

#[test]
fn differences_in_user_space_are_those_of_system_calls() {
    let test = "differences_in_user_space_are_those_of_system_calls";
    let Some(backend) = with_user_reads(test) else {
        return;
    };
    let event = steady(&backend);
    let spec = GroupSpec::single(user(event));
    let mut group = backend
        .open_group(&spec, &Target::CurrentThread)
        .expect("as in the probe");
    let [mut before, mut after] = [(); 2].map(|()| group.read_buf());
    // What the work and one read cost; twice the work minus that is the work alone.
    let mut cost = |rounds, by_call: bool| {
        let mut once = || {
            let mut read = |buf: &mut ReadBuf| match by_call {
                true => group.read_by_system_call(buf).expect("a read"),
                false => in_user_space(&mut group, buf),
            };
            read(&mut before);
            spin(rounds);
            read(&mut after);
            after[0][0].since(&before[0][0]).value
        };
        (0..20).map(|_| once()).min().expect("there are 20")
    };
    let work = |cost: &mut dyn FnMut(u64, bool) -> u64, by_call| {
        cost(20_000, by_call) - cost(10_000, by_call)
    };
    let (call, user_space) = (work(&mut cost, true), work(&mut cost, false));
    if event == Hardware::Instructions {
        assert_eq!(user_space, call, "instructions of 10000 rounds");
        assert_eq!(call % 10_000, 0, "every round is the same");
        println!("{} instructions each round", call / 10_000);
    }
    let overhead = cost(0, false);
    println!("{event}: {overhead} from one read in user space to the next");
    let by_calls = format!("{group:?}").contains("call_times: Some");
    println!("times of system calls: {by_calls}");
}

#[test]
fn read_takes_the_short_way_and_claims_no_snapshot() {
    let test = "read_takes_the_short_way_and_claims_no_snapshot";
    let Some(backend) = with_user_reads(test) else {
        return;
    };
    let event = steady(&backend);
    let spec = GroupSpec::new([user(event), user(event)]);
    let open = |backend: &LinuxBackend| {
        backend
            .open_group(&spec, &Target::CurrentThread)
            .expect("two counters")
    };
    let mut group = open(&backend);
    assert_eq!(group.simultaneity(), Simultaneity::Sequential);
    let mut buf = group.read_buf();
    in_user_space(&mut group, &mut buf);
    drop(group);

    let backend = backend.without_user_reads();
    let mut group = open(&backend);
    assert_eq!(group.simultaneity(), Simultaneity::Atomic);
    let mut buf = group.read_buf();
    assert_eq!(group.read_in_user_space(&mut buf).ok(), Some(false));
    group.read(&mut buf).expect("by system call");
    let (first, second) = (buf[0][0], buf[0][1]);
    assert_eq!(first.time_running, second.time_running, "a snapshot");
}

/// The setting of prctl(2) is of a thread, and may come after the group was opened.
#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn a_thread_that_gave_its_time_stamps_away_reads_by_system_calls() {
    let test = "a_thread_that_gave_its_time_stamps_away_reads_by_system_calls";
    let Some(backend) = with_user_reads(test) else {
        return;
    };
    let spec = GroupSpec::single(user(steady(&backend)));
    let open = || {
        let group = backend.open_group(&spec, &Target::CurrentThread);
        group.expect("as in the probe")
    };
    let mut groups = [open(), open()];
    let mut bufs = groups.each_ref().map(Group::read_buf);
    // SAFETY: the setting is of this thread alone, which asks no clock until it is as before.
    let set = |setting: i32| unsafe { libc::prctl(libc::PR_SET_TSC, setting) };
    let taken = set(libc::PR_TSC_SIGSEGV);
    let quick = groups[0].read_in_user_space(&mut bufs[0]);
    let read = groups[1].read(&mut bufs[1]);
    let given = set(libc::PR_TSC_ENABLE);
    assert_eq!((taken, given), (0, 0));
    assert_eq!((quick, read), (Ok(false), Ok(())));
    for group in &groups {
        let obstacle = group.obstacle().expect("it was found then");
        assert!(
            format!("{obstacle:#}").contains("PR_SET_TSC"),
            "{obstacle:#}"
        );
    }
    in_user_space(&mut open(), &mut bufs[0]);
}

/// The pages are not in a forked process, which has the group all the same.
#[test]
fn a_forked_process_reads_and_drops_the_group() {
    let test = "a_forked_process_reads_and_drops_the_group";
    let Some(backend) = with_user_reads(test) else {
        return;
    };
    let spec = GroupSpec::single(user(steady(&backend)));
    let mut group = backend
        .open_group(&spec, &Target::CurrentThread)
        .expect("as in the probe");
    let mut buf = group.read_buf();
    in_user_space(&mut group, &mut buf);
    // SAFETY: the child reads, drops, and ends at once, without anything of the parent's being run.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = group.read_in_user_space(&mut buf).is_ok_and(|read| !read);
        let read = group.read(&mut buf).is_ok();
        drop(group);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(i32::from(!(refused && read))) };
    }
    let mut status = -1;
    // SAFETY: the status is written to a live local.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    in_user_space(&mut group, &mut buf);
}

/// A group that is moved between CPUs by force is read right on each of them.
#[test]
fn migration_between_cpus_is_noticed() {
    let test = "migration_between_cpus_is_noticed";
    let Some(backend) = with_user_reads(test) else {
        return;
    };
    let cpus = quipu_linux::topology::Topology::new()
        .online()
        .unwrap_or_default();
    if cpus.len() < 2 {
        skip(test, "there is one CPU");
        return;
    }
    let spec = GroupSpec::single(user(steady(&backend)));
    let mut group = backend
        .open_group(&spec, &Target::CurrentThread)
        .expect("as in the probe");
    let [mut last, mut now, mut check] = [(); 3].map(|()| group.read_buf());
    for round in 0..2_000 {
        crate::machine::move_to_cpu(cpus[round % cpus.len()]);
        in_user_space(&mut group, &mut now);
        group.read_by_system_call(&mut check).expect("a read");
        let (from, seen, to) = (last[0][0], now[0][0], check[0][0]);
        assert!(
            seen.checked_since(&from).is_some(),
            "{seen:?} after {from:?}"
        );
        assert!(to.checked_since(&seen).is_some(), "{to:?} after {seen:?}");
        last.clone_from(&now);
    }
}

/// On ARM a counter of 64 bits can be asked for, by bit 0 of `config1`, beside the bit that asks
/// for user mode's access.
#[test]
#[cfg(target_arch = "aarch64")]
fn long_counters_are_read_too() {
    let test = "long_counters_are_read_too";
    let Some(backend) = with_user_reads(test) else {
        return;
    };
    use quipu_hal::{Event, RawEvent};
    let raw = |event: u64, config1| Event::from(RawEvent::new(event).with_extra([config1, 0, 0]));
    // CPU_CYCLES; and INST_RETIRED, which needs counters of 64 bits for it.
    for (name, event) in [("cycles", 0x11), ("instructions", 0x08)] {
        for config1 in [2, 3] {
            let spec = GroupSpec::single(user(raw(event, config1)));
            match backend.open_group(&spec, &Target::CurrentThread) {
                Ok(mut group) => {
                    let [mut before, mut seen, mut after] = [(); 3].map(|()| group.read_buf());
                    for _ in 0..100 {
                        group.read_by_system_call(&mut before).expect("a read");
                        in_user_space(&mut group, &mut seen);
                        group.read_by_system_call(&mut after).expect("a read");
                        assert!(seen[0][0].checked_since(&before[0][0]).is_some());
                        assert!(after[0][0].checked_since(&seen[0][0]).is_some());
                    }
                    println!("{name}, config1={config1}: {:?}", seen[0][0]);
                }
                Err(error) => skip(test, format!("{name}, config1={config1}: {error:#}")),
            }
            // Without bit 1 nobody asked for it.
            let spec = GroupSpec::single(user(raw(event, 1)));
            if let Ok(mut group) = backend.open_group(&spec, &Target::CurrentThread) {
                let mut buf = group.read_buf();
                assert_eq!(group.read_in_user_space(&mut buf).ok(), Some(false));
            }
        }
    }
}
