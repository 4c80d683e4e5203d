//! The tables of the event database, out of its files.

use std::error::Error;
use std::fs;
use std::path::Path;

use quipu_events_format::packed::{Table, UncoreTable};
use quipu_events_format::{
    DescriptionFiles, Diagnostic, Layer, NoBase, compile_metrics, compile_uncore,
};

/// A file of tables: its name, and its bytes.
pub type Packed = (&'static str, Vec<u8>);

/// Returns the tables with the names of their files: of `db/*.toml` and `db/aliases/*.toml`, of `db/uncore/*.toml`, of
/// `db/metrics/*.toml`, and the sentences of `db/descriptions/*.toml`, which the first two refer to. `package` is the
/// directory of `quipu-events`.
///
/// # Errors
/// Every finding in a file, with its location.
pub fn tables(package: &Path) -> Result<[Packed; 4], Box<dyn Error>> {
    let files = read(package, &["db/descriptions"])?;
    let descriptions = DescriptionFiles::read(&borrowed(&files)).map_err(|found| lines(&found))?;
    let files = read(package, &["db", "db/aliases"])?;
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let layer = Layer::read(&borrowed(&files), &NoBase).map_err(|found| lines(&found))?;
    let events = layer.write_described(&names, &descriptions);
    let table = Table::new(events.clone());
    let ids: Vec<String> = table.cpus().map(|cpu| cpu.id().to_owned()).collect();
    let files = read(package, &["db/uncore"])?;
    let uncore =
        compile_uncore(&borrowed(&files), &ids, &descriptions).map_err(|found| lines(&found))?;
    let unknown = descriptions.without_event(&table, &UncoreTable::new(&uncore));
    if !unknown.is_empty() {
        return Err(format!("descriptions of no event: {}", unknown.join(", ")).into());
    }
    let sentences = descriptions
        .write()
        .ok_or("the descriptions are too long")?;
    let files = read(package, &["db/metrics"])?;
    let metrics = compile_metrics(&borrowed(&files), &ids).map_err(|found| lines(&found))?;
    Ok([
        ("events.bin", events),
        ("uncore.bin", uncore),
        ("metrics.bin", metrics),
        ("descriptions.bin", sentences),
    ])
}

/// Returns the event files of some folders, sorted by name: the order of files is the order in which CPU entries are
/// tried, and it must not depend on the disk.
fn read(package: &Path, folders: &[&str]) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in folders {
        for item in fs::read_dir(package.join(folder))? {
            let item = item?;
            let name = item.file_name().into_string().map_err(|_| "no name")?;
            if name.ends_with(".toml") {
                let text = fs::read_to_string(item.path())?;
                files.push((format!("{folder}/{name}"), text));
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

fn lines(findings: &[Diagnostic]) -> String {
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    format!("the event database:\n{}", findings.join("\n"))
}
