//! Every event has a sentence where a source with a free licence has one.

use std::fs;

use quipu_events::Database;
use quipu_hal::Event;

/// The sentence of an event of a core.
fn described(cpu: &str, event: &str) -> Option<String> {
    let table = Database::embedded().cpu(cpu).unwrap();
    let event = table
        .event(event)
        .unwrap_or_else(|| panic!("{cpu} has no {event}"));
    event.description().map(str::to_owned)
}

#[test]
fn sentences_are_those_of_the_source() {
    for (cpu, event, sentence) in [
        (
            "intel-skl",
            "L2_RQSTS.MISS",
            "All requests that miss L2 cache",
        ),
        // Intel's list says only that it has a new name; the sentence is that of the event so named.
        (
            "intel-skl",
            "LD_BLOCKS_PARTIAL.ADDRESS_ALIAS",
            "False dependencies in MOB due to partial compare on address",
        ),
        // By the bits: libpfm4 calls it RETIRED_INSTRUCTIONS.
        ("amd-zen5", "ex_ret_instr", "Number of instructions retired"),
        (
            "arm-neoverse-n2",
            "L1I_CACHE_REFILL",
            "Level 1 instruction cache refill",
        ),
        (
            "ibm-power9",
            "PM_1PLUS_PPC_CMPL",
            "1 or more ppc insts finished",
        ),
        ("ibm-z13", "CPU_CYCLES", "Cycle Count"),
        (
            "riscv-sbi",
            "FW_SET_TIMER",
            "Requests to the firmware to set a timer",
        ),
        // A base's sentences are those of the CPUs on it.
        (
            "thead-c900",
            "FW_SET_TIMER",
            "Requests to the firmware to set a timer",
        ),
    ] {
        assert_eq!(
            described(cpu, event).as_deref(),
            Some(sentence),
            "{cpu} {event}"
        );
    }
    // Linux's list is the only one that has it.
    assert_eq!(described("thead-c900", "INST_ALU"), None);
    let uncore = Database::embedded().cpu("intel-skx").unwrap();
    let reads = uncore.uncore_event("UNC_M_CAS_COUNT.RD").unwrap();
    let sentence = "All DRAM Read CAS Commands issued (including underfills)";
    assert_eq!(reads.description(), Some(sentence));
}

#[test]
fn every_sentence_is_one_line_of_words() {
    let database = Database::embedded();
    let mut count = 0;
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        let events = table.events();
        let uncore = table.uncore_events();
        let sentences = events
            .iter()
            .map(|event| (&event.name, event.description()));
        let uncore = uncore
            .iter()
            .map(|event| (&event.name, event.description()));
        for (name, sentence) in sentences.chain(uncore) {
            let Some(sentence) = sentence else { continue };
            count += 1;
            assert!(
                sentence.chars().all(|c| !c.is_control()),
                "{name}: {sentence:?}"
            );
            assert_eq!(sentence.trim(), sentence, "{name}");
            assert!(
                sentence.contains(char::is_alphabetic),
                "{name}: {sentence:?}"
            );
        }
    }
    assert!(count > 60_000, "{count}");
}

#[test]
fn presets_and_generalized_events_are_described() {
    let table = Database::embedded().cpu("intel-skl").unwrap();
    for preset in table.presets() {
        assert!(preset.description().is_some(), "{}", preset.name);
    }
    for event in table.generalized() {
        let generalized = Event::generalized(&event.name).unwrap();
        let described = quipu_text::describe(&generalized);
        assert!(described.is_some(), "{}", event.name);
        assert_eq!(event.description(), described);
    }
}

#[test]
fn the_description_in_a_file_goes_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let text = "[[cpu]]\nid = \"intel-skl\"\n[cpu.events]\n\
        MINE = { code = 0x11, description = \"Counts mine\" }\n\
        [cpu.events.L2_RQSTS]\ncode = 0x24\nmasks.MISS = { bits = 0x3f, description = \"Ours\" }\n";
    fs::write(&path, text).unwrap();
    let database = Database::embedded().with_file(&path).unwrap();
    let table = database.cpu("intel-skl").unwrap();
    for (name, sentence) in [("MINE", "Counts mine"), ("L2_RQSTS.MISS", "Ours")] {
        let event = table.event(name).unwrap();
        assert_eq!(event.description(), Some(sentence));
    }
}

#[test]
fn what_follows_a_sentence_is_given_with_it() {
    let skl = Database::embedded().cpu("intel-skl").unwrap();
    let long = |event: &str| skl.event(event).unwrap().long_description();
    let all = long("INST_RETIRED.ANY").unwrap();
    let both = "Instructions retired from execution. Counts the number of instructions retired";
    assert!(all.starts_with(both), "{all}");
    assert_eq!(long("L2_RQSTS.MISS"), None);
    let unit = skl.uncore_event("UNC_ARB_COH_TRK_REQUESTS.ALL").unwrap();
    assert_eq!(unit.description(), Some("Number of entries allocated"));
    let all = unit.long_description().unwrap();
    assert!(
        all.starts_with("Number of entries allocated. Account for Any type"),
        "{all}"
    );
}

#[test]
fn what_the_vendor_advises_against_is_marked() {
    let skl = Database::embedded().cpu("intel-skl").unwrap();
    let is_deprecated = |event: &str| skl.event(event).unwrap().is_deprecated;
    assert!(is_deprecated("L2_LINES_OUT.USELESS_PREF"));
    assert!(!is_deprecated("L2_LINES_OUT.USELESS_HWPF"));
}
