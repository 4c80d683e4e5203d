//! The calls of an [`EventSet`] beside the bare system calls, and beside `perf-event2`.
//!
//! `cargo bench -p quipu-counters --bench calls` prints the rows that `ci/bench` judges. All count the calling thread in
//! user mode: software events by system call, which every machine has, and those of the CPU in user space.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod contenders;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod pairs;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod raw;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() {
    use contenders::{perf_event2, quipu, raw};
    use pairs::row;

    const READS: u32 = 200;
    const OPENS: u32 = 10;

    row("read of 1 / raw", READS, quipu::read_1, raw::read_1);
    row("read of 5 / raw", READS, quipu::read_5, raw::read_5);
    let peer = perf_event2::read_5;
    row("read of 5 / perf-event2", READS, quipu::read_5, peer);
    row(
        "open and close of 1 / raw",
        OPENS,
        quipu::open_1,
        raw::open_1,
    );
    row(
        "open and close of 5 / raw",
        OPENS,
        quipu::open_5,
        raw::open_5,
    );
    let peer = perf_event2::open_5;
    row(
        "open and close of 5 / perf-event2",
        OPENS,
        quipu::open_5,
        peer,
    );
    match raw::maps_counters() {
        Ok(()) => {
            row(
                "read of 1 in user space / bare",
                READS,
                quipu::map_1,
                raw::map_1,
            );
            row(
                "read of 4 in user space / bare",
                READS,
                quipu::map_4,
                raw::map_4,
            );
        }
        Err(reason) => {
            pairs::skip("read of 1 in user space / bare", &reason);
            pairs::skip("read of 4 in user space / bare", &reason);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() {
    println!("SKIP\tcalls\tthe bare calls are those of 64-bit Linux");
}
