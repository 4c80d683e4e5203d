//! For the author of a benchmark tool: what a command costs, over ten runs, with its output thrown away.
//!
//! Run with `cargo run -p quipu-counters --example command -- ls -R /usr/share`. It runs on every system that Quipu has a
//! backend for: where there are no counters, it reports what getrusage(2) has.

use std::process::{Command, Stdio};

use quipu::EventSet;
use quipu::command::SuspendedCommand;

const RUNS: usize = 10;

fn main() -> quipu::Result<()> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().unwrap_or_else(|| "true".into());
    let arguments: Vec<_> = words.collect();
    let mut builder = EventSet::builder();
    builder
        .events("task-clock,page-faults,context-switches,cycles,instructions")?
        .user_mode_fallback(true);
    let mut totals: Vec<(String, Vec<u64>)> = Vec::new();
    let mut peak = 0;
    for run in 0..RUNS {
        let mut command = Command::new(&program);
        command.args(&arguments).stdout(Stdio::null());
        let suspended = SuspendedCommand::of(command)?;
        let mut set = builder.of_command(&suspended).open()?;
        let mut counts = set.counts();
        let exit = suspended.resume()?.wait()?;
        set.read(&mut counts)?;
        peak = peak.max(exit.max_resident);
        for (at, event) in counts.events().enumerate() {
            if run == 0 {
                totals.push((event.name().to_owned(), Vec::new()));
            }
            match event.total() {
                Ok(total) => totals[at]
                    .1
                    .extend(total.value().and_then(|n| u64::try_from(n).ok())),
                Err(why) if run == 0 => eprintln!("{}: {why:#}", event.name()),
                Err(_) => {}
            }
        }
    }
    for (name, values) in totals {
        let (Some(least), Some(most)) = (values.iter().min(), values.iter().max()) else {
            continue;
        };
        let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
        println!("{mean:>14.0}  {name}  ({least} to {most})");
    }
    println!("{peak:>14}  bytes of memory at the peak");
    Ok(())
}
