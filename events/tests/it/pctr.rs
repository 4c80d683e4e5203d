//! The tables of pctr(4) and pctr(1), event by event.

use quipu_events::{CpuTable, Database, Interface};
use quipu_hal::{
    Encoding, ErrorKind, Event, EventMap, Filter, P5Function, RawEvent, Scheme, SlotClass, SlotSet,
    X86Select,
};

const TABLE: &str = include_str!("data/pctr.tsv");

struct Row {
    cpu: &'static str,
    code: u16,
    name: &'static str,
    counter: &'static str,
    masks: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Row {
                cpu: fields[0],
                code: u16::from_str_radix(&fields[1][2..], 16).unwrap(),
                name: fields[2],
                counter: fields[3],
                masks: fields[4],
            }
        })
}

fn slots(counter: &str) -> SlotSet {
    match counter {
        "ctr0" => SlotSet::one(SlotClass::General, 0),
        "ctr1" => SlotSet::one(SlotClass::General, 1),
        _ => SlotSet::ANY_GENERAL,
    }
}

fn named(name: &str) -> Event {
    Event::Named(name.to_owned())
}

#[test]
fn the_numbers_of_events_are_those_of_the_manual_page() {
    let count = |cpu| rows().filter(|row| row.cpu == cpu).count();
    assert_eq!(
        ["intel-p5", "intel-p6", "intel-core2", "amd-k8"].map(count),
        [38, 68, 131, 87]
    );
    let p5 = Database::embedded().cpu("intel-p5").unwrap();
    assert_eq!(p5.events().len(), 38);
}

#[test]
fn p5_functions_and_counters() {
    let p5 = Database::embedded()
        .cpu("intel-p5")
        .unwrap()
        .events_for(Interface::Pctr);
    for row in rows().filter(|row| row.cpu == "intel-p5") {
        let user = Filter::all().with_levels(Filter::USER);
        for (filter, flags) in [(Filter::all(), 0xc0), (user, 0x80)] {
            let resolved = p5.resolve(&named(row.name), filter).unwrap();
            assert_eq!(
                resolved.encoding,
                Encoding::P5(P5Function(row.code | flags)),
                "{}",
                row.name
            );
            assert_eq!(resolved.slots, slots(row.counter));
        }
        let clocks = p5.resolve(&named(&format!("{}:c", row.name)), Filter::all());
        assert_eq!(
            clocks.unwrap().encoding,
            Encoding::P5(P5Function(row.code | 0x1c0))
        );
    }
}

#[test]
fn p6_words_counters_and_unit_masks() {
    let p6 = Database::embedded()
        .cpu("intel-p6")
        .unwrap()
        .events_for(Interface::Pctr);
    let word = |name: &str| {
        let resolved = p6.resolve(&named(name), Filter::all()).unwrap();
        match resolved.encoding {
            Encoding::X86(word) => (word.select, resolved.slots),
            other => panic!("{other:?}"),
        }
    };
    let flags = X86Select::USER | X86Select::KERNEL | X86Select::ENABLE;
    for row in rows().filter(|row| row.cpu == "intel-p6") {
        let bare = flags | u64::from(row.code);
        let masked = |name: &str| word(&format!("{}:{name}", row.name)).0;
        match row.masks {
            "mesi" => {
                assert_eq!(word(row.name), (bare | 0x0f00, slots(row.counter)));
                assert_eq!(masked("M"), bare | 0x0800);
                assert_eq!(masked("E"), bare | 0x0400);
                assert_eq!(masked("S"), bare | 0x0200);
                assert_eq!(masked("I"), bare | 0x0100);
                assert_eq!(masked("M:S"), bare | 0x0a00);
            }
            "a" => {
                assert_eq!(word(row.name), (bare, slots(row.counter)));
                assert_eq!(masked("A"), bare | 0x2000);
            }
            _ => assert_eq!(word(row.name), (bare, slots(row.counter)), "{}", row.name),
        }
        assert_eq!(masked("c=3:i=1:e=1") & !0x0f00, bare | 0x0384_0000);
    }
}

