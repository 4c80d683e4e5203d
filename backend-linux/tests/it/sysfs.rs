//! PMUs and their events, from directories as kernels on several machines show them.

use std::path::PathBuf;

use quipu_hal::{Error, ErrorKind, Filter, PerfConfig, PmuEvent, Term, TermValue, ValueKind};
use quipu_linux::sysfs::{ConfigWord, Field, ResolvedPmuEvent, SysfsPmus};

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

/// A machine, an event there, and its type and config words.
const BITS: &str = "
    amd    cpu//                                                 4  0
    amd    cpu/event=0xc0/                                       4  0xc0
    amd    cpu/event=0x1c2,umask=0x11/                           4  0x1000011c2
    amd    cpu/event=0xfff/                                      4  0xf000000ff
    amd    cpu/event=194,cmask=255,inv,edge/                     4  0xff8400c2
    amd    cpu/cache-misses/                                     4  0x0964
    amd    amd_df/event=0x3fff,umask=0xfff/                      10 0x3f0f00ffff
    amd    amd_l3/event=0x4,umask=0xff,threadmask=3,sliceid=0x7/ 11 0x030700000000ff04
    # What is not mentioned is zero.
    intel  cpu/event=0x3c/                                       4  0x3c
    intel  cpu/bus-cycles/                                       4  0x013c
    intel  cpu/cycles-ct/                                        4  0x30000003c
    intel  cpu/topdown-recovery-bubbles/                         4  0x0100030d
    intel  cpu/mem-loads/                                        4  0x01cd 3
    intel  cpu/event=0xb7,umask=1,offcore_rsp=0x3fbfc00001/      4  0x01b7 0x3fbfc00001
    # The request wins over the named event, in either order.
    intel  cpu/mem-loads,ldlat=30/                               4  0x01cd 30
    intel  cpu/ldlat=30,mem-loads/                               4  0x01cd 30
    intel  cpu/cache-misses,umask=0/                             4  0x2e
    intel  cpu/topdown-recovery-bubbles,cmask=0,inv/             4  0x0080030d
    # Whole words, with fields on top.
    intel  cpu/config=0x1ff00,config1=1,config2=2,config3=0xffffffffffffffff/ 4 0x1ff00 1 2 0xffffffffffffffff
    intel  cpu/umask=1,config=0x1ff3c/                           4  0x1013c
    intel  cpu/mem-loads,config=0x3c/                            4  0x3c 3
    arm    armv8_cortex_a53/inst_retired,long/                   8  0x8 1
    arm    arm_spe_0/load_filter,min_latency=0xfff,event_filter=2,inv_event_filter=4/ 9 0x200000000 2 0xfff 4
    # An event for each core type.
    hybrid cpu_core/mem-loads/                                   4  0x01cd 3
    hybrid cpu_atom/mem-loads/                                   10 0x05d0 3
    # Parameters.
    power  hv_24x7/HPM_INST,vcpu=2,lpar=1/                       11 0x2000020003 1
    power  hv_24x7/PM_PB_CYC,chip=1/                             11 0x8000010001
    hostile bad/octal/                                           31 0xf
";

#[test]
fn events_have_the_bits_that_the_kernel_takes() {
    for line in BITS.lines().map(str::trim) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [name, text, type_, words @ ..] = columns.as_slice() else {
            continue;
        };
        if *name == "#" {
            continue;
        }
        let word = |i: usize| match words.get(i).map(|word| term_value(word)) {
            Some(TermValue::Number(word)) => word,
            _ => 0,
        };
        let expected = PerfConfig::new(type_.parse().unwrap(), word(0))
            .with_config1(word(1))
            .with_config2(word(2))
            .with_config3(word(3));
        assert_eq!(resolve(name, text).config, expected, "{line}");
    }
}

/// A PMU of this one field and these files of events.
fn pmu_of(field: &str, events: &[(&str, &str)]) -> (tempfile::TempDir, SysfsPmus) {
    let root = tempfile::tempdir().unwrap();
    for dir in ["format", "events"] {
        std::fs::create_dir_all(root.path().join("p").join(dir)).unwrap();
    }
    std::fs::write(root.path().join("p/type"), "9\n").unwrap();
    std::fs::write(root.path().join("p/format/event"), field).unwrap();
    for (name, text) in events {
        std::fs::write(root.path().join("p/events").join(name), text).unwrap();
    }
    let pmus = SysfsPmus::at(root.path());
    (root, pmus)
}

