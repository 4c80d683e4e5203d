//! Adds PAPI's presets to the tables: each formula whose events the CPU's table has, in the table's own names.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;

use quipu_events::{CpuTable, Database, Formula, Interface};
use quipu_events_format::name::select;
use quipu_hal::{Event, EventMap, Filter};

/// The formula of each preset, for each name that the file gives to a CPU.
type Lists = HashMap<String, BTreeMap<String, String>>;

/// Intel's Atoms since Goldmont, which PAPI's file does not have.
const ATOMS: [&str; 14] = [
    "intel-adl-atom",
    "intel-arl-atom",
    "intel-arl-lp",
    "intel-cwf",
    "intel-ehl",
    "intel-glm",
    "intel-glp",
    "intel-grr",
    "intel-lnl-atom",
    "intel-mtl-atom",
    "intel-nvl-atom",
    "intel-ptl-atom",
    "intel-snr",
    "intel-srf",
];

/// The events of hardware interrupts that PAPI's file leaves out: Intel's since Goldmont and Skylake, AMD's since Zen 2.
const INTERRUPTS: [(&str, &str); 2] = [
    ("PAPI_HW_INT", "'HW_INTERRUPTS.RECEIVED'"),
    ("PAPI_HW_INT", "'ls_int_taken'"),
];

/// PAPI's formulas of Knights Landing in the names of the later Atoms; the first whose events there are is taken.
const ON_ATOMS: [(&str, &str); 17] = [
    ("PAPI_BR_CN", "'BR_INST_RETIRED.COND'"),
    ("PAPI_BR_CN", "'BR_INST_RETIRED.JCC'"),
    (
        "PAPI_BR_NTK",
        "'BR_INST_RETIRED.COND' - 'BR_INST_RETIRED.COND_TAKEN'",
    ),
    (
        "PAPI_BR_NTK",
        "'BR_INST_RETIRED.JCC' - 'BR_INST_RETIRED.TAKEN_JCC'",
    ),
    (
        "PAPI_BR_PRC",
        "'BR_INST_RETIRED.COND' - 'BR_MISP_RETIRED.COND'",
    ),
    (
        "PAPI_BR_PRC",
        "'BR_INST_RETIRED.JCC' - 'BR_MISP_RETIRED.JCC'",
    ),
    ("PAPI_BR_TKN", "'BR_INST_RETIRED.COND_TAKEN'"),
    ("PAPI_BR_TKN", "'BR_INST_RETIRED.TAKEN_JCC'"),
    (
        "PAPI_BR_UCN",
        "'BR_INST_RETIRED.ALL_BRANCHES' - 'BR_INST_RETIRED.COND'",
    ),
    (
        "PAPI_BR_UCN",
        "'BR_INST_RETIRED.ALL_BRANCHES' - 'BR_INST_RETIRED.JCC'",
    ),
    (
        "PAPI_L1_DCA",
        "'MEM_UOPS_RETIRED.ALL_LOADS' + 'MEM_UOPS_RETIRED.ALL_STORES'",
    ),
    ("PAPI_L1_ICA", "'ICACHE.ACCESSES'"),
    ("PAPI_L1_ICH", "'ICACHE.ACCESSES' - 'ICACHE.MISSES'"),
    ("PAPI_L1_ICM", "'ICACHE.MISSES'"),
    ("PAPI_LD_INS", "'MEM_UOPS_RETIRED.ALL_LOADS'"),
    (
        "PAPI_LST_INS",
        "'MEM_UOPS_RETIRED.ALL_LOADS' + 'MEM_UOPS_RETIRED.ALL_STORES'",
    ),
    ("PAPI_SR_INS", "'MEM_UOPS_RETIRED.ALL_STORES'"),
];

/// Adds to the tables in a folder what the file of PAPI has and they lack.
///
/// `pairs` are CPU entries and the names in PAPI's file whose formulas they take; one that begins with `~` is a
/// relative's, of which only names that the CPU's own table has are taken.
pub(crate) fn add<'p>(
    papi: &str,
    pairs: impl Iterator<Item = (&'p str, &'p str)>,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let lists = read(papi);
    let database = Database::embedded();
    for (cpu, pmu) in pairs {
        let relative = pmu.starts_with('~');
        let Some(list) = lists.get(pmu.trim_start_matches('~')) else {
            continue;
        };
        let table = database.cpu(cpu)?;
        let mut found = Vec::new();
        for (preset, formula) in list {
            let known = table
                .preset(preset)
                .is_some_and(|preset| preset.formula.is_ok());
            if !known && let Some(formula) = translate(&table, formula, relative) {
                found.push(format!("{preset} = \"{formula}\""));
            }
        }
        insert(cpu, &found, folder)?;
    }
    for cpu in ATOMS {
        add_missing(cpu, &ON_ATOMS, &database, folder)?;
    }
    for cpu in database.cpus() {
        add_missing(&cpu.id, &INTERRUPTS, &database, folder)?;
    }
    Ok(())
}

