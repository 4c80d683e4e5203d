//! Registers in a forked process, which has a copy of what was opened, and none of the threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quipu_hal::{ErrorKind, Event, EventSpec, Filter, Group, GroupSpec, Result, Target};
use quipu_msr::sim::{EventNames, Generation, SimulatedMsrs};
use quipu_msr::{MsrBus, MsrPmu, Options};
use quipu_pmu::{MonotonicClock, VirtualPmu};

use crate::rewritten::Rewritten;

/// The status of a child that has got to its end: one that panics ends its only thread, and by that exits with 0.
const DONE: i32 = 42;

static WRITES: AtomicU32 = AtomicU32::new(0);

fn is_refused<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::WrongThread)
}

/// A forked worker that exits: it closes what it inherited, which must neither wait for threads that are
/// not there nor write registers that its parent counts with.
#[test]
fn a_forked_process_leaves_the_registers_alone() {
    let bus = SimulatedMsrs::new(Generation::ALL[5], 1);
    let model = bus.model();
    let pmu = MsrPmu::new(
        Rewritten {
            bus,
            write: |bus: &SimulatedMsrs, cpu, address, value| {
                WRITES.fetch_add(1, Ordering::Relaxed);
                bus.write(cpu, address, value)
            },
        },
        &model,
        Options::default(),
    )
    .unwrap();
    let map = EventNames::new(model).any("INSTRUCTIONS", 0xc0);
    let backend = VirtualPmu::new(pmu, MonotonicClock::new(), Arc::new(map)).unwrap();
    let event = EventSpec::new(Event::Named("INSTRUCTIONS".into()));
    let spec = GroupSpec::new([event.with_filter(Filter::USER_ONLY)]);
    let mut group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    group.enable().unwrap();
    let mut out = group.read_buf();
    // SAFETY: the child makes calls of this library and ends at once, without anything of the parent's being run; if it
    // waits, the alarm ends it.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::alarm(20) };
        let before = WRITES.load(Ordering::Relaxed);
        let refused = [
            is_refused(group.read(&mut out)),
            is_refused(group.disable()),
            is_refused(group.enable()),
            is_refused(group.reset()),
            is_refused(backend.open_group(&spec, &Target::Cpu(0))),
            is_refused(backend.tick()),
        ];
        drop((group, backend));
        let unwritten = WRITES.load(Ordering::Relaxed) == before;
        let wrong = refused
            .into_iter()
            .chain([unwritten])
            .position(|right| !right);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(wrong.map_or(DONE, |at| at as i32 + 1)) };
    }
    assert!(child > 0, "no process was made");
    let mut status = -1;
    // SAFETY: the status is written to a live local.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, libc::WEXITSTATUS(status)), (child, DONE));
    group.read(&mut out).expect("the parent goes on");
    let before = WRITES.load(Ordering::Relaxed);
    drop((group, backend));
    assert!(
        WRITES.load(Ordering::Relaxed) > before,
        "what was found is put back"
    );
}