#[test]
fn definitions_have_numbers_in_three_bases() {
    for (text, value) in [
        ("event=0", Some(0)),
        ("event=10", Some(10)),
        ("event=010", Some(8)),
        ("event=0x10", Some(16)),
        ("event=0XfF", Some(255)),
        ("event=18446744073709551615", Some(u64::MAX)),
        ("event", Some(1)),
        ("event=1, event = 2", Some(2)),
        ("event=18446744073709551616", None),
        ("event=08", None),
        ("event=0x", None),
        ("event=+1", None),
        ("event=-1", None),
        ("event=0x+1", None),
        ("event=", None),
        ("event=ten", None),
        ("", None),
        (",", None),
        ("=1", None),
        ("event=1,,event=1", None),
        ("event=1=2", None),
    ] {
        let (_root, pmus) = pmu_of("config:0-63", &[("e", text)]);
        match pmus.resolve(&PmuEvent::new("p").with("e")) {
            Ok(resolved) => assert_eq!(Some(resolved.config.config), value, "{text}"),
            Err(e) => assert_eq!((e.kind(), value), (ErrorKind::UnsupportedFeature, None)),
        }
    }
}

#[test]
fn companions_go_to_their_event() {
    let (_root, pmus) = pmu_of(
        "config:0-7",
        &[
            ("energy", "event=0x01"),
            ("energy.scale", "2.3283064365386962890625e-10"),
            ("energy.unit", "Joules"),
            ("lost.unit", "Things"),
            ("tsc", "event=0x00"),
        ],
    );
    let events = pmus.pmu("p").unwrap().events.into_iter();
    let events: Vec<_> = events.map(|e| (e.name, e.unit, e.scale)).collect();
    let scale = Some("2.3283064365386962890625e-10".to_owned());
    assert_eq!(
        events,
        [
            ("energy".to_owned(), "Joules".to_owned(), scale),
            ("tsc".to_owned(), String::new(), None)
        ]
    );
}

#[test]
fn fields_of_every_shape() {
    for (text, word, mask, width) in [
        ("config:0-7", ConfigWord::Config, 0xff, 8),
        ("config:0-7,32-35", ConfigWord::Config, 0xf_0000_00ff, 12),
        ("config:0-7,21", ConfigWord::Config, 0x20_00ff, 9),
        ("config:18", ConfigWord::Config, 1 << 18, 1),
        ("config1:0-63", ConfigWord::Config1, u64::MAX, 64),
        ("config2:0-11", ConfigWord::Config2, 0xfff, 12),
        ("config3:63", ConfigWord::Config3, 1 << 63, 1),
    ] {
        let field: Field = text.parse().unwrap();
        assert_eq!((field.word(), field.mask()), (word, mask), "{text}");
        assert_eq!(field.width(), width, "{text}");
        assert_eq!(field.max(), ((1u128 << width) - 1) as u64, "{text}");
        assert_eq!(field.to_string(), text);
    }
    let field: Field = "config:1,6-10,44\n".parse().unwrap();
    assert_eq!(field.to_string(), "config:1,6-10,44");
}

#[test]
fn values_are_spread_from_the_lowest_bit_up_and_replace_what_was_there() {
    let mut config = PerfConfig::default();
    for (field, value, wanted) in [
        ("config:0-7,32-35", 0x1c2, 0x1_0000_00c2),
        ("config:0-7,32-35", 0xf01, 0xf_0000_0001),
        // The order of the ranges does not matter: perf keeps them as a set of bits.
        ("config2:32-35,0-7", 0x1c2, 0x1_0000_00c2),
        ("config3:0-63", u64::MAX, u64::MAX),
    ] {
        let field: Field = field.parse().unwrap();
        field.set(&mut config, value);
        assert_eq!(*field.word().of(&mut config), wanted, "{field}");
    }
}

#[test]
fn what_is_not_a_field_is_refused() {
    for text in [
        "",
        "config",
        "config:",
        "config4:0-63",
        "konfig:0",
        "config:64",
        "config:0-64",
        "config:8-7",
        "config:0,,1",
        "config:-1",
        "config:1-",
        "config:99999999999999999999",
        "config:0x1",
    ] {
        let e = text.parse::<Field>().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedFeature, "{text}");
    }
}

