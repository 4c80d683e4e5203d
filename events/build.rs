//! Compiles `db/*.toml` and `db/aliases/*.toml` into the embedded table. Every finding in a file fails the build with its location.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use quipu_events_format::{NoBase, compile};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=db");
    let mut files = Vec::new();
    for item in fs::read_dir("db")?.chain(fs::read_dir("db/aliases")?) {
        let path = item?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push((path.display().to_string(), fs::read_to_string(&path)?));
        }
    }
    // The order of files is the order in which CPU entries are tried; it must not depend on the disk.
    files.sort();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let table = compile(&files, &NoBase).map_err(|findings| {
        for finding in &findings {
            println!("cargo::error={finding}");
        }
        format!("{} findings in the event database", findings.len())
    })?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("events.bin"), table)?;
    Ok(())
}
