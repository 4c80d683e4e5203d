//! Breakpoints: counts that are known exactly.

use std::hint::black_box;

use crate::machine::{self, call, calls_of, open, read, user, writes_to};
use quipu_hal::{
    Attributes, Breakpoint, BreakpointAccess, Count, ErrorKind, Group, GroupSpec, Software, Target,
};

#[inline(never)]
extern "C" fn counted(x: u64) -> u64 {
    black_box(x + 1)
}

#[inline(never)]
extern "C" fn nested(x: u64) -> u64 {
    black_box(x + 2)
}

#[inline(never)]
extern "C" fn in_process(x: u64) -> u64 {
    black_box(x + 3)
}

#[inline(never)]
extern "C" fn stopped(x: u64) -> u64 {
    black_box(x + 4)
}

#[test]
fn a_function_called_1000_times_counts_1000() {
    let _alone = machine::debug_registers();
    let name = "a_function_called_1000_times_counts_1000";
    let spec = GroupSpec::new([calls_of(counted), user(Software::TaskClock)]);
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(counted, 1000);
    assert_eq!(read(&mut group)[0][0].count(), Count::Exact(1000));
    call(counted, 1);
    assert_eq!(read(&mut group)[0][0].count(), Count::Exact(1001));
}

#[test]
fn writes_are_told_from_reads() {
    let _alone = machine::debug_registers();
    let name = "writes_are_told_from_reads";
    let mut variable = 0u64;
    let address = &raw mut variable;
    let both = user(Breakpoint {
        address: address as u64,
        len: 8,
        access: BreakpointAccess::ReadWrite,
    });
    let spec = GroupSpec::new([writes_to(address), both]);
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    for i in 0..300 {
        // SAFETY: `variable` is alive and nothing else refers to it.
        unsafe { address.write_volatile(i) };
    }
    for _ in 0..200 {
        // SAFETY: as above.
        black_box(unsafe { address.read_volatile() });
    }
    let buf = read(&mut group);
    assert_eq!(buf[0][0].value, 300);
    assert_eq!(buf[0][1].value, 500);
}

/// This thread calls 5 times, a thread of it 10, a thread of that 20; all but the first have ended
/// when the counters are read.
#[test]
fn nested_threads_with_inherit_add_up() {
    let _alone = machine::debug_registers();
    let name = "nested_threads_with_inherit_add_up";
    let spec = GroupSpec::new([calls_of(nested), user(Software::PageFaults)])
        .with_attributes(Attributes::default().with_inherit(true));
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let family = || {
        call(nested, 5);
        let child = std::thread::spawn(|| {
            call(nested, 10);
            let grandchild = std::thread::spawn(|| call(nested, 20));
            grandchild.join().expect("no panic");
        });
        child.join().expect("no panic");
    };
    family();
    assert_eq!(read(&mut group)[0][0].value, 35);
    // What ended threads have added is gone after a reset, too.
    group.reset().expect("reset");
    assert_eq!(read(&mut group)[0][0].value, 0);
    call(nested, 3);
    assert_eq!(read(&mut group)[0][0].value, 3);
    family();
    assert_eq!(read(&mut group)[0][0].value, 38);
}

#[test]
fn without_inherit_new_threads_are_not_counted() {
    let _alone = machine::debug_registers();
    let name = "without_inherit_new_threads_are_not_counted";
    let spec = GroupSpec::single(calls_of(counted));
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(counted, 2);
    std::thread::spawn(|| call(counted, 10))
        .join()
        .expect("no panic");
    assert_eq!(read(&mut group)[0][0].value, 2);
}

#[test]
fn a_process_is_counted_in_all_its_threads() {
    let _alone = machine::debug_registers();
    let name = "a_process_is_counted_in_all_its_threads";
    let (ready, go) = (std::sync::Barrier::new(4), std::sync::Barrier::new(4));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=3)
            .map(|i| {
                let (ready, go) = (&ready, &go);
                scope.spawn(move || {
                    ready.wait();
                    go.wait();
                    call(in_process, i * 100);
                })
            })
            .collect();
        ready.wait();
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let spec = GroupSpec::single(calls_of(in_process));
        let group = open(name, &spec, &Target::Process(pid));
        go.wait();
        for thread in threads {
            thread.join().expect("no panic");
        }
        let Some(mut group) = group else { return };
        let buf = read(&mut group);
        assert_eq!(buf.total(0), Count::Exact(600));
        let mut each: Vec<u64> = buf
            .member(0)
            .expect("a member")
            .map(|(_, r)| r.value)
            .collect();
        each.retain(|value| *value > 0);
        each.sort_unstable();
        assert_eq!(each, [100, 200, 300]);
        assert!(buf.parts().iter().all(|part| part.thread.is_some()));
    });
}

/// The pair of prctl(2) stops the members one by one; enabling the group starts every one again.
#[test]
fn own_counters_stop_and_start_at_once() {
    let _alone = machine::debug_registers();
    let name = "own_counters_stop_and_start_at_once";
    let spec = GroupSpec::new([user(Software::TaskClock), calls_of(stopped)]);
    let Some(mut group) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(stopped, 1);
    quipu_linux::stop_own_counters().expect("stop");
    call(stopped, 10);
    assert_eq!(read(&mut group)[0][1].value, 1);
    quipu_linux::start_own_counters().expect("start");
    call(stopped, 100);
    assert_eq!(read(&mut group)[0][1].value, 101);
    quipu_linux::stop_own_counters().expect("stop");
    group.enable().expect("enable");
    call(stopped, 1000);
    assert_eq!(read(&mut group)[0][1].value, 1101);
}

/// No CPU has this many debug registers.
#[test]
fn more_breakpoints_than_there_are_is_said_at_open() {
    let _alone = machine::debug_registers();
    let name = "more_breakpoints_than_there_are_is_said_at_open";
    let variables = [0u64; 40];
    let spec = GroupSpec::new(variables.iter().map(|v| writes_to(v)));
    let Some(backend) = machine::backend(name) else {
        return;
    };

    let e = backend
        .open_group(&spec, &Target::CurrentThread)
        .expect_err("40 breakpoints");
    match e.kind() {
        ErrorKind::UnsupportedEvent | ErrorKind::UnsupportedFeature => machine::skip(name, e),
        kind => {
            let expected = [ErrorKind::TooManyEvents, ErrorKind::Busy];
            assert!(expected.contains(&kind), "{e:#}");
            assert!(e.member() > Some(0), "{e:#}");
        }
    }
}

/// A debug register of x86 cannot watch reads without writes.
#[test]
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn reads_alone_are_refused_with_what_to_do() {
    let name = "reads_alone_are_refused_with_what_to_do";
    let word = 0u64;
    let reads = user(Breakpoint {
        address: (&raw const word) as u64,
        len: 8,
        access: BreakpointAccess::Read,
    });
    let Some(backend) = machine::backend(name) else {
        return;
    };
    let refused = backend.open_group(&GroupSpec::single(reads), &Target::CurrentThread);
    let e = refused.expect_err("refused");
    assert_eq!(e.kind(), ErrorKind::UnsupportedEvent, "{e:#}");
    assert!(e.to_string().contains("use :rw"), "{e:#}");
}
