//! The tables that programs embed against the event files.

use std::fs;
use std::path::Path;

#[path = "../../examples/pack/tables.rs"]
mod tables;

#[test]
fn embedded_tables_are_those_of_the_event_files() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, table) in tables::tables(package).unwrap_or_else(|error| panic!("{error}")) {
        let packed = fs::read(package.join("tables").join(name)).expect("it is packed");
        assert!(
            packed == table,
            "tables/{name} is older than the event files: cargo run -p quipu-events --example pack"
        );
    }
}
