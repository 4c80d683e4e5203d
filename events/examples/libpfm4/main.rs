//! Writes `events/db/aliases` from the tables of libpfm4: the names that it gives to the events of a CPU, for
//! those that the CPU's own table does not resolve to the same bits.
//!
//! `cargo run -p quipu-events --example libpfm4 SOURCE` writes them from a source tree of libpfm4;
//! `... SOURCE HEADER TABLE` prints one of its tables as the `[cpu.events]` of an event file, and
//! `... --presets papi_events.csv` adds PAPI's presets to the tables, and `... --arm SOURCE DATA` writes tables of
//! Arm CPUs, DATA being a tree of github.com/ARM-software/data.

mod arm;
mod c_tables;
mod events;
mod presets;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use quipu_events::{CpuEvents, CpuTable, Database, Interface};
use quipu_events_format::SCHEMES;
use quipu_events_format::name::select;
use quipu_hal::{Encoding, Event as Named, EventMap, Filter};

use c_tables::Tables;
use events::{Event, SHIFTS, Source};

/// The PMUs of libpfm4, and the CPU entries whose events they name.
const PMUS: &str = include_str!("../../tests/it/data/libpfm4/pmus.tsv");

/// CPUs that PAPI has no formulas for, with those whose names of events are theirs.
const RELATIVES: [(&str, &str); 24] = [
    ("amd-zen6", "~amd64_fam1ah_zen5"),
    ("intel-adl-core", "~spr"),
    ("intel-mtl-core", "~adl_glc"),
    ("intel-mtl-core", "~spr"),
    ("intel-arl-core", "~adl_glc"),
    ("intel-arl-core", "~spr"),
    ("intel-lnl-core", "~adl_glc"),
    ("intel-lnl-core", "~spr"),
    ("intel-ptl-core", "~adl_glc"),
    ("intel-ptl-core", "~spr"),
    ("intel-nvl-core", "~adl_glc"),
    ("intel-nvl-core", "~spr"),
    ("arm-cortex-a510", "~arm_n2"),
    ("arm-cortex-a710", "~arm_n2"),
    ("arm-cortex-a77", "~arm_ac76"),
    ("arm-cortex-a78", "~arm_ac76"),
    ("arm-cortex-x1", "~arm_ac76"),
    ("arm-cortex-x2", "~arm_n2"),
    ("arm-neoverse-n3", "~arm_n2"),
    ("arm-neoverse-v3", "~arm_v2"),
    ("arm-neoverse-e1", "~arm_n1"),
    ("arm-cortex-a55", "~arm_ac53"),
    ("arm-cortex-a75", "~arm_ac76"),
    ("arm-cortex-a65", "~arm_n1"),
];

/// The CPU entry that stands for libpfm4's table while the two are compared.
const SCRATCH: &str = "libpfm4-table";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (source, table) = match &arguments[..] {
        [mode, source, data] if mode == "--arm" => {
            let folder = Path::new(source).join("lib/events");
            return arm::write(Path::new(data), |header, table| {
                read(&folder, header, table, "-")
            });
        }
        [mode, papi] if mode == "--presets" => {
            return presets::add(&fs::read_to_string(papi)?, presets_of());
        }
        [source] => (source, None),
        [source, header, table] => (source, Some((header, table))),
        _ => return Err("SOURCE [HEADER TABLE] | --presets FILE".into()),
    };
    let folder = Path::new(source).join("lib/events");
    if let Some((header, table)) = table {
        let events = read(&folder, header, table, "")?;
        print!("[cpu.events]\n{}", in_file(events.iter(), "cpu.events"));
        return Ok(());
    }
    let rows = PMUS.lines().filter(|line| !line.starts_with('#'));
    for row in rows {
        let fields: Vec<&str> = row.split('\t').collect();
        if let [_, cpus, header, table, model] = fields[..] {
            let cpus: Vec<&str> = cpus.split(',').collect();
            let events = read(&folder, header, table, model)?;
            write(&cpus, &events, &format!("libpfm4, lib/events/{header}"))?;
        }
    }
    Ok(())
}

