//! Signals for overflows of a group's members: as many as the period is contained in what was counted.

use std::sync::Arc;

use quipu_hal::{
    ErrorKind, EventSpec, Group as _, GroupSpec, OverflowSignal, Overflows, Software, Target,
};
use quipu_linux::LinuxGroup;

use crate::blocked::Blocked;
use crate::machine::{FreshPages, call, calls_of, open, read, user};

#[inline(never)]
extern "C" fn twice(x: u64) -> u64 {
    std::hint::black_box(x) * 2
}

/// Opens events, of which those with a period send signals.
fn overflowing(test: &str, events: &[(EventSpec, u64)], signal: i32) -> Option<LinuxGroup> {
    let members = events.iter().map(|(event, period)| match period {
        0 => event.clone(),
        period => event
            .clone()
            .with_overflow(OverflowSignal::new(*period, signal)),
    });
    let mut spec = GroupSpec::new(members);
    spec.attributes.disabled = true;
    open(test, &spec, &Target::CurrentThread)
}

fn all(overflows: &Arc<dyn Overflows>) -> Vec<u64> {
    std::iter::from_fn(|| overflows.take()).collect()
}

#[test]
fn calls_overflow_at_the_function_once_in_each_period() {
    let name = "calls_overflow_at_the_function_once_in_each_period";
    let blocked = Blocked::new(4);
    let events = [(user(Software::PageFaults), 0), (calls_of(twice), 3)];
    let Some(mut group) = overflowing(name, &events, blocked.signal) else {
        return;
    };
    assert!(group.overflows(0).is_none() && group.overflows(2).is_none());
    let overflows = group.overflows(1).expect("a signal was asked for");
    group.enable().expect("it is open");
    call(twice, 2);
    assert_eq!(blocked.take(), None);
    call(twice, 1);
    assert!(blocked.take().is_some());
    call(twice, 28);
    group.disable().expect("it is open");
    assert_eq!(read(&mut group)[0][1].value, 31);
    assert_eq!(all(&overflows), vec![twice as *const () as u64; 10]);
    blocked.take_all();
    // One call was left of the last period, and is forgotten with it.
    overflows.restart().expect("it is stopped");
    group.enable().expect("it is open");
    call(twice, 2);
    overflows.pause().expect("it is open");
    call(twice, 5);
    overflows.resume().expect("it is open");
    assert_eq!(blocked.take(), None);
    call(twice, 1);
    group.disable().expect("it is open");
    assert_eq!(all(&overflows).len(), 1);
    assert_eq!(read(&mut group)[0][1].value, 34);
}

#[test]
fn overflows_that_nobody_takes_leave_room_again_once_taken() {
    let name = "overflows_that_nobody_takes_leave_room_again_once_taken";
    let blocked = Blocked::new(4);
    let events = [
        (user(Software::PageFaults), 1),
        (user(Software::MinorFaults), 5),
    ];
    let Some(mut group) = overflowing(name, &events, blocked.signal) else {
        return;
    };
    let [faults, minor] = [0, 1].map(|member| group.overflows(member).expect("it was asked for"));
    assert_ne!(faults.descriptor(), minor.descriptor());
    group.enable().expect("it is open");
    // The ring is written to all around: each overflow takes 16 bytes of at least 16 KiB.
    let mut taken = (0, 0);
    for _ in 0..40 {
        FreshPages::map(100).touch();
        taken.0 += std::iter::from_fn(|| faults.take()).count() as u64;
        taken.1 += std::iter::from_fn(|| minor.take()).count() as u64;
        // The kernel stops what interrupts too often until its clock ticks.
        std::thread::sleep(std::time::Duration::from_millis(11));
    }
    group.disable().expect("it is open");
    let counts = read(&mut group);
    let [faulted, minor_faulted] = [0, 1].map(|member| counts[0][member].value);
    assert!(faulted >= 4000, "{faulted}");
    taken.0 += all(&faults).len() as u64;
    taken.1 += all(&minor).len() as u64;
    assert_eq!(taken, (faulted, minor_faulted / 5));
}

#[test]
fn overflows_are_told_to_the_calling_thread_alone() {
    let backend = crate::machine::backend("overflows_are_told_to_the_calling_thread_alone");
    let Some(backend) = backend else { return };
    let refusal = |period, target: &Target, inherit| {
        let overflow = OverflowSignal::new(period, libc::SIGRTMIN());
        let mut spec = GroupSpec::single(user(Software::PageFaults).with_overflow(overflow));
        spec.attributes.inherit = inherit;
        backend.open_group(&spec, target).err().map(|e| e.kind())
    };
    let this = Target::CurrentThread;
    assert_eq!(
        refusal(0, &this, false),
        Some(ErrorKind::InvalidConfiguration)
    );
    assert_eq!(refusal(1, &this, true), Some(ErrorKind::UnsupportedFeature));
    let init = Target::Process(1);
    assert_eq!(
        refusal(1, &init, false),
        Some(ErrorKind::UnsupportedFeature)
    );
}
