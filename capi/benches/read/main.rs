//! A read of five software events: through C, in Rust, and by PAPI.
//!
//! `cargo bench -p quipu-capi` prints medians and ratios. The C contenders are compiled here, one shared
//! object each, against the shared library as it is installed. Reads are timed in short batches, the
//! contenders taking turns, and everything is reopened between rounds, because where the kernel happens
//! to put a counter changes its read by ten per cent.

#[cfg(target_os = "linux")]
mod contenders;

#[cfg(target_os = "linux")]
fn main() {
    contenders::compare();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIP read: the events are those of perf_event_open");
}
