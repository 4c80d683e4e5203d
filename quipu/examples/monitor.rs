//! For the author of a monitor: one set on all CPUs, read again and again, differences reported.
//!
//! Run with `cargo run -p quipu-counters --example monitor` (as root, or with CAP_PERFMON).

use std::thread::sleep;
use std::time::Duration;

use quipu::{EventSet, Target};

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
    set.enable()?;
    set.read(&mut before)?;
    for _ in 0..5 {
        sleep(Duration::from_millis(200));
        set.read(&mut now)?;
        let mut delta = now.clone();
        delta.subtract(&before)?;
        let line: Vec<String> = delta
            .events()
            .filter_map(|e| Some(format!("{} {}", e.total().ok()?.value()?, e.name())))
            .collect();
        println!("{}", line.join("  "));
        std::mem::swap(&mut before, &mut now);
    }
    Ok(())
}
