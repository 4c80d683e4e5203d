//! Misuse by a C program gets a status, not a crash.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_capi::quipu_status::*;
use quipu_capi::*;

fn error() -> quipu_error {
    let mut error = init!(quipu_error);
    // SAFETY: a struct with its size set.
    assert_eq!(unsafe { quipu_last_error(&mut error) }, QUIPU_OK);
    error
}

fn said(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the library's texts end with a NUL and are still there.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

fn simulated() -> *mut quipu_sim {
    let mut sim = null_mut();
    // SAFETY: null is the ready-made one.
    assert_eq!(unsafe { quipu_sim_create(null(), &mut sim) }, QUIPU_OK);
    sim
}

/// An open set on CPU 0 of a simulated PMU.
fn open(sim: *mut quipu_sim, events: &str) -> *mut quipu_set {
    let mut config = init!(quipu_config);
    config.target = quipu_target::QUIPU_CPU as u32;
    config.sim = sim;
    let events = CString::new(events).unwrap();
    let mut set = null_mut();
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_OK);
        assert_eq!(quipu_set_add(set, events.as_ptr()), QUIPU_OK);
        assert_eq!(quipu_set_open(set), QUIPU_OK);
    }
    set
}

#[test]
fn null_is_an_error() {
    let sim = simulated();
    let set = open(sim, "cycles");
    // SAFETY: null is what is tested; everything else is good.
    unsafe {
        assert_eq!(quipu_set_create(null(), null_mut()), QUIPU_EINVAL);
        assert_eq!(
            said(error().message),
            "cannot use the argument out: it is null"
        );
        assert_eq!(quipu_set_read(set, null_mut(), 1), QUIPU_EINVAL);
        assert_eq!(quipu_set_read_parts(set, null_mut(), 1), QUIPU_EINVAL);
        assert_eq!(quipu_set_event_info(set, 0, null_mut()), QUIPU_EINVAL);
        assert_eq!(quipu_last_error(null_mut()), QUIPU_EINVAL);
        assert_eq!(quipu_backend_count(null_mut()), QUIPU_EINVAL);
        assert_eq!(quipu_sim_truth(sim, null(), 0, null_mut()), QUIPU_EINVAL);
        assert_eq!(quipu_set_add(null_mut(), c"cycles".as_ptr()), QUIPU_EHANDLE);
        assert_eq!(quipu_set_read(null_mut(), null_mut(), 0), QUIPU_EHANDLE);
        assert_eq!(
            quipu_database_cpu_count(null_mut(), null_mut()),
            QUIPU_EHANDLE
        );
        assert_eq!(quipu_set_close(null_mut()), QUIPU_OK);
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
}

#[test]
fn a_handle_is_closed_once_and_of_one_kind() {
    let sim = simulated();
    let set = open(sim, "cycles");
    let mut counts = [quipu_count::default()];
    // SAFETY: handles are never followed.
    unsafe {
        assert_eq!(quipu_set_start(sim.cast()), QUIPU_EHANDLE);
        assert_eq!(quipu_sim_advance(set.cast(), 1), QUIPU_EHANDLE);
        assert_eq!(quipu_set_start((&raw mut counts).cast()), QUIPU_EHANDLE);
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        assert_eq!(quipu_set_close(set), QUIPU_EHANDLE);
        assert_eq!(error().status, QUIPU_EHANDLE as c_int);
        let another = open(sim, "cycles");
        assert_eq!(quipu_set_read(set, counts.as_mut_ptr(), 1), QUIPU_EHANDLE);
        assert_eq!(quipu_set_read(another, counts.as_mut_ptr(), 1), QUIPU_OK);
        // The set goes on without the handle of its PMU.
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_EHANDLE);
        assert_eq!(quipu_set_read(another, counts.as_mut_ptr(), 1), QUIPU_OK);
        assert_eq!(quipu_set_close(another), QUIPU_OK);
    }
}

