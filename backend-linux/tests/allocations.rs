//! Reading allocates nothing.

#![cfg(target_os = "linux")]

mod machine;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use machine::{open, skip, user};
use quipu_hal::{Group, GroupSpec, Software, Target};

thread_local! {
    /// How often this thread has allocated.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes on to the system's allocator unchanged; counting touches a thread-local
// without a destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_allocator_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(ALLOCATIONS.get(), before + 1);
}

#[test]
fn reading_allocates_nothing() {
    let name = "reading_allocates_nothing";
    let five = [
        Software::TaskClock,
        Software::PageFaults,
        Software::MinorFaults,
        Software::MajorFaults,
        Software::CpuClock,
    ];
    let process = i32::try_from(std::process::id()).expect("a pid");
    let cases = [
        (
            GroupSpec::single(user(Software::TaskClock)),
            Target::CurrentThread,
        ),
        (GroupSpec::new(five.map(user)), Target::CurrentThread),
        (GroupSpec::new(five.map(user)), Target::Process(process)),
        (GroupSpec::new(five), Target::AllCpus),
    ];
    for (spec, target) in cases {
        let Some(mut group) = open(name, &spec, &target) else {
            skip(name, target);
            continue;
        };
        let mut buf = group.read_buf();
        let before = ALLOCATIONS.get();
        for _ in 0..1000 {
            group.read(&mut buf).expect("read");
        }
        assert_eq!(ALLOCATIONS.get(), before, "{target}");
    }
}
