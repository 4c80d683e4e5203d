//! For a programmer: which of my functions are hot?
//!
//! Run with `cargo run --release -p quipu-counters --example sampler`.

use std::collections::BTreeMap;

use quipu::Sampler;
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
    let mut sampler = Sampler::builder().events("cpu-clock:u")?.open()?;
    sampler.enable()?;
    let mut numbers: Vec<u64> = (0..1_000_000).collect();
    let mut sum = 0;
    for _ in 0..5 {
        sort(&mut numbers);
        sum ^= add_up(&numbers);
    }
    sampler.disable()?;

    let mut processes = Processes::new();
    let mut symbolizer = Symbolizer::new().of_this_machine(true);
    let mut hot: BTreeMap<String, u64> = BTreeMap::new();
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
            *hot.entry(name.to_string()).or_default() += 1;
        }
    })?;
    let mut hot: Vec<_> = hot.into_iter().collect();
    hot.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    println!("{sum:x}; samples of cpu-clock:u, {} lost:", sampler.lost());
    for (name, samples) in hot {
        println!("{samples:>8}  {name}");
    }
    Ok(())
}