#[test]
fn p5_with_mmx_has_the_events_of_the_p5_and_its_own() {
    let database = Database::embedded();
    let mmx = database.cpu("intel-p5-mmx").unwrap();
    assert_eq!(mmx.events().len(), 38 + 36);
    let mmx = mmx.events_for(Interface::Pctr);
    let resolve = |name| mmx.resolve(&named(name), Filter::all()).unwrap();
    let reads = resolve("MMX_INSTRUCTION_DATA_READS");
    let misses = resolve("MMX_INSTRUCTION_DATA_READ_MISSES");
    assert_eq!(reads.encoding, misses.encoding);
    assert_eq!(reads.slots, SlotSet::one(SlotClass::General, 0));
    assert_eq!(misses.slots, SlotSet::one(SlotClass::General, 1));
    assert_eq!(
        resolve("DATA_READ").encoding,
        Encoding::P5(P5Function(0xc0))
    );
}

#[test]
fn core_2_knows_every_name_of_pctr() {
    let core = Database::embedded().cpu("intel-core2").unwrap();
    for row in rows().filter(|row| row.cpu == "intel-core2") {
        let entry = core
            .event(row.name)
            .unwrap_or_else(|| panic!("{} is missing", row.name));
        let codes: Vec<u16> = core
            .events()
            .iter()
            .filter(|event| event.event == row.name)
            .map(|event| event.code as u16)
            .collect();
        assert!(codes.contains(&row.code), "{}: {:x?}", row.name, codes);
        assert_eq!(entry.event, row.name);
    }
}

#[test]
fn k8_has_every_number_of_pctr() {
    let k8 = Database::embedded().cpu("amd-k8").unwrap();
    let described = |code: u16, text: &str| {
        k8.events()
            .iter()
            .any(|event| event.code == u64::from(code) && event.description() == Some(text))
    };
    for row in rows().filter(|row| row.cpu == "amd-k8") {
        assert!(
            described(row.code, row.name),
            "{:#x} {}",
            row.code,
            row.name
        );
    }
}

/// Encodings decode to the events that they encode, for every event of every table and every interface.
fn decodes_back(table: &CpuTable, interface: Interface) {
    let events = table.events_for(interface);
    let mut resolved = 0;
    for event in table.events() {
        if event.needs_mask {
            continue;
        }
        let Ok(first) = events.resolve(&named(&event.name), Filter::all()) else {
            continue;
        };
        resolved += 1;
        let decoded = table.decode(&first.encoding).unwrap();
        let second = events
            .resolve(&named(&decoded.name), Filter::all())
            .unwrap_or_else(|error| panic!("{} {}: {error:#}", event.name, decoded.name));
        assert_eq!(
            second.encoding,
            first.encoding,
            "{} decodes to {} on {}",
            event.name,
            decoded.name,
            table.id()
        );
    }
    // Numbers of Linux's drivers are for Linux alone.
    let own = match table.scheme() {
        Scheme::Perf => Interface::Linux,
        _ => Interface::Msr,
    };
    assert!(
        resolved > 0 || interface != own,
        "{} {interface:?}",
        table.id()
    );
}

#[test]
fn a_function_of_the_pentium_decodes_with_its_levels() {
    let table = Database::embedded().cpu("intel-p5").unwrap();
    for levels in [Filter::USER, Filter::KERNEL, Filter::USER | Filter::KERNEL] {
        let filter = Filter::all().with_levels(levels);
        let events = table.events_for(Interface::Msr);
        let resolved = events.resolve(&Event::Raw(RawEvent::new(0x03)), filter);
        let decoded = table.decode(&resolved.unwrap().encoding).unwrap();
        assert_eq!(decoded.levels, Some(levels));
    }
}

#[test]
fn every_event_of_every_table_encodes_and_decodes_back() {
    let database = Database::embedded();
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        for &interface in Interface::ALL {
            decodes_back(&table, interface);
        }
    }
}

