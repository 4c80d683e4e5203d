//! PMUs and their events, from directories as kernels on several machines show them.

use std::path::PathBuf;

use quipu_hal::{Error, ErrorKind, Filter, PerfConfig, PmuEvent, Term, TermValue, ValueKind};
use quipu_linux::sysfs::{ResolvedPmuEvent, SysfsPmus};

fn machine(name: &str) -> SysfsPmus {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    SysfsPmus::at(fixtures.join(name))
}

/// Reads `pmu/term,term=0x1/` the simple way, so that these tests rest on nothing else.
fn event(text: &str) -> PmuEvent {
    let (pmu, terms) = text.strip_suffix('/').unwrap().split_once('/').unwrap();
    let mut event = PmuEvent::new(pmu);
    for term in terms.split(',').filter(|term| !term.is_empty()) {
        let (name, value) = match term.split_once('=') {
            None => (term, None),
            Some((name, value)) => (name, Some(term_value(value))),
        };
        let name = name.to_owned();
        event.terms.push(Term { name, value });
    }
    event
}

fn term_value(text: &str) -> TermValue {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_or_else(|_| TermValue::Text(text.to_owned()), TermValue::Number)
}

fn resolve(name: &str, text: &str) -> ResolvedPmuEvent {
    machine(name).resolve(&event(text)).unwrap()
}

fn refused(name: &str, text: &str) -> Error {
    machine(name).resolve(&event(text)).unwrap_err()
}

#[track_caller]
fn bits(name: &str, text: &str, type_: u32, words: [u64; 4]) {
    let [config, config1, config2, config3] = words;
    let expected = PerfConfig::new(type_, config)
        .with_config1(config1)
        .with_config2(config2)
        .with_config3(config3);
    assert_eq!(resolve(name, text).config, expected, "{text} on {name}");
}

#[test]
fn bits_on_amd_with_its_split_event_field() {
    bits("amd", "cpu/event=0xc0/", 4, [0xc0, 0, 0, 0]);
    bits(
        "amd",
        "cpu/event=0x1c2,umask=0x11/",
        4,
        [0x1_0000_11c2, 0, 0, 0],
    );
    bits("amd", "cpu/event=0xfff/", 4, [0xf_0000_00ff, 0, 0, 0]);
    bits("amd", "cpu/cache-misses/", 4, [0x0964, 0, 0, 0]);
    bits(
        "amd",
        "cpu/event=194,cmask=255,inv,edge/",
        4,
        [0xff84_00c2, 0, 0, 0],
    );
    bits("amd", "cpu//", 4, [0, 0, 0, 0]);
    bits(
        "amd",
        "amd_df/event=0x3fff,umask=0xfff/",
        10,
        [0x3f_0f00_ffff, 0, 0, 0],
    );
    bits(
        "amd",
        "amd_l3/event=0x4,umask=0xff,threadmask=3,sliceid=0x7/",
        11,
        [0x0307_0000_0000_ff04, 0, 0, 0],
    );
}

#[test]
fn bits_on_intel_where_what_is_not_mentioned_is_zero() {
    bits("intel", "cpu/bus-cycles/", 4, [0x013c, 0, 0, 0]);
    bits("intel", "cpu/event=0x3c/", 4, [0x3c, 0, 0, 0]);
    bits("intel", "cpu/cycles-ct/", 4, [0x3_0000_003c, 0, 0, 0]);
    bits(
        "intel",
        "cpu/topdown-recovery-bubbles/",
        4,
        [0x0100_030d, 0, 0, 0],
    );
    bits("intel", "cpu/mem-loads/", 4, [0x01cd, 3, 0, 0]);
    bits(
        "intel",
        "cpu/event=0xb7,umask=1,offcore_rsp=0x3fbfc00001/",
        4,
        [0x01b7, 0x3f_bfc0_0001, 0, 0],
    );
}

#[test]
fn the_request_wins_over_the_named_event_in_either_order() {
    bits("intel", "cpu/mem-loads,ldlat=30/", 4, [0x01cd, 30, 0, 0]);
    bits("intel", "cpu/ldlat=30,mem-loads/", 4, [0x01cd, 30, 0, 0]);
    bits("intel", "cpu/cache-misses,umask=0/", 4, [0x2e, 0, 0, 0]);
    bits(
        "intel",
        "cpu/topdown-recovery-bubbles,cmask=0,inv/",
        4,
        [0x0080_030d, 0, 0, 0],
    );
}

