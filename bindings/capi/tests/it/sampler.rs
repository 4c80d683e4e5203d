//! Samples: what is handed out, and what is refused.

use std::ffi::{CStr, CString, c_void};
use std::ptr::null_mut;

use crate::commands::skip;
use quipu_capi::quipu_status::*;
use quipu_capi::*;

fn open(events: &str, config: &quipu_config, how: &quipu_sampling) -> Result<Open, quipu_status> {
    let events = CString::new(events).expect("no NUL");
    let mut sampler = null_mut();
    // SAFETY: good arguments.
    match unsafe { quipu_sampler_open(config, events.as_ptr(), how, &mut sampler) } {
        QUIPU_OK => Ok(Open(sampler)),
        refused => Err(refused),
    }
}

/// An open sampler.
struct Open(*mut quipu_sampler);

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_sampler_close(self.0) }, QUIPU_OK);
    }
}

fn message() -> String {
    let mut error = init!(quipu_error);
    // SAFETY: a struct with its size set, and a text that is there until the next failure.
    unsafe {
        assert_eq!(quipu_last_error(&mut error), QUIPU_OK);
        CStr::from_ptr(error.message).to_string_lossy().into_owned()
    }
}

/// A sampler of this thread: of every event, with addresses and call chains.
fn each(test: &str, events: &str) -> Option<Open> {
    let mut how = init!(quipu_sampling);
    how.period = 1;
    how.flags =
        quipu_sampling_flag::QUIPU_CALL_CHAINS as u32 | quipu_sampling_flag::QUIPU_ADDRESSES as u32;
    match open(events, &init!(quipu_config), &how) {
        Ok(sampler) => Some(sampler),
        Err(QUIPU_EFEATURE | QUIPU_EPERM | QUIPU_EDEVICE) => {
            skip(test, &message());
            None
        }
        Err(other) => panic!("{other:?}: {}", message()),
    }
}

/// The samples that were handed out, and the result of a second call with the sampler meanwhile.
struct Seen {
    sampler: *mut quipu_sampler,
    samples: Vec<quipu_sample>,
    callers: usize,
    again: quipu_status,
}

unsafe extern "C" fn see(sample: *const quipu_sample, data: *mut c_void) {
    // SAFETY: what `drain` gives, and a sample that is there for as long as this lasts.
    unsafe {
        let seen = &mut *data.cast::<Seen>();
        seen.samples.push(*sample);
        assert_eq!((*sample).callers.is_null(), (*sample).caller_count == 0);
        if !(*sample).callers.is_null() {
            let callers = std::slice::from_raw_parts((*sample).callers, (*sample).caller_count);
            seen.callers += callers.iter().filter(|c| c.return_address != 0).count();
        }
        seen.again = quipu_sampler_stop(seen.sampler);
    }
}

fn drain(sampler: &Open) -> Seen {
    let mut seen = Seen {
        sampler: sampler.0,
        samples: Vec::new(),
        callers: 0,
        again: QUIPU_OK,
    };
    // SAFETY: a handle, and a function for what is given to it.
    let status = unsafe { quipu_sampler_drain(sampler.0, Some(see), (&raw mut seen).cast()) };
    assert_eq!(status, QUIPU_OK);
    seen
}

#[test]
fn every_fault_is_handed_out_once_with_its_address() {
    const PAGES: usize = 64;
    const PAGE: usize = 64 << 10; // The largest that a Linux machine has.
    let Some(sampler) = each("samples", "context-switches:u,page-faults:u") else {
        return;
    };
    // Fresh zeros from the kernel, of which the allocator has touched the first page at most.
    let mut memory = vec![0_u8; (PAGES + 2) * PAGE];
    let first = memory.as_ptr().align_offset(PAGE) + PAGE;
    // SAFETY: a handle.
    unsafe {
        assert_eq!(quipu_sampler_start(sampler.0), QUIPU_OK);
        for page in 0..PAGES {
            std::hint::black_box(&mut memory)[first + page * PAGE] = 1;
        }
        assert_eq!(quipu_sampler_stop(sampler.0), QUIPU_OK);
    }
    let seen = drain(&sampler);
    let start = memory.as_ptr().addr() as u64;
    let mut own = Vec::new();
    for sample in seen.samples.iter().filter(|sample| sample.event == 1) {
        assert_eq!(
            sample.flags,
            quipu_sample_flag::QUIPU_SAMPLE_HAS_ADDRESS as u32
        );
        assert_eq!((sample.size, sample.period), (size_of::<quipu_sample>(), 1));
        assert_eq!(sample.pid, std::process::id().cast_signed());
        assert!(sample.ip != 0 && sample.tid > 0 && sample.time > 0);
        let offset = sample.address.wrapping_sub(start) as usize;
        if (first..first + PAGES * PAGE).contains(&offset) {
            own.push((offset - first) / PAGE);
        }
    }
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if huge.is_ok_and(|text| text.contains("[always]")) {
        // One fault brings many pages.
        own.dedup();
        assert!(!own.is_empty());
    } else {
        assert_eq!(own, (0..PAGES).collect::<Vec<_>>());
    }
    assert_eq!(
        seen.again, QUIPU_EINUSE,
        "a sampler is not to be used by what it calls"
    );
    assert!(seen.callers > 0, "nobody called");
    assert!(drain(&sampler).samples.is_empty(), "handed out twice");
    let mut lost = 1;
    // SAFETY: a handle.
    let status = unsafe { quipu_sampler_lost(sampler.0, &mut lost) };
    assert_eq!(status, QUIPU_OK);
    assert_eq!(lost, 0);
}

