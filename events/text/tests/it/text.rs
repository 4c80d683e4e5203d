//! The events that text means, and the errors for text that means none.

use quipu_hal::{
    Breakpoint, BreakpointAccess, Cache, CacheEvent, CacheOp, CacheResult, ErrorKind, Event,
    EventSpec, Filter, GroupSpec, Hardware, PmuEvent, Precision, RawEvent, Software, Term,
    TermValue,
};
use quipu_text::{
    NoNames, describe, generalized, nearest, parse, parse_event, parse_list, parse_spec,
};

fn event(text: &str) -> Event {
    parse_event(text).unwrap_or_else(|error| panic!("{error:#}"))
}

fn spec(text: &str) -> EventSpec {
    parse_spec(text, &NoNames).unwrap_or_else(|error| panic!("{error:#}"))
}

fn list(text: &str) -> quipu_hal::Result<Vec<GroupSpec>> {
    parse_list(text, &NoNames)
}

fn group(text: &str) -> GroupSpec {
    let groups = list(text).unwrap_or_else(|error| panic!("{error:#}"));
    <[GroupSpec; 1]>::try_from(groups).map_or_else(|all| panic!("{all:?}"), |[group]| group)
}

fn named(name: &str) -> Event {
    Event::Named(name.to_owned())
}

#[test]
fn generalized_names_and_aliases_are_those_of_perf() {
    for (text, expected) in [
        ("cycles", Hardware::Cycles),
        ("cpu-cycles", Hardware::Cycles),
        ("instructions", Hardware::Instructions),
        ("branches", Hardware::Branches),
        ("branch-instructions", Hardware::Branches),
        ("branch-misses", Hardware::BranchMisses),
        ("idle-cycles-frontend", Hardware::StalledCyclesFrontend),
        ("idle-cycles-backend", Hardware::StalledCyclesBackend),
    ] {
        assert_eq!(event(text), expected.into(), "{text}");
    }
    for (text, expected) in [
        ("cs", Software::ContextSwitches),
        ("faults", Software::PageFaults),
        ("migrations", Software::CpuMigrations),
        ("bpf-output", Software::BpfOutput),
        ("cgroup-switches", Software::CgroupSwitches),
    ] {
        assert_eq!(event(text), expected.into(), "{text}");
    }
    assert_eq!(event("CYCLES"), named("CYCLES"), "letter case counts");
}

#[test]
fn cache_events_are_read_in_every_spelling() {
    use {Cache::*, CacheOp::*, CacheResult::*};
    for (text, cache, op, result) in [
        ("L1-dcache-loads", L1d, Read, Access),
        ("L1-dcache-load-misses", L1d, Read, Miss),
        ("l1-DCACHE-Load-MISSES", L1d, Read, Miss),
        ("l1d-read-miss", L1d, Read, Miss),
        ("L1-data-misses", L1d, Read, Miss),
        ("L1-dcache", L1d, Read, Access),
        ("L1-instruction-prefetch", L1i, Prefetch, Access),
        ("LLC-stores", Ll, Write, Access),
        ("L2-write-ops", Ll, Write, Access),
        ("dTLB-prefetch-misses", Dtlb, Prefetch, Miss),
        ("Data-TLB-speculative-load-refs", Dtlb, Prefetch, Access),
        ("d-tlb-misses-store", Dtlb, Write, Miss),
        ("i-tlb", Itlb, Read, Access),
        ("branch-loads", Bpu, Read, Access),
        ("branch-load-misses", Bpu, Read, Miss),
        ("btb-Reference", Bpu, Read, Access),
        ("node-loads", Node, Read, Access),
        ("node-prefetches", Node, Prefetch, Access),
    ] {
        assert_eq!(
            event(text),
            CacheEvent::new(cache, op, result).into(),
            "{text}"
        );
    }
    for text in [
        "L1-dcachex",
        "L1-dcache-",
        "L1-dcache-loads-stores",
        "L1-dcache-misses-refs",
        "L1-dcache-loads-misses-refs",
    ] {
        assert_eq!(event(text), named(text));
    }
}

#[test]
fn every_generalized_name_reads_back() {
    let mut count = 0;
    for known in generalized() {
        assert_eq!(event(&known.name), known.event);
        assert_eq!(known.event.to_string(), known.name);
        assert!(describe(&known.event).is_some(), "{}", known.name);
        for alias in known.aliases {
            assert_eq!(event(alias), known.event);
        }
        count += 1;
    }
    assert_eq!(count, 10 + 12 + 42);
}