#[test]
fn whole_words_with_fields_on_top() {
    bits(
        "intel",
        "cpu/config=0x1ff00,config1=1,config2=2,config3=0xffffffffffffffff/",
        4,
        [0x1_ff00, 1, 2, u64::MAX],
    );
    bits(
        "intel",
        "cpu/umask=1,config=0x1ff3c/",
        4,
        [0x1_013c, 0, 0, 0],
    );
    bits("intel", "cpu/mem-loads,config=0x3c/", 4, [0x3c, 3, 0, 0]);
}

#[test]
fn bits_on_arm_up_to_config3() {
    bits(
        "arm",
        "armv8_cortex_a53/inst_retired,long/",
        8,
        [0x8, 1, 0, 0],
    );
    bits(
        "arm",
        "arm_spe_0/load_filter,min_latency=0xfff,event_filter=2,inv_event_filter=4/",
        9,
        [1 << 33, 2, 0xfff, 4],
    );
}

#[test]
fn a_hybrid_machine_has_an_event_per_core_type() {
    bits("hybrid", "cpu_core/mem-loads/", 4, [0x01cd, 3, 0, 0]);
    bits("hybrid", "cpu_atom/mem-loads/", 10, [0x05d0, 3, 0, 0]);
    let atom = resolve("hybrid", "cpu_atom/instructions/");
    assert_eq!(atom.cpus, Some((16..24).collect()));
    assert_eq!((atom.cpumask, atom.info.honours), (None, Filter::all()));
}

#[test]
fn units_scales_masks_and_gauges() {
    let energy = resolve("intel", "power/energy-pkg/");
    assert_eq!(energy.config.config, 2);
    assert_eq!(energy.info.name, "power/energy-pkg/");
    assert_eq!(
        (energy.info.unit.as_ref(), energy.info.scale),
        ("Joules", 2f64.powi(-32))
    );
    assert_eq!(energy.info.kind, ValueKind::Counter);
    assert_eq!(
        (&energy.cpumask, energy.per_package),
        (&Some(vec![0]), false)
    );
    assert_eq!(energy.info.honours, Filter::empty());

    let occupancy = resolve("intel", "intel_cqm/llc_occupancy/");
    assert_eq!(
        (occupancy.info.unit.as_ref(), occupancy.info.scale),
        ("Bytes", 65536.0)
    );
    assert_eq!(
        (occupancy.info.kind, occupancy.per_package),
        (ValueKind::Gauge, true)
    );

    let tsc = resolve("intel", "msr/tsc,name=stamps/");
    assert_eq!(tsc.info.name, "stamps");
    assert_eq!((tsc.info.unit.as_ref(), tsc.info.scale), ("", 1.0));
    assert_eq!((tsc.cpumask, tsc.info.honours), (None, Filter::empty()));

    assert_eq!(resolve("intel", "cpu/topdown-total-slots/").info.scale, 2.0);
    assert_eq!(resolve("amd", "amd_l3/event=4/").cpumask, Some(vec![0, 8]));
    assert_eq!(
        resolve("amd", "cpu/event=0xc0,umask=1/").info.name,
        "cpu/event=0xc0,umask=1/"
    );
}

#[test]
fn a_value_too_large_says_how_wide_the_field_is() {
    for (name, text, reason) in [
        (
            "amd",
            "cpu/event=0x1000/",
            "event=0x1000 does not fit into 12 bits (at most 0xfff)",
        ),
        (
            "intel",
            "cpu/edge=2/",
            "edge=0x2 does not fit into 1 bit (at most 0x1)",
        ),
        (
            "intel",
            "cpu/cache-misses,umask=256/",
            "umask=0x100 does not fit into 8 bits (at most 0xff)",
        ),
    ] {
        let e = refused(name, text);
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{text}");
        assert_eq!(e.reason(), Some(reason));
    }
}

