//! A backend that counts CPUs only, asked for a task.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use quipu::{Count, ErrorKind, EventSet, EventSetBuilder, Hardware, Target};
use quipu_hal::{Backend, TargetKinds};
use quipu_pmu::{ManualClock, SimPmu, VirtualPmu};
use quipu_posix::PosixBackend;

/// Cycles of a task, on a simulated PMU of two CPUs: one has 3000 a microsecond, the other 1504.
fn cycles(clock: &ManualClock) -> EventSetBuilder {
    let pmu = SimPmu::new(clock.clone());
    let map = Arc::new(pmu.event_map());
    let backend: Arc<dyn Backend> =
        Arc::new(VirtualPmu::new(pmu, clock.clone(), map).expect("a PMU"));
    assert!(
        backend
            .capabilities()
            .targets
            .contains(TargetKinds::ALL_CPUS)
    );
    let mut builder = EventSet::builder();
    builder
        .events(Hardware::Cycles)
        .expect("an event")
        .target(Target::CurrentThread)
        .inherit(true)
        .enable_on_exec(true)
        .backends([backend]);
    builder
}

#[test]
fn without_the_fallback_a_task_is_refused() {
    let set = cycles(&ManualClock::new()).open().expect("a set");
    let refused = set.events()[0].error().expect("no registers follow tasks");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    assert_eq!(set.events()[0].fell_back_to_cpus(), None);
}

/// Attributes that say which tasks are counted do not hold for CPUs.
#[test]
fn cpus_are_counted_whichever_tasks_were_asked_for() {
    for fallback in [false, true] {
        let mut builder = cycles(&ManualClock::new());
        builder.inherit_thread(true).remove_on_exec(true);
        let set = builder.cpu_fallback(fallback).open().expect("a set");
        assert_eq!(set.events()[0].error().is_none(), fallback);
    }
}

#[test]
fn with_it_the_cpus_are_counted_between_their_start_and_their_stop() {
    let clock = ManualClock::new();
    let mut set = cycles(&clock).cpu_fallback(true).open().expect("a set");
    assert_eq!(set.events()[0].fell_back_to_cpus(), Some(&Target::AllCpus));
    clock.advance(Duration::from_millis(1));
    set.enable_on_cpus().expect("it starts");
    clock.advance(Duration::from_millis(2));
    set.disable_on_cpus().expect("it stops");
    clock.advance(Duration::from_millis(4));
    let mut counts = set.counts();
    set.read(&mut counts).expect("its own buffer");
    assert_eq!(
        counts.get(0).unwrap().total(),
        Ok(Count::Exact(2_000 * (3_000 + 1_504)))
    );
}

/// A target that the backend does count is left as it is.
#[test]
fn cpus_need_no_fallback() {
    let clock = ManualClock::new();
    let set = cycles(&clock)
        .cpu_fallback(true)
        .inherit(false)
        .enable_on_exec(false)
        .target(Target::CurrentCpu)
        .open()
        .expect("a set");
    assert!(set.events()[0].error().is_none());
    assert_eq!(set.events()[0].fell_back_to_cpus(), None);
}

/// CPUs, and beside them what only a backend of tasks knows, of a child.
#[test]
fn a_child_is_counted_where_a_backend_does_not_reach_cpus() {
    let mut child = Command::new("true").spawn().expect("a child");
    let pid = i32::try_from(child.id()).expect("a process id");
    let clock = ManualClock::new();
    let open = |child: Option<i32>| {
        let pmu = SimPmu::new(clock.clone());
        let map = Arc::new(pmu.event_map());
        let of_cpus = VirtualPmu::new(pmu, clock.clone(), map).expect("a PMU");
        let mut builder = EventSet::builder();
        let builder = builder.events("cycles,minor-faults").expect("events");
        if let Some(child) = child {
            builder.child_of_cpus(child);
        }
        let backends: [Arc<dyn Backend>; 2] = [Arc::new(of_cpus), Arc::new(PosixBackend::new())];
        builder
            .target(Target::AllCpus)
            .backends(backends)
            .open()
            .expect("a set")
    };
    let alone = open(None);
    let refused = alone.events()[1].error().expect("no CPU of it");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    drop(alone);
    let mut set = open(Some(pid));
    set.enable().expect("it starts");
    clock.advance(Duration::from_millis(1));
    child.wait().expect("its end");
    let mut counts = set.counts();
    set.read(&mut counts).expect("its own buffer");
    let total = |event: usize| counts.get(event).expect("an event").total().expect("read");
    assert_eq!(total(0), Count::Exact(1_000 * (3_000 + 1_504)));
    assert!(total(1).exact().is_some_and(|faults| faults > 0));
    let backends = set.events().iter().map(quipu::SetEvent::backend);
    assert_eq!(backends.collect::<Vec<_>>(), [Some("sim"), Some("posix")]);
}