#[test]
fn an_event_of_one_core_type_says_where_it_counts() {
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
fn parameters_have_to_be_given() {
    let e = refused("power", "hv_24x7/HPM_INST,lpar=1/");
    assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
    assert_eq!(e.reason(), Some("HPM_INST needs a value for vcpu"));
    assert_eq!(e.hint(), Some("write hv_24x7/HPM_INST,vcpu=N/"));
    let e = refused("power", "hv_24x7/HPM_INST/");
    assert_eq!(e.reason(), Some("HPM_INST needs a value for vcpu, lpar"));
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

/// A machine, an event there that is refused, and the reason.
const INVALID: &str = "
    amd   cpu/event=0x1000/            event=0x1000 does not fit into 12 bits (at most 0xfff)
    intel cpu/edge=2/                  edge=0x2 does not fit into 1 bit (at most 0x1)
    intel cpu/cache-misses,umask=256/  umask=0x100 does not fit into 8 bits (at most 0xff)
    intel cpu/event=1,event=2/         the term event is given twice
    intel cpu/instructions,cpu-cycles/ instructions and cpu-cycles are two events
    intel cpu/event=foo/               the value of event has to be a number, not `foo`
    intel cpu/event=?/                 the value of event has to be a number, not `?`
    intel cpu/event/                   the term event needs a value
    intel cpu/config/                  the term config needs a value
    intel cpu/config1=all/             the value of config1 has to be a number, not `all`
    intel cpu/instructions=1/          instructions is an event and takes no value
    intel cpu/event=1,name/            the term name needs a value
";

#[test]
fn requests_that_contradict_themselves_or_do_not_fit() {
    for line in INVALID.trim().lines() {
        let (name, rest) = line.trim().split_once(' ').unwrap();
        let (text, reason) = rest.trim().split_once(' ').unwrap();
        let e = refused(name, text);
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{text}");
        assert_eq!(e.reason(), Some(reason.trim()));
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
    use ErrorKind as K;
    for (kind, events) in [
        (
            K::UnsupportedFeature,
            "bad/event=1/ bad/empty=1/ bad/word=1/ bad/commas=1/ bad/text/ bad/unknown/ \
             bad/badscale/ bad/infinite/",
        ),
        (
            K::Os,
            "bad/bytes=1/ bad/directory=1/ letters/ok=1/ wide/ok=1/",
        ),
        (K::InvalidConfiguration, "odd/config=1/ bad/large/"),
        (K::UnsupportedEvent, "nothing/x/"),
    ] {
        for text in events.split_whitespace() {
            assert_eq!(refused("hostile", text).kind(), kind, "{text}");
        }
    }
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

/// A symbolic link to itself cannot be followed (ELOOP): whether there is a file cannot be told.
#[test]
fn what_cannot_be_looked_at_is_not_taken_for_missing() {
    let dir = tempfile::tempdir().unwrap();
    let events = dir.path().join("msr/events");
    std::fs::create_dir_all(&events).unwrap();
    std::fs::write(dir.path().join("msr/type"), "9\n").unwrap();
    std::fs::write(events.join("temp"), "event=0x05\n").unwrap();
    let pmus = SysfsPmus::at(dir.path());
    let refused = |name: &str| {
        let link = events.join(name);
        std::os::unix::fs::symlink(&link, &link).unwrap();
        let named = PmuEvent::new("msr").with(name.split('.').next().unwrap());
        let error = pmus.resolve(&named).unwrap_err();
        std::fs::remove_file(&link).unwrap();
        (error.kind(), error.errno())
    };
    let unreadable = (ErrorKind::Os, Some(libc::ELOOP));
    assert_eq!(refused("tsc"), unreadable, "an event");
    std::fs::create_dir(dir.path().join("msr/format")).unwrap();
    std::fs::write(dir.path().join("msr/format/event"), "config:0-63\n").unwrap();
    assert_eq!(
        refused("temp.snapshot"),
        unreadable,
        "whether it is a gauge"
    );
    assert_eq!(
        refused("temp.per-pkg"),
        unreadable,
        "whether it is of a package"
    );
}
