//! Compiles `db/*.toml` and `db/aliases/*.toml` into the embedded table, `db/uncore/*.toml` into one of its own, and
//! `db/descriptions/*.toml` into compressed sentences, which both tables refer to, and `db/metrics/*.toml` into compressed lines.
//! Every finding in a file fails the build with its location.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use quipu_events_format::packed::{Table, UncoreTable};
use quipu_events_format::{
    DescriptionFiles, Diagnostic, Layer, NoBase, compile_metrics, compile_uncore,
};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=db");
    let files = read(&["db/descriptions"])?;
    let descriptions =
        DescriptionFiles::read(&borrowed(&files)).map_err(|findings| tell(&findings))?;
    let files = read(&["db", "db/aliases"])?;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let layer = Layer::read(&borrowed(&files), &NoBase).map_err(|findings| tell(&findings))?;
    let table = layer.write_described(&names, &descriptions);
    let ids: Vec<String> = Table::new(table.clone())
        .cpus()
        .map(|cpu| cpu.id().to_owned())
        .collect();
    let files = read(&["db/uncore"])?;
    let uncore = compile_uncore(&borrowed(&files), &ids, &descriptions)
        .map_err(|findings| tell(&findings))?;
    let unknown =
        descriptions.without_event(&Table::new(table.clone()), &UncoreTable::new(&uncore));
    if !unknown.is_empty() {
        return Err(format!("descriptions of no event: {}", unknown.join(", ")).into());
    }
    let sentences = descriptions
        .write()
        .ok_or("the descriptions are too long")?;
    let files = read(&["db/metrics"])?;
    let metrics = compile_metrics(&borrowed(&files), &ids).map_err(|findings| tell(&findings))?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    fs::write(Path::new(&out).join("events.bin"), table)?;
    fs::write(Path::new(&out).join("uncore.bin"), uncore)?;
    fs::write(Path::new(&out).join("metrics.bin"), metrics)?;
    fs::write(Path::new(&out).join("descriptions.bin"), sentences)?;
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
