//! libpfm4's tables and PAPI's formulas: aliases, tables of Arm CPUs, and presets.

mod arm;
mod events;
mod presets;

use std::error::Error;
use std::fs;
use std::path::Path;

use quipu_events::{CpuEvents, CpuTable, Database, Interface};
use quipu_events_format::SCHEMES;
use quipu_events_format::name::select;
use quipu_hal::{Encoding, Event as Named, EventMap, Filter};

use crate::c_tables::Tables;

use events::{Event, SHIFTS, Source};

/// The PMUs of libpfm4, and the CPU entries whose events they name.
const PMUS: &str = include_str!("../../../../events/tests/it/data/libpfm4/pmus.tsv");

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

/// Writes the aliases of each CPU into a folder, from a source tree of libpfm4.
pub(crate) fn write_aliases(libpfm4: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    for row in rows() {
        let fields: Vec<&str> = row.split('\t').collect();
        if let [_, cpus, header, table, model] = fields[..] {
            let cpus: Vec<&str> = cpus.split(',').collect();
            let events = read(libpfm4, header, table, model)?;
            write(&cpus, &events, &format!("libpfm4, lib/events/{header}"), to)?;
        }
    }
    Ok(())
}

/// Returns one of libpfm4's tables as the `[cpu.events]` of an event file.
pub(crate) fn table(libpfm4: &Path, header: &str, array: &str) -> Result<String, Box<dyn Error>> {
    let events = read(libpfm4, header, array, "")?;
    Ok(format!(
        "[cpu.events]\n{}",
        in_file(events.iter(), "cpu.events")
    ))
}

/// Writes the tables of Arm CPUs into a folder, from source trees of libpfm4 and of github.com/ARM-software/data.
pub(crate) fn write_arm(libpfm4: &Path, data: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    arm::write(data, to, |header, table| read(libpfm4, header, table, "-"))
}

/// Adds PAPI's presets, the text of its `papi_events.csv`, to the tables in a folder.
pub(crate) fn add_presets(papi: &str, to: &Path) -> Result<(), Box<dyn Error>> {
    presets::add(papi, presets_of(), to)
}

/// Returns the rows of the list of PMUs.
fn rows() -> impl Iterator<Item = &'static str> {
    PMUS.lines().filter(|line| !line.starts_with('#'))
}

/// Returns the CPU entries with the names in PAPI's file whose formulas they take.
fn presets_of() -> impl Iterator<Item = (&'static str, &'static str)> {
    let own = rows().flat_map(|row| {
        let (pmu, rest) = row.split_once('\t').unwrap_or((row, ""));
        let cpus = rest.split('\t').next().unwrap_or_default();
        cpus.split(',').map(move |cpu| (cpu, pmu))
    });
    own.chain(RELATIVES.iter().copied())
}

/// Returns the events of a table in a header of libpfm4's.
fn read(
    libpfm4: &Path,
    header: &str,
    table: &str,
    model: &str,
) -> Result<Vec<Event>, Box<dyn Error>> {
    let mut tables = Tables::default();
    tables.read(SHIFTS);
    tables.read(&fs::read_to_string(
        libpfm4.join("lib/events").join(header),
    )?);
    let source = Source {
        tables: &tables,
        model,
    };
    Ok(source.events(table, header.starts_with("intel"))?)
}

/// Writes the aliases of some CPUs: the events that any of their own tables lacks.
fn write(cpus: &[&str], events: &[Event], source: &str, to: &Path) -> Result<(), Box<dyn Error>> {
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
    if needed.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = cpus.iter().map(|cpu| format!("\"{cpu}\"")).collect();
    let text = format!(
        "# Written by `quipu-import aliases`: names of events as libpfm4 has them.\n\n[[aliases]]\n\
         cpus = [{}]\nsource = \"{source}\"\n\n[aliases.events]\n{needed}",
        list.join(", ")
    );
    Ok(fs::write(to.join(format!("{first}.toml")), text)?)
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
