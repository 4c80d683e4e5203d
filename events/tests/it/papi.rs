//! PAPI's presets against PAPI's own file: each formula has the value of PAPI's, or another for a reason that is written
//! down.
//!
//! The file of Debian's `libpapi` is taken, or the one that `PAPI_EVENTS` names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::{env, fs};

use quipu_events::{CpuEvents, Database, Interface};
use quipu_hal::{Event, EventMap, Filter};

use crate::tables::rows;

const PMUS: &str = include_str!("data/libpfm4/pmus.tsv");
const DIFFERENCES: &str = include_str!("data/papi/differences.tsv");

/// Returns the text of PAPI's file.
fn file() -> Result<String, String> {
    if let Some(path) = env::var_os("PAPI_EVENTS") {
        return fs::read_to_string(path).map_err(|error| error.to_string());
    }
    let versions = fs::read_dir("/usr/share/papi")
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<_> = versions
        .map(|version| version.path().join("papi_events.csv"))
        .collect();
    files.sort();
    let newest = files.pop().ok_or("libpapi is not installed")?;
    fs::read_to_string(newest).map_err(|error| error.to_string())
}

/// A preset as PAPI has it: its kind, and what follows: events, after the postfix formula if it is one.
type Preset<'f> = (&'f str, Vec<&'f str>);

/// Returns the presets of each CPU by PAPI's name for it. A later line replaces an earlier one.
fn presets(text: &str) -> HashMap<&str, BTreeMap<&str, Preset<'_>>> {
    let mut lists: HashMap<&str, BTreeMap<&str, Preset<'_>>> = HashMap::new();
    let mut cpus: Vec<&str> = Vec::new();
    let mut was_cpu = false;
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        match fields[..] {
            ["CPU", name, ..] => {
                if !was_cpu {
                    cpus.clear();
                }
                was_cpu = true;
                cpus.push(name);
            }
            ["PRESET", name, kind, ref rest @ ..] => {
                was_cpu = false;
                let words = ["NOTE", "LDESC", "SDESC"];
                let operands = rest
                    .iter()
                    .copied()
                    .take_while(|field| !words.contains(field));
                let operands: Vec<&str> = operands.filter(|field| !field.is_empty()).collect();
                for cpu in &cpus {
                    let list = lists.entry(*cpu).or_default();
                    list.insert(name, (kind, operands.clone()));
                }
            }
            _ => {}
        }
    }
    lists
}

/// Returns a number for the bits that a name leads to: equal numbers are equal bits.
fn number(events: &CpuEvents, name: &str) -> Option<f64> {
    let resolved = events.resolve(&Event::Named(name.to_owned()), Filter::all());
    let bits = format!("{:?}", resolved.ok()?.encoding);
    // FNV-1a: small enough that sums of them are exact.
    let hash = bits.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    Some(f64::from(hash))
}

/// Returns the value of PAPI's formula with those numbers for its events.
///
/// # Errors
/// The name or kind that is not known.
fn value<'f>((kind, operands): &Preset<'f>, events: &CpuEvents) -> Result<f64, &'f str> {
    let number = |name: &&'f str| number(events, name).ok_or(*name);
    let numbers = || operands.iter().map(number).collect::<Result<Vec<f64>, _>>();
    match *kind {
        "NOT_DERIVED" => number(operands.first().ok_or("no event")?),
        "DERIVED_ADD" => Ok(numbers()?.iter().sum()),
        "DERIVED_SUB" => {
            let numbers = numbers()?;
            let (first, others) = numbers.split_first().ok_or("no event")?;
            Ok(first - others.iter().sum::<f64>())
        }
        "DERIVED_POSTFIX" => {
            let (postfix, names) = operands.split_first().ok_or("no formula")?;
            let mut stack = Vec::new();
            for part in postfix.split('|').filter(|part| !part.is_empty()) {
                let at = part
                    .strip_prefix('N')
                    .and_then(|at| at.parse::<usize>().ok());
                let value = match (at, part) {
                    (Some(at), _) => number(names.get(at).ok_or(part)?)?,
                    (None, "+" | "-" | "*" | "/") => {
                        let (b, a) = (stack.pop().ok_or(part)?, stack.pop().ok_or(part)?);
                        match part {
                            "+" => a + b,
                            "-" => a - b,
                            "*" => a * b,
                            _ => a / b,
                        }
                    }
                    (None, part) => part.parse::<f64>().map_err(|_| part)?,
                };
                stack.push(value);
            }
            stack.pop().ok_or("no formula")
        }
        kind => Err(kind),
    }
}

#[test]
fn presets_are_those_of_papi() {
    let text = match file() {
        Ok(text) => text,
        Err(reason) => return println!("SKIP presets_are_those_of_papi: {reason}"),
    };
    let lists = presets(&text);
    let database = Database::embedded();
    let explained: HashMap<[&str; 3], &str> = rows(DIFFERENCES)
        .map(|row| ([row[0], row[1], row[2]], row[4]))
        .collect();
    let mut seen = HashSet::new();
    let mut wrong = Vec::new();
    let (mut compared, mut equal) = (0, 0);
    for row in rows(PMUS) {
        let Some(list) = lists.get(row[0]) else {
            continue;
        };
        for cpu in row[1].split(',') {
            let table = database.cpu(cpu).unwrap();
            let events = table.events_for(Interface::Linux);
            for (name, theirs) in list {
                compared += 1;
                let formula = table.preset(name).map(|preset| preset.formula);
                let ours = match &formula {
                    Some(Ok(formula)) => {
                        let numbers: Option<Vec<f64>> = formula
                            .events()
                            .iter()
                            .map(|name| number(&events, name))
                            .collect();
                        numbers.and_then(|numbers| formula.evaluate(&numbers))
                    }
                    _ => None,
                };
                let wanted = value(theirs, &events);
                let key = [row[0], cpu, *name];
                if let (Some(ours), Ok(wanted)) = (ours, &wanted)
                    && (ours - wanted).abs() <= 1e-9 * wanted.abs().max(1.0)
                {
                    equal += 1;
                    if explained.contains_key(&key) {
                        wrong.push(format!("{}\tis PAPI's: its row is stale", key.join("\t")));
                    }
                    continue;
                }
                let shown = match formula {
                    Some(Ok(formula)) => formula.to_string(),
                    Some(Err(reason)) => format!("absent: {reason}"),
                    None => "none".to_owned(),
                };
                let written = format!("{} {}", theirs.0, theirs.1.join(" "));
                seen.insert(key);
                if explained.get(&key) != Some(&shown.as_str()) {
                    let unknown = wanted.err().unwrap_or_default();
                    wrong.push(format!("{}\t{written}\t{shown}\t{unknown}", key.join("\t")));
                }
            }
        }
    }
    // Another version of PAPI may have other presets; those of one CPU are not to be gone unnoticed.
    println!(
        "{equal} of {compared} presets have PAPI's value, {} others a reason",
        seen.len()
    );
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(equal > 1_000, "{equal}");
}
