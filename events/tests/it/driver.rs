//! Events that are numbers of Linux's drivers: config words of up to 64 bits.

use quipu_events::{Database, Interface, check_text};
use quipu_hal::{Encoding, ErrorKind, Event, EventMap, Filter, PerfConfig};

fn config(cpu: &str, name: &str) -> Result<u64, String> {
    let events = Database::embedded()
        .cpu(cpu)
        .unwrap()
        .events_for(Interface::Linux);
    match events.resolve(&Event::Named(name.to_owned()), Filter::all()) {
        Ok(resolved) => match resolved.encoding {
            Encoding::Perf(perf) => {
                assert_eq!((perf.type_, perf.config1), (4, 0), "{name}");
                Ok(perf.config)
            }
            other => panic!("{other:?}"),
        },
        Err(error) => Err(format!("{error:#}")),
    }
}

/// Numbers of arch/powerpc/perf/power*-events-list.h, of the SBI specification, of perf_cpum_cf_events.c, and of
/// perf_event_p4.h: event in bits 57-62, event mask from bit 41, tag from bit 36, metric in bits 0-5.
#[test]
fn numbers_are_those_of_the_drivers() {
    for (cpu, name, wanted) in [
        ("ibm-power8", "PM_CYC", 0x1e),
        ("ibm-power8", "PM_BR_MPRED_CMPL", 0x400f6),
        ("ibm-power9", "PM_INST_CMPL", 0x2),
        ("ibm-power9", "PM_LD_MISS_L1_FIN", 0x2c04e),
        ("ibm-power10", "PM_L1_ICACHE_MISS_GENERIC", 0x200fc),
        ("riscv-sbi", "FW_IPI_SENT", 0x8000_0000_0000_0006),
        ("sifive-bullet", "FW_MISALIGNED_LOAD", 0x8000_0000_0000_0000),
        ("sifive-bullet", "DTLB_MISS", 0x1002),
        ("sifive-bullet", "OTHER_FP_RETIRED", 0x200_0000),
        ("ibm-z15", "PROBLEM_STATE_INSTRUCTIONS", 33),
        ("loongson-la64", "CPU_CYCLES", 0),
        (
            "intel-netburst",
            "global_power_events",
            0x3000_0200_0000_0000,
        ),
        (
            "intel-netburst",
            "GLOBAL_POWER_EVENTS:RUNNING",
            0x3000_0200_0000_0000,
        ),
        (
            "intel-netburst",
            "branch_retired:MMTP:MMTM",
            0x5200_1800_0000_0000,
        ),
        (
            "intel-netburst",
            "x87_FP_uop:ALL:TAG1",
            0x2d00_0050_0000_0000,
        ),
        (
            "intel-netburst",
            "replay_event:L2_LD_MISS",
            0x4a00_0200_0000_0002,
        ),
    ] {
        let got = config(cpu, name).unwrap_or_else(|error| panic!("{cpu} {name}: {error}"));
        assert_eq!(got, wanted, "{cpu} {name}: {got:#x}");
    }
    // A metric is a number: two of them have no meaning together.
    assert!(config("intel-netburst", "replay_event:L1_LD_MISS:L2_LD_MISS").is_err());
    assert!(config("intel-netburst", "instr_completed:NBOGUS").is_err());
    // Unit masks are no numbers here, nor on an Arm CPU.
    for (cpu, name) in [
        ("intel-netburst", "branch_retired:umask=0"),
        ("intel-netburst", "branch_retired:MMTP:umask=3"),
        ("ibm-power9", "PM_CYC:umask=1"),
        ("arm-cortex-a72", "CPU_CYCLES:umask=1"),
    ] {
        assert!(config(cpu, name).is_err(), "{cpu} {name}");
    }
    assert!(config("intel-prescott", "instr_completed:NBOGUS").is_ok());
    assert!(config("intel-prescott", "branch_retired:MMTP").is_ok());
}

#[test]
fn wide_numbers_are_decoded_to_their_names() {
    for (cpu, name) in [
        ("ibm-power9", "PM_BR_MPRED_CMPL"),
        ("riscv-sbi", "FW_IPI_SENT"),
        ("ibm-power10", "PM_CYC"),
        ("intel-netburst", "branch_retired.MMTP"),
    ] {
        let table = Database::embedded().cpu(cpu).unwrap();
        let word = PerfConfig::new(4, config(cpu, name).unwrap());
        assert_eq!(table.decode(&Encoding::Perf(word)).unwrap().name, name);
        let event = table.event(name).unwrap();
        assert_eq!(event.code, word.config);
        assert_eq!(event.register, None);
    }
    let table = Database::embedded().cpu("ibm-power9").unwrap();
    let none = table.decode(&Encoding::Perf(PerfConfig::new(4, 0x7_0000_001e)));
    let error = none.unwrap_err().to_string();
    assert!(error.contains("0x70000001e"), "{error}");
}

#[test]
fn other_interfaces_refuse_them() {
    for interface in [Interface::Msr, Interface::Pctr] {
        let events = Database::embedded()
            .cpu("intel-netburst")
            .unwrap()
            .events_for(interface);
        let event = Event::Named("global_power_events".to_owned());
        let error = events.resolve(&event, Filter::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedFeature);
        assert!(error.to_string().contains("Linux's driver"), "{error}");
    }
}

#[test]
fn files_name_such_cpus_by_architecture_and_pattern() {
    let findings = |text: &str| -> Vec<String> {
        let found = check_text("f", text, &Database::embedded());
        found.iter().map(ToString::to_string).collect()
    };
    let head = "[[cpu]]\nid = \"x-a\"\nscheme = \"perf\"\n";
    let with = |rule: &str, events: &str| format!("{head}match = [{rule}]\n[cpu.events]\n{events}");
    let fine = with(
        "{ isa = \"riscv\", id = \"0x1-[2-4]-*\" }",
        "A = 0x8000000000000001\n",
    );
    assert_eq!(findings(&fine), [""; 0]);
    assert_eq!(
        findings(&with(
            "{ isa = \"vax\", id = \"*\" }, { isa = \"riscv\" }, { part = 1, id = \"*\" }",
            "A = 1\n"
        )),
        [
            "f:4:18: unknown architecture `vax`; there are loongarch, powerpc, riscv, s390",
            "f:4:37: a match by `isa` needs the `id`, and one by `id` the `isa`",
            "f:4:56: a match is either x86 (vendor, family, ...), ARM (implementer, part) or another (isa, id)",
        ]
    );
    let narrow = fine.replace("\"perf\"", "\"armv8\"");
    assert_eq!(
        findings(&narrow),
        ["f:6:1: A: event number 0x8000000000000001 is larger than the scheme's 0xffff"]
    );
    let masks = with(
        "{ isa = \"riscv\", id = \"9\" }",
        "A = { code = 0x10000, unit-mask = 1 }\n",
    );
    assert_eq!(
        findings(&masks),
        ["f:6:1: A: this scheme has no unit masks and no counter masks"]
    );
}
