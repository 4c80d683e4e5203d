//! Samplers to which targets are added, and several that are waited for.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use quipu_hal::{Attributes, ErrorKind, Software, Target};
use quipu_linux::sampling::{Rate, SampleType, Sampler, SamplerSpec, Woken};

use super::{open, samples};
use crate::machine::{FreshPages, backend, user};

/// Every page fault, with its thread.
fn faults(inherit: bool) -> SamplerSpec {
    let mut spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    spec.sample_type |= SampleType::TID;
    spec.attributes = Attributes::default()
        .with_inherit(inherit)
        .with_disabled(true);
    spec
}

/// A thread that touches so many pages when it is told to, and its id.
struct Toucher {
    tid: i32,
    start: mpsc::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl Toucher {
    fn of(pages: usize) -> Self {
        let (start, started) = mpsc::channel();
        let (send, tid) = mpsc::channel();
        let thread = thread::spawn(move || {
            let pages = FreshPages::map(pages);
            send.send(nix::unistd::gettid().as_raw())
                .expect("it is awaited");
            started.recv().expect("it is sent");
            pages.touch();
        });
        Self {
            tid: tid.recv().expect("it is sent"),
            start,
            thread,
        }
    }

    fn touch(self) {
        self.start.send(()).expect("it waits");
        self.thread.join().expect("no panic");
    }
}

fn by_thread(sampler: &mut Sampler) -> BTreeMap<i32, usize> {
    let mut counts = BTreeMap::new();
    for tid in samples(sampler, |sample| sample.thread().expect("asked for").tid) {
        *counts.entry(tid).or_default() += 1;
    }
    counts
}

#[test]
fn a_further_target_is_sampled_into_the_rings_that_are_there() {
    let name = "a_further_target_is_sampled_into_the_rings_that_are_there";
    for inherit in [true, false] {
        let own = nix::unistd::gettid().as_raw();
        let (Some(backend), Some(mut sampler)) = (
            backend(name),
            open(name, &faults(inherit), &Target::CurrentThread),
        ) else {
            return;
        };
        let rings = sampler.rings().len();
        let toucher = Toucher::of(50);
        let other = toucher.tid;
        backend
            .attach_sampler(&mut sampler, &Target::Thread(other))
            .expect("a thread of our own");
        let more = usize::from(!inherit);
        assert_eq!(sampler.rings().len(), rings + more);
        sampler.enable().expect("it is open");
        FreshPages::map(30).touch();
        toucher.touch();
        sampler.disable().expect("it is open");
        let counts = by_thread(&mut sampler);
        assert!(counts[&own] >= 30 && counts[&other] >= 50, "{counts:?}");

        let counters = sampler.counters().len();
        let gone = backend.attach_sampler(&mut sampler, &Target::Thread(i32::MAX));
        assert_eq!(gone.expect_err("no thread").kind(), ErrorKind::NoSuchTarget);
        assert_eq!(sampler.counters().len(), counters);
        sampler.enable().expect("it is as it was");
        FreshPages::map(20).touch();
        sampler.disable().expect("it is as it was");
        assert!(by_thread(&mut sampler)[&own] >= 20);
    }
}

#[test]
fn several_samplers_are_waited_for_until_all_have_ended() {
    let name = "several_samplers_are_waited_for_until_all_have_ended";
    let touchers = [10, 20].map(Toucher::of);
    let spec = faults(false);
    let opened = (touchers.each_ref()).map(|t| open(name, &spec, &Target::Thread(t.tid)));
    let [Some(mut first), Some(mut second)] = opened else {
        return;
    };
    let minute = Some(Duration::from_secs(60));
    for sampler in [&first, &second] {
        sampler.enable().expect("it is open");
    }
    let [one, two] = touchers;
    let wait = |first: &mut Sampler, second: &mut Sampler| {
        Sampler::wait_any(&mut [first, second], minute).expect("they are open")
    };
    one.touch();
    assert_eq!(wait(&mut first, &mut second), Woken::Data);
    two.touch();
    while wait(&mut first, &mut second) != Woken::Ended {}
    for (sampler, pages) in [(&mut first, 10), (&mut second, 20)] {
        let sampled: usize = by_thread(sampler).values().sum();
        assert!(sampled >= pages, "{sampled}");
    }
}