#[test]
fn parameters_have_to_be_given() {
    let e = refused("power", "hv_24x7/HPM_INST,lpar=1/");
    assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
    assert_eq!(e.reason(), Some("HPM_INST needs a value for vcpu"));
    assert_eq!(e.hint(), Some("write hv_24x7/HPM_INST,vcpu=N/"));
    let e = refused("power", "hv_24x7/HPM_INST/");
    assert_eq!(e.reason(), Some("HPM_INST needs a value for vcpu, lpar"));
    bits(
        "power",
        "hv_24x7/HPM_INST,vcpu=2,lpar=1/",
        11,
        [0x20_0002_0003, 1, 0, 0],
    );
    bits(
        "power",
        "hv_24x7/PM_PB_CYC,chip=1/",
        11,
        [0x80_0001_0001, 0, 0, 0],
    );
}

#[test]
fn what_does_not_exist_names_the_nearest() {
    for (name, text, hint) in [
        ("intel", "cpu/evnt=0x3c/", "did you mean event?"),
        ("intel", "cpu/cache-mises/", "did you mean cache-misses"),
        ("intel", "cqu/event=1/", "did you mean cpu?"),
        ("hybrid", "cpu/event=1/", "did you mean cpu_atom, cpu_core?"),
        (
            "amd",
            "msr/zzzzz/",
            "msr has event, aperf, irperf, mperf, tsc",
        ),
        (
            "nonexistent",
            "cpu/event=1/",
            "the PMUs of this machine are none",
        ),
    ] {
        let e = refused(name, text);
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent, "{text}");
        assert!(
            e.hint().unwrap().starts_with(hint),
            "{text}: {:?}",
            e.hint()
        );
    }
    // The files beside an event are no events.
    let e = refused("intel", "power/energy-pkg.unit/");
    assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
}

#[test]
fn requests_that_contradict_themselves() {
    for (text, reason) in [
        ("cpu/event=1,event=2/", "the term event is given twice"),
        (
            "cpu/instructions,cpu-cycles/",
            "instructions and cpu-cycles are two events",
        ),
        (
            "cpu/event=foo/",
            "the value of event has to be a number, not `foo`",
        ),
        (
            "cpu/event=?/",
            "the value of event has to be a number, not `?`",
        ),
        ("cpu/event/", "the term event needs a value"),
        ("cpu/config/", "the term config needs a value"),
        (
            "cpu/config1=all/",
            "the value of config1 has to be a number, not `all`",
        ),
        (
            "cpu/instructions=1/",
            "instructions is an event and takes no value",
        ),
        ("cpu/event=1,name/", "the term name needs a value"),
    ] {
        let e = refused("intel", text);
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{text}");
        assert_eq!(e.reason(), Some(reason));
    }
}

#[test]
fn terms_of_perf_itself_are_unsupported_features() {
    for term in [
        "period=1000",
        "freq=99",
        "call-graph=fp",
        "no-inherit",
        "percore",
    ] {
        let e = refused("intel", &format!("cpu/event=1,{term}/"));
        assert_eq!(e.kind(), ErrorKind::UnsupportedFeature, "{term}");
    }
    let e = refused("arm", "arm_spe_0/inv_data_src_filter=1/");
    assert_eq!(e.kind(), ErrorKind::UnsupportedFeature);
    assert!(e.reason().unwrap().contains("config4:0-63"), "{e}");
}

#[test]
fn names_that_lead_out_of_the_directory_are_unknown() {
    for text in ["../type=1/", "cpu/../=1/", "./event=1/", "cpu/.=1/"] {
        assert_eq!(
            refused("intel", text).kind(),
            ErrorKind::UnsupportedEvent,
            "{text}"
        );
    }
    for pmu in ["..", "../intel/cpu", "cpu/../cpu", "", "cpu\0"] {
        let e = machine("intel").resolve(&PmuEvent::new(pmu)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent, "{pmu:?}");
    }
    for term in ["../type", "../events/tsc", "a\0b", ""] {
        for event in [
            PmuEvent::new("cpu").with(term),
            PmuEvent::new("cpu").with_value(term, 1),
        ] {
            let e = machine("intel").resolve(&event).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent, "{term:?}");
        }
    }
}