#[test]
fn arrays_have_the_size_of_the_set() {
    let sim = simulated();
    let set = open(sim, "cycles,instructions");
    let mut counts = [quipu_count::default(); 3];
    let mut readings = [quipu_reading::default(); 3];
    // SAFETY: the arrays are larger than what is claimed.
    unsafe {
        let (out, parts) = (counts.as_mut_ptr(), readings.as_mut_ptr());
        for wrong in [0, 1, 3, usize::MAX] {
            for status in [
                quipu_set_read(set, out, wrong),
                quipu_set_accumulate(set, parts, parts, wrong),
                quipu_set_difference(set, parts, parts, parts, wrong),
                quipu_set_total(set, parts, 2, out, wrong),
                quipu_set_total(set, parts, wrong, out, 2),
                quipu_set_read_parts(set, parts, wrong),
            ] {
                assert_eq!(status, QUIPU_EINVAL);
            }
        }
        let reason = said(error().reason);
        assert!(
            reason.ends_with("and the set has 2 readings (quipu_set_size)"),
            "{reason}"
        );
        assert_eq!(quipu_set_read(set, counts.as_mut_ptr(), 2), QUIPU_OK);
        assert_eq!(
            quipu_set_read(set, counts.as_mut_ptr().byte_add(1), 2),
            QUIPU_EINVAL
        );
        assert_eq!(
            quipu_set_event_error(set, 2, &mut init!(quipu_error)),
            QUIPU_EINVAL
        );
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
}

#[test]
fn structs_say_their_size() {
    let mut set = null_mut();
    // SAFETY: the structs are larger than what they claim.
    unsafe {
        let mut config = init!(quipu_config);
        config.size = 0;
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_EINVAL);
        let reason = said(error().reason);
        assert!(reason.contains("QUIPU_INIT sets it"), "{reason}");
        let mut out = init!(quipu_error);
        out.size -= 1;
        assert_eq!(quipu_last_error(&mut out), QUIPU_EINVAL);
    }

    #[repr(C)]
    struct Newer<T> {
        known: T,
        unknown: u64,
    }
    // SAFETY: `Newer` is as long as it says.
    unsafe {
        let mut config = Newer {
            known: init!(quipu_config),
            unknown: 0,
        };
        config.known.size = size_of::<Newer<quipu_config>>();
        assert_eq!(
            quipu_set_create((&raw const config).cast(), &mut set),
            QUIPU_OK
        );
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        config.unknown = 1;
        assert_eq!(
            quipu_set_create((&raw const config).cast(), &mut set),
            QUIPU_EINVAL
        );
        let reason = said(error().reason);
        assert!(reason.contains("does not know"), "{reason}");

        let mut out = Newer {
            known: init!(quipu_error),
            unknown: 7,
        };
        out.known.size = size_of::<Newer<quipu_error>>();
        assert_eq!(quipu_last_error((&raw mut out).cast()), QUIPU_OK);
        assert_eq!((out.unknown, out.known.status), (0, QUIPU_EINVAL as c_int));
        assert_eq!(out.known.size, size_of::<Newer<quipu_error>>());
    }
}

#[test]
fn what_comes_in_the_wrong_order_is_refused() {
    let mut set = null_mut();
    let sim = simulated();
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_set_create(null(), &mut set), QUIPU_OK);
        assert_eq!(quipu_set_start(set), QUIPU_EINVAL);
        assert!(said(error().reason).contains("quipu_set_open"));
        assert_eq!(quipu_set_open(set), QUIPU_EINVAL);
        assert!(said(error().reason).contains("quipu_set_add"));
        assert_eq!(quipu_set_add(set, c"cycles,{".as_ptr()), QUIPU_EINVAL);
        assert_eq!(quipu_set_add(set, c"\xff".as_ptr()), QUIPU_EINVAL);
        let (name, wrong) = (c"P", c"cycles +");
        assert_eq!(
            quipu_set_define(set, name.as_ptr(), wrong.as_ptr()),
            QUIPU_EINVAL
        );
        assert_eq!(quipu_set_close(set), QUIPU_OK);

        let set = open(sim, "cycles");
        assert_eq!(
            quipu_set_define(set, name.as_ptr(), c"cycles".as_ptr()),
            QUIPU_EINVAL
        );
        assert_eq!(quipu_set_add(set, c"cycles".as_ptr()), QUIPU_EINVAL);
        assert_eq!(quipu_set_open(set), QUIPU_EINVAL);
        assert_eq!(quipu_set_close(set), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
}

#[test]
fn numbers_that_are_none_of_an_enumeration_are_refused() {
    let mut set = null_mut();
    let mut config = init!(quipu_config);
    config.target = 99;
    // SAFETY: good arguments but for their meaning.
    unsafe {
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_EINVAL);
        config.target = 0;
        config.flags = 1 << 31;
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_EINVAL);
        config.flags = 0;
        for names in [c"no-such-backend", c"posix,no-such-backend", c"posix,"] {
            config.backends = names.as_ptr();
            assert_eq!(quipu_set_create(&config, &mut set), QUIPU_EINVAL);
            assert!(said(error().hint).starts_with("the backends are "));
        }
    }
    assert_eq!(said(quipu_strerror(99)), "unknown status");
}

