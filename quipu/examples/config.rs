//! For the author of a tool with a configuration: the backend and the events are a user's choice, in TOML.
//!
//! Run with `cargo run -p quipu-counters --example config [FILE]`.

use quipu::{EventSet, Machine};
use serde::Deserialize;

const DEFAULT: &str = r#"
backend = "linux"
events = ["page-faults:u", "cycles:u"]
raw = [0xc0]
"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// One of `quipu info`; that which the event database prefers if it is left out.
    backend: Option<String>,
    events: Vec<String>,
    /// Events by the bits of this CPU's manual.
    #[serde(default)]
    raw: Vec<u64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => DEFAULT.to_owned(),
    };
    let config: Config = toml::from_str(&text)?;
    let mut builder = EventSet::builder();
    if let Some(name) = &config.backend {
        builder.backends([Machine::this().named(name)?]);
    }
    for event in &config.events {
        builder.events(event.as_str())?;
    }
    for bits in config.raw {
        builder.events(format!("r{bits:x}"))?;
    }
    let mut set = builder.open()?;
    let mut counts = set.counts();
    set.enable()?;
    let pages = std::hint::black_box(vec![1_u8; 1 << 20]);
    set.disable()?;
    set.read(&mut counts)?;
    println!("filling {} bytes:", pages.len());
    for event in counts.events() {
        match event.total() {
            Ok(total) => println!("  {} = {total:?}", event.name()),
            Err(why) => println!("  {}: {why:#}", event.name()),
        }
    }
    Ok(())
}
