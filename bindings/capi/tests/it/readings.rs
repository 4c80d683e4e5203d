//! Totals, differences and sums of readings, on a simulated PMU where they are known beforehand.

use std::ffi::{CStr, CString, c_int};
use std::ptr::null_mut;

use quipu_capi::quipu_status::*;
use quipu_capi::*;

struct Simulated {
    sim: *mut quipu_sim,
    set: *mut quipu_set,
    events: usize,
    readings: usize,
}

impl Simulated {
    /// A set on the ready-made PMU with so many counters, which counts. `MISPREDICTED` is defined in it.
    fn new(counters: u32, target: quipu_target, events: &str) -> Self {
        let mut machine = init!(quipu_sim_config);
        machine.counters = counters;
        let mut config = init!(quipu_config);
        config.target = target as u32;
        let text = CString::new(events).unwrap();
        let (mut sim, mut set) = (null_mut(), null_mut());
        let (mut events, mut readings) = (0, 0);
        // SAFETY: good arguments.
        unsafe {
            assert_eq!(quipu_sim_create(&machine, &mut sim), QUIPU_OK);
            config.sim = sim;
            assert_eq!(quipu_set_create(&config, &mut set), QUIPU_OK);
            let (name, formula) = (c"MISPREDICTED", c"branch-misses / branches");
            let status = quipu_set_define(set, name.as_ptr(), formula.as_ptr());
            assert_eq!(status, QUIPU_OK);
            assert_eq!(quipu_set_add(set, text.as_ptr()), QUIPU_OK);
            assert_eq!(quipu_set_open(set), QUIPU_OK);
            assert_eq!(quipu_set_start(set), QUIPU_OK);
            assert_eq!(quipu_set_size(set, &mut events, &mut readings), QUIPU_OK);
        }
        Self {
            sim,
            set,
            events,
            readings,
        }
    }

    fn advance(&self, milliseconds: u64) {
        // SAFETY: a handle.
        let status = unsafe { quipu_sim_advance(self.sim, milliseconds * 1_000_000) };
        assert_eq!(status, QUIPU_OK);
    }

    fn tick(&self) {
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_sim_tick(self.sim) }, QUIPU_OK);
    }

    fn read(&self) -> Vec<quipu_count> {
        let mut counts = vec![quipu_count::default(); self.events];
        // SAFETY: the array is as long as the set says.
        let status = unsafe { quipu_set_read(self.set, counts.as_mut_ptr(), counts.len()) };
        assert_eq!(status, QUIPU_OK);
        counts
    }

    fn read_parts(&self) -> Vec<quipu_reading> {
        let mut readings = vec![quipu_reading::default(); self.readings];
        let (out, number) = (readings.as_mut_ptr(), readings.len());
        // SAFETY: the array is as long as the set says.
        let status = unsafe { quipu_set_read_parts(self.set, out, number) };
        assert_eq!(status, QUIPU_OK);
        readings
    }

    fn total(&self, readings: &[quipu_reading]) -> Vec<quipu_count> {
        let mut counts = vec![quipu_count::default(); self.events];
        let (from, number) = (readings.as_ptr(), readings.len());
        // SAFETY: the arrays are as long as the set says.
        let status =
            unsafe { quipu_set_total(self.set, from, number, counts.as_mut_ptr(), self.events) };
        assert_eq!(status, QUIPU_OK);
        counts
    }

    fn difference(&self, now: &[quipu_reading], earlier: &[quipu_reading]) -> Vec<quipu_reading> {
        let mut out = now.to_vec();
        let number = out.len();
        // SAFETY: the arrays are as long as the set says.
        let status = unsafe {
            quipu_set_difference(
                self.set,
                now.as_ptr(),
                earlier.as_ptr(),
                out.as_mut_ptr(),
                number,
            )
        };
        assert_eq!(status, QUIPU_OK);
        out
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // SAFETY: handles.
        unsafe {
            assert_eq!(quipu_set_close(self.set), QUIPU_OK);
            assert_eq!(quipu_sim_close(self.sim), QUIPU_OK);
        }
    }
}

fn states(counts: &[quipu_count]) -> Vec<u32> {
    counts.iter().map(|count| count.state).collect()
}

/// Returns the message of the thread's last error.
fn said() -> String {
    let mut error = init!(quipu_error);
    // SAFETY: a struct with its size set, and a text that stays until the next failure.
    unsafe {
        assert_eq!(quipu_last_error(&mut error), QUIPU_OK);
        CStr::from_ptr(error.message).to_str().unwrap().to_owned()
    }
}

