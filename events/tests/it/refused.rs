//! Events that a CPU's counters cannot count, and the reasons.

use quipu_events::{Database, Interface};
use quipu_hal::{
    Breakpoint, Encoding, Error, ErrorKind, Event, EventMap, Filter, FixedCounter, Hardware,
    PerfConfig, RawEvent, Software,
};

use crate::names::events;

fn refused(cpu: &str, interface: Interface, event: &Event, filter: Filter) -> Error {
    let resolved = events(cpu, interface).resolve(event, filter);
    resolved.expect_err(&event.to_string())
}

#[test]
fn each_reason_is_the_events_own() {
    let reason = |cpu, event: &Event| {
        let error = refused(cpu, Interface::Msr, event, Filter::all());
        assert_eq!(error.kind(), ErrorKind::UnsupportedEvent, "{event}");
        error.reason().unwrap_or_default().to_owned()
    };
    let faults = Event::Software(Software::PageFaults);
    assert_eq!(
        reason("intel-skl", &faults),
        "the operating system counts it without a PMU"
    );
    let breakpoint = Event::Breakpoint(Breakpoint::execute(0x1000));
    assert_eq!(
        reason("intel-skl", &breakpoint),
        "it is no event of a CPU's counters"
    );
    assert_eq!(
        reason("intel-p5", &Event::Hardware(Hardware::Cycles)),
        "the Pentium counts no cycles; models with MMX do"
    );
    assert_eq!(
        reason("intel-p5", &Event::Hardware(Hardware::BusCycles)),
        "this CPU has no event that counts it"
    );
    assert_eq!(
        reason("intel-skl", &Event::Named("amd64_fam19h::CYCLES".into())),
        "the PMU of this CPU is skl, and not amd64_fam19h"
    );
}

#[test]
fn levels_of_a_name_and_of_the_filter_have_to_be_the_same_on_linux() {
    let named = Event::Named("INST_RETIRED.ANY_P:u".into());
    let kernel = Filter::KERNEL | Filter::HYPERVISOR;
    let error = refused("intel-skl", Interface::Linux, &named, kernel);
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
    let said = error.reason().unwrap_or_default();
    assert!(said.contains(":u") && said.contains(":kh"), "{said}");
    assert!(error.hint().is_some());
    let skl = events("intel-skl", Interface::Linux);
    assert!(skl.resolve(&named, Filter::USER).is_ok());
    assert_eq!(skl.interface(), Interface::Linux);
    assert_eq!(skl.cpu().scheme, skl.table().scheme());
}

#[test]
fn raw_bits_that_are_no_function_of_a_pentium_are_refused() {
    for (bits, is_taken) in [(0x16, true), (0x1ff, true), (0x200, false)] {
        let raw = Event::Raw(RawEvent::new(bits));
        let p5 = events("intel-p5", Interface::Msr);
        assert_eq!(
            p5.resolve(&raw, Filter::all()).is_ok(),
            is_taken,
            "{bits:#x}"
        );
        let error = refused("intel-p5", Interface::Linux, &raw, Filter::all());
        assert_eq!(
            error.reason(),
            Some("Linux has no driver for Pentium counters")
        );
    }
    let raw = Event::Raw(RawEvent::new(0x11));
    let error = refused("arm-cortex-a72", Interface::Msr, &raw, Filter::all());
    assert_eq!(error.reason(), Some("raw ARM events are for Linux"));
}

#[test]
fn numbers_of_the_kernel_have_the_names_of_generalized_events() {
    let skl = Database::embedded().cpu("intel-skl").unwrap();
    let name = |type_, config| {
        let decoded = skl.decode(&Encoding::Perf(PerfConfig::new(type_, config)))?;
        Ok::<_, Error>((decoded.name, decoded.levels))
    };
    let cycles = name(PerfConfig::HARDWARE, 0).unwrap();
    assert_eq!(cycles, ("cycles".to_owned(), None));
    let faults = name(PerfConfig::SOFTWARE, 2).unwrap();
    assert_eq!(faults.0, "page-faults");
    let misses = name(PerfConfig::HW_CACHE, 0x1_0000).unwrap();
    assert_eq!(misses.0, "L1-dcache-load-misses");
    for (type_, config) in [(PerfConfig::HARDWARE, 99), (PerfConfig::TRACEPOINT, 1)] {
        let error = name(type_, config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedEvent);
        let numbers = format!("name type {type_}, config {config:#x}");
        assert_eq!(error.attempted(), numbers);
    }
}

#[test]
fn bits_have_the_name_that_the_table_has_for_them() {
    let name = |cpu: &str, config, config1| {
        let perf = PerfConfig::new(PerfConfig::RAW, config).with_config1(config1);
        let table = Database::embedded().cpu(cpu).unwrap();
        let decoded = table.decode(&Encoding::Perf(perf));
        decoded.map_or_else(
            |error| error.reason().unwrap_or_default().to_owned(),
            |decoded| decoded.name,
        )
    };
    // One mask, the mask of all, and masks that are put together.
    let barcelona = |config| name("amd-10h-barcelona", config, 0);
    assert_eq!(barcelona(0x20ea), "CACHE_BLOCK.READ_TO_DIRTY");
    assert_eq!(barcelona(0x3dea), "CACHE_BLOCK.ALL");
    let core = |config, config1| name("intel-adl-core", config, config1);
    let latency = "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_128";
    assert_eq!(core(0x01cd, 0x80), latency);
    assert_eq!(core(0x01cd, 3), "no event 0xcd has these bits");
    assert_eq!(core(0x01ff, 0), "there is no event 0xff");
}

#[test]
fn fixed_counters_without_an_event_have_no_name() {
    let skl = Database::embedded().cpu("intel-skl").unwrap();
    let decode = |index| {
        let control = FixedCounter::USER;
        skl.decode(&Encoding::Fixed(FixedCounter { index, control }))
    };
    assert_eq!(decode(1).unwrap().name, "CPU_CLK_UNHALTED.THREAD");
    for index in [4, 254, 255] {
        let error = decode(index).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedEvent);
        let reason = format!("there is no event of fixed counter {index}");
        assert_eq!(error.reason(), Some(&*reason));
    }
}

#[test]
fn cpus_that_are_not_there_have_their_like_as_a_hint() {
    let hint = |id: &str| {
        let error = Database::embedded().cpu(id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
        error.hint().unwrap_or_default().to_owned()
    };
    assert_eq!(hint("intel-sk1"), "did you mean intel-skl?");
    let called = hint("Sapphire Rapids");
    assert!(called.contains("intel-spr"), "{called}");
    assert_eq!(hint("sapphirerapids"), called);
    assert_eq!(hint("qqqqqqqqqqqq"), "`quipu list cpus` lists them");
    assert_eq!(hint("p"), "`quipu list cpus` lists them");
}

#[test]
fn interfaces_have_the_names_of_backends() {
    let named = [
        (Interface::Linux, "linux"),
        (Interface::Pctr, "pctr"),
        (Interface::Msr, "msr"),
        (Interface::Other("hwpmc"), "hwpmc"),
    ];
    for (interface, name) in named {
        assert_eq!(interface.name(), name);
    }
}
