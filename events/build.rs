//! Compiles `db/*.toml` into the embedded table. An error in a file fails the build with its place.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use source::model::Bits;

// These modules are the library's own. The build script shares the reader of event files with the library and needs half of it.
#[allow(dead_code, unused_imports, unreachable_pub)]
#[path = "src/formula.rs"]
mod formula;
#[allow(dead_code, unreachable_pub)]
#[path = "src/name.rs"]
mod name;
#[allow(dead_code, unused_imports, unreachable_pub)]
#[path = "src/packed/mod.rs"]
mod packed;
#[allow(dead_code, unreachable_pub)]
#[path = "src/source/mod.rs"]
mod source;

/// Nothing below: the embedded database itself.
struct Nothing;

impl source::Below for Nothing {
    fn scheme(&self, _: &str) -> Option<quipu_hal::Scheme> {
        None
    }

    fn counters(&self, _: &str) -> (Option<u8>, Option<u8>) {
        (None, None)
    }

    fn find(&self, _: &str, _: &str, _: &str) -> Option<Bits> {
        None
    }

    fn default_masks(&self, _: &str, _: &str) -> Vec<Bits> {
        Vec::new()
    }

    fn has_generalized(&self, _: &str, _: &str) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new("db");
    println!("cargo::rerun-if-changed=db");
    let mut files = Vec::new();
    for item in fs::read_dir(folder)? {
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
    let cpus = source::read_layer(&files, &Nothing).map_err(|findings| {
        for finding in &findings {
            println!("cargo::error={finding}");
        }
        format!("{} findings in the event database", findings.len())
    })?;
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let table = packed::write(&cpus, &names);
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("events.bin"), table)?;
    Ok(())
}
