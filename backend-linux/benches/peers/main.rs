//! Quipu against the bare system calls and against other crates: reading, and opening and closing.
//!
//! `cargo bench -p quipu-linux` prints medians and ratios. Reads are timed in short batches, the
//! contenders taking turns, and everything is reopened between rounds, because where the kernel
//! happens to put a counter changes its read by ten per cent. Opening is timed in a process of its
//! own for each contender, since a counter that another one holds makes it cheap.
//!
//! No reader can be faster than the bare read(2), so the share that this takes of a contender's time
//! is printed too: it is the limit of what can be won.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod contenders;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[path = "../../tests/counting_allocator/mod.rs"]
mod counting_allocator;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod raw;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod timing;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, open, contender] = arguments.as_slice()
        && open == "--open"
    {
        timing::print_open(contender);
        return;
    }
    let met = [
        timing::reads(
            "read of one counter",
            &contenders::SINGLES,
            &[("raw", 1.03)],
        ),
        timing::reads(
            "read of a group of five",
            &contenders::GROUPS,
            &[
                ("raw", 1.03),
                ("perf-event", 1.0 / 1.1),
                ("perf-event2", 1.0 / 1.25),
                ("perf-event-open", 1.02),
            ],
        ),
        timing::opens(),
        timing::attachments(),
    ];
    if met != [true; 4] {
        println!("\nnot every target was met in this run");
    }
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() {
    println!(
        "SKIP peers: perf_event_open is Linux's, and perf-event2 does not compile for 32 bits"
    );
}
