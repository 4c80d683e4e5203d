//! For a programmer: what does this piece of my code cost?
//!
//! Run with `cargo run -p quipu-counters --example measure`.

use std::collections::BTreeMap;

use quipu::Count;

fn main() -> quipu::Result<()> {
    let measured = quipu::measure("{cycles:u,instructions:u},task-clock", || {
        let map: BTreeMap<u64, String> = (0..100_000).map(|i| (i, i.to_string())).collect();
        map.len()
    })?;
    println!("a map of {} entries:", measured.output);
    let cycles = measured.total("cycles:u");
    let instructions = measured.total("instructions:u");
    if let (Ok(Count::Exact(cycles)), Ok(Count::Exact(instructions))) = (&cycles, &instructions) {
        let per_cycle = *instructions as f64 / *cycles as f64;
        println!("  {cycles} cycles, {instructions} instructions, {per_cycle:.2} per cycle");
        return Ok(());
    }
    // Without a PMU, as in many virtual machines, or while others use its counters: each count with what it is.
    println!("{measured}");
    Ok(())
}