#[test]
fn plain_values_are_counts_and_never_estimates() {
    let values = |simulated: &Simulated| {
        let mut values = [7; 2];
        // SAFETY: the array is as long as the set says.
        let status = unsafe { quipu_set_values(simulated.set, values.as_mut_ptr(), 2) };
        (status, values)
    };
    let enough = Simulated::new(2, quipu_target::QUIPU_CPU, "cycles,instructions");
    enough.advance(1);
    let counts = enough.read();
    assert_eq!(
        values(&enough),
        (QUIPU_OK, [counts[0].value, counts[1].value])
    );

    // One counter for two events: the second waits, and then both are estimates.
    let short = Simulated::new(1, quipu_target::QUIPU_CPU, "cycles,instructions");
    short.advance(1);
    assert_eq!(values(&short), (QUIPU_EBUSY, [7; 2]));
    assert_eq!(
        said(),
        "cannot return the plain value of instructions: it never had a counter"
    );
    short.tick();
    short.advance(1);
    assert_eq!(values(&short), (QUIPU_EBUSY, [7; 2]));
    let says = said();
    assert!(
        says.contains("of cycles: it had a counter for a part of the time"),
        "{says}"
    );

    let missing = Simulated::new(2, quipu_target::QUIPU_CPU, "cycles,NO_SUCH");
    assert_eq!(values(&missing), (QUIPU_EEVENT, [7; 2]));
    let mut one = 0;
    // SAFETY: good arguments but for the length.
    let status = unsafe { quipu_set_values(missing.set, &mut one, 1) };
    assert_eq!(status, QUIPU_EINVAL);
}

#[test]
fn a_set_is_opened_whole_or_not_at_all() {
    let (mut sim, mut set) = (null_mut(), null_mut());
    let mut config = init!(quipu_config);
    config.target = quipu_target::QUIPU_CPU as u32;
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_sim_create(std::ptr::null(), &mut sim), QUIPU_OK);
        config.sim = sim;
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_OK);
        assert_eq!(quipu_set_add(set, c"cycles,NO_SUCH".as_ptr()), QUIPU_OK);
        assert_eq!(quipu_set_open_all(set), QUIPU_EEVENT);
        assert!(said().starts_with("cannot count NO_SUCH"), "{}", said());
        // It is as it was, and opens in the other way.
        assert_eq!(quipu_set_start(set), QUIPU_EINVAL);
        assert_eq!(quipu_set_open(set), QUIPU_OK);
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_OK);
        assert_eq!(quipu_set_add(set, c"cycles".as_ptr()), QUIPU_OK);
        assert_eq!(quipu_set_open_all(set), QUIPU_OK);
        assert_eq!(quipu_set_start(set), QUIPU_OK);
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
}

#[test]
fn a_value_says_what_it_is() {
    let one_counter = Simulated::new(1, quipu_target::QUIPU_CPU, "cycles,instructions");
    one_counter.advance(1);
    let counts = one_counter.read();
    assert_eq!(states(&counts), [1, 4], "exact, not counted");
    assert_eq!((counts[0].value, counts[1].value), (3_000_000, 0));
    one_counter.tick();
    one_counter.advance(3);
    let counts = one_counter.read();
    assert_eq!(states(&counts), [2, 2], "estimated");
    assert_eq!(
        (counts[0].value, counts[1].value),
        (12_000_000, 4 * 5_200_000)
    );
    assert_eq!(
        counts[0].flags,
        quipu_count_flag::QUIPU_COUNT_ESTIMATE as u32
    );
    assert_eq!(
        (counts[0].time_enabled, counts[0].time_running),
        (4_000_000, 1_000_000)
    );
    // What was read by parts adds up to the same.
    let total = one_counter.total(&one_counter.read_parts());
    assert_eq!(states(&total), [2, 2]);
    assert_eq!(total[1].value, counts[1].value);
}

#[test]
fn totals_are_over_all_parts() {
    let both = Simulated::new(4, quipu_target::QUIPU_ALL_CPUS, "branches,TEMPERATURE");
    both.advance(2);
    let parts = both.read_parts();
    let on = |cpu: usize| parts[cpu].value;
    assert_eq!((on(0), on(1)), (2000 * 1030, 2000 * (451 + 68)));
    let counts = both.read();
    assert_eq!(counts[0].value, on(0) + on(1));
    assert_eq!(counts[0].time_running, 4_000_000);
    assert_eq!(
        counts[1].status, QUIPU_EFEATURE as c_int,
        "levels do not add up"
    );
    assert_eq!((parts[2].value, parts[3].value), (45, 45));
}

