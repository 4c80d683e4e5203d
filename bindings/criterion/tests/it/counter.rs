//! Counts of fresh pages, of which each faults once.

use std::hint::black_box;
use std::thread;

use criterion::measurement::Measurement as _;
use memmap2::{Advice, MmapMut};
use quipu::ErrorKind;
use quipu_criterion::{Counter, Counting};

fn touch(pages: usize) {
    let mut memory = MmapMut::map_anon(pages * 4096).expect("memory");
    memory.advise(Advice::NoHugePage).expect("it is Linux");
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
}

/// Returns a counter of page faults, or says why there is none that follows threads.
fn page_faults(test: &str) -> Option<Counter> {
    let counter = Counting::of("page-faults").expect("an event").counter();
    let counter = counter.expect("every Unix counts them");
    if counter.event() != Some("page-faults") {
        println!("SKIP {test}: {:?} is counted", counter.event());
        return None;
    }
    Some(counter)
}

fn counted(counter: &Counter, work: impl FnOnce()) -> f64 {
    let start = counter.start();
    work();
    counter.to_f64(&counter.end(start))
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

#[test]
fn pages_are_counted_to_the_last_one() {
    let Some(counter) = page_faults("pages are counted") else {
        return;
    };
    if cfg!(not(target_arch = "x86_64")) {
        return println!("SKIP pages are counted: pages may be larger than 4 KiB");
    }
    touch(512);
    let counts: Vec<f64> = (0..5).map(|_| counted(&counter, || touch(512))).collect();
    assert_eq!(counts, [512.0; 5]);
    // Batches are added up.
    let sum = (0..3).fold(counter.zero(), |sum, _| {
        let start = counter.start();
        touch(100);
        counter.add(&sum, &counter.end(start))
    });
    assert_eq!(counter.to_f64(&sum), 300.0);
}

/// Each round of a loop is as many instructions as another.
#[test]
fn instructions_of_a_loop_are_counted() {
    let counter = match Counting::of("instructions:u").and_then(|counting| counting.counter()) {
        Ok(counter) => counter,
        Err(why) => return println!("SKIP instructions of a loop: {why}"),
    };
    // The lowest of several: an interrupt may be counted as one more.
    let of_rounds = |rounds: u64| {
        let count = || {
            counted(&counter, || {
                (0..rounds).for_each(|round| _ = black_box(round));
            })
        };
        (0..9).map(|_| count()).fold(f64::INFINITY, f64::min)
    };
    let [one, two, three] = [1000, 2000, 3000].map(of_rounds);
    assert_eq!(two - one, three - two);
    assert_eq!((two - one) % 1000.0, 0.0);
    assert!(two - one >= 1000.0, "{one} {two} {three}");
}

#[test]
fn threads_that_a_benchmark_starts_are_counted() {
    let Some(counter) = page_faults("threads are counted") else {
        return;
    };
    let count = counted(&counter, || {
        let threads: Vec<_> = (0..3).map(|_| thread::spawn(|| touch(1000))).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("it ends"));
    });
    // Their stacks fault a little.
    assert!((3000.0..3300.0).contains(&count), "{count}");
}

#[test]
fn a_fork_in_the_middle_harms_nothing() {
    let Some(counter) = page_faults("a fork in the middle") else {
        return;
    };
    let count = counted(&counter, || {
        // SAFETY: the child calls what is safe after a fork of a process with threads: it touches pages and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: it ends this process.
            unsafe { libc::_exit(0) };
        }
        assert!(child > 0);
        touch(200);
        let mut status = 0;
        // SAFETY: the status is a place of this function's.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((ended, status), (child, 0));
    });
    assert!((200.0..1000.0).contains(&count), "{count}");
}

#[test]
fn descriptors_come_back() {
    // In a process of its own, where no other test opens any.
    const CHILD: &str = "QUIPU_TEST_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let output = std::process::Command::new(std::env::current_exe().expect("a path"))
            .args([
                "--exact",
                "counter::descriptors_come_back",
                "--test-threads=1",
            ])
            .env(CHILD, "1")
            .output()
            .expect("it runs");
        return assert!(output.status.success(), "{output:?}");
    }
    let open = || {
        Counting::of("page-faults")
            .and_then(|counting| counting.counter())
            .expect("it opens")
    };
    drop(open());
    let before = descriptors();
    let counter = open();
    let start = counter.start();
    assert!(descriptors() >= before);
    // In the middle of a measurement.
    drop(counter);
    drop(start);
    assert_eq!(descriptors(), before);
}

#[test]
fn what_has_no_value_for_an_iteration_is_refused() {
    let refusal = |formula: &str| {
        let mut set = quipu::EventSet::builder();
        set.preset("FORMULA", formula).expect("a formula");
        set.events("FORMULA:u").expect("an event");
        Counting::of_set(set).counter().err()
    };
    assert_eq!(
        refusal("minor-faults + 2 * major-faults").map(|why| why.to_string()),
        None
    );
    for formula in [
        "minor-faults / page-faults",
        "max(minor-faults, page-faults)",
        "minor-faults + 1",
        "minor-faults * page-faults",
    ] {
        let why = refusal(formula).expect(formula);
        assert_eq!(why.kind(), ErrorKind::InvalidConfiguration, "{why}");
        assert!(why.to_string().contains("is not the sum"), "{why}");
    }
    let two = Counting::of("page-faults,task-clock")
        .expect("events")
        .counter();
    assert_eq!(
        two.err().map(|why| why.kind()),
        Some(ErrorKind::InvalidConfiguration)
    );
}