#[test]
fn raw_bits_are_hexadecimal() {
    assert_eq!(event("r01c0"), RawEvent::new(0x1c0).into());
    assert_eq!(event("r0x1C0"), RawEvent::new(0x1c0).into());
    assert_eq!(event("red"), RawEvent::new(0xed).into());
    assert_eq!(event("rffffffffffffffff"), RawEvent::new(u64::MAX).into());
    assert_eq!(event("r"), named("r"));
    assert_eq!(event("r01g0"), named("r01g0"));
    let raw = RawEvent::new(0x1c0).with_extra([0, 7, u64::MAX]);
    let text = "raw/config=0x1c0,config2=0x7,config3=0xffffffffffffffff/";
    assert_eq!(event(text), raw.into());
    assert_eq!(raw.to_string(), text);
    assert_eq!(event("raw//"), RawEvent::new(0).into());
    assert_eq!(RawEvent::new(0).to_string(), "r0000");
}

#[test]
fn pmu_terms_are_names_numbers_and_text() {
    let expected = PmuEvent::new("cpu")
        .with_value("event", 0xc0)
        .with_value("umask", 1)
        .with("any");
    assert_eq!(
        event("cpu/event=0xc0,umask=1,any/"),
        expected.clone().into()
    );
    assert_eq!(event("cpu/ event=192 , umask=0x1, any /"), expected.into());
    assert_eq!(event("msr/tsc/"), PmuEvent::new("msr").with("tsc").into());
    assert_eq!(event("msr//"), PmuEvent::new("msr").into());
    assert_eq!(
        event("uncore_imc_*/cas-count.read/"),
        PmuEvent::new("uncore_imc_*").with("cas-count.read").into()
    );
    let Event::Pmu(pmu) = event("'p/q'/'a b'='1',path='/x,y',sym=main:1/") else {
        panic!("not a PMU's");
    };
    let text = |name: &str, value: &str| Term {
        name: name.to_owned(),
        value: Some(TermValue::Text(value.to_owned())),
    };
    assert_eq!(pmu.pmu, "p/q");
    assert_eq!(
        pmu.terms,
        [
            text("a b", "1"),
            text("path", "/x,y"),
            text("sym", "main:1")
        ]
    );
    let raw = PmuEvent::new("raw")
        .with_value("config", 9)
        .with_value("config1", 10);
    assert_eq!(raw.to_string(), "'raw'/config=9,config1=0xa/");
    assert_eq!(event("'raw'/config=9,config1=0xa/"), raw.into());
}

#[test]
fn breakpoints_default_as_perf_does() {
    let read_write = |address, len, access| {
        Event::from(Breakpoint {
            address,
            len,
            access,
        })
    };
    use BreakpointAccess::*;
    assert_eq!(event("mem:0x400000"), read_write(0x40_0000, 4, ReadWrite));
    assert_eq!(event("mem:4096/8"), read_write(4096, 8, ReadWrite));
    assert_eq!(event("mem:0x10:r"), read_write(16, 4, Read));
    assert_eq!(event("mem:0x10/2:w"), read_write(16, 2, Write));
    assert_eq!(event("mem:0x10/1:wr"), read_write(16, 1, ReadWrite));
    assert_eq!(event("mem:0x10:x"), Breakpoint::execute(16).into());
    assert_eq!(spec("mem:0x10:u").filter, Filter::USER_ONLY);
    let both = spec("mem:0x10/2:w:u");
    assert_eq!(both.event, read_write(16, 2, Write));
    assert_eq!(both.filter, Filter::USER_ONLY);
}

