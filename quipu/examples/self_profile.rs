//! For the author of a program that profiles itself: phases on several threads, each with what it has cost the process.
//!
//! Run with `cargo run -p quipu-counters --example self_profile`. Without counters it reports what getrusage(2) has.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use quipu::{Counts, EventSet, Target};

/// The counters of this process, shared by its threads.
struct Profiler {
    set: Mutex<EventSet>,
    phases: Mutex<BTreeMap<&'static str, Vec<u64>>>,
}

impl Profiler {
    fn new() -> quipu::Result<Self> {
        let mut set = EventSet::builder()
            .events("task-clock,page-faults")?
            .target(Target::Process(std::process::id() as i32))
            .inherit(true)
            .open_all()?;
        set.enable()?;
        Ok(Self {
            set: Mutex::new(set),
            phases: Mutex::default(),
        })
    }

    fn now(&self) -> quipu::Result<Counts> {
        let mut set = self.set.lock().expect("no reader panicked");
        let mut counts = set.counts();
        set.read(&mut counts)?;
        Ok(counts)
    }

    /// Runs a phase, and adds what was counted meanwhile.
    fn phase<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> quipu::Result<T> {
        let before = self.now()?;
        let output = work();
        let after = self.now()?;
        let mut during = before.clone();
        after.since(&before, &mut during)?;
        let mut phases = self.phases.lock().expect("no phase panicked");
        let sums = phases.entry(name).or_insert_with(|| vec![0; during.len()]);
        for (sum, event) in sums.iter_mut().zip(during.events()) {
            // Those of a process are never multiplexed.
            *sum += event.value()?;
        }
        Ok(output)
    }
}

fn main() -> quipu::Result<()> {
    let profiler = Profiler::new()?;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let numbers =
                        profiler.phase("make", || (0..100_000_u64).collect::<Vec<_>>())?;
                    profiler.phase("add", || numbers.iter().sum::<u64>())
                })
            })
            .collect();
        let sums = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        sums.collect::<quipu::Result<Vec<u64>>>()
    })?;
    for (name, sums) in profiler.phases.lock().expect("no phase panicked").iter() {
        println!(
            "{name:>6}: {} ns of CPU time, {} page faults",
            sums[0], sums[1]
        );
    }
    Ok(())
}