/// Every event of the tables is known by its bits; what is left of the numbers is not.
#[test]
fn a_map_knows_the_numbers_of_its_cpus_events() {
    for cpu in [
        "intel-p5",
        "intel-p5-mmx",
        "intel-p6",
        "intel-pii",
        "intel-piii",
        "intel-pm",
        "intel-core2",
        "amd-k8",
        "intel-skl",
    ] {
        let table = Database::embedded().cpu(cpu).unwrap();
        let map = table.events_for(Interface::Pctr);
        let p5 = cpu.starts_with("intel-p5");
        let encoding = |code: u16| {
            if p5 {
                Encoding::P5(P5Function::new(code as u8))
            } else {
                Encoding::X86(X86Select::new(code, 0x01))
            }
        };
        let knows = |code: &u16| map.slots_of(&encoding(*code)).is_ok();
        let numbers = if p5 { 64 } else { 256 };
        let known: Vec<u16> = (0..numbers).filter(knows).collect();
        let mut listed: Vec<u16> = table
            .events()
            .iter()
            .map(|event| event.code as u16)
            .collect();
        // By the number 0 Intel's tables list what the fixed counters count, which no word selects.
        let first = u16::from(!p5 && cpu.starts_with("intel"));
        listed.retain(|code| (first..256).contains(code));
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(known, listed, "{cpu}");
        assert!(known.len() < usize::from(numbers), "{cpu}");
    }
    let any = Database::embedded().cpu("intel-arch").unwrap();
    assert!(any.is_fallback());
    let map = any.events_for(Interface::Pctr);
    assert!(
        map.slots_of(&Encoding::X86(X86Select::new(0xff, 0)))
            .is_ok()
    );
}

/// Each P6 has the events that its part of Intel's list names, and no other's.
#[test]
fn the_events_of_later_p6_are_theirs_alone() {
    let mmx = [0xb1, 0xb2, 0xb3, 0xcc, 0xcd, 0xd4, 0xd5, 0xd6].as_slice();
    let sse = [0x07, 0x4b, 0xd8, 0xd9].as_slice();
    let mut mobile: Vec<u16> = (0x88..=0x94).collect();
    mobile.extend([0x58, 0x59, 0xce, 0xd3, 0xd7, 0xda, 0xdb, 0xf0, 0xf8]);
    let of_pro: Vec<u16> = rows()
        .filter(|row| row.cpu == "intel-p6")
        .map(|row| row.code)
        .chain([0x44])
        .collect();
    let mut seen = Vec::new();
    for (cpu, own) in [
        ("intel-p6", vec![]),
        ("intel-pii", [mmx, &[0xb0, 0xce]].concat()),
        ("intel-piii", [mmx, sse].concat()),
        ("intel-pm", [mmx, sse, &mobile].concat()),
    ] {
        let mut expected = [&of_pro[..], &own].concat();
        expected.sort_unstable();
        let table = Database::embedded().cpu(cpu).unwrap();
        let mut codes: Vec<u16> = table
            .events()
            .iter()
            .map(|event| event.code as u16)
            .collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes, expected, "{cpu}");
        seen.extend(own);
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 35);
}

/// A counter for each event of a P5 or P6, whether it is given by name or by number.
#[test]
fn numbers_have_the_counters_of_their_names() {
    for cpu in [
        "intel-p5",
        "intel-p5-mmx",
        "intel-p6",
        "intel-pii",
        "intel-pm",
    ] {
        let table = Database::embedded().cpu(cpu).unwrap();
        let map = table.events_for(Interface::Pctr);
        for event in table.events() {
            let Ok(resolved) = map.resolve(&named(&event.name), Filter::all()) else {
                continue;
            };
            let Ok(slots) = map.slots_of(&resolved.encoding) else {
                assert!(event.name.ends_with("PREFETCH"), "{cpu} {}", event.name);
                continue;
            };
            assert_eq!(slots.intersection(resolved.slots), resolved.slots);
            let narrow = |n| {
                slots.contains(SlotClass::General, n) != event.slots.contains(SlotClass::General, n)
            };
            if (0..2).any(narrow) {
                assert_eq!(
                    (cpu, slots),
                    ("intel-p5-mmx", SlotSet::general(0b11)),
                    "{}",
                    event.name
                );
            }
        }
    }
}