#[test]
fn libpfm4s_names_and_modifiers_are_read() {
    let cycles = Event::from(Hardware::Cycles);
    for name in [
        "perf::CYCLES",
        "PERF::cpu-cycles",
        "perf_count_hw_cpu_cycles",
    ] {
        assert_eq!(event(name), cycles);
    }
    assert_eq!(event("perf_raw::r01c0"), RawEvent::new(0x1c0).into());
    assert_eq!(
        event("perf::sched:sched_switch"),
        Event::tracepoint("sched", "sched_switch")
    );
    // A name that libpfm4 does not have is no event of its PMU.
    assert!(parse_event("perf::NOTHING").is_err());
    assert!(parse_event("perf_raw::cycles").is_err());

    let native = spec("skl::INST_RETIRED:c=1:u=1");
    assert_eq!(native.event, named("skl::INST_RETIRED:c=1"));
    assert_eq!(native.filter, Filter::USER_ONLY);
    // What begins a word is its name.
    assert_eq!(spec("excl:u=1").event, named("excl"));
    for (text, same) in [
        ("PERF_COUNT_SW_PAGE_FAULTS:u", "page-faults:u"),
        ("perf::FAULTS:u=1:k=1", "page-faults:uk"),
        ("perf::FAULTS:u=0:k=1", "page-faults:k"),
        ("perf::FAULTS:k=0", "page-faults:-ukh"),
        ("perf::FAULTS:k=0:u", "page-faults:u"),
        ("cycles:mg=1", "cycles:G"),
        ("EVENT:MASK:precise=2:h=1", "EVENT:MASK:hpp"),
    ] {
        assert_eq!(spec(text).to_string(), spec(same).to_string(), "{text}");
    }
    for wrong in [
        "cycles:u=2",
        "cycles:precise=4",
        "cycles:period=1",
        "cycles:pinned=x",
    ] {
        assert!(parse_spec(wrong, &NoNames).is_err(), "{wrong}");
    }
    let groups = "perf::CYCLES:pinned:period=1000,EVENT:u=0,EVENT:u=1:-u";
    let groups = parse(groups, &NoNames).unwrap();
    assert!(groups[0].attributes.pinned);
    assert_eq!(groups[0].members[0].settings.period, Some(1000));
    let names_levels = |at: usize| groups[at].members[0].names_levels();
    assert_eq!([0, 1, 2].map(names_levels), [false, true, true]);
    // Text that means a name stands in quotes.
    for name in [
        "perf::CYCLES",
        "EVENT:u=1",
        "PERF_COUNT_HW_CPU_CYCLES",
        "X:pinned",
    ] {
        let displayed = named(name).to_string();
        assert_eq!(
            (displayed.as_str(), event(&displayed)),
            (&*format!("'{name}'"), named(name))
        );
    }
}

#[test]
fn names_keep_everything_but_modifiers() {
    for name in [
        "INST_RETIRED.ANY",
        "L2_RQSTS:MISS",
        "MEM_LOAD_RETIRED:L1_HIT",
        "EVENT:UMASK:mod=1",
        "PAPI_TOT_INS",
        "skl::INST_RETIRED:c=1",
        "appio:::READ_CALLS",
        "sched:sched_switch",
        "9p:9p_client_req",
        "sched:*",
        "EVENT:E",
        "EVENT:ukx",
    ] {
        assert_eq!(event(name), named(name));
        assert_eq!(event(name).to_string(), name);
    }
    let user = spec("MEM_LOAD_RETIRED:L1_HIT:up");
    assert_eq!(user.event, named("MEM_LOAD_RETIRED:L1_HIT"));
    assert_eq!(user.filter, Filter::USER_ONLY);
    assert_eq!(user.precision, Precision::Constant);
    assert_eq!(event("'LINES_IN:I'"), named("LINES_IN:I"));
    assert_eq!(spec("'LINES_IN:I':I").event, named("LINES_IN:I"));
}

#[test]
fn names_that_would_read_otherwise_are_quoted() {
    for (name, text) in [
        ("", "''"),
        ("cycles", "'cycles'"),
        ("l1d", "'l1d'"),
        ("r01c0", "'r01c0'"),
        ("two words", "'two words'"),
        ("a,b", "'a,b'"),
        ("{a}", "'{a}'"),
        ("cpu/x/", "'cpu/x/'"),
        ("mem:1", "'mem:1'"),
        ("tracepoint:a:b", "'tracepoint:a:b'"),
        ("LINES_IN:I", "'LINES_IN:I'"),
        ("a:", "'a:'"),
        ("42", "'42'"),
        ("it's\\\n", r"'it\'s\\\u{a}'"),
        ("épée", "'épée'"),
    ] {
        assert_eq!(named(name).to_string(), text);
        assert_eq!(event(text), named(name));
    }
    let tracepoint = Event::tracepoint("a:b", "");
    assert_eq!(tracepoint.to_string(), "tracepoint:'a:b':''");
    assert_eq!(event("tracepoint:'a:b':''"), tracepoint);
}

