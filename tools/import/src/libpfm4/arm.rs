//! Writes tables of Arm CPUs: from the lists that Arm publishes, and from libpfm4 for other vendors' CPUs.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use quipu_events::{CpuTable, Database};
use serde_json::Value;

use super::events::Event;

/// Arm's own CPUs by the names of their files.
const OF_ARM: [&str; 14] = [
    "cortex-a5",
    "cortex-a7",
    "cortex-a8",
    "cortex-a9",
    "cortex-a15",
    "cortex-a17",
    "cortex-a32",
    "cortex-a65ae",
    "cortex-a76ae",
    "cortex-a520",
    "cortex-a715",
    "cortex-a720",
    "cortex-x3",
    "cortex-x4",
];

/// Other vendors' CPUs: id, name, implementer and part numbers, header and table of libpfm4.
type Vendors = (
    &'static str,
    &'static str,
    &'static [(u8, u16)],
    &'static str,
    &'static str,
);

const OF_OTHERS: [Vendors; 4] = [
    (
        "fujitsu-a64fx",
        "Fujitsu A64FX",
        &[(0x46, 0x001)],
        "arm_fujitsu_a64fx_events.h",
        "arm_a64fx_pe",
    ),
    (
        "cavium-thunderx2",
        "Cavium and Marvell ThunderX2",
        &[(0x43, 0x0af), (0x42, 0x516)],
        "arm_cavium_tx2_events.h",
        "arm_thunderx2_pe",
    ),
    (
        "hisilicon-tsv110",
        "HiSilicon Kunpeng 920",
        &[(0x48, 0xd01)],
        "arm_hisilicon_kunpeng_events.h",
        "arm_kunpeng_pe",
    ),
    (
        "apm-xgene",
        "Applied Micro X-Gene",
        &[(0x50, 0x000)],
        "arm_xgene_events.h",
        "arm_xgene_pe",
    ),
];

/// Writes the tables; `arm` is a tree of github.com/ARM-software/data, and `table` reads one of libpfm4's.
pub(crate) fn write(
    arm: &Path,
    to: &Path,
    table: impl Fn(&str, &str) -> Result<Vec<Event>, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let common = Database::embedded().cpu("arm-armv8")?;
    for name in OF_ARM {
        let list: Value =
            serde_json::from_str(&fs::read_to_string(arm.join(format!("pmu/{name}.json")))?)?;
        let cpuid = list["cpuid"]
            .as_str()
            .unwrap_or_default()
            .trim_start_matches("0x");
        let cpuid = u32::from_str_radix(cpuid, 16)?;
        let mut events = BTreeMap::new();
        for event in list["events"].as_array().into_iter().flatten() {
            if let (Some(name), Some(code)) = (event["name"].as_str(), event["code"].as_u64()) {
                events.entry(name.to_owned()).or_insert(code);
            }
        }
        let source = format!("ARM-software/data, pmu/{name}.json");
        let parts = [((cpuid >> 12) as u8, (cpuid & 0xfff) as u16)];
        let shown = format!("Arm {}", list["cpu"].as_str().unwrap_or(name));
        write_one(
            &format!("arm-{name}"),
            &shown,
            &parts,
            &source,
            &events,
            &common,
            to,
        )?;
    }
    for (id, name, parts, header, array) in OF_OTHERS {
        let mut events = BTreeMap::new();
        for event in table(header, array)? {
            let code = event.text.trim().rsplit("0x").next().unwrap_or_default();
            events
                .entry(event.name)
                .or_insert(u64::from_str_radix(code, 16)?);
        }
        let source = format!("libpfm4, lib/events/{header}");
        write_one(id, name, parts, &source, &events, &common, to)?;
    }
    Ok(())
}

fn write_one(
    id: &str,
    name: &str,
    parts: &[(u8, u16)],
    source: &str,
    events: &BTreeMap<String, u64>,
    common: &CpuTable,
    to: &Path,
) -> Result<(), Box<dyn Error>> {
    let rule = |(implementer, part): &(u8, u16)| {
        format!("{{ implementer = {implementer:#04x}, part = {part:#05x} }}")
    };
    let rules: Vec<String> = parts.iter().map(rule).collect();
    let mut text = format!(
        "# Written by `quipu-import arm` from {source}; generalized events and presets are those\n\
         # of arm-armv8 that the list has the event of. Absent means absent from that list.\n\n\
         [[cpu]]\nid = \"{id}\"\nname = \"{name}\"\nscheme = \"armv8\"\nmatch = [{}]\n\
         backends = {{ linux = [\"linux\"] }}\nsource = \"{source}\"\n\n[cpu.generalized]\n",
        rules.join(", ")
    );
    let row = |name: &str, event: Option<&str>| match event {
        Some(event) if events.contains_key(event) => format!("{name} = \"{event}\"\n"),
        Some(event) => format!("{name} = {{ absent = \"this CPU does not list {event}\" }}\n"),
        None => String::new(),
    };
    for generalized in common.generalized() {
        text += &row(&generalized.name, generalized.event.as_deref().ok());
    }
    text.push_str("\n[cpu.presets]\n");
    for preset in common.presets() {
        let formula = preset.formula.as_ref().ok();
        text += &row(&preset.name, formula.and_then(|formula| formula.single()));
    }
    text.push_str("\n[cpu.events]\n");
    let mut first: BTreeMap<u64, &str> = BTreeMap::new();
    for (event, code) in events {
        let known = *first.entry(*code).or_insert(event);
        let _ = if known == event {
            writeln!(text, "{event} = {code:#04x}")
        } else {
            writeln!(
                text,
                "{event} = {{ code = {code:#04x}, same-as = \"{known}\" }}"
            )
        };
    }
    Ok(fs::write(to.join(format!("{id}.toml")), text)?)
}
