//! For a programmer: what does this piece of my code cost?
//!
//! Run with `cargo run -p quipu-counters --example measure`.

use std::collections::BTreeMap;

use quipu::Count;

fn main() -> quipu::Result<()> {
    let events = "task-clock,page-faults,context-switches,{cycles,instructions}";
    let measured = quipu::measure(events, || {
        let map: BTreeMap<u64, String> = (0..100_000).map(|i| (i, i.to_string())).collect();
        map.len()
    })?;
    println!("a map of {} entries:", measured.output);
    for event in measured.counts.events() {
        let name = event.event().spec();
        match event.total() {
            Ok(Count::Exact(value)) => println!("  {value:>14}  {name}"),
            Ok(Count::Estimated(value)) => println!("  {value:>14}  {name} (estimated)"),
            Ok(Count::Partial { value, missing, .. }) => {
                println!("  {value:>14}  {name} (without {missing} parts)");
            }
            Ok(_) => println!("  {:>14}  {name}", "not counted"),
            Err(why) => println!("  {:>14}  {name}: {why:#}", "-"),
        }
    }
    Ok(())
}