#[test]
fn modifiers_say_where_and_how() {
    let all = Filter::all();
    for (letters, filter) in [
        ("u", all.with_levels(Filter::USER)),
        ("ukh", all),
        ("hk", all.with_levels(Filter::KERNEL | Filter::HYPERVISOR)),
        ("I", all - Filter::IDLE),
        ("G", all - Filter::HOST),
        ("H", all - Filter::GUEST),
        ("GH", all),
        ("-k", all - Filter::KERNEL),
        ("-ukh", all - Filter::LEVELS),
        ("u-GH", Filter::USER | Filter::IDLE),
        ("I-ukhGH", Filter::empty()),
    ] {
        assert_eq!(
            spec(&format!("cycles:{letters}")).filter,
            filter,
            "{letters}"
        );
        assert_eq!(
            spec(&format!("msr/tsc/{letters}")).filter,
            filter,
            "{letters}"
        );
        assert_eq!(
            spec(&format!("msr/tsc/:{letters}")).filter,
            filter,
            "{letters}"
        );
        assert_eq!(spec(&format!("X:Y:{letters}")).filter, filter, "{letters}");
    }
    for (letters, precision) in [
        ("p", Precision::Constant),
        ("upp", Precision::RequestedZero),
        ("ppp", Precision::RequiredZero),
        ("Pp", Precision::Best),
    ] {
        assert_eq!(spec(&format!("cycles:{letters}")).precision, precision);
    }
}

#[test]
fn every_filter_has_its_own_text() {
    let mut seen = std::collections::HashSet::new();
    for bits in 0..64 {
        let filter = Filter::from_bits_retain(bits);
        for event in [
            Event::from(Hardware::Cycles),
            named("X:Y"),
            named("X:u"),
            PmuEvent::new("cpu").with("x").into(),
            Breakpoint::execute(0).into(),
            Event::tracepoint("a", "b"),
        ] {
            let asked = EventSpec::new(event).with_filter(filter);
            let text = asked.to_string();
            assert_eq!(spec(&text), asked, "{text}");
            assert!(seen.insert(text));
        }
    }
    assert!(
        seen.contains("cycles"),
        "no modifier for the default filter"
    );
    assert!(seen.contains("cycles:-ukh"));
}

#[test]
fn group_modifiers_add_to_those_of_the_members() {
    let both = group("{faults:k,branches}:u");
    let levels = |index: usize| both.members[index].filter & Filter::LEVELS;
    assert_eq!(levels(0), Filter::USER | Filter::KERNEL);
    assert_eq!(levels(1), Filter::USER);
    let precise = group("{cycles:u,instructions:kp}:p");
    assert_eq!(precise.members[0].precision, Precision::Constant);
    assert_eq!(precise.members[1].precision, Precision::RequestedZero);
    let worlds = group("{cycles,cache-misses:G}:H");
    assert_eq!(worlds.members[0].filter & Filter::WORLDS, Filter::HOST);
    assert_eq!(worlds.members[1].filter & Filter::WORLDS, Filter::WORLDS);
    assert_eq!(group("{faults:u,cs}:u"), group("{faults:u,cs:u}"));
}

#[test]
fn pinned_and_exclusive_belong_to_the_group() {
    for text in ["cycles:De", "{cycles}:De", "{cycles:D}:e"] {
        let group = group(text);
        assert!(group.attributes.pinned && group.attributes.exclusive);
        assert_eq!(group.to_string(), "cycles:De");
    }
    let led = group("{cycles:D,instructions}");
    assert!(led.attributes.pinned && !led.attributes.exclusive);
    assert_eq!(led.to_string(), "{cycles,instructions}:D");
}

#[test]
fn lists_separate_at_commas_outside_of_everything() {
    let text = " a , {b,cpu/c=1,d=2/u, 'e,}' }:k ,mem:1/2:r,'f,g',cpu//,\nh";
    let groups = list(text).unwrap();
    let displayed: Vec<_> = groups.iter().map(ToString::to_string).collect();
    assert_eq!(
        displayed,
        [
            "a",
            "{b:k,cpu/c=1,d=2/uk,'e,}':k}",
            "mem:0x1/2:r",
            "'f,g'",
            "cpu//",
            "h"
        ]
    );
}