/// Adds the presets of a list whose events a CPU has, of several formulas for one the first.
fn add_missing(
    cpu: &str,
    list: &[(&str, &str)],
    database: &Database,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let table = database.cpu(cpu)?;
    let mut found: Vec<String> = Vec::new();
    for (preset, formula) in list {
        let line = format!("{preset} = ");
        let known = table
            .preset(preset)
            .is_some_and(|preset| preset.formula.is_ok())
            || found.iter().any(|found| found.starts_with(&line));
        if !known && let Some(formula) = translate(&table, formula, true) {
            found.push(format!("{line}\"{formula}\""));
        }
    }
    insert(cpu, &found, folder)
}

/// Reads PAPI's file: lines of `CPU,name` that belong together, then lines of `PRESET,name,kind,...`.
fn read(text: &str) -> Lists {
    let mut lists = Lists::new();
    let mut cpus: Vec<String> = Vec::new();
    let mut fresh = false;
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        match fields[..] {
            ["CPU", name, ..] => {
                if !fresh {
                    cpus.clear();
                }
                fresh = true;
                cpus.push(name.to_owned());
            }
            ["PRESET", name, kind, ref rest @ ..] => {
                fresh = false;
                let Some(formula) = formula(kind, rest) else {
                    continue;
                };
                for cpu in &cpus {
                    let list = lists.entry(cpu.clone()).or_default();
                    list.insert(name.to_owned(), formula.clone());
                }
            }
            _ => {}
        }
    }
    lists
}

/// Returns a formula in which events stand between quotes; `None` for a kind that is not known.
fn formula(kind: &str, rest: &[&str]) -> Option<String> {
    let words = ["NOTE", "LDESC", "SDESC"];
    let end = rest
        .iter()
        .position(|field| words.contains(field))
        .unwrap_or(rest.len());
    let rest = &rest[..end];
    let quoted: Vec<String> = rest.iter().map(|event| format!("'{event}'")).collect();
    match kind {
        "NOT_DERIVED" => quoted.into_iter().next(),
        "DERIVED_ADD" => Some(quoted.join(" + ")),
        "DERIVED_SUB" => Some(quoted.join(" - ")),
        "DERIVED_POSTFIX" => {
            let (postfix, events) = quoted.split_first()?;
            let mut stack: Vec<String> = Vec::new();
            for part in postfix
                .trim_matches('\'')
                .split('|')
                .filter(|part| !part.is_empty())
            {
                let event = part
                    .strip_prefix('N')
                    .and_then(|number| number.parse::<usize>().ok());
                match (event, part) {
                    (Some(number), _) => stack.push(events.get(number)?.clone()),
                    (None, "+" | "-" | "*" | "/") => {
                        let (b, a) = (stack.pop()?, stack.pop()?);
                        stack.push(format!("({a} {part} {b})"));
                    }
                    (None, number) => stack.push(number.parse::<u64>().ok()?.to_string()),
                }
            }
            let whole = stack.pop()?;
            let inner = whole
                .strip_prefix('(')
                .and_then(|whole| whole.strip_suffix(')'));
            let balanced = |inner: &&str| {
                let mut depth = 0;
                inner.chars().all(|c| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    depth >= 0
                })
            };
            Some(inner.filter(balanced).unwrap_or(&whole).to_owned())
        }
        _ => None,
    }
}

/// Returns a formula in the names of a table; `None` when the table lacks an event of it.
fn translate(table: &CpuTable, formula: &str, relative: bool) -> Option<String> {
    let mut text = String::new();
    for (at, part) in formula.split('\'').enumerate() {
        if at % 2 == 0 {
            text.push_str(part);
            continue;
        }
        // A formula takes what begins with a digit for a number.
        let is_name = part.starts_with(|first: char| first.is_ascii_alphabetic());
        if is_name && select(table, part).is_ok() {
            text.push_str(part);
            continue;
        }
        if relative {
            return None;
        }
        let events = table.events_for(Interface::Linux);
        let bits = |name: &str| {
            let resolved = events.resolve(&Event::Named(name.to_owned()), Filter::all());
            Some(resolved.ok()?.encoding)
        };
        let wanted = bits(part)?;
        let name = table.decode(&wanted).ok()?.name;
        if select(table, &name).is_err() || bits(&name)? != wanted {
            return None;
        }
        text.push_str(&name);
    }
    Formula::parse(&text).is_ok().then_some(text)
}

/// Puts lines among the presets of a CPU's file, in the order of their names.
fn insert(cpu: &str, lines: &[String], folder: &Path) -> Result<(), Box<dyn Error>> {
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let Some((before, rest)) = text.split_once(&format!("id = \"{cpu}\"\n")) else {
            continue;
        };
        let end = rest.find("[[cpu]]").unwrap_or(rest.len());
        let Some(start) = rest[..end].find("[cpu.presets]\n") else {
            continue;
        };
        let start = start + "[cpu.presets]\n".len();
        let end = rest[start..]
            .find("\n\n")
            .map_or(rest.len(), |end| start + end + 1);
        let mut presets: BTreeMap<String, String> = BTreeMap::new();
        for line in rest[start..end]
            .lines()
            .chain(lines.iter().map(String::as_str))
        {
            presets.insert(name(line), line.to_owned());
        }
        let presets: String = presets.values().map(|line| format!("{line}\n")).collect();
        let text = format!(
            "{before}id = \"{cpu}\"\n{}{presets}{}",
            &rest[..start],
            &rest[end..]
        );
        fs::write(&path, text)?;
    }
    Ok(())
}
