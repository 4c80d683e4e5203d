//! For a programmer: which of my functions are hot, in which thread?
//!
//! Run with `cargo run --release -p quipu-counters --example sampler`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::thread;

use quipu::{Sampler, Target};
use quipu_symbols::{AddressOwner, Processes, Symbolizer};

#[inline(never)]
fn sort(numbers: &mut [u64]) {
    numbers.sort_unstable_by_key(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
}

#[inline(never)]
fn add_up(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum, n| sum.rotate_left(1) ^ n)
}

fn main() -> quipu::Result<()> {
    let mut sampler = Sampler::builder()
        .events("cpu-clock:u")?
        .target(Target::Process(std::process::id() as i32))
        .inherit(true)
        .open()?;
    sampler.enable()?;
    thread::scope(|scope| {
        for rounds in 1..=3 {
            scope.spawn(move || {
                let mut numbers: Vec<u64> = (0..500_000).collect();
                for _ in 0..rounds {
                    sort(&mut numbers);
                    black_box(add_up(&numbers));
                }
            });
        }
    });
    sampler.disable()?;

    let mut processes = Processes::new();
    let mut symbolizer = Symbolizer::new().of_this_machine(true);
    let mut hot: BTreeMap<(i32, String), u64> = BTreeMap::new();
    sampler.drain(|sample| {
        if !processes.contains(sample.pid) {
            processes.read(sample.pid);
        }
        let mut functions = Vec::new();
        symbolizer.resolve(
            &processes,
            AddressOwner::Process(sample.pid),
            sample.ip,
            &mut functions,
        );
        for function in functions {
            let name = function.name.unwrap_or(function.object);
            *hot.entry((sample.tid, name.to_string())).or_default() += 1;
        }
    })?;
    let mut hot: Vec<_> = hot.into_iter().collect();
    hot.sort_by_key(|((thread, _), samples)| (*thread, Reverse(*samples)));
    println!("samples of cpu-clock:u, {} lost:", sampler.lost());
    for ((thread, name), samples) in hot {
        println!("{samples:>8}  thread {thread}  {name}");
    }
    Ok(())
}