#[test]
fn a_part_that_never_ran_is_missing() {
    let both = Simulated::new(4, quipu_target::QUIPU_ALL_CPUS, "branches");
    both.advance(2);
    let mut parts = both.read_parts();
    parts[1].time_running = 0;
    let total = both.total(&parts)[0];
    assert_eq!(
        (total.state, total.missing),
        (quipu_state::QUIPU_PARTIAL as u32, 1)
    );
    assert_eq!(total.value, 2000 * 1030);
    parts[1].time_running = parts[1].time_enabled;
    parts[1].flags = quipu_reading_flag::QUIPU_READING_AT_LEAST as u32;
    let total = both.total(&parts)[0];
    assert_eq!(total.state, quipu_state::QUIPU_AT_LEAST as u32);
    parts[0].status = QUIPU_EOS as c_int;
    let total = both.total(&parts)[0];
    assert_eq!((total.state, total.status), (0, QUIPU_EOS as c_int));
}

#[test]
fn a_difference_scales_by_its_own_times() {
    let one_counter = Simulated::new(1, quipu_target::QUIPU_CPU, "cycles,instructions");
    one_counter.advance(1);
    one_counter.tick();
    one_counter.advance(1);
    let earlier = one_counter.read_parts();
    one_counter.advance(2);
    let now = one_counter.read_parts();
    let interval = one_counter.total(&one_counter.difference(&now, &earlier));
    assert_eq!(states(&interval), [4, 1], "cycles had no counter meanwhile");
    assert_eq!(interval[1].value, 2 * 5_200_000);
    // The other way round the counter would run backwards.
    let backwards = one_counter.difference(&earlier, &now);
    assert_eq!(backwards[1].status, QUIPU_EINVAL as c_int);
}

#[test]
fn accumulating_loses_nothing() {
    let set = Simulated::new(4, quipu_target::QUIPU_CPU, "cycles,TEMPERATURE");
    let mut sum = vec![quipu_reading::default(); 2];
    let mut last = sum.clone();
    let accumulate = |sum: &mut [quipu_reading], last: &mut [quipu_reading]| {
        // SAFETY: the arrays are as long as the set says.
        let status =
            unsafe { quipu_set_accumulate(set.set, sum.as_mut_ptr(), last.as_mut_ptr(), 2) };
        assert_eq!(status, QUIPU_OK);
    };
    for _ in 0..3 {
        set.advance(2);
        accumulate(&mut sum, &mut last);
    }
    assert_eq!(
        (sum[0].value, sum[0].time_enabled),
        (6 * 3_000_000, 6_000_000)
    );
    assert_eq!(sum[1].value, 45, "a level is what it is now");
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_set_reset(set.set) }, QUIPU_OK);
    accumulate(&mut sum, &mut last);
    assert_eq!(
        sum[0].status, QUIPU_EINVAL as c_int,
        "reset behind its back"
    );
}

#[test]
fn a_set_is_calibrated_event_by_event() {
    let set = Simulated::new(
        1,
        quipu_target::QUIPU_CPU,
        "cycles,instructions,TEMPERATURE",
    );
    set.advance(1);
    let filled = quipu_spread {
        lowest: 7,
        median: 8,
        highest: 9,
    };
    let mut overheads = [quipu_overhead {
        start_to_stop: filled,
        read_to_read: filled,
        status: 10,
        reserved: 11,
    }; 3];
    let out = overheads.as_mut_ptr();
    // SAFETY: the array is as long as the set says, or said to be.
    unsafe {
        assert_eq!(quipu_set_calibrate(set.set, out, 2), QUIPU_EINVAL);
        assert_eq!(overheads[0].status, 10, "nothing is written");
        assert_eq!(quipu_set_calibrate(set.set, out, 3), QUIPU_OK);
    }
    // No time passes on this machine, so that nothing is counted; a level is no count.
    let statuses = overheads.map(|overhead| overhead.status);
    assert_eq!(statuses[0], QUIPU_OK as c_int);
    assert_eq!(statuses[2], QUIPU_EFEATURE as c_int);
    let none = [0; 3];
    for overhead in overheads {
        for spread in [overhead.start_to_stop, overhead.read_to_read] {
            assert_eq!([spread.lowest, spread.median, spread.highest], none);
        }
        assert_eq!(overhead.reserved, 0);
    }
    // It is stopped, and begins at zero.
    set.advance(1);
    assert_eq!(set.read()[0].value, 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_clock_has_an_overhead() {
    let mut set = null_mut();
    let mut overhead = quipu_overhead::default();
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_set_create(std::ptr::null(), &mut set), QUIPU_OK);
        assert_eq!(quipu_set_add(set, c"task-clock".as_ptr()), QUIPU_OK);
        assert_eq!(quipu_set_open(set), QUIPU_OK);
        assert_eq!(quipu_set_calibrate(set, &mut overhead, 1), QUIPU_OK);
        assert_eq!(quipu_set_close(set), QUIPU_OK);
    }
    assert_eq!(overhead.status, QUIPU_OK as c_int);
    for spread in [overhead.start_to_stop, overhead.read_to_read] {
        assert!(0 < spread.lowest, "{spread:?}");
        assert!(spread.lowest <= spread.median && spread.median <= spread.highest);
    }
}