#[test]
fn files_that_make_no_sense_are_errors_and_hide_nothing_else() {
    for text in [
        "bad/event=1/",
        "bad/empty=1/",
        "bad/word=1/",
        "bad/commas=1/",
        "bad/text/",
        "bad/unknown/",
        "bad/badscale/",
        "bad/infinite/",
    ] {
        assert_eq!(
            refused("hostile", text).kind(),
            ErrorKind::UnsupportedFeature,
            "{text}"
        );
    }
    for text in [
        "bad/bytes=1/",
        "bad/directory=1/",
        "letters/ok=1/",
        "wide/ok=1/",
    ] {
        assert_eq!(refused("hostile", text).kind(), ErrorKind::Os, "{text}");
    }
    for text in ["odd/config=1/", "bad/large/"] {
        assert_eq!(
            refused("hostile", text).kind(),
            ErrorKind::InvalidConfiguration,
            "{text}"
        );
    }
    assert_eq!(
        refused("hostile", "nothing/x/").kind(),
        ErrorKind::UnsupportedEvent
    );
    bits("hostile", "bad/octal/", 31, [0o17, 0, 0, 0]);
    let pmus = machine("hostile").pmus().unwrap();
    let names: Vec<&str> = pmus.iter().map(|pmu| pmu.name.as_str()).collect();
    assert_eq!(names, ["bad"]);
    assert_eq!(machine("hostile").core_pmus(), []);
}

#[test]
fn core_pmus_of_each_machine() {
    let core = |name| -> Vec<(String, u32, Vec<u32>)> {
        let pmus = machine(name).core_pmus().into_iter();
        pmus.map(|pmu| (pmu.name, pmu.type_, pmu.cpus)).collect()
    };
    assert_eq!(core("amd"), [("cpu".to_owned(), 4, vec![])]);
    assert_eq!(
        core("hybrid"),
        [
            ("cpu_core".to_owned(), 4, (0..16).collect()),
            ("cpu_atom".to_owned(), 10, (16..24).collect()),
        ]
    );
    // The cores of a third type are all offline.
    assert_eq!(
        core("arm"),
        [
            ("armv8_cortex_a72".to_owned(), 7, vec![4, 5]),
            ("armv8_cortex_a53".to_owned(), 8, vec![0, 1, 2, 3]),
        ]
    );
    assert_eq!(core("power"), []);
    assert_eq!(core("nonexistent"), []);
}

#[test]
fn a_pmu_with_all_that_its_directory_says() {
    let power = machine("intel").pmu("power").unwrap();
    assert_eq!((power.type_, power.is_core()), (23, false));
    assert_eq!(power.cpumask, Some(vec![0]));
    assert_eq!(power.formats.len(), 1);
    assert_eq!(power.formats[0].field().unwrap().to_string(), "config:0-7");
    let names: Vec<&str> = power
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["energy-cores", "energy-pkg", "energy-ram"]);
    assert_eq!(power.events[1].definition, "event=0x02");
    assert_eq!(power.events[1].unit, "Joules");

    let cpu = machine("intel").pmu("cpu").unwrap();
    assert!(cpu.is_core() && cpu.cpus.is_none());
    assert_eq!((cpu.formats.len(), cpu.events.len()), (12, 14));
    assert!(
        cpu.caps
            .contains(&("pmu_name".to_owned(), "skylake".to_owned()))
    );

    let names = machine("amd").names().unwrap();
    assert_eq!(
        names,
        [
            "amd_df",
            "amd_l3",
            "breakpoint",
            "cpu",
            "msr",
            "software",
            "tracepoint"
        ]
    );
    assert_eq!(machine("amd").pmus().unwrap().len(), names.len());
}

#[test]
fn every_named_event_of_every_machine_resolves_unless_it_has_parameters() {
    let mut resolved = 0;
    for name in ["amd", "intel", "hybrid", "arm", "power"] {
        let pmus = machine(name);
        for pmu in pmus.pmus().unwrap() {
            for event in &pmu.events {
                let result = pmus.resolve(&PmuEvent::new(&pmu.name).with(&event.name));
                assert_eq!(
                    result.is_err(),
                    event.definition.contains('?'),
                    "{result:?}"
                );
                resolved += usize::from(result.is_ok());
            }
        }
    }
    assert_eq!(resolved, 53);
}
