//! Null where it may not be is a status, for every pointer of every function.

use std::collections::BTreeSet;
use std::fs;
use std::ptr::{null, null_mut};

use quipu_capi::quipu_status::*;
use quipu_capi::*;

/// A call, what it is of and what it has to return.
struct Refusal {
    function: &'static str,
    call: &'static str,
    status: quipu_status,
    wanted: quipu_status,
}

/// Calls of the library, each before what it has to return.
macro_rules! refusals {
    ($($function:ident($($argument:expr),*) => $wanted:ident,)*) => {
        // SAFETY: null is what is tested; everything else is good.
        unsafe {
            vec![$(Refusal {
                function: stringify!($function),
                call: stringify!($function($($argument),*)),
                status: $function($($argument),*),
                wanted: $wanted,
            }),*]
        }
    };
}

/// Functions that may be called with null, or take no pointer.
const OTHERS: [&str; 6] = [
    "quipu_perror",
    "quipu_region",
    "quipu_region_if_on",
    "quipu_strerror",
    "quipu_version",
    "quipu_version_string",
];

#[test]
fn null_is_refused_everywhere() {
    let (mut sim, mut set, mut described) = (null_mut(), null_mut(), null_mut());
    let (mut database, mut cpu) = (null_mut(), null_mut());
    let mut config = init!(quipu_config);
    config.target = quipu_target::QUIPU_CPU as u32;
    let (cycles, p5) = (c"cycles".as_ptr(), c"intel-p5".as_ptr());
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_sim_create(null(), &mut sim), QUIPU_OK);
        config.sim = sim;
        assert_eq!(quipu_set_create(&config, &mut described), QUIPU_OK);
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_OK);
        assert_eq!(quipu_set_add(set, cycles), QUIPU_OK);
        assert_eq!(quipu_set_open(set), QUIPU_OK);
        assert_eq!(quipu_database_open(null(), &mut database), QUIPU_OK);
        assert_eq!(quipu_cpu_open(database, p5, 0, &mut cpu), QUIPU_OK);
    }
    let (mut size, mut number, mut lost) = (0, 0, 0);
    let mut name = [0; 64];
    let (mut reading, mut count) = (quipu_reading::default(), quipu_count::default());
    let [a, b] = [&raw mut reading; 2];
    let count = &raw mut count;
    let mut overhead = quipu_overhead::default();
    let overhead = &raw mut overhead;
    let mut bits = init!(quipu_encoding);
    let (bits, none) = (&raw mut bits, null_mut());
    let refusals = refusals! {
        quipu_last_error(null_mut()) => QUIPU_EINVAL,
        quipu_backend_count(null_mut()) => QUIPU_EINVAL,
        quipu_time_stamp(null_mut()) => QUIPU_EINVAL,
        quipu_backend_get(0, null_mut()) => QUIPU_EINVAL,

        quipu_set_create(null(), null_mut()) => QUIPU_EINVAL,
        quipu_set_add(none, cycles) => QUIPU_EHANDLE,
        quipu_set_add(described, null()) => QUIPU_EINVAL,
        quipu_set_define(none, cycles, cycles) => QUIPU_EHANDLE,
        quipu_set_define(described, null(), cycles) => QUIPU_EINVAL,
        quipu_set_define(described, cycles, null()) => QUIPU_EINVAL,
        quipu_set_open(none) => QUIPU_EHANDLE,
        quipu_set_open_all(none) => QUIPU_EHANDLE,
        quipu_set_values(none, &mut 0, 1) => QUIPU_EHANDLE,
        quipu_set_values(set, null_mut(), 1) => QUIPU_EINVAL,
        quipu_set_start(none) => QUIPU_EHANDLE,
        quipu_set_stop(none) => QUIPU_EHANDLE,
        quipu_set_reset(none) => QUIPU_EHANDLE,
        quipu_set_close(none) => QUIPU_OK,
        quipu_set_size(none, &mut size, &mut size) => QUIPU_EHANDLE,
        quipu_set_size(set, null_mut(), null_mut()) => QUIPU_OK,
        quipu_set_event_info(none, 0, &mut init!(quipu_event_info)) => QUIPU_EHANDLE,
        quipu_set_event_info(set, 0, null_mut()) => QUIPU_EINVAL,
        quipu_set_event_error(none, 0, &mut init!(quipu_error)) => QUIPU_EHANDLE,
        quipu_set_event_error(set, 0, null_mut()) => QUIPU_EINVAL,
        quipu_set_part_info(none, 0, 0, &mut init!(quipu_part_info)) => QUIPU_EHANDLE,
        quipu_set_part_info(set, 0, 0, null_mut()) => QUIPU_EINVAL,

        quipu_set_calibrate(none, overhead, 1) => QUIPU_EHANDLE,
        quipu_set_calibrate(set, null_mut(), 1) => QUIPU_EINVAL,
        quipu_set_read(none, count, 1) => QUIPU_EHANDLE,
        quipu_set_read(set, null_mut(), 1) => QUIPU_EINVAL,
        quipu_set_read_parts(none, a, 1) => QUIPU_EHANDLE,
        quipu_set_read_parts(set, null_mut(), 1) => QUIPU_EINVAL,
        quipu_set_accumulate(none, a, b, 1) => QUIPU_EHANDLE,
        quipu_set_accumulate(set, null_mut(), b, 1) => QUIPU_EINVAL,
        quipu_set_accumulate(set, a, null_mut(), 1) => QUIPU_EINVAL,
        quipu_set_difference(none, a, a, b, 1) => QUIPU_EHANDLE,
        quipu_set_difference(set, null(), a, b, 1) => QUIPU_EINVAL,
        quipu_set_difference(set, a, null(), b, 1) => QUIPU_EINVAL,
        quipu_set_difference(set, a, a, null_mut(), 1) => QUIPU_EINVAL,
        quipu_set_total(none, a, 1, count, 1) => QUIPU_EHANDLE,
        quipu_set_total(set, null(), 1, count, 1) => QUIPU_EINVAL,
        quipu_set_total(set, a, 1, null_mut(), 1) => QUIPU_EINVAL,
        quipu_scale(null(), count) => QUIPU_EINVAL,
        quipu_scale(a, null_mut()) => QUIPU_EINVAL,

        quipu_region_begin(null()) => QUIPU_EINVAL,
        quipu_region_end(null()) => QUIPU_EINVAL,
        quipu_region_enter(0) => QUIPU_EINVAL,
        quipu_region_leave(0) => QUIPU_EINVAL,
        quipu_region_enter(quipu_region(null())) => QUIPU_EINVAL,
        quipu_region_events(null()) => QUIPU_OK,
        quipu_region_report(0, null_mut(), 0, null_mut()) => QUIPU_EINVAL,
        quipu_region_report(0, null_mut(), 1 << 20, null_mut()) => QUIPU_EINVAL,

        quipu_sampler_open(null(), null(), null(), &mut null_mut()) => QUIPU_EINVAL,
        quipu_sampler_open(null(), cycles, null(), null_mut()) => QUIPU_EINVAL,
        quipu_sampler_start(null_mut()) => QUIPU_EHANDLE,
        quipu_sampler_stop(null_mut()) => QUIPU_EHANDLE,
        quipu_sampler_descriptors(null_mut(), null_mut(), 0, &mut size) => QUIPU_EHANDLE,
        quipu_sampler_drain(null_mut(), None, null_mut()) => QUIPU_EINVAL,
        quipu_sampler_lost(null_mut(), &mut lost) => QUIPU_EHANDLE,
        quipu_sampler_close(null_mut()) => QUIPU_OK,

        quipu_database_open(null(), null_mut()) => QUIPU_EINVAL,
        quipu_database_close(null_mut()) => QUIPU_OK,
        quipu_database_cpu_count(null_mut(), &mut size) => QUIPU_EHANDLE,
        quipu_database_cpu_count(database, null_mut()) => QUIPU_EINVAL,
        quipu_database_cpu(null_mut(), 0, &mut init!(quipu_cpu_info)) => QUIPU_EHANDLE,
        quipu_database_cpu(database, 0, null_mut()) => QUIPU_EINVAL,
        quipu_cpu_open(null_mut(), p5, 0, &mut null_mut()) => QUIPU_EHANDLE,
        quipu_cpu_open(database, p5, 0, null_mut()) => QUIPU_EINVAL,
        quipu_cpu_close(null_mut()) => QUIPU_OK,
        quipu_cpu_get_info(null_mut(), &mut init!(quipu_cpu_info)) => QUIPU_EHANDLE,
        quipu_cpu_get_info(cpu, null_mut()) => QUIPU_EINVAL,
        quipu_cpu_name_count(null_mut(), 0, &mut size) => QUIPU_EHANDLE,
        quipu_cpu_name_count(cpu, 0, null_mut()) => QUIPU_EINVAL,
        quipu_cpu_name(null_mut(), 0, 0, &mut init!(quipu_name_info)) => QUIPU_EHANDLE,
        quipu_cpu_name(cpu, 0, 0, null_mut()) => QUIPU_EINVAL,
        quipu_cpu_find(null_mut(), 1, cycles, &mut init!(quipu_name_info)) => QUIPU_EHANDLE,
        quipu_cpu_find(cpu, 1, null(), &mut init!(quipu_name_info)) => QUIPU_EINVAL,
        quipu_cpu_find(cpu, 1, cycles, null_mut()) => QUIPU_EINVAL,
        quipu_encode(null_mut(), cycles, 1, bits) => QUIPU_EHANDLE,
        quipu_encode(cpu, null(), 1, bits) => QUIPU_EINVAL,
        quipu_encode(cpu, c"DATA_READ:u".as_ptr(), 1, null_mut()) => QUIPU_EINVAL,
        quipu_encode(cpu, c"DATA_READ:u".as_ptr(), 1, bits) => QUIPU_OK,
        quipu_decode(null_mut(), bits, name.as_mut_ptr(), 64, null_mut()) => QUIPU_EHANDLE,
        quipu_decode(cpu, null(), name.as_mut_ptr(), 64, null_mut()) => QUIPU_EINVAL,
        quipu_decode(cpu, bits, null_mut(), 64, null_mut()) => QUIPU_EINVAL,
        quipu_decode(cpu, bits, name.as_mut_ptr(), 64, null_mut()) => QUIPU_OK,

        quipu_sim_create(null(), null_mut()) => QUIPU_EINVAL,
        quipu_sim_advance(null_mut(), 1) => QUIPU_EHANDLE,
        quipu_sim_tick(null_mut()) => QUIPU_EHANDLE,
        quipu_sim_happen(null_mut(), cycles, 0, 1, 1) => QUIPU_EHANDLE,
        quipu_sim_happen(sim, null(), 0, 1, 1) => QUIPU_EINVAL,
        quipu_sim_truth(null_mut(), cycles, 0, &mut number) => QUIPU_EHANDLE,
        quipu_sim_truth(sim, null(), 0, &mut number) => QUIPU_EINVAL,
        quipu_sim_truth(sim, c"CYCLES".as_ptr(), 0, null_mut()) => QUIPU_EINVAL,
        quipu_sim_close(null_mut()) => QUIPU_OK,
    };
    for refusal in &refusals {
        assert_eq!(refusal.status, refusal.wanted, "{}", refusal.call);
    }

    let listed = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/abi/symbols.txt"))
        .expect("the list");
    let all: BTreeSet<&str> = listed.lines().collect();
    let tried = refusals.iter().map(|refusal| refusal.function);
    assert_eq!(tried.chain(OTHERS).collect::<BTreeSet<_>>(), all);

    // SAFETY: handles.
    unsafe {
        for set in [set, described] {
            assert_eq!(quipu_set_close(set), QUIPU_OK);
        }
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
        assert_eq!(quipu_cpu_close(cpu), QUIPU_OK);
        assert_eq!(quipu_database_close(database), QUIPU_OK);
    }
}
