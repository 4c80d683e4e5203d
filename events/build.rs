//! Compiles `db/*.toml` and `db/aliases/*.toml` into the embedded table, and `db/uncore/*.toml` into one of its own.
//! Every finding in a file fails the build with its location.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use quipu_events_format::packed::Table;
use quipu_events_format::{Diagnostic, NoBase, compile, compile_uncore};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=db");
    let files = read(&["db", "db/aliases"])?;
    let table = compile(&borrowed(&files), &NoBase).map_err(|findings| tell(&findings))?;
    let ids: Vec<String> = Table::new(table.clone())
        .cpus()
        .map(|cpu| cpu.id().to_owned())
        .collect();
    let files = read(&["db/uncore"])?;
    let uncore = compile_uncore(&borrowed(&files), &ids).map_err(|findings| tell(&findings))?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("events.bin"), table)?;
    fs::write(Path::new(&out).join("uncore.bin"), uncore)?;
    Ok(())
}

/// Returns the event files of some folders, sorted by name: the order of files is the order in which CPU entries are
/// tried, and it must not depend on the disk.
fn read(folders: &[&str]) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in folders {
        for item in fs::read_dir(folder)? {
            let path = item?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                files.push((path.display().to_string(), fs::read_to_string(&path)?));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    let files = files.iter();
    files
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect()
}

fn tell(findings: &[Diagnostic]) -> String {
    for finding in findings {
        println!("cargo::error={finding}");
    }
    format!("{} findings in the event database", findings.len())
}
