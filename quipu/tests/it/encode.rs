//! The bits of events on CPUs that this machine is not, from their manuals and Linux's drivers.

use std::io::Write as _;

use quipu::{Encoded, Error, ErrorKind, Interface, NativeEvents, encode};
use quipu_hal::{Encoding, PerfConfig, SlotSet, X86Select};

fn encoded(native: &NativeEvents, event: &str, interface: Interface) -> Result<Encoded, Error> {
    let spec = quipu::text::parse_spec(event, native)?;
    encode(&native.tables()?[0], &spec, interface)
}

/// Returns the main word of an event for Linux, which is of the type for raw events.
fn word(cpu: &str, event: &str) -> Result<u64, Error> {
    let native = NativeEvents::new().for_cpu(cpu);
    match encoded(&native, event, Interface::Linux)?.encoding {
        Encoding::Perf(words) => {
            assert_eq!(words, PerfConfig::new(4, words.config), "{event} on {cpu}");
            Ok(words.config)
        }
        other => panic!("{event} on {cpu}: {other:?}"),
    }
}

#[test]
fn terms_of_the_cores_pmu_are_fields_of_the_select_word() {
    const CPUS: [&str; 4] = ["intel-skx", "intel-p6", "amd-k7", "amd-zen4"];
    for cpu in CPUS {
        for (terms, bits) in [
            ("event=0xc0", 0xc0),
            ("event=0xff", 0xff),
            ("umask=0x41", 0x4100),
            ("umask=0xff", 0xff00),
            ("cmask=0x12", 0x1200_0000),
            ("edge", 1 << 18),
            ("edge=1", 1 << 18),
            ("edge=0", 0),
            ("inv", 1 << 23),
            ("config=0x1234567890", 0x12_3456_7890),
            ("event=0x3c,umask=2,cmask=1,inv,edge", 0x0184_023c),
        ] {
            for pmu in ["cpu", "cpu_core", "cpu_atom"] {
                let event = format!("{pmu}/{terms}/");
                assert_eq!(word(cpu, &event), Ok(bits), "{event} on {cpu}");
            }
        }
    }
    assert_eq!(word("amd-zen4", "cpu/event=0x1c2/"), Ok(0x1_0000_00c2));
    assert_eq!(word("amd-zen4", "cpu/event=0xfff/"), Ok(0xf_0000_00ff));
    assert_eq!(word("intel-skx", "cpu/pc/"), Ok(1 << 19));
    assert_eq!(word("intel-p6", "cpu/pc/"), Ok(1 << 19));
    assert_eq!(word("intel-skx", "cpu/any/"), Ok(1 << 21));
}

#[test]
fn terms_that_a_cpu_has_not_are_refused() {
    for (cpu, event, reason) in [
        ("intel-skx", "cpu/event=0x100/", "event is at most 0xff"),
        ("intel-p6", "cpu/event=0x100/", "event is at most 0xff"),
        ("amd-k7", "cpu/event=0x100/", "event is at most 0xff"),
        ("amd-zen4", "cpu/event=0x1000/", "event is at most 0xfff"),
        ("amd-zen4", "cpu/umask=0x100/", "umask is at most 0xff"),
        ("amd-zen4", "cpu/cmask=0x100/", "cmask is at most 0xff"),
        ("amd-zen4", "cpu/edge=2/", "edge is at most 0x1"),
        ("amd-zen4", "cpu/inv=2/", "inv is at most 0x1"),
        ("amd-zen4", "cpu/pc/", "the PMU of this CPU has no field pc"),
        (
            "amd-zen4",
            "cpu/any/",
            "the PMU of this CPU has no field any",
        ),
        ("amd-k7", "cpu/pc/", "the PMU of this CPU has no field pc"),
        (
            "intel-p6",
            "cpu/any/",
            "the PMU of this CPU has no field any",
        ),
        (
            "intel-skx",
            "cpu/event=many/",
            "event is many, which is no number",
        ),
    ] {
        let refused = word(cpu, event).expect_err(event);
        assert_eq!(
            (refused.kind(), refused.reason()),
            (ErrorKind::UnsupportedEvent, Some(reason)),
            "{event} on {cpu}"
        );
    }
    // Of a PMU that is none of the cores', no kernel has a driver.
    assert!(word("intel-skx", "no_such_pmu/event=1/").is_err());
}

/// Linux has its own numbers for generalized events; a register takes the CPU's bits.
#[test]
fn generalized_events_are_the_kernels_with_the_cpus_bits_beside_them() {
    let zen = NativeEvents::new().for_cpu("amd-zen4");
    let cycles = encoded(&zen, "cycles", Interface::Linux).expect("the kernel's");
    assert_eq!(cycles.encoding, Encoding::Perf(PerfConfig::new(0, 0)));
    assert_eq!(
        cycles.native,
        Some(Encoding::Perf(PerfConfig::new(4, 0x76)))
    );
    assert_eq!(cycles.slots, SlotSet::ANY_GENERAL);
    let select = encoded(&zen, "cycles", Interface::Msr).expect("the table's");
    let Encoding::X86(select) = select.encoding else {
        panic!("{select:?}");
    };
    assert_eq!(
        (select.event(), select.unit_mask()),
        (X86Select::new(0x76, 0).event(), 0)
    );
    // The table has no such event, and the kernel has a number for it.
    let bus = encoded(&zen, "bus-cycles", Interface::Linux).expect("the kernel's");
    assert_eq!(bus.encoding, Encoding::Perf(PerfConfig::new(0, 6)));
    assert_eq!(bus.native, None);
    // Linux has no driver for the counters of a P5.
    let pentium = NativeEvents::new().for_cpu("intel-p5");
    let refused = encoded(&pentium, "instructions", Interface::Linux).expect_err("no driver");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    let refused = encoded(&pentium, "r28", Interface::Linux).expect_err("no driver");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    let refused = encoded(&pentium, "cycles", Interface::Linux).expect_err("it counts none");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
}

#[test]
fn an_event_file_takes_the_place_of_the_kernels_numbers() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let own = "[[cpu]]\nid = \"amd-zen4\"\n[cpu.generalized]\ncycles = \"ex_ret_instr\"\n";
    file.write_all(own.as_bytes()).expect("written");
    let zen = NativeEvents::new()
        .for_cpu("amd-zen4")
        .with_file(file.path());
    let cycles = encoded(&zen, "cycles", Interface::Linux).expect("the file's");
    assert_eq!(cycles.encoding, Encoding::Perf(PerfConfig::new(4, 0xc0)));
    let instructions = encoded(&zen, "instructions", Interface::Linux).expect("the kernel's");
    assert_eq!(instructions.encoding, Encoding::Perf(PerfConfig::new(0, 1)));
}
