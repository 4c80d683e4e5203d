//! Quipu against other crates: taking samples out of a ring and decoding them.
//!
//! `cargo bench -p quipu-linux --bench decode` prints records per second, allocations per record and
//! ratios. Every contender opens a sampler of its own on an event that never happens. Memory of this
//! program takes the place of its ring, and the same image is written into each, so that all go the way
//! that records take from the kernel: head, records, one of them across the end of the ring, and tail.
//! They take turns, in another order each time.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod contenders;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[path = "../../tests/counting_allocator/mod.rs"]
mod counting_allocator;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod image;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() {
    use std::time::Instant;

    /// The rounds in which each contender drains the ring.
    const ROUNDS: usize = 400;
    /// The least factor by which Quipu is to be faster than every other one.
    const TARGET: f64 = 2.0;

    let mut open: Vec<_> = Vec::new();
    for (name, start) in contenders::ALL {
        match start() {
            Ok(drain) => open.push((name, drain)),
            Err(reason) => {
                println!("SKIP decode: {name}: {reason}");
                return;
            }
        }
    }
    let mut times = vec![Vec::with_capacity(ROUNDS); open.len()];
    let mut allocated = vec![0; open.len()];
    for round in 0..ROUNDS {
        for turn in 0..open.len() {
            let i = (round + turn) % open.len();
            let (name, contender) = &mut open[i];
            contender.ring.fill();
            let before = counting_allocator::count();
            let start = Instant::now();
            let sum = (contender.drain)();
            let time = start.elapsed();
            allocated[i] = counting_allocator::count() - before;
            assert_eq!(sum, image::sum(), "{name} has read something else");
            times[i].push(time.as_nanos() as f64 / f64::from(image::RECORDS));
        }
    }
    println!("\nsamples of ip, tid, time, period and 16 frames: ns, million/s, allocations, ratio");
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_unstable_by(f64::total_cmp);
            times[ROUNDS / 2]
        })
        .collect();
    let mut met = allocated[0] == 0;
    for (i, (name, _)) in open.iter().enumerate() {
        let ratio = medians[i] / medians[0];
        let each = allocated[i] as f64 / f64::from(image::RECORDS);
        let verdict = match (i, ratio >= TARGET) {
            (0, _) if allocated[0] == 0 => "  (allocates nothing: MET)",
            (0, _) => "  (allocates: MISSED)",
            (_, true) => "  (at least 2: MET)",
            (_, false) => {
                met = false;
                "  (at least 2: MISSED)"
            }
        };
        let rate = 1000.0 / medians[i];
        println!(
            "  {name:18} {:7.1} {rate:7.1} {each:6.2} {ratio:6.2}{verdict}",
            medians[i]
        );
    }
    if !met {
        println!("\nnot every target was met in this run");
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() {
    println!(
        "SKIP decode: perf_event_open is Linux's, and perf-event2 does not compile for 32 bits"
    );
}
