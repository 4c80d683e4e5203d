//! Names as people write them, and what they are told when one is wrong.

use quipu_events::{CpuEvents, Database, Interface};
use quipu_hal::{
    Encoding, ErrorKind, Event, EventMap, ExtraRegister, Filter, FixedCounter, Scheme, SlotClass,
    SlotSet, X86Select,
};
use quipu_text::EventNames;

pub(crate) fn events(cpu: &str, interface: Interface) -> CpuEvents {
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

/// libpfm4's name of the PMU and the id of the CPU stand in front of an event; another PMU's is refused by name.
#[test]
fn the_pmu_may_stand_in_front_if_it_is_the_cpus() {
    let skl = events("intel-skl", Interface::Linux);
    for name in [
        "skl::INST_RETIRED:c=1",
        "SKL::INST_RETIRED:c=1",
        "intel-skl::inst_retired.any_p:cmask=1",
    ] {
        assert_eq!(config(&skl, name), (0x100_00c0, 0), "{name}");
    }
    assert!(skl.ends_in_mask("skl::L2_RQSTS:MISS"));
    assert!(skl.has_event("skl::L2_RQSTS") && !skl.has_event("hsw::L2_RQSTS"));
    let other = Event::Named("hsw::L2_RQSTS.MISS".to_owned());
    let refused = skl.resolve(&other, Filter::all()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
    assert_eq!(
        refused.reason(),
        Some("the PMU of this CPU is skl, and not hsw")
    );
}

/// The events that all Intel CPUs since the Core share: as libpfm4's PMU `ix86arch` encodes them, on every such CPU.
#[test]
fn the_architectural_pmu_is_every_intel_cpus_since_the_core() {
    for cpu in ["intel-core2", "intel-skl", "intel-gnr", "intel-arl-core"] {
        let events = events(cpu, Interface::Linux);
        for (name, bits) in [
            ("ix86arch::UNHALTED_CORE_CYCLES", 0x3c),
            ("ix86arch::INSTRUCTION_RETIRED", 0xc0),
            ("ix86arch::UNHALTED_REFERENCE_CYCLES", 0x13c),
            ("IX86ARCH::llc_references", 0x4f2e),
            ("ix86arch::LLC_MISSES:c=1", 0x0100_412e),
            ("ix86arch::BRANCH_INSTRUCTIONS_RETIRED", 0xc4),
            ("ix86arch::MISPREDICTED_BRANCH_RETIRED", 0xc5),
        ] {
            assert_eq!(config(&events, name), (bits, 0), "{name} on {cpu}");
        }
    }
    for (cpu, name) in [
        ("intel-skl", "ix86arch::L2_RQSTS.MISS"),
        ("intel-p6", "ix86arch::LLC_MISSES"),
        ("amd-zen4", "ix86arch::LLC_MISSES"),
    ] {
        let event = Event::Named(name.to_owned());
        let refused = events(cpu, Interface::Linux).resolve(&event, Filter::all());
        assert_eq!(
            refused.unwrap_err().kind(),
            ErrorKind::UnsupportedEvent,
            "{name} on {cpu}"
        );
    }
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
    assert_eq!(
        config(&zen, "ls_dispatch.ld_dispatch:store_dispatch").0,
        0x0329
    );
}

#[test]
fn offcore_responses_are_a_request_and_a_response() {
    // Bits of the register as Linux names them (SNB_OTHER and so on, arch/x86/events/intel/core.c): request 15,
    // hits 18-21, snoops 31-37.
    let snb = events("intel-snb", Interface::Linux);
    for name in [
        "OFFCORE_RESPONSE.OTHER.LLC_HIT.ANY_RESPONSE",
        "OFFCORE_RESPONSE:OTHER:LLC_HIT:ANY_RESPONSE",
        "offcore_response:other:llc_hit.any_response",
    ] {
        assert_eq!(config(&snb, name), (0x1b7, 0x3f_803c_8000), "{name}");
    }
    let bdx = events("intel-bdx", Interface::Linux);
    let name = "OFFCORE_RESPONSE.SPLIT_LOCK_UC_LOCK.LLC_MISS.REMOTE_HITM";
    assert_eq!(config(&bdx, name), (0x1b7, 0x10_3fc0_0400));
    // Linux takes partial writes through the second register only (intel_knl_extra_regs).
    let knl = events("intel-knl", Interface::Linux);
    let name = "OFFCORE_RESPONSE.PARTIAL_WRITES.ANY_RESPONSE";
    assert_eq!(config(&knl, name), (0x2b7, 0x10100));
    assert_eq!(
        config(&knl, "OFFCORE_RESPONSE:value=0x10001"),
        (0x1b7, 0x10001)
    );
    for cpu in ["snb", "jkt", "ivb", "ivt", "hsw", "hsx", "bdx"] {
        let events = events(&format!("intel-{cpu}"), Interface::Linux);
        let miss = if cpu == "hsw" { "L3_MISS" } else { "LLC_MISS" };
        let name = format!("OFFCORE_RESPONSE.PF_L2_RFO.{miss}.LOCAL_DRAM");
        let (config, value) = config(&events, &name);
        assert_eq!((config, value & 0xffff), (0x1b7, 0x20), "{cpu}");
        assert_ne!(value >> 16, 0, "{cpu}");
    }
}

/// Knights Landing's valid bits, from `intel_knl_extra_regs` in Linux: any other is refused there.
#[test]
fn knights_landing_asks_for_no_bit_that_linux_refuses() {
    let knl = Database::embedded().cpu("intel-knl").unwrap();
    let mut seen = 0;
    for event in knl.events() {
        let Some((register, value)) = event.register else {
            continue;
        };
        let (unit_mask, valid) = match register {
            0x1a6 => (1, 0x79_9ffb_b6e7),
            _ => (2, 0x39_9ffb_ffe7),
        };
        assert_eq!(event.unit_mask, unit_mask, "{}", event.name);
        assert_eq!(value & !valid, 0, "{} {value:#x}", event.name);
        seen += 1;
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn a_group_of_which_no_mask_is_named_takes_its_default() {
    // As libpfm4 encodes them.
    let core2 = events("intel-core2", Interface::Linux);
    for (name, bits) in [
        ("L2_RQSTS", 0x7f2e),
        ("L2_RQSTS:I_STATE", 0x712e),
        ("L2_RQSTS.I_STATE", 0x712e),
        ("L2_RQSTS:BOTH_CORES", 0xff2e),
        ("L2_RQSTS:PREFETCH:M_STATE", 0x582e),
        ("L2_RQSTS:I_STATE:SELF:EXCL_PREFETCH", 0x412e),
        ("L2_RQSTS:I_STATE:umask=0x41", 0x412e),
        ("BUS_TRANS_RFO:ALL_AGENTS", 0x6066),
    ] {
        assert_eq!(config(&core2, name), (bits, 0), "{name}");
    }
    let k10 = events("amd-10h-shanghai", Interface::Linux);
    for (name, bits) in [
        ("READ_REQUEST_TO_L3_CACHE:READ_BLOCK_SHARED", 0x4_0000_f2e0),
        ("HYPERTRANSPORT_LINK0:SUBLINK_MASK", 0xbff6),
        ("HYPERTRANSPORT_LINK0:NOP_DWORD_SENT", 0x08f6),
    ] {
        assert_eq!(config(&k10, name), (bits, 0), "{name}");
    }
    let decode = |select| {
        let encoding = Encoding::X86(X86Select {
            select,
            extra: Vec::new(),
        });
        core2.table().decode(&encoding).unwrap().name
    };
    assert_eq!(decode(0x712e), "L2_RQSTS.I_STATE");
    assert_eq!(decode(0x4129), "L2_LD:I_STATE:SELF:EXCL_PREFETCH");
    // Two of one group.
    assert_eq!(decode(0x4c29), "L2_LD:E_STATE:M_STATE:SELF:EXCL_PREFETCH");
}

#[test]
fn a_unit_mask_comes_before_a_modifier_of_its_name() {
    let p6 = events("intel-p6", Interface::Linux);
    for (name, bits) in [
        ("L2_LD:I", 0x0129),
        ("L2_LD:i", 0x0129),
        ("L2_LD:S:I", 0x0329),
        ("L2_LD:I:M", 0x0929),
        ("L2_LD:E:S", 0x0629),
        ("L2_LD:S:i=1:e=1", 0x84_0229),
        ("L2_LD.I", 0x0129),
    ] {
        assert_eq!(config(&p6, name), (bits, 0), "{name}");
        let with_levels = format!("{name}:u");
        let read = |text: &str| {
            let spec = quipu_text::parse_spec(text, &p6).unwrap();
            let resolved = p6.resolve(&spec.event, Filter::all()).unwrap();
            (resolved.encoding, spec.filter)
        };
        let (whole, everywhere) = read(name);
        let (in_user_mode, filter) = read(&with_levels);
        assert_eq!(
            (&whole, everywhere),
            (&in_user_mode, Filter::all()),
            "{name}"
        );
        assert_eq!(filter, Filter::USER_ONLY, "{name}");
        assert!(
            matches!(whole, Encoding::Perf(perf) if perf.config == bits),
            "{name}"
        );
    }
    let core2 = events("intel-core2", Interface::Linux);
    assert_eq!(config(&core2, "DCACHE_LD:I").0, 0x0140);
    assert_eq!(config(&core2, "BUS_SNOOPS:I").0 & 0x0f00, 0x0100);
    for (name, is_mask) in [
        ("L2_LD:I", true),
        ("L2_LD:u:I", true),
        ("L2_LD:u", false),
        ("L2_LD", false),
        ("INST_RETIRED:I", false),
        ("sched:I", false),
    ] {
        assert_eq!(p6.ends_in_mask(name), is_mask, "{name}");
    }
    let snb = events("intel-snb", Interface::Linux);
    assert!(snb.ends_in_mask("OFFCORE_RESPONSE:OTHER:LLC_HIT:ANY_RESPONSE"));
    // A modifier that is a mask's name too, after a mask that goes with no other.
    let skl = events("intel-skl", Interface::Linux);
    assert_eq!(config(&skl, "INST_RETIRED.ANY_P:any").0, 0x20_00c0);
    assert_eq!(config(&skl, "INST_RETIRED:any").0, 0xc0);
}

#[test]
fn events_called_as_caches_are_read_as_libpfm4_writes_them() {
    for (cpu, name, bits) in [
        ("intel-skl", "L1D:REPLACEMENT", 0x0151),
        ("intel-skl", "L1D.REPLACEMENT", 0x0151),
        ("intel-skl", "ITLB:ITLB_FLUSH:u", 0x01ae),
        ("intel-nhm", "L1D:M_REPL:c=1", 0x0100_0251),
        ("intel-nhm", "L1I:MISSES", 0x0280),
    ] {
        let map = events(cpu, Interface::Linux);
        let spec = quipu_text::parse_spec(name, &quipu_text::NoNames)
            .unwrap_or_else(|error| panic!("{error:#}"));
        let Event::Named(_) = &spec.event else {
            panic!("{name}: {:?}", spec.event);
        };
        let resolved = map.resolve(&spec.event, spec.filter.with_levels(Filter::LEVELS));
        match resolved
            .unwrap_or_else(|error| panic!("{error:#}"))
            .encoding
        {
            Encoding::Perf(perf) => assert_eq!(perf.config, bits, "{name}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn precise_distribution_is_for_the_fixed_counter_alone() {
    let named = |name: &str| Event::Named(name.to_owned());
    for cpu in [
        "icl", "icx", "tgl", "rkl", "spr", "emr", "gnr", "adl-core", "lnl-core", "nvl-core",
    ] {
        let cpu = format!("intel-{cpu}");
        let linux = events(&cpu, Interface::Linux);
        assert_eq!(config(&linux, "INST_RETIRED.PREC_DIST").0, 0x100, "{cpu}");
        assert_eq!(config(&linux, "INST_RETIRED.ANY").0, 0xc0, "{cpu}");
        let bits = Encoding::Perf(quipu_hal::PerfConfig::new(4, 0x100));
        assert_eq!(
            linux.table().decode(&bits).unwrap().name,
            "INST_RETIRED.PREC_DIST"
        );
        let msr = events(&cpu, Interface::Msr);
        for name in ["INST_RETIRED.PREC_DIST", "INST_RETIRED.ANY"] {
            let resolved = msr.resolve(&named(name), Filter::all()).unwrap();
            assert_eq!(
                resolved.slots,
                SlotSet::one(SlotClass::Fixed, 0),
                "{cpu} {name}"
            );
        }
        let first = Encoding::Fixed(FixedCounter {
            index: 0,
            control: 3,
        });
        assert_eq!(msr.table().decode(&first).unwrap().name, "INST_RETIRED.ANY");
        let pctr = events(&cpu, Interface::Pctr);
        let refused = pctr.resolve(&named("INST_RETIRED.PREC_DIST"), Filter::all());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnsupportedFeature);
    }
    // On a general counter, as Intel lists it.
    assert_eq!(
        config(
            &events("intel-skl", Interface::Linux),
            "INST_RETIRED.PREC_DIST"
        )
        .0,
        0x1c0
    );
}

#[test]
fn modifiers_that_a_cpu_lacks_are_refused() {
    for (cpu, name, taken) in [
        ("intel-skl", "BR_INST_RETIRED.ALL_BRANCHES:t", true),
        ("intel-skl", "BR_INST_RETIRED.ALL_BRANCHES:intx", true),
        ("intel-icl", "BR_INST_RETIRED.ALL_BRANCHES:t", false),
        ("intel-icl", "BR_INST_RETIRED.ALL_BRANCHES:intx", true),
        ("intel-spr", "BR_INST_RETIRED.ALL_BRANCHES:any=1", false),
        ("intel-srf", "BR_INST_RETIRED.ALL_BRANCHES:t", false),
        ("intel-srf", "BR_INST_RETIRED.ALL_BRANCHES:intx", false),
        (
            "intel-adl-atom",
            "BR_INST_RETIRED.ALL_BRANCHES:intxcp",
            false,
        ),
        ("intel-snb", "BR_INST_RETIRED.ALL_BRANCHES:intx", false),
        ("intel-snb", "BR_INST_RETIRED.ALL_BRANCHES:t", true),
        ("intel-core2", "INST_RETIRED:t", false),
        ("intel-srf", "BR_INST_RETIRED.ALL_BRANCHES:c=1:i:edge", true),
    ] {
        let map = events(cpu, Interface::Linux);
        let resolved = map.resolve(&Event::Named(name.to_owned()), Filter::all());
        assert_eq!(resolved.is_ok(), taken, "{cpu} {name}");
        if let Err(error) = resolved {
            let reason = error.reason().unwrap_or_default();
            assert!(reason.starts_with("this event has no modifier"), "{reason}");
        }
    }
}

#[test]
fn revisions_have_their_own_bits() {
    for (cpu, name, bits) in [
        ("amd-k8", "PROBE:ALL", 0x7fec),
        ("amd-k8-e", "PROBE:ALL", 0x7fec),
        ("amd-k8-c", "PROBE:ALL", 0x3fec),
        ("amd-k8", "L2_FILL_WRITEBACK", 0x037f),
        ("amd-k8-e", "L2_FILL_WRITEBACK:ALL", 0x017f),
        ("amd-k8-c", "L2_FILL_WRITEBACK", 0x017f),
        ("amd-k8", "THERMAL_STATUS_AND_ECC_ERRORS:ALL", 0x8fe8),
        ("amd-k8-e", "THERMAL_STATUS_AND_ECC_ERRORS:ALL", 0x80e8),
        ("amd-k8-c", "L2_CACHE_MISS:ALL", 0x077e),
        ("intel-bnl", "UOPS_RETIRED.ANY", 0x10c2),
        ("intel-bnl", "UOPS_RETIRED.STALLED_CYCLES", 0x0180_10c2),
        ("intel-bnl", "UOPS_RETIRED.STALLS", 0x0184_10c2),
        ("arm-cortex-a53", "CPU_CYCLES", 0x11),
        ("arm-cortex-a53", "INST_RETIRED", 0x08),
        ("arm-cortex-a53", "PAPI_TOT_INS", 0x08),
        ("amd-arch", "PAPI_TOT_CYC", 0x76),
        ("amd-arch", "l2_request_g1.all", 0xff60),
    ] {
        assert_eq!(
            config(&events(cpu, Interface::Linux), name),
            (bits, 0),
            "{cpu} {name}"
        );
    }
}

/// A number that no entry has without a unit mask is refused with the mask 0, as the event's name alone is.
#[test]
fn numbers_need_a_unit_mask_where_names_do() {
    let database = Database::embedded();
    let mut refused = 0;
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        let x86 = table.model().scheme != Scheme::Armv8 && table.model().scheme != Scheme::P5;
        if !x86 || table.is_fallback() {
            continue;
        }
        let map = table.events_for(Interface::Pctr);
        let all = table.events();
        for number in 0..0x100 {
            let own = all.iter().filter(|event| event.code == number);
            let counted = own.clone().filter(|event| !event.needs_mask);
            let general = counted
                .clone()
                .any(|event| event.slots.contains(SlotClass::General, 0));
            if !general || counted.clone().any(|event| event.unit_mask == 0) {
                continue;
            }
            let word = X86Select::new(number as u16, 0).with_flags(X86Select::USER);
            let slots = map.slots_of(&Encoding::X86(word));
            assert!(slots.is_err(), "{} {number:#x}: {slots:?}", cpu.id);
            refused += 1;
        }
    }
    assert!(refused > 2500, "{refused}");
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
        ("LD_BLOCKS", "LD_BLOCKS needs a unit mask; LD_BLOCKS has "),
        (
            "L2_RQSTS.NONE",
            "`NONE` is neither a unit mask of L2_RQSTS nor a modifier",
        ),
        (
            "L2_RQSTS:MISS:PF_HIT",
            "`PF_HIT` of L2_RQSTS cannot be combined",
        ),
        (
            "OFFCORE_RESPONSE:DEMAND_RFO",
            "OFFCORE_RESPONSE has DEMAND_RFO.ANY_RESPONSE, ",
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

/// Of the CPU's own list and the aliases the one that has the event says what is wrong.
#[test]
fn wrong_masks_are_those_of_the_list_that_has_the_event() {
    let spr = events("intel-spr", Interface::Linux);
    let own = spr.table().aliases().find(|alias| {
        let mut parts = alias.split(['.', ':']);
        let event = parts.next().unwrap_or_default();
        parts.next().is_some() && spr.table().event(event).is_none()
    });
    let alias = own.and_then(|alias| alias.split('.').next()).unwrap();
    for event in [alias, "L2_RQSTS"] {
        let named = Event::Named(format!("{event}:NO_SUCH_MASK"));
        let error = spr.resolve(&named, Filter::all()).unwrap_err();
        let reason = error.reason().unwrap_or_default();
        assert!(reason.contains("NO_SUCH_MASK"), "{event}: {reason}");
    }
    let neither = Event::Named("NO_SUCH_EVENT:ANY".into());
    let error = spr.resolve(&neither, Filter::all()).unwrap_err();
    assert!(
        !error.reason().unwrap_or_default().contains("mask"),
        "{error:#}"
    );
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
