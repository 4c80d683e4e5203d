//! Reading allocates nothing. Its own process because the allocator that counts is the process's.

#[macro_use]
mod structs;

use std::ffi::CStr;
use std::ptr::null_mut;

use quipu_capi::quipu_status::*;
use quipu_capi::*;

/// An open set that counts, with arrays for what it reads.
struct Reader {
    set: *mut quipu_set,
    counts: Vec<quipu_count>,
    readings: Vec<quipu_reading>,
    sum: Vec<quipu_reading>,
    last: Vec<quipu_reading>,
}

impl Reader {
    fn open(config: &quipu_config, events: &CStr) -> Self {
        Self::with_presets(config, &[], events)
    }

    fn with_presets(config: &quipu_config, presets: &[(&CStr, &CStr)], events: &CStr) -> Self {
        let mut set = null_mut();
        let (mut number, mut parts) = (0, 0);
        // SAFETY: good arguments.
        unsafe {
            assert_eq!(quipu_set_create(config, &mut set), QUIPU_OK);
            for (name, formula) in presets {
                let defined = quipu_set_define(set, name.as_ptr(), formula.as_ptr());
                assert_eq!(defined, QUIPU_OK, "{formula:?}");
            }
            assert_eq!(quipu_set_add(set, events.as_ptr()), QUIPU_OK);
            assert_eq!(quipu_set_open(set), QUIPU_OK);
            assert_eq!(quipu_set_start(set), QUIPU_OK);
            assert_eq!(quipu_set_size(set, &mut number, &mut parts), QUIPU_OK);
        }
        let readings = vec![quipu_reading::default(); parts];
        Self {
            set,
            counts: vec![quipu_count::default(); number],
            sum: readings.clone(),
            last: readings.clone(),
            readings,
        }
    }

    /// Every way to read, each with how much it allocates.
    fn allocated(&mut self) -> [(&'static str, u64); 4] {
        let Self {
            set,
            counts,
            readings,
            sum,
            last,
        } = self;
        let set = *set;
        let (counts, number) = (counts.as_mut_ptr(), counts.len());
        let (readings, parts) = (readings.as_mut_ptr(), readings.len());
        let (sum, last) = (sum.as_mut_ptr(), last.as_mut_ptr());
        // SAFETY: the arrays are as long as the set says.
        unsafe {
            [
                ("read", times(|| quipu_set_read(set, counts, number))),
                (
                    "parts",
                    times(|| quipu_set_read_parts(set, readings, parts)),
                ),
                (
                    "accumulate",
                    times(|| quipu_set_accumulate(set, sum, last, parts)),
                ),
                (
                    "difference",
                    times(|| quipu_set_difference(set, readings, readings, readings, parts)),
                ),
            ]
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_set_close(self.set) }, QUIPU_OK);
    }
}

/// Returns the number of allocations in a hundred calls.
fn times(mut call: impl FnMut() -> quipu_status) -> u64 {
    let allocated = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert_eq!(call(), QUIPU_OK);
        }
    });
    allocated.count_total
}

const NOTHING: [(&str, u64); 4] = [
    ("read", 0),
    ("parts", 0),
    ("accumulate", 0),
    ("difference", 0),
];

/// One event is refused, which costs nothing either.
#[test]
fn reading_one_thread_allocates_nothing() {
    let events = c"task-clock:u,{page-faults:u,minor-faults:u},no-such-event";
    let mut reader = Reader::open(&init!(quipu_config), events);
    assert_eq!(reader.allocated(), NOTHING);
}

/// A preset of whole numbers and one with a fraction, on one thread.
#[test]
fn reading_a_formula_allocates_nothing() {
    let config = init!(quipu_config);
    let presets = [
        (c"WHOLE", c"page-faults + 2 * (page-faults - minor-faults)"),
        (c"PART", c"minor-faults / 2 + page-faults"),
    ];
    let mut reader = Reader::with_presets(&config, &presets, c"WHOLE,PART");
    assert_eq!(reader.readings.len(), 4);
    std::hint::black_box(vec![1u8; 1 << 22]);
    assert_eq!(reader.allocated(), NOTHING);
    let values: Vec<_> = reader.counts.iter().map(|count| count.value).collect();
    assert!(values[0] > 0 && values[1] > 0, "{values:?}");
}

/// Two CPUs, whose readings are added, and a gauge, whose are not.
#[test]
fn reading_several_parts_allocates_nothing() {
    let mut sim = null_mut();
    // SAFETY: null is the ready-made one.
    let made = unsafe { quipu_sim_create(std::ptr::null(), &mut sim) };
    assert_eq!(made, QUIPU_OK);
    let mut config = init!(quipu_config);
    config.target = quipu_target::QUIPU_ALL_CPUS as u32;
    config.sim = sim;
    let presets = [(c"MISSED", c"BRANCHES - BRANCH_MISSES")];
    let events = c"{cycles,branches:u},TEMPERATURE,instructions,MISSED";
    let mut reader = Reader::with_presets(&config, &presets, events);
    assert_eq!(reader.readings.len(), 12);
    assert_eq!(reader.allocated(), NOTHING);
    drop(reader);
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_sim_close(sim) }, QUIPU_OK);
}
