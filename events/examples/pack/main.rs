//! Packs the event files of `db` into `tables`, which programs embed: `cargo run -p quipu-events --example pack`.
//!
//! A test compares the tables with the files.

mod tables;

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, table) in tables::tables(package)? {
        fs::write(package.join("tables").join(name), table)?;
    }
    Ok(())
}
