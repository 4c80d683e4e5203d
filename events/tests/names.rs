//! Names as people write them, and what they are told when one is wrong.

use quipu_events::{CpuEvents, Database, Interface};
use quipu_hal::{
    Encoding, ErrorKind, Event, EventMap, ExtraRegister, Filter, FixedCounter, RawEvent, SlotClass,
    SlotSet,
};

fn events(cpu: &str, interface: Interface) -> CpuEvents {
    Database::embedded().cpu(cpu).unwrap().events_for(interface)
}

fn config(events: &CpuEvents, name: &str) -> (u64, u64) {
    let resolved = events.resolve(&Event::Named(name.to_owned()), Filter::all());
    match resolved
        .unwrap_or_else(|error| panic!("{error:#}"))
        .encoding
    {
        Encoding::Perf(perf) => (perf.config, perf.config1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_spellings_and_any_letter_case_mean_the_same() {
    let skl = events("intel-skl", Interface::Linux);
    for name in [
        "L2_RQSTS.MISS",
        "L2_RQSTS:MISS",
        "l2_rqsts.miss",
        "L2_RQSTS:miss",
    ] {
        assert_eq!(config(&skl, name), (0x3f24, 0), "{name}");
    }
    assert_eq!(config(&skl, "MEM_LOAD_RETIRED:L1_HIT"), (0x01d1, 0));
    assert_eq!(config(&skl, "INST_RETIRED.ANY"), (0xc0, 0));
    assert_eq!(config(&skl, "CPU_CLK_UNHALTED.THREAD"), (0x3c, 0));
    assert_eq!(config(&skl, "CPU_CLK_UNHALTED.REF_TSC"), (0x300, 0));
    assert_eq!(config(&skl, "PAPI_TOT_INS"), (0xc0, 0));
}

#[test]
fn modifiers_change_the_bits() {
    let skl = events("intel-skl", Interface::Linux);
    for (name, bits) in [
        ("UOPS_ISSUED.ANY:c=1:i", 0x0180_010e),
        ("UOPS_ISSUED.ANY:cmask=1:inv=1", 0x0180_010e),
        ("UOPS_ISSUED.ANY:e:c=2", 0x0204_010e),
        ("UOPS_ISSUED.ANY:t", 0x0020_010e),
        ("UOPS_ISSUED:umask=0x10", 0x100e),
        ("UOPS_ISSUED:0x10", 0x100e),
        ("UOPS_ISSUED.STALL_CYCLES", 0x0180_010e),
        ("UOPS_ISSUED.STALL_CYCLES:i=0", 0x0100_010e),
        ("INST_RETIRED.ANY_P:intx", 0x1_0000_00c0),
        ("OFFCORE_RESPONSE:value=0x10001", 0x1b7),
    ] {
        assert_eq!(config(&skl, name).0, bits, "{name}");
    }
    assert_eq!(
        config(&skl, "OFFCORE_RESPONSE:offcore_rsp=0x10001").1,
        0x10001
    );
    let zen = events("amd-zen4", Interface::Linux);
    assert_eq!(
        config(&zen, "ls_dispatch:ld_dispatch:store_dispatch").0,
        0x0329
    );
}

#[test]
fn wrong_names_get_the_nearest_and_the_masks() {
    let skl = events("intel-skl", Interface::Linux);
    let refused = |name: &str| {
        let error = skl
            .resolve(&Event::Named(name.to_owned()), Filter::all())
            .unwrap_err();
        (error.kind(), format!("{error:#}"))
    };
    for (name, says) in [
        ("INST_RETIRD.ANY", "did you mean INST_RETIRED.ANY"),
        ("page-fualts", "did you mean page-faults"),
        ("L2_RQSTS", "L2_RQSTS needs a unit mask; L2_RQSTS has "),
        (
            "L2_RQSTS.NONE",
            "`NONE` is neither a unit mask of L2_RQSTS nor a modifier",
        ),
        (
            "L2_RQSTS:MISS:PF_HIT",
            "`PF_HIT` of L2_RQSTS cannot be combined",
        ),
        ("L2_RQSTS.MISS:c=256", "`c=256` wants a number to 0xff"),
        (
            "L2_RQSTS.MISS:clocks",
            "this event has no modifier `clocks`",
        ),
        ("L2_RQSTS.MISS:i=2", "`i=2` wants 0 or 1"),
        ("", "there is no such event"),
        (":::", "there is no such event"),
    ] {
        let (kind, text) = refused(name);
        assert_eq!(kind, ErrorKind::UnsupportedEvent, "{name}");
        assert!(text.contains(says), "{name}: {text}");
    }
}

#[test]
fn events_are_known_whatever_follows_their_names() {
    let skylake = events("intel-skl", Interface::Linux);
    for (name, known) in [
        ("L2_RQSTS", true),
        ("l2_rqsts:NONE", true),
        ("L2_RQSTS.NONE:c=1", true),
        ("L2_RQST:MISS", false),
        ("sched:sched_switch", false),
    ] {
        assert_eq!(skylake.has_event(name), known, "{name}");
    }
}

#[test]
fn presets_of_several_events_name_them() {
    let p6 = events("intel-p6", Interface::Pctr);
    let error = p6
        .resolve(&Event::Named("PAPI_BR_NTK".to_owned()), Filter::all())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedFeature);
    assert_eq!(
        error.hint(),
        Some("count BR_INST_RETIRED, BR_TAKEN_RETIRED")
    );
    let error = p6
        .resolve(&Event::Named("PAPI_TLB_DM".to_owned()), Filter::all())
        .unwrap_err();
    assert_eq!(
        error.reason(),
        Some("the P6 does not count data TLB misses")
    );
}

#[test]
fn registers_get_levels_enable_and_extra_values() {
    let skl = events("intel-skl", Interface::Msr);
    let user = Filter::all().with_levels(Filter::USER);
    let resolve = |name: &str, filter| skl.resolve(&Event::Named(name.to_owned()), filter).unwrap();
    let offcore = resolve("OFFCORE_RESPONSE.DEMAND_DATA_RD.L3_MISS.ANY_SNOOP", user);
    let Encoding::X86(word) = offcore.encoding else {
        panic!("{offcore:?}");
    };
    assert_eq!(word.select, 0x0041_01b7);
    assert_eq!(
        word.extra,
        [ExtraRegister {
            address: 0x1a6,
            value: 0x3f_fc40_0001
        }]
    );
    let fixed = resolve("INST_RETIRED.ANY", Filter::all());
    assert_eq!(
        fixed.encoding,
        Encoding::Fixed(FixedCounter {
            index: 0,
            control: 3
        })
    );
    assert_eq!(fixed.slots, SlotSet::one(SlotClass::Fixed, 0));
    // What the name says and what the filter says both hold.
    let both = resolve("L2_RQSTS.MISS:u", Filter::all());
    let Encoding::X86(word) = both.encoding else {
        panic!("{both:?}");
    };
    assert_eq!(word.select, 0x0041_3f24);
    let nowhere = skl.resolve(
        &Event::Named("L2_RQSTS.MISS:u".to_owned()),
        Filter::all().with_levels(Filter::KERNEL),
    );
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::UnsupportedFeature);
}

#[test]
fn pctr_refuses_what_its_word_cannot_say() {
    let skl = events("intel-skl", Interface::Pctr);
    let zen = events("amd-zen4", Interface::Pctr);
    let arm = events("arm-cortex-a72", Interface::Pctr);
    for (map, name) in [
        (&skl, "OFFCORE_RESPONSE.DEMAND_DATA_RD.L3_MISS.ANY_SNOOP"),
        (&skl, "CPU_CLK_UNHALTED.REF_TSC"),
        (&skl, "CPU_CLK_UNHALTED.THREAD_P_ANY"),
        (&zen, "ex_ret_fused_instr"),
        (&arm, "INST_RETIRED"),
    ] {
        let error = map
            .resolve(&Event::Named(name.to_owned()), Filter::all())
            .unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::UnsupportedFeature,
            "{name}: {error:#}"
        );
    }
    // The fixed counters' events that general counters have too are counted there.
    let instructions = skl
        .resolve(&Event::Named("INST_RETIRED.ANY".to_owned()), Filter::all())
        .unwrap();
    let Encoding::X86(word) = instructions.encoding else {
        panic!("{instructions:?}");
    };
    assert_eq!(word.select, 0x0043_00c0);
    assert_eq!(instructions.slots, SlotSet::ANY_GENERAL);
}

#[test]
fn raw_bits_are_passed_on() {
    let raw = Event::Raw(RawEvent::new(0x3f24));
    let skl = events("intel-skl", Interface::Msr);
    let Encoding::X86(word) = skl.resolve(&raw, Filter::all()).unwrap().encoding else {
        panic!();
    };
    assert_eq!(word.select, 0x0043_3f24);
    let offcore = Event::Raw(RawEvent {
        config1: 0x10001,
        ..RawEvent::new(0x1b7)
    });
    let Encoding::X86(word) = skl.resolve(&offcore, Filter::all()).unwrap().encoding else {
        panic!();
    };
    assert_eq!(word.extra[0].address, 0x1a6);
}
