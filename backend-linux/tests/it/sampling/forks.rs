//! Samplers in a forked process, which does not have their rings (`VM_DONTCOPY`).

use std::ptr::null_mut;

use quipu_hal::{ErrorKind, EventSpec, Filter, Software, Target};
use quipu_linux::sampling::{Rate, Sampler, SamplerSpec};

use super::open;

const FILL: u8 = 0x5a;

/// The status of a child that has got to its end: one that panics ends its only thread, and by that exits with 0.
const DONE: i32 = 42;

/// Returns memory of its own, of the size of the sampler's ring: the kernel puts it where the ring is in the
/// parent, as that is the lowest place that is free.
fn in_place_of(ring: usize) -> &'static mut [u8] {
    let (access, how) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping that nothing else refers to, and that stays.
    unsafe {
        let mapped = libc::mmap(null_mut(), ring, access, how, -1, 0);
        assert_ne!(mapped, libc::MAP_FAILED);
        std::slice::from_raw_parts_mut(mapped.cast(), ring)
    }
}

fn is_refused(sampler: &mut Sampler) -> bool {
    sampler.rings_mut().iter_mut().all(|ring| {
        let mut batch = ring.records();
        let first = batch.iter().next().map(Result::err);
        let refused = matches!(first, Some(Some(error)) if error.kind() == ErrorKind::WrongThread);
        refused && batch.iter().next().is_none() && batch.bytes() == [&[] as &[u8]; 2]
    })
}

#[test]
fn a_forked_process_has_no_ring_and_loses_no_memory_of_its_own() {
    let test = "a_forked_process_has_no_ring_and_loses_no_memory_of_its_own";
    let faults = EventSpec::new(Software::PageFaults).with_filter(Filter::USER_ONLY);
    let spec = SamplerSpec::new([(faults, Rate::Period(1))]);
    let Some(mut sampler) = open(test, &spec, &Target::CurrentThread) else {
        return;
    };
    let size = sampler.rings()[0].capacity() + crate::machine::page_size();
    // SAFETY: the child maps memory, asks for records, drops, and ends at once, without anything of the
    // parent's being run.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = is_refused(&mut sampler);
        let own = in_place_of(size);
        own.fill(FILL);
        let refused_still = is_refused(&mut sampler);
        drop(sampler);
        let kept = own.iter().all(|byte| *byte == FILL);
        let outcome = [refused, refused_still, kept];
        let status = outcome
            .iter()
            .position(|right| !right)
            .map_or(DONE, |at| at as i32 + 1);
        // SAFETY: it ends the child.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: the status is written to a live local.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, libc::WEXITSTATUS(status)), (child, DONE));
    let before = super::samples(&mut sampler, |_| ()).len();
    std::hint::black_box(vec![1_u8; 1 << 20]);
    let after = super::samples(&mut sampler, |_| ()).len();
    assert!(after >= 256, "the parent goes on: {before}, {after}");
}