/// A number is refused for the reason of its name, in the same words, or has the unit mask that its name has.
#[test]
fn numbers_that_count_nothing_without_a_unit_mask_are_treated_like_their_names() {
    let (mut refused, mut answered) = (0, 0);
    for (cpu, numbers) in [
        (
            "intel-core2",
            &[0x09, 0x0c, 0x3b, 0x43, 0x45, 0x49, 0x82, 0xaa, 0xab, 0xb3][..],
        ),
        (
            "intel-skl",
            &[0x08, 0x09, 0x24, 0x60, 0x83, 0x85, 0xa1, 0xab, 0xd1, 0xd4][..],
        ),
        ("intel-piii", &[0xb3][..]),
    ] {
        let table = Database::embedded().cpu(cpu).unwrap();
        let map = table.events_for(Interface::Pctr);
        for &number in numbers {
            let by_number = map
                .slots_of(&Encoding::X86(X86Select::new(number, 0)))
                .unwrap_err();
            assert_eq!(by_number.kind(), ErrorKind::UnsupportedEvent);
            let reason = by_number.reason().unwrap().to_owned();
            let event = reason.split(' ').next().unwrap();
            if table.event(event).is_some_and(|event| event.needs_mask) {
                // Where libpfm4 has a mask for the event alone, both are answered with that, and it is told.
                let raw = Event::Raw(RawEvent::new(number.into()));
                let raw = map.resolve(&raw, Filter::all()).unwrap();
                let by_name = match map.resolve(&named(event), Filter::all()) {
                    Ok(by_name) => {
                        assert_eq!(raw.encoding, by_name.encoding, "{cpu} {number:#x}");
                        assert!(raw.info.errata[0].contains(event), "{:?}", raw.info);
                        answered += 1;
                        continue;
                    }
                    Err(by_name) => by_name,
                };
                assert_eq!(raw.info.errata, [""; 0], "{cpu} {number:#x}");
                assert_eq!(by_name.reason(), by_number.reason(), "{cpu} {number:#x}");
                assert_eq!(by_name.hint(), by_number.hint(), "{cpu} {number:#x}");
                refused += 1;
            }
        }
        assert!(
            map.slots_of(&Encoding::X86(X86Select::new(0xc0, 0)))
                .is_ok()
        );
    }
    assert!(refused >= 10, "{refused}");
    assert!(answered > 0, "no event of these has a default");
}

/// Raw bits are held to what is known of the event that they select.
#[test]
fn a_map_knows_what_the_events_of_its_cpu_need() {
    let map = Database::embedded()
        .cpu("intel-core2")
        .unwrap()
        .events_for(Interface::Pctr);
    let slots = |code, mask| {
        let slots = map.slots_of(&Encoding::X86(X86Select::new(code, mask)));
        slots.map(|slots| [0, 1].map(|n| slots.contains(SlotClass::General, n)))
    };
    // FP_COMP_OPS_EXE, MUL, INST_RETIRED; a unit mask that no entry names changes nothing.
    assert_eq!(slots(0x10, 0), Ok([true, false]));
    assert_eq!(slots(0x10, 0x80), Ok([true, false]));
    assert_eq!(slots(0x12, 0), Ok([false, true]));
    assert_eq!(slots(0xc0, 0), Ok([true, true]));
    // L1D_CACHE_LD by state, L2_LD by state, core and prefetch.
    for (code, mask) in [(0x40, 0), (0x29, 0), (0x29, 0x70)] {
        let refused = slots(code, mask).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
        assert!(refused.to_string().contains("cache state"), "{refused}");
    }
    assert_eq!(slots(0x40, 0x08), Ok([true, true]));
    assert_eq!(slots(0x29, 0x71), Ok([true, true]));
}

/// No single counter counts what may grow by more than 15 in a cycle.
#[test]
fn floating_point_operations_of_a_zen_are_refused() {
    for (cpu, countable) in [("amd-zen4", false), ("amd-15h", true)] {
        let table = Database::embedded().cpu(cpu).unwrap();
        let slots = table
            .events_for(Interface::Pctr)
            .slots_of(&Encoding::X86(X86Select::new(0x003, 0x01)));
        assert_eq!(slots.is_ok(), countable, "{cpu}: {slots:?}");
        assert!(countable || slots.unwrap_err().to_string().contains("more than 15"));
    }
}