/// Returns the CPU entries with the names in PAPI's file whose formulas they take.
fn presets_of() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = PMUS.lines().filter(|line| !line.starts_with('#'));
    let own = rows.flat_map(|row| {
        let (pmu, rest) = row.split_once('\t').unwrap_or((row, ""));
        let cpus = rest.split('\t').next().unwrap_or_default();
        cpus.split(',').map(move |cpu| (cpu, pmu))
    });
    own.chain(RELATIVES.iter().copied())
}

fn read(
    folder: &Path,
    header: &str,
    table: &str,
    model: &str,
) -> Result<Vec<Event>, Box<dyn Error>> {
    let mut tables = Tables::default();
    tables.read(SHIFTS);
    tables.read(&fs::read_to_string(folder.join(header))?);
    let source = Source {
        tables: &tables,
        model,
    };
    Ok(source.events(table, header.starts_with("intel"))?)
}

/// Writes the aliases of some CPUs: the events that any of their own tables lacks.
fn write(cpus: &[&str], events: &[Event], source: &str) -> Result<(), Box<dyn Error>> {
    let database = Database::embedded();
    let first = cpus.first().ok_or("a row without a CPU")?;
    let scheme = database.cpu(first)?.scheme();
    let scheme = SCHEMES.iter().find(|(_, known)| *known == scheme);
    let scheme = scheme.ok_or("a scheme without a name")?.0;
    let all = in_file(events.iter(), "aliases.events");
    let text = format!(
        "[[cpu]]\nid = \"{SCRATCH}\"\nscheme = \"{scheme}\"\n[[aliases]]\ncpus = [\"{SCRATCH}\"]\n[aliases.events]\n{all}"
    );
    let theirs = database.with_text(Path::new("libpfm4"), &text);
    let theirs = theirs.map_err(|error| format!("{first}: {error:#}"))?;
    let theirs = theirs.cpu(SCRATCH)?.events_for(Interface::Linux);
    let mut own = Vec::new();
    for cpu in cpus {
        own.push(database.cpu(cpu)?);
    }
    let needed = events
        .iter()
        .filter(|event| own.iter().any(|own| lacks(own, &theirs, event)));
    let needed = in_file(needed, "aliases.events");
    let file = format!("db/aliases/{first}.toml");
    if needed.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = cpus.iter().map(|cpu| format!("\"{cpu}\"")).collect();
    let text = format!(
        "# Written by the example `libpfm4`: names of events as libpfm4 has them.\n\n[[aliases]]\n\
         cpus = [{}]\nsource = \"{source}\"\n\n[aliases.events]\n{needed}",
        list.join(", ")
    );
    Ok(fs::write(file, text)?)
}

/// Returns the events as the lines of an event file: short ones first, then those with tables of their own.
fn in_file<'e>(events: impl Iterator<Item = &'e Event>, section: &str) -> String {
    let (short, long): (Vec<&Event>, Vec<&Event>) =
        events.partition(|event| !event.text.starts_with('\n'));
    let all = short.iter().chain(&long).map(|event| event.text.as_str());
    all.collect::<String>()
        .replace("[EVENTS.", &format!("[{section}."))
}

/// Returns true if a CPU's own names do not lead to the bits that libpfm4's lead to.
fn lacks(own: &CpuTable, theirs: &CpuEvents, event: &Event) -> bool {
    let events = own.events_for(Interface::Linux);
    let differs = |name: &str| match bits(theirs, name) {
        // The aliases of the last run are no names of its own.
        Some(wanted) => select(own, name).is_err() || bits(&events, name) != Some(wanted),
        None => false,
    };
    let name = |mask: &String| format!("{}:{mask}", event.name);
    let pairs = |(at, mask): (usize, &String)| {
        let mut others = event.combining[..at].iter();
        others.any(|other| differs(&format!("{}:{other}", name(mask))))
    };
    differs(&event.name)
        || event.masks.iter().any(|mask| differs(&name(mask)))
        || event.combining.iter().enumerate().any(pairs)
}

fn bits(events: &CpuEvents, name: &str) -> Option<(u64, u64)> {
    let resolved = events
        .resolve(&Named::Named(name.to_owned()), Filter::all())
        .ok()?;
    match resolved.encoding {
        Encoding::Perf(perf) => Some((perf.config, perf.config1)),
        _ => None,
    }
}