#[test]
fn one_reading_scales_and_does_not_overflow() {
    let scaled = |value, time_enabled, time_running| {
        let reading = quipu_reading {
            value,
            time_enabled,
            time_running,
            ..quipu_reading::default()
        };
        let mut count = quipu_count::default();
        // SAFETY: good arguments.
        assert_eq!(unsafe { quipu_scale(&reading, &mut count) }, QUIPU_OK);
        (count.value, count.state, count.flags)
    };
    assert_eq!(scaled(1000, 10, 10), (1000, 1, 0));
    assert_eq!(scaled(1000, 10, 4), (2500, 2, 1));
    assert_eq!(scaled(1000, 10, 0), (0, 4, 0));
    assert_eq!(scaled(u64::MAX, 10, 4), (u64::MAX, 2, 1 | 2));
}

#[test]
fn a_preset_has_readings_of_its_terms_and_one_total() {
    let both = Simulated::new(4, quipu_target::QUIPU_ALL_CPUS, "cycles,MISPREDICTED");
    both.advance(1);
    let parts = both.read_parts();
    let values: Vec<u64> = parts.iter().map(|part| part.value).collect();
    assert_eq!(values[2..], [23_000, 15_000, 1_030_000, 519_000]);

    let mut info = init!(quipu_event_info);
    let mut part = init!(quipu_part_info);
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_set_event_info(both.set, 1, &mut info), QUIPU_OK);
        assert_eq!(
            (info.first_reading, info.readings, info.scale),
            (2, 4, 1e-6)
        );
        assert_eq!(info.flags, quipu_event_flag::QUIPU_EVENT_PRESET as u32);
        assert_eq!(quipu_set_part_info(both.set, 1, 3, &mut part), QUIPU_OK);
        assert_eq!(CStr::from_ptr(part.term), c"branches");
        assert_eq!((part.cpu, part.thread), (1, -1));
        assert_eq!(quipu_set_part_info(both.set, 1, 4, &mut part), QUIPU_EINVAL);
    }
    // In millionths, rounded to nearest: 38000 / 1549000.
    for count in [both.read()[1], both.total(&parts)[1]] {
        assert_eq!(
            (count.value, count.state),
            (24_532, quipu_state::QUIPU_EXACT as u32)
        );
        assert_eq!(count.time_running, 4_000_000);
    }
    let interval = both.difference(&parts, &parts);
    let nothing = both.total(&interval)[1];
    assert_eq!(
        nothing.state,
        quipu_state::QUIPU_NOT_COUNTED as u32,
        "0 / 0"
    );
}

/// The flag says of each event what the facade says.
#[test]
fn reads_in_user_space_are_flagged_where_there_are_such() {
    const EVENTS: &str = "page-faults:u,instructions:u,instructions:u,no-such-event";
    let mut builder = quipu::EventSet::builder();
    let mut own = builder
        .events(EVENTS)
        .expect("a list")
        .open()
        .expect("page faults");
    let text = CString::new(EVENTS).unwrap();
    for flags in [0, quipu_set_flag::QUIPU_INHERIT as u32] {
        let mut config = init!(quipu_config);
        config.flags = flags;
        let mut set = null_mut();
        // SAFETY: good arguments.
        unsafe {
            assert_eq!(quipu_set_create(&config, &mut set), QUIPU_OK);
            assert_eq!(quipu_set_add(set, text.as_ptr()), QUIPU_OK);
            assert_eq!(quipu_set_open(set), QUIPU_OK);
        }
        for event in 0..4 {
            let mut info = init!(quipu_event_info);
            // SAFETY: good arguments.
            let status = unsafe { quipu_set_event_info(set, event, &mut info) };
            assert_eq!(status, QUIPU_OK);
            let is_open = own.events()[event].error().is_none();
            let readable = is_open && flags == 0 && own.user_read_obstacle(event).is_none();
            let flagged = info.flags & quipu_event_flag::QUIPU_EVENT_USER_READ as u32 != 0;
            assert_eq!(flagged, readable, "event {event}, flags {flags}");
            assert!(!(flagged && event == 0), "software has no register");
        }
        // SAFETY: it is open.
        assert_eq!(unsafe { quipu_set_close(set) }, QUIPU_OK);
    }
}
