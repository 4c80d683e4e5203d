//! For a programmer: what does this piece of my code cost?
//!
//! Run with `cargo run -p quipu --example measure`.

use std::collections::BTreeMap;

use quipu::Total;

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
            Ok(Total::Exact(value)) => println!("  {value:>14}  {name}"),
            Ok(Total::Estimated(value)) => println!("  {value:>14}  {name} (estimated)"),
            Ok(Total::Partial { value, missing, .. }) => {
                println!("  {value:>14}  {name} (without {missing} parts)");
            }
            Ok(Total::NotCounted) => println!("  {:>14}  {name}", "not counted"),
            Err(why) => println!("  {:>14}  {name}: {why:#}", "-"),
        }
    }
    Ok(())
}
