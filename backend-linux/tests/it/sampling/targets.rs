//! Threads that are started later, commands, and whole CPUs.

use std::collections::BTreeMap;

use quipu_hal::{Attributes, Software, Target};
use quipu_linux::sampling::{Rate, SampleType, SamplerSpec};

use super::breakpoints::executions_of;
use super::calls::{self, call};
use super::shell::HeldShell;
use super::{open, samples};
use crate::machine::{self, user};

/// This thread's id.
fn gettid() -> i32 {
    // SAFETY: the call takes nothing and touches no memory of ours.
    unsafe { libc::gettid() }
}

#[test]
fn inherited_counters_sample_every_thread_on_its_cpu() {
    let name = "inherited_counters_sample_every_thread_on_its_cpu";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.attributes.inherit = true;
    spec.sample_type |= SampleType::CPU | SampleType::ID | SampleType::STREAM_ID;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let online = quipu_linux::topology::Topology::new()
        .online()
        .expect("CPUs");
    assert_eq!(sampler.rings().len(), online.len());
    call(5);
    let child = std::thread::spawn(|| {
        call(10);
        let grandchild = std::thread::spawn(|| {
            call(20);
            gettid()
        });
        (gettid(), grandchild.join().expect("no panic"))
    });
    let (child, grandchild) = child.join().expect("no panic");
    let layout = *sampler.layout();
    let ids: Vec<u64> = sampler.counters().iter().map(|c| c.id()).collect();
    let mut calls_of: BTreeMap<i32, u64> = BTreeMap::new();
    for ring in sampler.rings_mut() {
        let cpu = ring.part().cpu;
        for record in &mut ring.records() {
            let record = record.expect("a record").decode(&layout).expect("decodes");
            let quipu_linux::sampling::Record::Sample(sample) = record else {
                panic!("{record:?}");
            };
            assert_eq!(sample.cpu(), cpu);
            // Children have counters of their own, which say whose they are. Which of them is on which
            // thread changes: the kernel swaps equal ones (`perf_event_context_sched_out`).
            let tid = sample.thread().expect("asked for").tid;
            assert!(ids.contains(&sample.id().expect("asked for")));
            assert!(sample.stream_id().is_some());
            *calls_of.entry(tid).or_default() += 1;
        }
    }
    let expected = BTreeMap::from([(gettid(), 5), (child, 10), (grandchild, 20)]);
    assert_eq!(calls_of, expected);
}

#[test]
fn a_process_is_sampled_in_every_thread() {
    let name = "a_process_is_sampled_in_every_thread";
    let _alone = machine::debug_registers();
    let (ready, go) = (std::sync::Barrier::new(3), std::sync::Barrier::new(3));
    std::thread::scope(|scope| {
        let threads = [100, 200].map(|times| {
            let (ready, go) = (&ready, &go);
            scope.spawn(move || {
                ready.wait();
                go.wait();
                call(times);
                gettid()
            })
        });
        ready.wait();
        let pid = std::process::id().cast_signed();
        let sampler = open(name, &executions_of(calls::leaf()), &Target::Process(pid));
        go.wait();
        let tids = threads.map(|thread| thread.join().expect("no panic"));
        let Some(mut sampler) = sampler else { return };
        for (tid, times) in tids.into_iter().zip([100, 200]) {
            let of_thread = |ring: &&quipu_linux::sampling::Ring| ring.part().thread == Some(tid);
            assert_eq!(sampler.rings().iter().filter(of_thread).count(), 1);
            let threads = samples(&mut sampler, |s| s.thread().expect("asked for").tid);
            if tid == tids[0] {
                let count = |tid| threads.iter().filter(|t| **t == tid).count();
                assert_eq!((count(tids[0]), count(tids[1])), (times, 200));
            } else {
                // All of them were read above.
                assert!(threads.is_empty());
            }
        }
    });
}

#[test]
fn every_cpu_has_a_ring() {
    let name = "every_cpu_has_a_ring";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.sample_type |= SampleType::CPU;
    let Some(mut sampler) = open(name, &spec, &Target::AllCpus) else {
        return;
    };
    call(300);
    sampler.disable().expect("disable");
    let mut own = samples(&mut sampler, |sample| {
        sample.thread().expect("asked for").tid
    });
    own.retain(|tid| *tid == gettid());
    assert_eq!(own.len(), 300);
    let online = quipu_linux::topology::Topology::new()
        .online()
        .expect("CPUs");
    let cpus: Vec<_> = sampler
        .rings()
        .iter()
        .filter_map(|r| r.part().cpu)
        .collect();
    assert_eq!(cpus, online);
}

/// As many samples as page faults, from the first one of the new program on.
#[test]
fn a_command_is_sampled_from_its_start() {
    let name = "a_command_is_sampled_from_its_start";
    let shell = HeldShell::new("(exit 0); exit 0");
    let pid = shell.pid();
    let faults = user(Software::PageFaults);
    let mut spec = SamplerSpec::new([(faults, Rate::Period(1))]);
    spec.ring_bytes = 256 << 10;
    spec.attributes = Attributes::default()
        .with_inherit(true)
        .with_enable_on_exec(true)
        .with_disabled(true);
    let Some(mut sampler) = open(name, &spec, &Target::Thread(pid)) else {
        return;
    };
    assert!(shell.run().success());
    let pids = samples(&mut sampler, |sample| {
        sample.thread().expect("asked for").pid
    });
    let read = |counter: &std::sync::Arc<_>| {
        let counter: &quipu_linux::sampling::SampledCounter = counter;
        counter.read().expect("read").0.value
    };
    let counted: u64 = sampler.counters().iter().map(read).sum();
    assert_eq!(pids.len() as u64, counted);
    assert!(pids.iter().filter(|p| **p == pid).count() > 10);
    assert!(
        pids.iter().any(|p| *p != pid),
        "the subshell faults as well"
    );
}