#[test]
fn malformed_text_is_refused_at_its_character() {
    for (text, character, reason) in [
        ("", 1, "expected an event, found the end"),
        (" ,", 2, "expected an event, found ','"),
        ("a,", 3, "expected an event, found the end"),
        ("cycles:x", 8, "'x' is no modifier"),
        ("cycles:", 8, "no modifier"),
        ("cycles:uu", 9, "'u' for the second time"),
        ("cycles:u-u", 10, "'u' for the second time"),
        ("cycles:u-", 10, "after '-'"),
        ("cycles:-p", 9, "'p' after '-'"),
        ("cycles:pppp", 11, "at most three p"),
        ("cycles:u:k", 9, "modifiers stand together"),
        ("NAME:u:k", 7, "modifiers stand together: \":uk\""),
        ("NAME:u:c=1:k", 12, "levels already: \":u\""),
        ("NAME:u:MASK:k:c=1", 13, "modifiers stand together: \":uk\""),
        ("NAME:", 6, "no modifier"),
        ("NAME:uu", 7, "'u' for the second time"),
        ("r01c0:z", 7, "'z' is no modifier"),
        ("perf::FAULTS:z", 14, "'z' is no modifier"),
        ("perf_raw::r1c0:z", 16, "'z' is no modifier"),
        ("perf::sched:sched_switch:z", 26, "'z' is no modifier"),
        ("perf::NOTHING", 7, "has no event NOTHING"),
        ("r10000000000000000", 1, "more than 64 bits"),
        ("42", 1, "found a number"),
        ("0x1c0", 1, "found a number"),
        ("1:2", 1, "found a number"),
        ("-x", 1, "starts with a letter"),
        (":u", 1, "starts with a letter"),
        ("caf\u{e9}", 4, "found 'é'"),
        ("two words", 5, "found 'w'"),
        ("a'b'", 2, "found '\\''"),
        ("'open", 1, "never closed"),
        ("cpu/event=0xg/", 11, "expected a number"),
        ("cpu/event=99999999999999999999/", 11, "more than 64 bits"),
        ("cpu/event=/", 11, "expected a value"),
        ("cpu/,/", 5, "expected a term"),
        ("cpu/a,/", 7, "expected a term"),
        ("cpu/a", 6, "',' and another term, or '/'"),
        ("cpu/a/x", 7, "'x' is no modifier"),
        ("c:u/a/", 5, "filter='CONDITION'"),
        ("c:u/filter=1/", 5, "filter='CONDITION'"),
        ("c:u:k/a/", 2, "name of a PMU"),
        ("a:b/filter='c'/x", 16, "'x' is no modifier"),
        ("kprobe:", 8, "a function or an offset"),
        ("kprobe:f+", 10, "expected an offset"),
        ("kprobe:0x", 8, "expected a number"),
        ("uprobe:/bin/sh", 15, "':' and a function"),
        ("uprobe::f", 8, "path of a program"),
        ("uretprobe:/bin/sh:f:x", 21, "'x' is no modifier"),
        ("raw/event=1/", 5, "expected config"),
        ("raw/config/", 5, "needs a number"),
        ("raw/config=1,config=1/", 14, "for the second time"),
        ("mem:", 5, "expected an address"),
        ("mem:zz", 5, "expected a number"),
        ("mem:1/256", 7, "more than 255 bytes"),
        ("mem:1:rr", 7, "r, w, rw or x"),
        ("mem:1:z", 7, "'z' is no modifier"),
        ("tracepoint:a", 13, "':' and the name"),
        ("tracepoint:a:", 14, "name of a tracepoint"),
        ("tracepoint:a:b:c", 16, "'c' is no modifier"),
        ("{}", 2, "expected an event"),
        ("{a", 3, "or '}'"),
        ("{a}}", 4, "found '}'"),
        ("{a}u", 4, "found 'u'"),
        ("{a,{b}}", 4, "cannot hold a group"),
        ("{a,b:D}", 6, "not to a later member"),
        ("{a:pp}:pp", 8, "more than three p"),
    ] {
        let error = list(text).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
        assert_eq!(
            error.attempted(),
            format!("read {text:?} as a list of events")
        );
        let said = error.reason().unwrap();
        assert!(
            said.starts_with(&format!("at character {character}: ")) && said.contains(reason),
            "{text}: {said}"
        );
    }
}

