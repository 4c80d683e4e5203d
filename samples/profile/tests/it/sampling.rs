//! Samples of this thread.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Duration;

use quipu_profile::sampling::{Options, Sampling};

const PAGES: usize = 100;

#[test]
fn every_page_fault_of_this_thread_is_in_a_stack() {
    // Pages that are not huge, as they are too few.
    const PAGE: usize = 4096;
    let status = std::fs::read_link("/proc/thread-self").expect("a thread has a number");
    let tid = status.file_name().and_then(|name| name.to_str());
    let mut options = Options::of_thread(tid.and_then(|tid| tid.parse().ok()).expect("a number"));
    options.events = Some("page-faults:u".to_owned());
    options.period = Some(1);
    let mut sampling = match Sampling::start(&options) {
        Ok(sampling) => sampling,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "SKIP samples of this thread: {why}");
            return;
        }
    };
    let mut memory = vec![0u8; PAGES * PAGE];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    black_box(memory);
    sampling.drain(Duration::ZERO).expect("records");
    let profile = sampling.stop().expect("records");
    let [event] = &profile.events[..] else {
        panic!("{:?}", profile.events);
    };
    assert_eq!((&*event.name, event.lost), ("page-faults:u", 0));
    assert!(event.total.samples >= PAGES as u64 / 2, "{profile:?}");
    let folded = profile.folded(event);
    let weights = folded.lines().map(|line| {
        let (stack, weight) = line.rsplit_once(' ').expect("a weight");
        assert!(stack.contains(';'), "{line}");
        weight.parse::<u64>().expect("a number")
    });
    assert_eq!(weights.sum::<u64>(), event.total.period);
    assert_eq!(event.total.period, event.total.samples);
    assert!(
        folded.contains("every_page_fault_of_this_thread_is_in_a_stack"),
        "{folded}"
    );
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let with = |change: fn(&mut Options)| {
        let mut options = Options::of_thread(1);
        change(&mut options);
        Sampling::start(&options).err().map(|why| why.to_string())
    };
    let both = with(|options| (options.frequency, options.period) = (Some(1), Some(1)));
    assert_eq!(
        both.as_deref(),
        Some("samples have a frequency or a period, not both")
    );
    for none in [
        with(|options| options.frequency = Some(0)),
        with(|options| options.period = Some(0)),
    ] {
        assert!(none.is_some_and(|why| why.contains("1 or more")));
    }
    let guess = with(|options| options.call_graph = Some("guess".to_owned()));
    assert!(guess.is_some_and(|why| why.contains("dwarf")));
}
