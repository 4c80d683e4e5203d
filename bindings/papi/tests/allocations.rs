//! Starting, reading and stopping allocate nothing. Its own process because the allocator that counts is the process's.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};
use std::io::Write as _;

// The functions below are its symbols.
use papi as _;

type Handler = extern "C" fn(c_int, *mut c_void, c_longlong, *mut c_void);

unsafe extern "C" {
    safe fn PAPI_library_init(version: c_int) -> c_int;
    fn PAPI_create_eventset(set: *mut c_int) -> c_int;
    fn PAPI_add_named_event(set: c_int, name: *const c_char) -> c_int;
    fn PAPI_event_name_to_code(name: *const c_char, code: *mut c_int) -> c_int;
    safe fn PAPI_set_multiplex(set: c_int) -> c_int;
    safe fn PAPI_overflow(set: c_int, code: c_int, by: c_int, flags: c_int, to: Handler) -> c_int;
    safe fn PAPI_start(set: c_int) -> c_int;
    fn PAPI_stop(set: c_int, values: *mut c_longlong) -> c_int;
    fn PAPI_read(set: c_int, values: *mut c_longlong) -> c_int;
    fn PAPI_read_ts(set: c_int, values: *mut c_longlong, cycles: *mut c_longlong) -> c_int;
    fn PAPI_accum(set: c_int, values: *mut c_longlong) -> c_int;
    safe fn PAPI_reset(set: c_int) -> c_int;
}

const VERSION: c_int = 7 << 24;
const FIVE: [&CStr; 5] = [
    c"perf::PAGE-FAULTS",
    c"perf::TASK-CLOCK",
    c"perf::CONTEXT-SWITCHES",
    c"perf::CPU-MIGRATIONS",
    c"perf::MINOR-FAULTS",
];

fn set(events: &[&CStr]) -> c_int {
    let mut set = -1;
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(PAPI_create_eventset(&mut set), 0);
        for event in events {
            assert_eq!(PAPI_add_named_event(set, event.as_ptr()), 0, "{event:?}");
        }
    }
    set
}

/// Returns a set of a preset that is made of several events on most CPUs, if one can be counted here.
fn derived() -> Option<c_int> {
    let mut set = -1;
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(PAPI_create_eventset(&mut set), 0);
        let presets = [c"PAPI_L1_TCM", c"PAPI_BR_PRC", c"PAPI_L1_DCH"];
        let added = presets.map(|preset| PAPI_add_named_event(set, preset.as_ptr()));
        added.contains(&0).then_some(set)
    }
}

fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP derived presets: {reason}");
}

/// Returns the number of allocations in a hundred calls, each of which has to succeed.
fn times(mut call: impl FnMut() -> c_int) -> u64 {
    let allocated = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert_eq!(call(), 0);
        }
    });
    allocated.count_total
}

/// Returns how much each step allocates on a set that is stopped before and after.
fn allocated(set: c_int) -> [(&'static str, u64); 6] {
    let mut values = [0; FIVE.len()];
    let mut cycles = 0;
    let into = values.as_mut_ptr();
    // SAFETY: no set has more events than there are values.
    unsafe {
        let start_stop = times(|| match PAPI_start(set) {
            0 => PAPI_stop(set, into),
            code => code,
        });
        assert_eq!(PAPI_start(set), 0);
        let read = times(|| PAPI_read(set, into));
        let read_ts = times(|| PAPI_read_ts(set, into, &mut cycles));
        let accum = times(|| PAPI_accum(set, into));
        let reset = times(|| PAPI_reset(set));
        assert_eq!(PAPI_stop(set, into), 0);
        let stopped = times(|| PAPI_read(set, into));
        [
            ("start and stop", start_stop),
            ("read", read),
            ("read_ts", read_ts),
            ("accum", accum),
            ("reset", reset),
            ("read when stopped", stopped),
        ]
    }
}

const NOTHING: [(&str, u64); 6] = [
    ("start and stop", 0),
    ("read", 0),
    ("read_ts", 0),
    ("accum", 0),
    ("reset", 0),
    ("read when stopped", 0),
];

/// In turns, because a thread runs one set of a component at a time.
#[test]
fn starting_reading_and_stopping_allocate_nothing() {
    assert_eq!(PAPI_library_init(VERSION), VERSION);
    assert_eq!(allocated(set(&FIVE[..1])), NOTHING, "one event");
    assert_eq!(allocated(set(&FIVE)), NOTHING, "five events");

    let multiplexed = set(&FIVE);
    assert_eq!(PAPI_set_multiplex(multiplexed), 0);
    assert_eq!(allocated(multiplexed), NOTHING, "multiplexed");

    match derived() {
        Some(derived) => assert_eq!(allocated(derived), NOTHING, "a derived preset"),
        None => skip("no preset of several events can be counted here"),
    }

    extern "C" fn ignore(_: c_int, _: *mut c_void, _: c_longlong, _: *mut c_void) {}
    let overflowing = set(&FIVE);
    let mut code = 0;
    // SAFETY: good arguments.
    let named = unsafe { PAPI_event_name_to_code(FIVE[1].as_ptr(), &mut code) };
    assert_eq!(named, 0);
    assert_eq!(PAPI_overflow(overflowing, code, 1_000_000, 0, ignore), 0);
    assert_eq!(allocated(overflowing), NOTHING, "with overflow");
}