#[test]
fn hints_lead_to_what_reads() {
    let hint = |error: quipu_hal::Error| error.hint().unwrap_or_default().to_owned();
    assert!(hint(parse_event("cycles:u").unwrap_err()).contains("EventSpec"));
    for text in ["cycles:D", "msr/tsc/e", "cycles:W", "cycles:uS", "{a,b}"] {
        let error = parse_spec(text, &NoNames).unwrap_err();
        assert!(hint(error).contains("GroupSpec"), "{text}");
    }
    assert!(hint(parse_spec("a,b", &NoNames).unwrap_err()).contains("parse_list"));
    assert!(hint(list("{a,b:D}").unwrap_err()).contains("{a,b}:D"));
    assert!(hint(list("cs:cs_probe").unwrap_err()).ends_with("'cs:cs_probe'"));
    assert_eq!(event("'cs:cs_probe'"), named("cs:cs_probe"));
    assert!(hint(list("X:I:u").unwrap_err()).ends_with("'X:I':u"));
    assert_eq!(spec("'X:I':u").event, named("X:I"));
    assert!(hint(list("two words").unwrap_err()).contains("single quotes"));
}

#[test]
fn nearest_names_are_few_and_near() {
    assert_eq!(nearest("cylces", [])[0], "cycles");
    assert_eq!(nearest("instr", []), ["instructions"]);
    assert_eq!(nearest("page_fault", [])[0], "page-faults");
    assert_eq!(nearest("cylces:uk", [])[0], "cycles");
    assert_eq!(
        nearest("L1-dcache-load-miss", [])[0],
        "L1-dcache-load-misses"
    );
    assert_eq!(
        nearest(
            "l2_rqsts.mis",
            ["INST_RETIRED.ANY", "L2_RQSTS.MISS", "L2_RQSTS.REFERENCES"]
        ),
        ["L2_RQSTS.MISS"]
    );
    assert_eq!(
        nearest(
            "L2_RQSTS",
            ["L2_RQSTS.A", "L2_RQSTS.B", "L2_RQSTS.C", "L2_RQSTS.D"]
        )
        .len(),
        3
    );
    assert_eq!(nearest("cycels", ["cycles", "cycle"]), ["cycles", "cycle"]);
    for far in ["", "x", "qqqqqqqq", "INST_RETIRED.ANY"] {
        assert!(nearest(far, []).is_empty(), "{far}");
    }
}

#[test]
fn levels_may_stand_in_the_middle_of_a_name() {
    for (text, name, filter) in [
        ("EVENT:MASK:u:cmask=2", "EVENT:MASK:cmask=2", Filter::USER),
        ("EVENT:k:MASK", "EVENT:MASK", Filter::KERNEL),
        ("EVENT:uk:c=1", "EVENT:c=1", Filter::USER | Filter::KERNEL),
    ] {
        let spec = spec(text);
        assert_eq!(spec.event, Event::Named(name.into()));
        assert_eq!(spec.filter & Filter::LEVELS, filter, "{text}");
        assert_eq!(parse_spec(&spec.to_string(), &NoNames), Ok(spec));
    }
    let quoted = spec("'EVENT:u:c=1'");
    assert_eq!(quoted.event, Event::Named("EVENT:u:c=1".into()));
    assert_eq!(quoted.to_string(), "'EVENT:u:c=1'");
}

#[test]
fn each_cache_event_is_described() {
    let described = |text: &str| describe(&event(text));
    for (text, description) in [
        ("L1-dcache-loads", "level 1 data cache: loads"),
        (
            "L1-icache-load-misses",
            "level 1 instruction cache: loads that miss",
        ),
        ("LLC-stores", "last level cache: stores"),
        ("dTLB-prefetch-misses", "data TLB: prefetches that miss"),
        ("iTLB-loads", "instruction TLB: loads"),
        (
            "branch-load-misses",
            "branch prediction unit: loads that miss",
        ),
        ("node-loads", "local memory node: loads"),
    ] {
        assert_eq!(described(text).as_deref(), Some(description));
    }
    for other in ["r1c0", "INST_RETIRED", "sched:sched_switch", "mem:0x10"] {
        assert_eq!(described(other), None);
    }
    for known in generalized() {
        assert!(describe(&known.event).is_some(), "{}", known.name);
    }
}