#[test]
fn descriptors_are_told_where_there_is_room() {
    let Some(sampler) = each("descriptors", "page-faults:u") else {
        return;
    };
    let (mut fds, mut count) = ([-1; 2], 0);
    // SAFETY: good arguments.
    unsafe {
        let ask = |fds, room, count| quipu_sampler_descriptors(sampler.0, fds, room, count);
        assert_eq!(ask(null_mut(), 0, &mut count), QUIPU_OK);
        assert_eq!(count, 1);
        assert_eq!(ask(fds.as_mut_ptr(), 0, &mut count), QUIPU_OK);
        assert_eq!(fds, [-1, -1]);
        assert_eq!(ask(fds.as_mut_ptr(), 2, &mut count), QUIPU_OK);
        assert!(fds[0] >= 0 && fds[1] == -1, "{fds:?}");
        assert_eq!(ask(fds.as_mut_ptr(), 2, null_mut()), QUIPU_EINVAL);
    }
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let (config, how) = (init!(quipu_config), init!(quipu_sampling));
    let refused = |events: &str, config: &quipu_config, how: &quipu_sampling| {
        open(events, config, how)
            .err()
            .map(|status| (status, message()))
    };
    let status = |refused: Option<(quipu_status, String)>| refused.map(|(status, _)| status);
    let group = "{page-faults:u,minor-faults:u}";
    assert_eq!(status(refused(group, &config, &how)), Some(QUIPU_EINVAL));
    assert_eq!(status(refused("", &config, &how)), Some(QUIPU_EINVAL));

    let both = quipu_sampling {
        period: 1,
        frequency: 1,
        ..how
    };
    let (status_of_both, says) = refused("page-faults", &config, &both).expect("a refusal");
    assert_eq!(status_of_both, QUIPU_EINVAL);
    assert!(
        says.ends_with("both a period and a frequency are given"),
        "{says}"
    );
    let unknown = quipu_sampling { flags: 4, ..how };
    assert_eq!(
        status(refused("page-faults", &config, &unknown)),
        Some(QUIPU_EINVAL)
    );
    let mut fallback = config;
    fallback.flags = quipu_set_flag::QUIPU_USER_FALLBACK as u32;
    assert_eq!(
        status(refused("page-faults", &fallback, &how)),
        Some(QUIPU_EINVAL)
    );

    let (mut posix, mut simulated, mut sim) = (config, config, null_mut());
    posix.backends = c"posix".as_ptr();
    // SAFETY: null is the ready-made one.
    let made = unsafe { quipu_sim_create(std::ptr::null(), &mut sim) };
    assert_eq!(made, QUIPU_OK);
    (simulated.sim, simulated.target) = (sim, quipu_target::QUIPU_CPU as u32);
    for config in [posix, simulated] {
        let (status, says) = refused("page-faults", &config, &how).expect("a refusal");
        assert_eq!(status, QUIPU_EFEATURE);
        assert!(says.ends_with("counts and takes no samples"), "{says}");
    }
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_sim_close(sim) }, QUIPU_OK);

    let mut nobody = null_mut();
    // SAFETY: null is what is tested.
    unsafe {
        let null = std::ptr::null::<std::ffi::c_char>();
        assert_eq!(
            quipu_sampler_open(null.cast(), null, null.cast(), &mut nobody),
            QUIPU_EINVAL
        );
        assert_eq!(quipu_sampler_start(null_mut()), QUIPU_EHANDLE);
        assert_eq!(
            quipu_sampler_drain(null_mut(), None, null_mut()),
            QUIPU_EINVAL
        );
        assert_eq!(
            quipu_sampler_drain(null_mut(), Some(see), null_mut()),
            QUIPU_EHANDLE
        );
        assert_eq!(quipu_sampler_close(null_mut()), QUIPU_OK);
    }
}
