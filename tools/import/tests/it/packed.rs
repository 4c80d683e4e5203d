//! The tables that programs embed against the event files.

use std::fs;
use std::path::Path;

use quipu_import::pack::tables;

#[test]
fn embedded_tables_are_those_of_the_event_files() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events");
    for (name, table) in tables(&package).unwrap_or_else(|error| panic!("{error}")) {
        let packed = fs::read(package.join("tables").join(name)).expect("it is packed");
        assert!(
            packed == table,
            "tables/{name} is older than the event files: cargo run -p quipu-import pack"
        );
    }
}
