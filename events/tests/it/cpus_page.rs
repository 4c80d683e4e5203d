//! docs/cpus.md is what the tables say; `QUIPU_WRITE_CPUS=1` makes the test write it anew.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use quipu_events::Database;

use crate::tables::rows;

fn page() -> String {
    let mut page = String::from(
        "# CPUs whose events are known\n\n\
         Written by the test `cpus_page` of quipu-events from its tables: `QUIPU_WRITE_CPUS=1 cargo test -p quipu-events\n\
         cpus_page` writes it anew.\n\n\
         Events are those of the table and its base, each unit mask counted; aliases are libpfm4's names for them. Presets\n\
         are those of PAPI's standard ones that have a formula. The column libpfm4 says how many of libpfm4's names lead\n\
         to other bits than libpfm4's, each for the reason given in\n\
         [differences.tsv](../events/tests/it/data/libpfm4/differences.tsv); `-` where libpfm4 has no such CPU.\n\n\
         The column uncore says how many events the units outside of the cores have, and the column described how many of\n\
         both have a sentence that says what they count: the sources of the others have none, or none whose licence lets us\n\
         take it.\n\n\
         No table has the events of these CPUs, as no list of them is public:\n\n\
         - Apple M3, M4 and later: Linux 7.2 has no driver for their counters (patches outside of it have names), and\n  \
           XNU's source has no list.\n\
         - Arm Cortex-A725, X925 and C1 (Nano, Pro, Premium, Ultra), Cortex-A78AE: neither ARM-software/data (revision\n  \
           6aeb4c8) nor Linux 7.2 has a list. Their architectural events are those of `arm-armv8`.\n\
         - HiSilicon hip09 and hip12: the lists of Linux that were found are of their uncore units alone. Their\n  \
           architectural events are those of `arm-armv8`.\n\n\
         | id | CPU | events | uncore | described | aliases | presets | libpfm4 | source |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    let database = Database::embedded();
    let pmus: Vec<Vec<&str>> = rows(include_str!("data/libpfm4/pmus.tsv")).collect();
    let differences: Vec<Vec<&str>> = rows(include_str!("data/libpfm4/differences.tsv")).collect();
    let mut ids: Vec<String> = database.cpus().into_iter().map(|cpu| cpu.id).collect();
    ids.sort();
    for id in ids {
        let table = database.cpu(&id).unwrap();
        let of_cpu = |row: &&Vec<&str>| row[1].split(',').next() == Some(id.as_str());
        let named: Vec<&str> = pmus.iter().filter(of_cpu).map(|row| row[0]).collect();
        let differing = differences
            .iter()
            .filter(|row| named.contains(&row[0]))
            .count();
        let agreement = match named.is_empty() {
            true => "-".to_owned(),
            false => differing.to_string(),
        };
        let uncore = match table.uncore_events().len() {
            0 => "-".to_owned(),
            events => events.to_string(),
        };
        let events = table.events();
        let countable = events.iter().filter(|event| !event.needs_mask);
        let described = countable
            .filter(|event| event.description().is_some())
            .count()
            + table
                .uncore_events()
                .iter()
                .filter(|event| event.description().is_some())
                .count();
        let presets = table.presets();
        let formulas = presets
            .iter()
            .filter(|preset| preset.formula.is_ok())
            .count();
        writeln!(
            page,
            "| {id} | {} | {} | {uncore} | {described} | {} | {formulas} | {agreement} | {} |",
            table.name(),
            table
                .events()
                .iter()
                .filter(|event| !event.needs_mask)
                .count(),
            table.aliases().count(),
            table.source(),
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_of_cpus_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cpus.md");
    let page = page();
    if env::var_os("QUIPU_WRITE_CPUS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let first = page.lines().zip(written.lines()).find(|(a, b)| a != b);
    assert!(page == written, "docs/cpus.md is out of date: {first:?}");
}

#[test]
fn every_table_has_a_row_for_each_of_papis_presets() {
    let database = Database::embedded();
    let standard = database.cpu("intel-arch").unwrap().presets();
    assert_eq!(standard.len(), 110);
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        for preset in &standard {
            let found = table.preset(&preset.name.to_ascii_lowercase());
            assert!(found.is_some(), "{} {}", cpu.id, preset.name);
        }
    }
    let zen5 = database.cpu("amd-zen5").unwrap();
    let formulas = |preset: &&quipu_events::PresetEvent| preset.formula.is_ok();
    assert!(zen5.presets().iter().filter(formulas).count() >= 30);
    let l3 = zen5.preset("PAPI_L3_TCM").unwrap().formula.unwrap_err();
    assert_eq!(
        l3,
        "no event of amd-zen5 is known to count misses of the level 3 cache"
    );
}

#[test]
fn aliases_put_masks_together_as_libpfm4_does() {
    let database = Database::embedded();
    let bits = |cpu: &str, name: &str| {
        use quipu_hal::{Encoding, Event, EventMap, Filter};
        let events = database
            .cpu(cpu)
            .unwrap()
            .events_for(quipu_events::Interface::Linux);
        match events.resolve(&Event::Named(name.to_owned()), Filter::all()) {
            Ok(resolved) => match resolved.encoding {
                Encoding::Perf(perf) => Ok((perf.config, perf.config1)),
                other => panic!("{other:?}"),
            },
            Err(error) => Err(format!("{error:#}")),
        }
    };
    // Masks of one group are or-ed, and the other groups take their defaults (ANY_RESPONSE, SNP_ANY).
    let response = |parts: &str| bits("intel-snb", &format!("OFFCORE_RESPONSE_0:{parts}"));
    assert_eq!(response("DMND_DATA_RD").unwrap(), (0x1b7, 0x1_0001));
    assert_eq!(
        response("DMND_DATA_RD:DMND_RFO").unwrap(),
        (0x1b7, 0x1_0003)
    );
    assert_eq!(
        response("DMND_DATA_RD:LLC_HITM:SNP_MISS").unwrap(),
        (0x1b7, 0x2_0004_0001)
    );
    assert_eq!(
        response("DMND_DATA_RD:LLC_HITM").unwrap(),
        (0x1b7, 0x3f_8004_0001)
    );
    // What stands alone in its group, or closes the groups after it, takes no other.
    assert!(response("ANY_REQUEST:DMND_RFO").is_err());
    assert!(response("ANY_RESPONSE:SNP_MISS").is_err());
    assert!(response("SNP_MISS:ANY_RESPONSE").is_err());
    // AMD's enumerations stay apart; a slip is answered with the alias.
    let zen4 = |name: &str| bits("amd-zen4", name);
    assert_eq!(zen4("RETIRED_INSTRUCTIONS").unwrap(), (0xc0, 0));
    assert!(zen4("RETIRED_FP_OPS_BY_TYPE:SCALAR_ADD:SCALAR_SUB").is_err());
    let slip = zen4("RETIRED_INSTRUCTION").unwrap_err();
    assert!(slip.contains("RETIRED_INSTRUCTIONS"), "{slip}");
}
