//! The tables against the kernel, and what every table has to have.

use std::collections::HashSet;

use quipu_events::{Database, Interface};
use quipu_hal::{CacheEvent, Encoding, Event, EventMap, Filter, Hardware, PerfConfig, Scheme};

pub(crate) fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn perf(config: u64, config1: u64) -> Encoding {
    Encoding::Perf(PerfConfig::new(4, config).with_config1(config1))
}

#[test]
fn pairs_of_name_and_bits_are_those_of_the_kernel() {
    let database = Database::embedded();
    let mut seen = HashSet::new();
    for row in rows(include_str!("data/verified.tsv")) {
        let [cpu, name, config, source] = row[..] else {
            panic!("{row:?}");
        };
        let events = database.cpu(cpu).unwrap().events_for(Interface::Linux);
        let resolved = events.resolve(&Event::Named(name.to_owned()), Filter::all());
        let resolved = resolved.unwrap_or_else(|error| panic!("{cpu} {name}: {error:#}"));
        let Encoding::Perf(got) = resolved.encoding else {
            panic!("{resolved:?}");
        };
        assert_eq!(got.config, number(config), "{cpu} {name}, {source}");
        seen.insert((cpu, name));
    }
    assert!(seen.len() >= 200, "{}", seen.len());
}

#[test]
fn generalized_events_are_what_linux_programs() {
    let database = Database::embedded();
    let mut checked = 0;
    for row in rows(include_str!("data/generalized.tsv")) {
        let [cpu, name, config, config1] = row[..] else {
            panic!("{row:?}");
        };
        let events = database.cpu(cpu).unwrap().events_for(Interface::Linux);
        let event = generalized(name).unwrap_or_else(|| panic!("{name}"));
        let resolved = events
            .resolve(&event, Filter::all())
            .unwrap_or_else(|error| panic!("{cpu} {name}: {error:#}"));
        assert_eq!(
            resolved.encoding,
            perf(number(config), number(config1)),
            "{cpu} {name} is {}",
            resolved.info.name
        );
        checked += 1;
    }
    assert!(checked > 1500, "{checked}");
}

/// A generalized event by the name it has in the tables.
fn generalized(name: &str) -> Option<Event> {
    let hardware = Hardware::ALL
        .iter()
        .copied()
        .find(|event| event.name() == name);
    hardware.map(Event::Hardware).or_else(|| {
        let (what, at) = [
            "-loads",
            "-load-misses",
            "-stores",
            "-store-misses",
            "-prefetches",
            "-prefetch-misses",
        ]
        .iter()
        .enumerate()
        .find_map(|(at, ending)| Some((name.strip_suffix(ending)?, at)))?;
        CacheEvent::all()
            .filter(|event| event.cache.name() == what)
            .nth(at)
            .map(Event::Cache)
    })
}

#[test]
fn every_table_can_count_the_basics_or_says_why_not() {
    let database = Database::embedded();
    assert!(database.cpus().len() >= 80);
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        assert!(
            !table.name().is_empty() && !table.source().is_empty(),
            "{}",
            cpu.id
        );
        assert!(!table.backends("linux").is_empty(), "{}", cpu.id);
        let generalized = table.generalized();
        for name in ["cycles", "instructions", "branches", "branch-misses"] {
            assert!(
                generalized.iter().any(|event| event.name == name),
                "{} says nothing of {name}",
                cpu.id
            );
        }
        for name in [
            "PAPI_TOT_CYC",
            "PAPI_TOT_INS",
            "PAPI_BR_INS",
            "PAPI_BR_MSP",
            "PAPI_FP_OPS",
        ] {
            assert!(
                table.preset(name).is_some(),
                "{} says nothing of {name}",
                cpu.id
            );
        }
    }
}

#[test]
fn every_preset_is_a_formula_of_events_that_resolve() {
    let database = Database::embedded();
    let mut formulas = 0;
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        // Numbers of Linux's drivers are for Linux alone.
        let interface = match table.scheme() {
            Scheme::Perf => Interface::Linux,
            _ => Interface::Msr,
        };
        let events = table.events_for(interface);
        for preset in table.presets() {
            let formula = match preset.formula {
                Ok(formula) => formula,
                Err(reason) => {
                    assert!(reason.len() > 10, "{} {}: {reason}", cpu.id, preset.name);
                    continue;
                }
            };
            formulas += 1;
            for event in formula.events() {
                let resolved = events.resolve(&Event::Named(event.clone()), Filter::all());
                assert!(resolved.is_ok(), "{} {}: {resolved:?}", cpu.id, preset.name);
            }
        }
    }
    assert!(formulas > 1000, "{formulas}");
}

#[test]
fn interrupts_have_a_preset_wherever_an_event_counts_them() {
    let names = [
        "HW_INTERRUPTS.RECEIVED",
        "HW_INT_RCV",
        "HW_INT_RX",
        "ls_int_taken",
        "INTERRUPTS_TAKEN",
        "EXC_IRQ",
        "EXCEPTION_IRQ",
        "INTERRUPT_ACK_COUNT",
    ];
    let database = Database::embedded();
    let mut found = 0;
    // Of the architecture's events it is not known which a core has.
    for cpu in database
        .cpus()
        .into_iter()
        .filter(|cpu| cpu.id != "arm-armv8")
    {
        let table = database.cpu(&cpu.id).unwrap();
        if names.iter().all(|name| table.event(name).is_none()) {
            continue;
        }
        let preset = table.preset("PAPI_HW_INT").expect(&cpu.id);
        assert!(preset.formula.is_ok(), "{}: {:?}", cpu.id, preset.formula);
        found += 1;
    }
    assert!(found > 50, "{found}");
}

#[test]
fn the_database_is_small() {
    let table = include_bytes!("../../tables/events.bin");
    assert!(table.len() <= 4 << 20, "{}", table.len());
}
