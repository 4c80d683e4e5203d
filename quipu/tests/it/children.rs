//! A child process counted without counters: nothing is known before it was waited for.
use std::process::Command;
use std::sync::Arc;

use quipu::{Count, EventSet, Target};
use quipu_hal::Backend;
use quipu_posix::PosixBackend;

#[test]
fn a_child_has_no_value_and_no_gauge_before_it_has_ended() {
    let mut child = Command::new("true").spawn().unwrap();
    let posix: Arc<dyn Backend> = Arc::new(PosixBackend::new());
    let mut set = EventSet::builder()
        .events("minor-faults,peak-memory")
        .unwrap()
        .target(Target::Process(i32::try_from(child.id()).unwrap()))
        .inherit(true)
        .backends([posix])
        .open()
        .unwrap();
    set.enable().unwrap();
    let mut counts = set.counts();
    set.read(&mut counts).unwrap();
    for event in counts.events() {
        assert_eq!(
            event.total().unwrap(),
            Count::NotCounted,
            "{}",
            event.name()
        );
    }
    child.wait().unwrap();
    set.read(&mut counts).unwrap();
    for event in counts.events() {
        assert!(
            event.total().unwrap().exact().is_some_and(|v| v > 0),
            "{}",
            event.name()
        );
        assert_eq!(event.event().backend(), Some("posix"));
    }
}
