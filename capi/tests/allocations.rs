//! Reading allocates nothing.

use std::ptr::null_mut;

use quipu_capi::quipu_status::*;
use quipu_capi::*;

/// A set of the calling thread; one event of it is refused, which costs nothing either.
fn software_events() -> *mut quipu_set {
    let mut set = null_mut();
    let events = c"task-clock:u,{page-faults:u,minor-faults:u},no-such-event";
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_set_create(std::ptr::null(), &mut set), QUIPU_OK);
        assert_eq!(quipu_set_add(set, events.as_ptr()), QUIPU_OK);
        assert_eq!(quipu_set_open(set), QUIPU_OK);
        assert_eq!(quipu_set_start(set), QUIPU_OK);
    }
    set
}

#[test]
fn reading_allocates_nothing() {
    let set = software_events();
    let mut counts = [quipu_count::default(); 4];
    let (mut events, mut number) = (0, 0);
    // SAFETY: good arguments.
    let status = unsafe { quipu_set_size(set, &mut events, &mut number) };
    assert_eq!(status, QUIPU_OK);
    assert_eq!(events, counts.len());
    let mut readings = vec![quipu_reading::default(); number];
    let mut sum = readings.clone();
    let mut last = readings.clone();
    let allocated = allocation_counter::measure(|| {
        for _ in 0..100 {
            // SAFETY: the arrays are as long as the set says.
            unsafe {
                let status = quipu_set_read(set, counts.as_mut_ptr(), counts.len());
                assert_eq!(status, QUIPU_OK);
                let status = quipu_set_read_parts(set, readings.as_mut_ptr(), number);
                assert_eq!(status, QUIPU_OK);
                let (sum, last) = (sum.as_mut_ptr(), last.as_mut_ptr());
                assert_eq!(quipu_set_accumulate(set, sum, last, number), QUIPU_OK);
                let now = readings.as_ptr();
                let out = readings.as_mut_ptr();
                assert_eq!(quipu_set_difference(set, now, now, out, number), QUIPU_OK);
            }
        }
    });
    assert_eq!((allocated.count_total, allocated.bytes_total), (0, 0));
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_set_close(set) }, QUIPU_OK);
}
