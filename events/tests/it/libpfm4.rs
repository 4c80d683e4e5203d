//! libpfm4's names against libpfm4 itself: each leads to its bits, or to others for a reason that is written down.
//!
//! Debian's `libpfm4-dev` is taken, or the build in the source tree that `LIBPFM4` names.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::Path;
use std::process::Command;

use quipu_events::{Database, Interface};
use quipu_hal::{Encoding, Event, EventMap, Filter, PerfConfig, Scheme};
use quipu_text::{NoNames, parse_spec};

use crate::tables::rows;

const PMUS: &str = include_str!("data/libpfm4/pmus.tsv");
const DIFFERENCES: &str = include_str!("data/libpfm4/differences.tsv");

/// The bits that libpfm4 sets in every select word: user and kernel mode, interrupt, enable.
const LEVELS: u64 = 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22;
/// A Pentium 4: event, event mask, tag, and what the comparison with a threshold needs.
const P4_CONFIG: u64 = 0x7fff_fff0_01fc_0000;
/// AMD: in guests only, on the host only.
const WORLDS: u64 = 1 << 40 | 1 << 41;

/// Returns what libpfm4 encodes for the PMUs of a kind, `core` or `uncore`, a line for each name.
pub(crate) fn peer(kind: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = folder.path().join("libpfm4");
    let mut compiler = Command::new("cc");
    compiler.arg("-O1").arg("-o").arg(&program);
    compiler.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/libpfm4.c"));
    match env::var_os("LIBPFM4") {
        Some(tree) => compiler
            .arg("-I")
            .arg(Path::new(&tree).join("include"))
            .arg(Path::new(&tree).join("lib/libpfm.a")),
        None => compiler.arg("-lpfm"),
    };
    let built = compiler
        .output()
        .map_err(|error| format!("no C compiler: {error}"))?;
    if !built.status.success() {
        return Err("libpfm4-dev is not installed".to_owned());
    }
    let run = Command::new(&program)
        .arg(kind)
        .output()
        .map_err(|error| error.to_string())?;
    if !run.status.success() {
        return Err("libpfm4 does not start here".to_owned());
    }
    String::from_utf8(run.stdout).map_err(|error| error.to_string())
}

/// Returns the bits that Quipu finds under a name, as `config config1`.
fn ours(database: &Database, cpu: &str, name: &str) -> String {
    let table = database.cpu(cpu).unwrap();
    let events = table.events_for(Interface::Linux);
    match events.resolve(&Event::Named(name.to_owned()), Filter::all()) {
        Ok(resolved) => match resolved.encoding {
            Encoding::Perf(perf) => format!("{:#x} {:#x}", perf.config, perf.config1),
            other => panic!("{cpu} {name}: {other:?}"),
        },
        Err(_) => "none".to_owned(),
    }
}

#[test]
fn libpfm4_and_quipu_agree_on_the_bits_of_libpfm4s_names() {
    let peer = match peer("core") {
        Ok(peer) => peer,
        Err(reason) => return println!("SKIP libpfm4_and_quipu_agree: {reason}"),
    };
    let database = Database::embedded();
    let cpus: HashMap<&str, &str> = rows(PMUS)
        .map(|row| (row[0], row[1].split(',').next().unwrap()))
        .collect();
    // Revisions of libpfm4 differ, so that its bits are part of the key.
    let explained: HashMap<[&str; 3], &str> = rows(DIFFERENCES)
        .map(|row| ([row[0], row[1], row[2]], row[3]))
        .collect();
    let mut seen = HashSet::new();
    let mut wrong = Vec::new();
    let (mut names, mut equal) = (0, 0);
    for row in rows(&peer) {
        let [pmu, name, select, value] = row[..] else {
            panic!("{row:?}");
        };
        let Some(cpu) = cpus.get(pmu) else {
            seen.insert(pmu);
            continue;
        };
        let mut select = u64::from_str_radix(select.trim_start_matches("0x"), 16).unwrap();
        select &= match database.cpu(cpu).unwrap().scheme() {
            Scheme::Armv8 => 0xffff,
            // Other numbers whole; of a Pentium 4 the bits that Linux takes (P4_CONFIG_MASK, perf_event_p4.h).
            Scheme::Perf if pmu.starts_with("netburst") => P4_CONFIG,
            Scheme::Perf => u64::MAX,
            Scheme::Amd10h | Scheme::AmdK7 => !(LEVELS | WORLDS),
            _ => !LEVELS,
        };
        let theirs = format!("{select:#x} {value}");
        let theirs = theirs.replace(" 0", " 0x0").replace("0x0x", "0x");
        let ours = ours(&database, cpu, name);
        names += 1;
        let explanation = explained.get(&[pmu, name, theirs.as_str()]);
        equal += usize::from(ours == theirs);
        match explanation {
            Some(explained) if *explained == ours => {}
            Some(_) if ours == theirs => {
                wrong.push(format!(
                    "{pmu}\t{name}\t{theirs}\t{ours}\tno difference any more"
                ));
            }
            None if ours == theirs => {}
            _ => wrong.push(format!("{pmu}\t{name}\t{theirs}\t{ours}")),
        }
    }
    println!("{equal} of {names} names equal; not compared: {seen:?}");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(names > 1_000, "{names}");
    // Every other name has its reason; those of POWER are fewest, where Linux's list has other numbers.
    assert!(equal * 100 >= names * 96, "{equal} of {names}");
}

/// The numbers of libpfm4's PMU `perf`, of every name of each event and every pair of masks of a cache.
#[test]
fn libpfm4_and_quipu_agree_on_the_events_of_the_kernel() {
    let peer = match peer("perf") {
        Ok(peer) => peer,
        Err(reason) => return println!("SKIP libpfm4_and_quipu_agree: {reason}"),
    };
    let mut events = HashSet::new();
    for row in rows(&peer) {
        let [pmu, name, type_, config] = row[..] else {
            panic!("{row:?}");
        };
        let config = u64::from_str_radix(config.trim_start_matches("0x"), 16).unwrap();
        let wanted = PerfConfig::new(type_.parse().unwrap(), config);
        let ours = |text: &str| {
            let spec = parse_spec(text, &NoNames).unwrap_or_else(|error| panic!("{error:#}"));
            PerfConfig::of(&spec.event)
        };
        assert_eq!(ours(&format!("{pmu}::{name}")), Some(wanted), "{name}");
        if name.starts_with("PERF_COUNT_") {
            assert_eq!(ours(name), Some(wanted), "{name}");
        }
        events.insert(name.split(':').next());
    }
    assert!(events.len() >= 82, "{events:?}");
}
