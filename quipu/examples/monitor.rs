//! For the author of a monitor: one set on all CPUs, read again and again, differences reported CPU by CPU.
//!
//! Run with `cargo run -p quipu-counters --example monitor` (as root, or with CAP_PERFMON).

use std::thread::sleep;
use std::time::Duration;

use quipu::{Count, EventSet, Target};

fn main() -> quipu::Result<()> {
    let mut set = EventSet::builder()
        .events("cpu-clock,context-switches,page-faults,cycles")?
        .target(Target::AllCpus)
        .open()?;
    for event in set.events() {
        if let Some(why) = event.error() {
            eprintln!("{}: {why:#}", event.name());
        }
    }
    let mut before = set.counts();
    let mut now = set.counts();
    let mut during = set.counts();
    set.enable()?;
    set.read(&mut before)?;
    for _ in 0..5 {
        sleep(Duration::from_millis(100));
        set.read(&mut now)?;
        now.since(&before, &mut during)?;
        for event in during.events() {
            // None if it could not be opened, which was said above.
            let Ok(parts) = event.parts() else { continue };
            for (part, reading) in parts {
                match reading.count() {
                    Count::Exact(value) => println!("{part}  {value:>12} {}", event.name()),
                    other => println!("{part}  {other:?} {}", event.name()),
                }
            }
        }
        println!();
        std::mem::swap(&mut before, &mut now);
    }
    Ok(())
}