#[test]
fn files_and_cpus_that_cannot_be_used_are_refused_before_a_set_is_made() {
    let mut set = null_mut();
    let mut config = init!(quipu_config);
    let sim = simulated();
    // SAFETY: good arguments but for their meaning.
    unsafe {
        config.events_file = c"/nowhere/events.toml".as_ptr();
        assert_ne!(quipu_set_create(&config, &mut set), QUIPU_OK);
        assert!(said(error().message).contains("/nowhere/events.toml"));
        config.events_file = null();
        config.cpu_model = c"no-such-cpu".as_ptr();
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_EINVAL);
        assert!(said(error().message).contains("no-such-cpu"));
        // A simulated PMU has events of its own.
        config.cpu_model = c"amd-zen4".as_ptr();
        config.sim = sim;
        assert_eq!(quipu_set_create(&config, &mut set), QUIPU_EINVAL);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
    assert!(set.is_null());
}

#[test]
fn an_event_keeps_its_error_and_sinks_no_other() {
    let sim = simulated();
    let set = open(sim, "NO_SUCH,cycles");
    let mut counts = [quipu_count::default(); 2];
    let mut error = init!(quipu_error);
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_set_event_error(set, 0, &mut error), QUIPU_OK);
        assert_eq!(error.status, QUIPU_EEVENT as c_int);
        assert_eq!(said(error.attempted), "count NO_SUCH");
        assert_eq!(quipu_set_event_error(set, 1, &mut error), QUIPU_OK);
        assert_eq!((error.status, said(error.message)), (0, String::new()));
        assert_eq!(quipu_set_read(set, counts.as_mut_ptr(), 2), QUIPU_OK);
        assert_eq!(counts[0].state, quipu_state::QUIPU_NOT_READ as u32);
        assert_eq!(counts[0].status, QUIPU_EEVENT as c_int);
        assert_eq!(counts[1].state, quipu_state::QUIPU_EXACT as u32);
        assert_eq!(quipu_set_close(set), QUIPU_OK);

        // With no event at all that can be counted, opening says why.
        let mut none = null_mut();
        let mut config = init!(quipu_config);
        config.target = quipu_target::QUIPU_CPU as u32;
        config.sim = sim;
        assert_eq!(quipu_set_create(&config, &mut none), QUIPU_OK);
        assert_eq!(quipu_set_add(none, c"NO_SUCH".as_ptr()), QUIPU_OK);
        assert_eq!(quipu_set_open(none), QUIPU_EEVENT);
        assert_eq!(quipu_set_read(none, counts.as_mut_ptr(), 1), QUIPU_OK);
        assert_eq!(quipu_set_close(none), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
}

#[test]
fn two_threads_at_once_are_told_so_and_do_no_harm() {
    let sim = simulated();
    let set = open(sim, "cycles") as usize;
    let (start, both_met) = (Barrier::new(2), AtomicBool::new(false));
    let read = || {
        let set = set as *mut quipu_set;
        let mut counts = [quipu_count::default()];
        start.wait();
        while !both_met.load(Ordering::Relaxed) {
            // SAFETY: good arguments; the library finds out that another thread is in it.
            match unsafe { quipu_set_read(set, counts.as_mut_ptr(), 1) } {
                QUIPU_OK => assert_eq!(counts[0].state, quipu_state::QUIPU_EXACT as u32),
                status => {
                    assert_eq!(status, QUIPU_EINUSE);
                    both_met.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(read);
        scope.spawn(read);
    });
    // SAFETY: handles are never followed.
    unsafe {
        assert_eq!(quipu_set_close(set as *mut quipu_set), QUIPU_OK);
        assert_eq!(quipu_sim_close(sim), QUIPU_OK);
    }
}

#[test]
fn errors_are_each_threads_own() {
    // SAFETY: null is what is tested.
    assert_eq!(unsafe { quipu_set_start(null_mut()) }, QUIPU_EHANDLE);
    let others = std::thread::spawn(|| error().status).join().unwrap();
    assert_eq!((others, error().status), (0, QUIPU_EHANDLE as c_int));
}
