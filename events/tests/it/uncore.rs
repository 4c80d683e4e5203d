//! The names of uncore events, and their bits against libpfm4's.

use std::collections::{HashMap, HashSet};

use quipu_events::{Database, UncoreDetails};
use quipu_hal::{EventMap, TermValue};

use crate::libpfm4::peer;
use crate::tables::rows;

const PMUS: &str = include_str!("data/libpfm4/uncore.tsv");
const DIFFERENCES: &str = include_str!("data/libpfm4/uncore-differences.tsv");

fn event(cpu: &str, name: &str) -> Option<UncoreDetails> {
    Database::embedded().cpu(cpu).unwrap().uncore_event(name)
}

#[test]
fn names_of_units_are_found_as_pmu_and_terms() {
    for (cpu, name, wanted) in [
        (
            "intel-skx",
            "UNC_M_CAS_COUNT.RD",
            "uncore_imc/event=0x04,umask=0x03/",
        ),
        (
            "intel-skx",
            "unc_m_cas_count:rd",
            "uncore_imc/event=0x04,umask=0x03/",
        ),
        ("intel-skx", "UNC_CHA_CLOCKTICKS", "uncore_cha/event=0x00/"),
        // The driver's name of the PMU is not the unit's.
        (
            "intel-gnr",
            "UNC_MDF_CLOCKTICKS",
            "uncore_mdf_sbo/event=0x01/",
        ),
        (
            "intel-skx",
            "UNC_P_FREQ_MAX_LIMIT_THERMAL_CYCLES",
            "uncore_pcu/event=0x04/",
        ),
        (
            "intel-skx",
            "LLC_MISSES.MEM_READ",
            "uncore_imc/event=0x04,umask=0x03/",
        ),
        // Bit 21 of the configuration, which Linux's list leaves out.
        (
            "intel-jkt",
            "UNC_Q_RxL_FLITS_G1.DRS",
            "uncore_qpi/event=0x102,umask=0x18/",
        ),
        (
            "intel-hsx",
            "UNC_Q_RxL_FLITS_G1.DRS",
            "uncore_qpi/event=0x102,umask=0x18/",
        ),
        // The last term of a field counts.
        (
            "intel-skx",
            "LLC_MISSES.PCIE_READ",
            "uncore_iio/event=0x83,fc_mask=0x07,umask=0x04,ch_mask=0x1f/",
        ),
        ("amd-zen4", "umc_cas_cmd.all", "amd_umc/event=0x0a/"),
    ] {
        let found = event(cpu, name).unwrap_or_else(|| panic!("{cpu} {name}"));
        assert_eq!(found.encoded(), wanted, "{cpu} {name}");
    }
    for (cpu, name) in [
        ("intel-skx", "UNC_M_CAS_COUNT"),
        ("intel-skx", "uncore_imc"),
        ("intel-p6", "UNC_CHA_CLOCKTICKS"),
    ] {
        assert_eq!(event(cpu, name), None, "{cpu} {name}");
    }
    let reads = event("intel-skx", "LLC_MISSES.MEM_READ").unwrap();
    assert_eq!(reads.scale, Some((64.0, "Bytes")));
    let events = Database::embedded().cpu("intel-skx").unwrap();
    let map = events.events_for(quipu_events::Interface::Linux);
    let resolved = map.uncore("LLC_MISSES.MEM_READ").unwrap();
    assert_eq!((resolved.unit.as_ref(), resolved.scale), ("Bytes", 64.0));
    assert_eq!(resolved.event.to_string(), "uncore_imc/event=4,umask=3/");
}

#[test]
fn every_name_leads_to_an_event_that_backends_take() {
    let database = Database::embedded();
    let mut names = 0;
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        for event in table.uncore_events() {
            assert!(event.event().is_some(), "{} {}", cpu.id, event.encoded());
            assert_eq!(
                table.uncore_event(&event.name).as_ref(),
                Some(&event),
                "{}",
                cpu.id
            );
            names += 1;
        }
    }
    assert!(names > 26_000, "{names}");
}

/// Returns the configuration that the terms of a table are, `None` where they are more than an event and unit mask.
fn config(event: &UncoreDetails) -> Option<u64> {
    let event = event.event()?.event;
    let mut config = 0;
    for term in event.terms {
        let Some(TermValue::Number(value)) = term.value else {
            return None;
        };
        // Formats of `arch/x86/events/intel/uncore_snbep.c`.
        config |= match term.name.as_str() {
            "event" => value & 0xff | (value >> 8) << 21,
            "umask" => (value & 0xff) << 8 | (value >> 8) << 32,
            "occ_sel" => value << 14,
            _ => return None,
        };
    }
    Some(config)
}

#[test]
fn libpfm4_and_quipu_agree_on_the_bits_of_uncore_names() {
    let peer = match peer("uncore") {
        Ok(peer) => peer,
        Err(reason) => return println!("SKIP libpfm4_and_quipu_agree on uncore: {reason}"),
    };
    let cpus: HashMap<&str, &str> = rows(PMUS).map(|row| (row[0], row[1])).collect();
    let explained: HashMap<[&str; 3], &str> = rows(DIFFERENCES)
        .map(|row| ([row[0], row[1], row[2]], row[3]))
        .collect();
    let mut tables = HashMap::new();
    let mut wrong = Vec::new();
    let mut elsewhere = HashSet::new();
    let (mut names, mut equal) = (0, 0);
    for row in rows(&peer) {
        let [pmu, name, theirs, _] = row[..] else {
            panic!("{row:?}");
        };
        let Some((family, _)) = pmu.split_once("_unc") else {
            continue;
        };
        // Instances have the same events: the first is taken.
        let unit = pmu.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_first = matches!(&pmu[unit.len()..], "" | "0");
        let Some(cpu) = cpus.get(family).filter(|_| is_first) else {
            elsewhere.insert(pmu);
            continue;
        };
        let table = tables
            .entry(*cpu)
            .or_insert_with(|| Database::embedded().cpu(cpu).unwrap());
        let Some(ours) = table.uncore_event(name) else {
            continue;
        };
        let Some(ours) = config(&ours) else {
            continue;
        };
        let ours = format!("{ours:#x}");
        let theirs = format!(
            "{:#x}",
            u64::from_str_radix(theirs.trim_start_matches("0x"), 16).unwrap()
        );
        names += 1;
        equal += usize::from(ours == theirs);
        match explained.get(&[pmu, name, theirs.as_str()]) {
            Some(explained) if *explained == ours => {}
            None if ours == theirs => {}
            _ => wrong.push(format!("{pmu}\t{name}\t{theirs}\t{ours}")),
        }
    }
    println!(
        "{equal} of {names} names of units equal; {} PMUs not compared",
        elsewhere.len()
    );
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(names > 3_000, "{names}");
}

#[test]
fn the_source_is_named() {
    let source = |cpu: &str| Database::embedded().cpu(cpu).unwrap().uncore_source();
    let skx = source("intel-skx").unwrap();
    assert!(
        skx.ends_with("tools/perf/pmu-events/arch/x86/skylakex"),
        "{skx}"
    );
    assert_eq!(source("intel-p5"), None);
}
