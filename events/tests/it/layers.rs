//! Layers: later ones add and override, and say where an entry came from.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use quipu_events::{Database, Interface, LayerFile, Origin};
use quipu_hal::{Encoding, Event, EventMap, Filter};

fn definitions(database: &Database, cpu: &str, name: &str) -> Vec<Origin> {
    database.cpu(cpu).unwrap().origins(name)
}

fn config(database: &Database, cpu: &str, name: &str) -> u64 {
    let events = database.cpu(cpu).unwrap().events_for(Interface::Linux);
    let resolved = events
        .resolve(&Event::Named(name.to_owned()), Filter::all())
        .unwrap_or_else(|error| panic!("{error:#}"));
    match resolved.encoding {
        Encoding::Perf(perf) => perf.config,
        other => panic!("{other:?}"),
    }
}

const MINE: &str = "\
[[cpu]]
id = \"intel-skl\"

[cpu.generalized]
cycles = \"MINE.B\"

[cpu.presets]
RATE = \"INST_RETIRED.ANY_P / cycles\"

[cpu.events.L2_RQSTS]
code = 0x99
masks.MISS = 0x11

[cpu.events.MINE]
code = 0x98
masks.A = 0x01
masks.B = 0x02
";

#[test]
fn a_layer_adds_and_overrides_single_entries() {
    let below = Database::embedded();
    let database = below.with_text(Path::new("mine.toml"), MINE).unwrap();
    assert_eq!(config(&database, "intel-skl", "MINE.A"), 0x198);
    assert_eq!(config(&database, "intel-skl", "L2_RQSTS.MISS"), 0x1199);
    // Masks that the layer does not name are as they were, and so is everything below.
    assert_eq!(config(&database, "intel-skl", "L2_RQSTS.PF_MISS"), 0x3824);
    assert_eq!(config(&below, "intel-skl", "L2_RQSTS.MISS"), 0x3f24);
    let skl = database.cpu("intel-skl").unwrap();
    let events = skl.events_for(Interface::Linux);
    let cycles = events.resolve(&Event::Hardware(quipu_hal::Hardware::Cycles), Filter::all());
    assert_eq!(cycles.unwrap().info.name, "MINE.B");
    let formula = skl.preset("rate").unwrap().formula.unwrap();
    assert_eq!(formula.evaluate(&[10.0, 4.0]), Some(2.5));
    // One entry each, in force only.
    let listed = skl.events();
    assert_eq!(
        listed
            .iter()
            .filter(|event| event.name == "L2_RQSTS.MISS")
            .count(),
        1
    );
    assert_eq!(
        listed.len(),
        below.cpu("intel-skl").unwrap().events().len() + 3
    );
}

#[test]
fn which_names_every_layer_that_defines_an_entry() {
    let database = Database::embedded()
        .with_text(Path::new("mine.toml"), MINE)
        .unwrap();
    let origins = definitions(&database, "intel-skl", "L2_RQSTS:MISS:u");
    let places: Vec<(&LayerFile, &str, u32)> = origins
        .iter()
        .map(|origin| (&origin.layer, origin.file.as_str(), origin.line))
        .collect();
    let mine = LayerFile::File(PathBuf::from("mine.toml"));
    assert_eq!(places[0], (&mine, "mine.toml", 12));
    assert_eq!(
        (places[1].0, places[1].1),
        (&LayerFile::Embedded, "db/intel-skl.toml")
    );
    assert_eq!(places.len(), 2);
    let preset = definitions(&database, "intel-skl", "RATE");
    assert_eq!((preset[0].file.as_str(), preset[0].line), ("mine.toml", 8));
    assert!(definitions(&database, "intel-skl", "NOTHING").is_empty());
}

/// Lines of four digits are kept beside the event, longer ones in a word of their own.
#[test]
fn a_line_is_told_however_long_the_file_is() {
    for before in [1, 4090, 5000] {
        let text = format!(
            "{}[[cpu]]\nid = \"x-long\"\nscheme = \"perf\"\n[cpu.events]\nFIRST = 0x1\nSECOND = 0x2\n",
            "\n".repeat(before)
        );
        let database = Database::embedded().with_text(Path::new("long.toml"), &text);
        let database = database.unwrap();
        let lines = ["FIRST", "SECOND"].map(|name| {
            let origins = definitions(&database, "x-long", name);
            assert_eq!(origins[0].name, name);
            origins[0].line as usize
        });
        assert_eq!(lines, [before + 5, before + 6]);
        let table = database.cpu("x-long").unwrap();
        assert_eq!(table.event("SECOND").unwrap().code, 2);
    }
}

#[test]
fn a_layer_can_add_a_whole_cpu_and_build_on_another() {
    let text = "\
[[cpu]]
id = \"amd-zen9\"
name = \"Zen 9\"
base = \"amd-zen5\"
match = [{ vendor = \"AuthenticAMD\", family = 30 }]

[cpu.events]
ex_new = 0x3ff
";
    let database = Database::embedded()
        .with_text(Path::new("zen9.toml"), text)
        .unwrap();
    assert_eq!(config(&database, "amd-zen9", "ex_new"), 0x3_0000_00ff);
    assert_eq!(config(&database, "amd-zen9", "ex_ret_instr"), 0xc0);
    let identity = quipu_events::identify::from_text("AuthenticAMD-30-1").unwrap();
    let core = quipu_events::identify::Core::new(identity);
    assert_eq!(database.identify(&core).unwrap().id(), "amd-zen9");
    let origins = definitions(&database, "amd-zen9", "ex_ret_instr");
    assert_eq!(origins[0].cpu, "amd-zen5");
}

#[test]
fn a_layer_is_checked_by_what_the_cpus_below_have() {
    let text = |id, counters| {
        format!(
            "[[cpu]]\nid = \"{id}\"\n\n[cpu.events]\nMINE = {{ code = 0x98, counters = {counters} }}\n"
        )
    };
    let below = Database::embedded();
    let on = |id, counters| {
        let added = below.with_text(Path::new("mine.toml"), &text(id, counters));
        added.map(|_| ()).map_err(|error| format!("{error:#}"))
    };
    assert_eq!(on("intel-p6", "[1]"), Ok(()));
    let refused = on("intel-p6", "[2]").unwrap_err();
    assert!(refused.contains("beyond the 2 there are"), "{refused}");
    assert_eq!(below.cpu("intel-p6").unwrap().backends("openbsd"), ["pctr"]);
}

proptest! {
    /// Whatever entries two layers define, the upper one's are in force, then the lower one's.
    #[test]
    fn the_topmost_definition_is_in_force(
        lower in proptest::collection::btree_map(0u8..20, 0u8..100, 0..20),
        upper in proptest::collection::btree_map(0u8..20, 100u8..200, 0..20),
    ) {
        let layer = |entries: &std::collections::BTreeMap<u8, u8>| {
            let lines: String = entries
                .iter()
                .map(|(name, code)| format!("X{name} = {{ code = {code}, unit-mask = {name} }}\n"))
                .collect();
            format!("[[cpu]]\nid = \"amd-k7\"\n[cpu.events]\n{lines}")
        };
        let database = Database::embedded()
            .with_text(Path::new("lower"), &layer(&lower)).unwrap()
            .with_text(Path::new("upper"), &layer(&upper)).unwrap();
        let k7 = database.cpu("amd-k7").unwrap();
        for name in 0..20u8 {
            let expected = upper.get(&name).or(lower.get(&name)).copied();
            let found = k7.event(&format!("X{name}")).map(|event| event.code);
            prop_assert_eq!(found, expected.map(u64::from));
        }
    }
}
