//! Events of units outside of the cores, from the lists in Linux (`tools/perf/pmu-events/arch/x86`).
//!
//! Each row becomes a name and the terms by which perf opens the event on the PMU of its unit. Linux's lists lack one key
//! of Intel's own (<https://github.com/intel/perfmon>), the extension of the event number, which selects other events:
//! it is taken from there, where Intel's list is given too.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use serde_json::Value;

use super::{Imported, parse, text};

/// The keys that are terms, in perf's order (`tools/perf/pmu-events/jevents.py`).
const TERMS: [(&str, &str); 12] = [
    ("PortMask", "ch_mask"),
    ("CounterMask", "cmask"),
    ("EdgeDetect", "edge"),
    ("FCMask", "fc_mask"),
    ("Invert", "inv"),
    ("UMask", "umask"),
    ("NodeType", "type"),
    ("RdWrMask", "rdwrmask"),
    ("EnAllCores", "enallcores"),
    ("EnAllSlices", "enallslices"),
    ("SliceId", "sliceid"),
    ("ThreadMask", "threadmask"),
];

/// The extension of the event number, bit 21 of the counter's configuration: bit 8 of the field `event` of these PMUs
/// (`event_ext`, `arch/x86/events/intel/uncore_snbep.c`).
const EXTENSION: &str = "ExtSel";

/// The units whose events have an extension. Intel's list of Sandy Bridge EP has it in the system configuration's too,
/// where neither Linux nor libpfm4 knows of one.
const EXTENDED: [&str; 2] = ["QPI", "PCU"];

/// The other keys that are read, and those that change nothing in what is counted.
const KNOWN: [&str; 18] = [
    "EventName",
    "EventCode",
    "Unit",
    "Filter",
    "ScaleUnit",
    "BriefDescription",
    "PublicDescription",
    "Counter",
    "CounterType",
    "Deprecated",
    "Errata",
    "Experimental",
    "MetricExpr",
    "MetricGroup",
    "MetricName",
    "PerPkg",
    "Offcore",
    "SampleAfterValue",
];

/// The units whose PMU is not called `uncore_` and the unit's name. perf has AMD's (`unit_to_pmu`, jevents.py); what the
/// others' drivers are called is in `arch/x86/events/intel/uncore_snb.c` and `uncore_snbep.c`.
const PMUS: [(&str, &str); 6] = [
    ("L3PMC", "amd_l3"),
    ("DFPMC", "amd_df"),
    ("UMCPMC", "amd_umc"),
    ("HAC_CBO", "uncore_hac_cbox"),
    ("iMC_DCLK", "uncore_imc"),
    ("iMC_UCLK", "uncore_imc_uclk"),
];

/// The units in these lists that are cores.
const CORES: [&str; 4] = ["", "cpu_core", "cpu_atom", "cpu_lowpower"];

/// Writes the events of the units as `[uncore.pmus]` of a file.
pub(super) fn import(files: &[(&str, Vec<Value>)]) -> Imported {
    let mut pmus: BTreeMap<String, BTreeMap<&str, String>> = BTreeMap::new();
    let mut known: HashMap<String, String> = HashMap::new();
    let mut left_out = Vec::new();
    let rows = files.iter().flat_map(|(_, rows)| rows);
    let (of_intel, of_linux): (Vec<_>, Vec<_>) = rows.partition(|row| row.get(EXTENSION).is_some());
    let extensions: HashMap<String, u64> = of_intel
        .into_iter()
        .filter_map(|row| {
            let name = text(row, "EventName").to_ascii_uppercase();
            Some((name, parse(text(row, EXTENSION))?))
        })
        .collect();
    for row in of_linux
        .into_iter()
        .filter(|row| !CORES.contains(&text(row, "Unit")))
    {
        let name = text(row, "EventName");
        if name.is_empty() {
            // A metric, of other events.
            continue;
        }
        let pmu = pmu(text(row, "Unit"));
        let written = [name, text(row, "Filter"), text(row, "ScaleUnit")];
        if !super::is_plain(&pmu) || !written.into_iter().all(stands_in_quotes) {
            left_out.push(format!(
                "{name:?}: its unit or its text has characters that a file cannot hold"
            ));
            continue;
        }
        let extension = extensions.get(&name.to_ascii_uppercase());
        let extension = extension.filter(|_| EXTENDED.contains(&text(row, "Unit")));
        let event = match event(row, extension.copied().unwrap_or(0)) {
            Ok(event) => event,
            Err(reason) => {
                left_out.push(format!("{name}: {reason}"));
                continue;
            }
        };
        let whole = format!("{pmu} {event}");
        match known.get(&name.to_ascii_uppercase()) {
            Some(first) if *first == whole => continue,
            Some(first) => {
                left_out.push(format!("{name}: it is {whole}, and already {first}"));
                continue;
            }
            None => known.insert(name.to_ascii_uppercase(), whole),
        };
        pmus.entry(pmu).or_default().insert(name, event);
    }
    let mut text = String::new();
    for (pmu, events) in &pmus {
        let _ = writeln!(text, "\n[uncore.pmus.{pmu}]");
        for (name, event) in events {
            let quote = if super::is_plain(name) { "" } else { "\"" };
            let _ = writeln!(text, "{quote}{name}{quote} = {event}");
        }
    }
    Imported {
        text: text.trim_start().to_owned(),
        events: known.len(),
        left_out,
    }
}

/// Returns true if text can be written between quotes as it is.
fn stands_in_quotes(text: &str) -> bool {
    text.chars()
        .all(|c| !c.is_control() && c != '"' && c != '\\')
}

/// Returns the name of the PMU that Linux has for a unit.
fn pmu(unit: &str) -> String {
    let named = PMUS.iter().find(|(known, _)| *known == unit);
    named.map_or_else(
        || format!("uncore_{}", unit.to_ascii_lowercase()),
        |(_, pmu)| (*pmu).to_owned(),
    )
}

/// Returns the value of an event in the file: its terms, with the scale of its values.
fn event(row: &Value, extension: u64) -> Result<String, String> {
    let keys = row.as_object().into_iter().flat_map(serde_json::Map::keys);
    let is_known = |key: &str| KNOWN.contains(&key) || TERMS.iter().any(|(term, _)| *term == key);
    if let Some(unknown) = keys.into_iter().find(|key| !is_known(key)) {
        return Err(format!("the key {unknown} is not known"));
    }
    let value = |key: &str| -> Result<u64, String> {
        let written = text(row, key).split(',').next().unwrap_or_default();
        match written {
            "" => Ok(0),
            written => parse(written).ok_or_else(|| format!("{key} is {written:?}")),
        }
    };
    let mut terms = vec![format!(
        "event={:#04x}",
        value("EventCode")? | extension << 8
    )];
    for (key, term) in TERMS {
        match value(key)? {
            0 => {}
            value => terms.push(format!("{term}={value:#04x}")),
        }
    }
    let filter = text(row, "Filter").to_ascii_lowercase();
    for term in filter.split(',').filter(|term| !term.is_empty()) {
        // The last term of a field counts, as with perf.
        let field = term.split('=').next().unwrap_or(term);
        terms.retain(|other| other.split('=').next() != Some(field));
        terms.push(term.to_owned());
    }
    let terms = terms.join(",");
    Ok(match text(row, "ScaleUnit") {
        "" => format!("\"{terms}\""),
        scale => format!("{{ terms = \"{terms}\", scale-unit = \"{scale}\" }}"),
    })
}
