//! Which CPU is which entry.

use std::fs;
use std::io::Write as _;

use quipu_events::identify::{self, Core, CpuidLeaf, from_cpuid, from_signature, from_text};
use quipu_events::{CpuTable, Database, Interface};
use quipu_hal::{CounterBank, CpuIdentity, ErrorKind, EventMap, SlotClass};

fn id(text: &str) -> String {
    let core = Core::new(from_text(text).unwrap());
    let table = Database::embedded().identify(&core);
    table.map_or_else(|error| format!("{error:#}"), |table| table.id().to_owned())
}

#[test]
fn cpus_are_recognised_by_family_model_and_stepping() {
    for (text, expected) in [
        ("GenuineIntel-5-2-1", "intel-p5"),
        ("GenuineIntel-5-4", "intel-p5-mmx"),
        ("GenuineIntel-6-1-9", "intel-p6"),
        ("GenuineIntel-6-6-5", "intel-pii"),
        ("GenuineIntel-6-8-6", "intel-piii"),
        ("GenuineIntel-6-D-8", "intel-pm"),
        ("GenuineIntel-6-F-B", "intel-core2"),
        ("GenuineIntel-6-55-4", "intel-skx"),
        ("GenuineIntel-6-55-7", "intel-clx"),
        ("GenuineIntel-6-8F-8", "intel-spr"),
        ("GenuineIntel-6-BE", "intel-adl-atom"),
        ("GenuineIntel-6-E", "intel-yonah"),
        ("GenuineIntel-6-8A", "intel-lkf"),
        ("GenuineIntel-6-D7", "intel-btl"),
        ("GenuineIntel-6-FE", "intel-arch"),
        ("GenuineIntel-11-1", "intel-knc"),
        ("GenuineIntel-15-2", "intel-netburst"),
        ("GenuineIntel-15-4", "intel-prescott"),
        ("GenuineIntel-19-1", "intel-dmr"),
        ("GenuineIntel-19-2", "intel-arch"),
        ("GenuineIntel-18-1", "intel-nvl-core"),
        ("AuthenticAMD-6-8", "amd-k7"),
        ("AuthenticAMD-15-41", "amd-k8"),
        ("AuthenticAMD-15-25", "amd-k8-e"),
        ("AuthenticAMD-15-5-8", "amd-k8-c"),
        ("AuthenticAMD-16-2", "amd-10h-barcelona"),
        ("AuthenticAMD-16-A", "amd-10h-istanbul"),
        ("AuthenticAMD-23-1", "amd-zen1"),
        ("AuthenticAMD-23-31", "amd-zen2"),
        // The ranges of models of Linux's bsp_init_amd (arch/x86/kernel/cpu/amd.c).
        ("AuthenticAMD-23-2F", "amd-zen1"),
        ("AuthenticAMD-23-50", "amd-zen1"),
        ("AuthenticAMD-23-60", "amd-zen2"),
        ("AuthenticAMD-23-91", "amd-zen2"),
        ("AuthenticAMD-23-A0", "amd-zen2"),
        ("AuthenticAMD-23-92", "amd-arch"),
        ("AuthenticAMD-25-30", "amd-zen3"),
        ("AuthenticAMD-25-5F", "amd-zen3"),
        ("AuthenticAMD-25-AF", "amd-zen4"),
        ("AuthenticAMD-26-2F", "amd-zen5"),
        ("AuthenticAMD-26-D7", "amd-zen5"),
        ("AuthenticAMD-26-D8", "amd-zen6"),
        ("AuthenticAMD-26-EF", "amd-zen6"),
        ("AuthenticAMD-26-30", "amd-arch"),
        ("AuthenticAMD-26-B0", "amd-arch"),
        ("AuthenticAMD-25-21", "amd-zen3"),
        ("AuthenticAMD-25-11", "amd-zen4"),
        ("AuthenticAMD-26-44", "amd-zen5"),
        ("AuthenticAMD-25-74", "amd-zen4"),
        ("AuthenticAMD-26-50", "amd-zen6"),
        // Models that nothing is known of.
        ("AuthenticAMD-25-B0", "amd-arch"),
        ("AuthenticAMD-26-F0", "amd-arch"),
        ("AuthenticAMD-27-1", "amd-arch"),
        ("HygonGenuine-24-0", "amd-zen1"),
        ("0x00000000410fd083", "arm-cortex-a72"),
        ("0x00000000413fd0c1", "arm-neoverse-n1"),
        ("0x00000000410fd4f0", "arm-neoverse-v2"),
        ("0x00000000c00fac40", "ampere-onex"),
        ("0x00000000611f0250", "apple-m1"),
        ("riscv 0x489-0x8000000000000007-0x4210427", "sifive-bullet"),
        ("riscv 0x489-0x8000000000000207-0xd0010", "sifive-bullet0d"),
        ("riscv 0x489-0x8000000000000008-0x6220425", "sifive-p550"),
        ("riscv 0x5b7-0x0-0x0", "thead-c900"),
        ("riscv 0x1-0x2-0x3", "riscv-sbi"),
        ("powerpc 0x004e1202", "ibm-power9"),
        ("powerpc 0x00820101", "ibm-power10"),
        ("powerpc 0x00ffffff", "ibm-power"),
        ("s390 IBM,8561,703,T01,3.6,002f", "ibm-z15"),
        ("s390 IBM,3931,704,A01,3.7,002f", "ibm-z16"),
        ("s390 IBM,2964,702,N96,3.5,002f", "ibm-z13"),
        ("loongarch 0x0014c011", "loongson-la64"),
    ] {
        assert_eq!(id(text), expected, "{text}");
    }
    assert!(id("AuthenticAMD-24-1").starts_with("cannot find AuthenticAMD-24-1-0"));
    assert!(id("CentaurHauls-6-F").starts_with("cannot find CentaurHauls-6-F-0"));
    // A z15 on which z/VM offers no counters, and an earlier POWER.
    assert!(id("s390 IBM,8561,703,T01").starts_with("cannot find s390 IBM"));
    assert!(id("powerpc 0x003f0201").starts_with("cannot find powerpc 0x003f0201"));
}

/// Apple's M4 (0x61), and a core of HiSilicon's that has no table.
#[test]
fn events_of_the_arm_architecture_are_for_a_pmu_v3_alone() {
    let apple = "0x00000000610f0540";
    let unknown = "0x00000000480fd990";
    for text in [apple, unknown] {
        let refused = id(text);
        assert!(
            refused.contains("not known to be a PMUv3"),
            "{text}: {refused}"
        );
    }
    let sysfs = tempfile::tempdir().unwrap();
    let register = sysfs
        .path()
        .join("devices/system/cpu/cpu0/regs/identification");
    fs::create_dir_all(&register).unwrap();
    fs::write(register.join("midr_el1"), unknown).unwrap();
    for (pmu, expected) in [
        ("apple_icestorm_pmu", None),
        ("armv8_pmuv3_0", Some("arm-armv8")),
        ("armv9_cortex_x4", Some("arm-armv8")),
    ] {
        let device = sysfs.path().join("bus/event_source/devices").join(pmu);
        fs::create_dir_all(&device).unwrap();
        // On x86 CPUID is asked, and not sysfs.
        let mut core = Core::new(from_text(unknown).unwrap());
        core.has_pmu_v3 = identify::has_pmu_v3(sysfs.path());
        let table = Database::embedded().identify(&core).ok();
        assert_eq!(table.as_ref().map(CpuTable::id), expected, "{pmu}");
        fs::remove_dir(&device).unwrap();
    }
}

#[test]
fn a_relatives_table_serves_a_cpu_that_takes_the_same_bits() {
    let database = Database::embedded();
    // The fallback entry has no models of its own.
    let own = |cpu: &quipu_events::CpuSummary| cpu.id != "intel-arch";
    for cpu in database.cpus().into_iter().filter(own) {
        let own = Core::new(database.cpu(&cpu.id).unwrap().model().identity.clone());
        let table = database.cpu_for_core(&cpu.id, &own);
        assert!(table.is_ok(), "{}: {table:?}", cpu.id);
    }
    let mut unknown = Core::new(from_text("AuthenticAMD-99-1").unwrap());
    let bank = CounterBank {
        class: SlotClass::General,
        number: 9,
        width: 48,
    };
    unknown.counters = vec![bank];
    let table = database.cpu_for_core("amd-zen5", &unknown).unwrap();
    assert_eq!(table.id(), "amd-zen5");
    assert_eq!(table.model().identity, unknown.identity);
    assert_eq!(table.model().counters, [bank]);
    for (id, text, words) in [
        ("intel-skl", "AuthenticAMD-25-11", "encoded as intel-core"),
        ("amd-k8", "AuthenticAMD-25-11", "takes amd-10h"),
        ("arm-neoverse-n1", "GenuineIntel-6-55", "encoded as armv8"),
        ("intel-p6", "GenuineIntel-15-2", "takes perf"),
        ("intel-p6", "GenuineIntel-9-2", "it is not known"),
        ("ibm-power9", "s390 IBM,3931,704,A01", "of another driver"),
        ("ibm-power9", "GenuineIntel-15-2", "of another driver"),
        ("amd-k8", "riscv 0x1-0x2-0x3", "takes perf"),
        ("intel-slk", "GenuineIntel-6-55", "did you mean intel-skl?"),
    ] {
        let core = Core::new(from_text(text).unwrap());
        let error = database.cpu_for_core(id, &core).unwrap_err();
        assert!(format!("{error:#}").contains(words), "{error:#}");
    }
}

#[test]
fn signatures_carry_extended_family_and_model() {
    let x86 = |family, model, stepping| CpuIdentity::X86 {
        vendor: "V".to_owned(),
        family,
        model,
        stepping,
    };
    assert_eq!(from_signature("V", 0x0008_06f8), x86(6, 0x8f, 8));
    assert_eq!(from_signature("V", 0x00a1_0f11), x86(25, 0x11, 1));
    assert_eq!(from_signature("V", 0x0000_0543), x86(5, 4, 3));
    for text in [
        "",
        "V",
        "V-6",
        "V-6-ZZ",
        "V-6-1-2-3",
        "V-x-1",
        "0xzz",
        "-6-1",
        "vax 1",
    ] {
        assert_eq!(from_text(text), None, "{text}");
    }
}

fn vendor(name: &[u8; 12], highest: u32) -> CpuidLeaf {
    let word = |at: usize| u32::from_le_bytes([name[at], name[at + 1], name[at + 2], name[at + 3]]);
    CpuidLeaf {
        eax: highest,
        ebx: word(0),
        edx: word(4),
        ecx: word(8),
    }
}

#[test]
fn counters_of_intel_come_from_leaf_0xa() {
    let hybrid = |native: u32| {
        from_cpuid(move |leaf, _| match leaf {
            0 => vendor(b"GenuineIntel", 0x20),
            1 => CpuidLeaf {
                eax: 0x000c_0652,
                ..CpuidLeaf::default()
            },
            7 => CpuidLeaf {
                edx: 1 << 15,
                ..CpuidLeaf::default()
            },
            0xa => CpuidLeaf {
                eax: 0x0830_0805,
                edx: 0x0000_0604,
                ..CpuidLeaf::default()
            },
            0x1a => CpuidLeaf {
                eax: native,
                ..CpuidLeaf::default()
            },
            _ => CpuidLeaf::default(),
        })
        .unwrap()
    };
    let core = hybrid(0x4000_0003);
    assert_eq!(core.core_type.as_deref(), Some("core"));
    assert_eq!(core.perfmon_version, 5);
    let bank = |class, number| CounterBank {
        class,
        number,
        width: 48,
    };
    let counters = [bank(SlotClass::General, 8), bank(SlotClass::Fixed, 4)];
    assert_eq!(core.counters, counters);
    let words = "Intel architectural version 5, 8 general and 4 fixed counters of 48 bits";
    assert_eq!(core.counters_by_cpuid().as_deref(), Some(words));
    let database = Database::embedded();
    let table = |core| database.identify(&core).unwrap();
    let found = table(core);
    assert_eq!(
        (found.id(), &found.model().counters[..]),
        ("intel-arl-core", &counters[..])
    );
    assert_eq!(table(hybrid(0x2000_0003)).id(), "intel-arl-atom");
    assert_eq!(table(hybrid(0x2000_0002)).id(), "intel-arl-lp");
}

/// Version 1 has nothing in EDX: it is reserved (the SDM, "Architectural Performance Monitoring Version 1").
#[test]
fn fixed_counters_begin_with_version_2() {
    let classes = |version: u32| {
        let core = intel(0x6f6, 0x0828_0200 | version, 0, 0x0603);
        let counters = core.counters.iter();
        counters
            .map(|bank| (bank.class, bank.number))
            .collect::<Vec<_>>()
    };
    assert_eq!(classes(1), [(SlotClass::General, 2)]);
    assert_eq!(classes(2), [(SlotClass::General, 2), (SlotClass::Fixed, 3)]);
    // From version 5 on ECX may list more of them than EDX has.
    let listed = from_cpuid(|leaf, _| match leaf {
        0 => vendor(b"GenuineIntel", 0xa),
        0xa => CpuidLeaf {
            eax: 0x0830_0805,
            ecx: 0b1_0111,
            edx: 0x0603,
            ..CpuidLeaf::default()
        },
        _ => CpuidLeaf::default(),
    });
    assert_eq!(listed.unwrap().counters[1].number, 5);
}

#[test]
fn counters_of_amd_come_from_function_8000_0022() {
    let amd = |perfmon: u32, number: u32| {
        from_cpuid(move |leaf, _| match leaf {
            0 => vendor(b"AuthenticAMD", 0x10),
            1 => CpuidLeaf {
                eax: 0x00a1_0f11,
                ..CpuidLeaf::default()
            },
            0x8000_0000 => CpuidLeaf {
                eax: 0x8000_0028,
                ..CpuidLeaf::default()
            },
            0x8000_0001 => CpuidLeaf {
                ecx: 1 << 23,
                ..CpuidLeaf::default()
            },
            0x8000_0022 => CpuidLeaf {
                eax: perfmon,
                ebx: number,
                ..CpuidLeaf::default()
            },
            _ => CpuidLeaf::default(),
        })
        .unwrap()
    };
    assert_eq!(amd(0, 0).counters[0].number, 6);
    assert_eq!(amd(1, 8).counters[0].number, 8);
    assert_eq!(amd(0, 0).counters_by_cpuid(), None);
    let words = "AMD PerfMonV2, 8 core counters of 48 bits";
    assert_eq!(amd(1, 8).counters_by_cpuid().as_deref(), Some(words));
    assert_eq!(from_cpuid(|_, _| CpuidLeaf::default()), None);
}

#[test]
fn main_id_registers_are_read_from_sysfs_once_per_part() {
    let sysfs = tempfile::tempdir().unwrap();
    for (cpu, midr) in [
        ("cpu0", "0x00000000410fd034\n"),
        ("cpu1", "0x00000000410fd034\n"),
        ("cpu10", "0x00000000410fd083\n"),
        ("cpu2", "0x00000000410fd082\n"),
        ("cpufreq", "0x1\n"),
        ("cpu3", "junk\n"),
    ] {
        let folder = sysfs
            .path()
            .join(format!("devices/system/cpu/{cpu}/regs/identification"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("midr_el1"), midr).unwrap();
    }
    assert_eq!(identify::midrs(sysfs.path()), [0x410f_d034, 0x410f_d082]);
    assert!(identify::midrs(&sysfs.path().join("none")).is_empty());
}

#[test]
fn this_machine_is_identified_or_says_why_not() {
    match Database::embedded().this_machine() {
        Ok(tables) => assert!(!tables.is_empty()),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIP this_machine: {error:#}");
        }
    }
}

/// An Intel core whose leaf 0xA has these registers.
fn intel(signature: u32, eax: u32, ebx: u32, edx: u32) -> Core {
    from_cpuid(move |leaf, _| match leaf {
        0 => vendor(b"GenuineIntel", 0xa),
        1 => CpuidLeaf {
            eax: signature,
            ..CpuidLeaf::default()
        },
        0xa => CpuidLeaf {
            eax,
            ebx,
            edx,
            ..CpuidLeaf::default()
        },
        _ => CpuidLeaf::default(),
    })
    .unwrap()
}

fn refusal(table: &CpuTable, event: &str, interface: Interface) -> Option<String> {
    let events = table.events_for(interface);
    let spec = quipu_text::parse_spec(event, &quipu_text::NoNames).unwrap();
    let error = events.resolve(&spec.event, spec.filter).err()?;
    assert_eq!(error.kind(), ErrorKind::UnsupportedEvent, "{error:#}");
    Some(error.to_string())
}

#[test]
fn architectural_events_that_the_cpu_lacks_are_refused() {
    const SKYLAKE: u32 = 0x0005_06e3;
    const LLC_MISSES: u32 = 1 << 4;
    const INSTRUCTIONS: u32 = 1 << 1;
    const THREE_FIXED: u32 = 0x603;
    let database = Database::embedded();
    let table = |eax, ebx, edx| {
        let core = intel(SKYLAKE, eax, ebx, edx);
        database.identify(&core).unwrap()
    };
    let lacking = table(0x0730_0404, LLC_MISSES | INSTRUCTIONS, THREE_FIXED);
    assert_eq!(lacking.id(), "intel-skl");
    for event in ["LONGEST_LAT_CACHE.MISS", "cache-misses"] {
        let said = refusal(&lacking, event, Interface::Linux).expect(event);
        assert!(
            said.contains(
                "the CPU says that it does not count last-level cache misses (CPUID leaf 0xA, EBX bit 4)"
            ),
            "{said}"
        );
    }
    // The fixed counter counts what the general ones do not.
    let msr = Interface::Msr;
    assert_eq!(refusal(&lacking, "INST_RETIRED.ANY", msr), None);
    assert!(refusal(&lacking, "INST_RETIRED.ANY_P", msr).is_some());
    assert!(refusal(&lacking, "INST_RETIRED.ANY", Interface::Pctr).is_some());
    assert!(refusal(&table(0x0730_0404, 2, 0), "INST_RETIRED.ANY", msr).is_some());
    // What is available, or not spoken of, stays.
    assert_eq!(refusal(&lacking, "LONGEST_LAT_CACHE.REFERENCE", msr), None);
    let silent = table(0x0430_0404, LLC_MISSES, THREE_FIXED);
    assert_eq!(refusal(&silent, "LONGEST_LAT_CACHE.MISS", msr), None);
}

#[test]
fn a_cpu_nobody_describes_has_the_architectural_events_it_speaks_of() {
    const UNKNOWN: u32 = 0x000f_06e8;
    let database = Database::embedded();
    let table = |listed: u32| {
        let core = intel(UNKNOWN, listed << 24 | 0x0028_0201, 0, 0);
        database.identify(&core).unwrap()
    };
    assert_eq!(table(7).id(), "intel-arch");
    assert_eq!(refusal(&table(7), "branch-misses", Interface::Msr), None);
    assert!(refusal(&table(7), "TOPDOWN_SLOTS", Interface::Msr).is_some());
    assert!(refusal(&table(6), "branch-misses", Interface::Msr).is_some());
    assert_eq!(refusal(&table(8), "TOPDOWN_SLOTS", Interface::Msr), None);
    // The counters are the CPU's: two general ones of 40 bits, none fixed.
    let general = CounterBank {
        class: SlotClass::General,
        number: 2,
        width: 40,
    };
    assert_eq!(table(7).model().counters, [general]);
}

#[test]
fn the_rule_that_matched_is_told() {
    let rule = |text: &str| {
        let mut core = Core::new(from_text(text).unwrap());
        core.has_pmu_v3 = true;
        let table = Database::embedded().identify(&core).unwrap();
        table.recognised_by().unwrap().to_owned()
    };
    for (text, expected) in [
        (
            "GenuineIntel-6-55-4",
            "GenuineIntel family 6, model 0x55, steppings 0x0-0x4",
        ),
        (
            "AuthenticAMD-16-2",
            "AuthenticAMD family 16, models 0x0-0x3",
        ),
        ("powerpc 0x004e1202", "powerpc 0x004e????"),
        (
            "GenuineIntel-6-FE",
            "GenuineIntel family 6, since no entry of its own matches",
        ),
        ("0x00000000410fd083", "implementer 0x41, part 0xd08"),
        (
            "AuthenticAMD-26-F0",
            "AuthenticAMD family 26, since no entry of its own matches",
        ),
        (
            "0x00000000480fd990",
            "any ARM CPU with a PMUv3, since no entry of its own matches",
        ),
    ] {
        assert_eq!(rule(text), expected);
    }
    let by_id = Database::embedded().cpu("intel-skl").unwrap();
    assert_eq!(by_id.recognised_by(), None);
}

/// CPUs in the lines that Linux writes for them (`show_cpuinfo`, `c_show`, arch/*/kernel).
#[test]
fn cpus_of_other_architectures_are_recognised_by_what_linux_says() {
    let table = |file: &str, text: &str| -> Vec<String> {
        let mut cores = identify::from_cpuinfo(text);
        if file == "sysinfo" {
            let levels = "CPU-MF: Counter facility: version=3.6 authorization=002f\n";
            cores = identify::from_sysinfo(text, levels).into_iter().collect();
        }
        let known = cores.into_iter().map(|identity| {
            let found = Database::embedded().identify(&Core::new(identity));
            found.map_or_else(|error| error.to_string(), |table| table.id().to_owned())
        });
        known.collect()
    };
    let u74 = "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n\
               mvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427\n\n";
    assert_eq!(table("cpuinfo", &format!("{u74}{u74}")), ["sifive-bullet"]);
    let both = format!(
        "{u74}{}",
        u74.replace("0x8000000000000007", "0x8000000000000008")
    );
    assert_eq!(table("cpuinfo", &both), ["sifive-bullet", "sifive-p550"]);
    let power = "processor\t: 0\ncpu\t\t: POWER10 (architected), altivec supported\nclock\t\t: 2000.000000MHz\n\
                 revision\t: 2.0 (pvr 0080 0200)\n\nprocessor\t: 1\ncpu\t\t: POWER10\nrevision\t: 2.0 (pvr 0080 0200)\n\n\
                 timebase\t: 512000000\nplatform\t: pSeries\n";
    assert_eq!(table("cpuinfo", power), ["ibm-power10"]);
    // POWER10 in the mode of POWER9, whose events it does not count.
    assert_eq!(
        table("cpuinfo", &power.replace("POWER10", "POWER9")),
        ["ibm-power"]
    );
    let eleven = power
        .replace("POWER10", "Power11")
        .replace("pvr 0080", "pvr 0082");
    assert_eq!(table("cpuinfo", &eleven), ["ibm-power10"]);
    let loongson = "system type\t\t: generic-loongson-machine\n\nprocessor\t\t: 0\nCPU Family\t\t: Loongson-64bit\n\
                    Model Name\t\t: Loongson-3A5000\nPRID\t\t\t: LA464 (0014c011)\n\n";
    assert_eq!(table("cpuinfo", loongson), ["loongson-la64"]);
    let identities = identify::from_cpuinfo(loongson);
    assert_eq!(identify::describe(&identities[0]), "loongarch 0x0014c011");
    let cortex_a9 = "processor\t: 0\nmodel name\t: ARMv7 Processor rev 0 (v7l)\nCPU implementer\t: 0x41\n\
                     CPU architecture: 7\nCPU variant\t: 0x3\nCPU part\t: 0xc09\nCPU revision\t: 0\n\nHardware\t: X\n";
    assert_eq!(table("cpuinfo", cortex_a9), ["arm-cortex-a9"]);
    assert_eq!(
        identify::from_cpuinfo(cortex_a9),
        [CpuIdentity::Arm { midr: 0x413f_c090 }]
    );
    let z15 = "Manufacturer:         IBM             \nType:                 8561\n\
               Model:                703              T01\nSequence Code:        000\n";
    assert_eq!(table("sysinfo", z15), ["ibm-z15"]);
    assert_eq!(table("cpuinfo", "processor : 0\nmodel name : x\n"), [""; 0]);
}

/// CPUID describes the core that it runs on alone.
#[test]
#[cfg(target_arch = "x86_64")]
fn kinds_of_cores_are_those_that_linux_shows() {
    let sysfs = tempfile::tempdir().unwrap();
    let types = || -> Vec<Option<String>> {
        let cores = identify::machine_at(sysfs.path(), sysfs.path()).unwrap();
        cores.into_iter().map(|core| core.core_type).collect()
    };
    let [own] = &types()[..] else { panic!() };
    assert!(own.is_none() || own.as_deref() == Some("core") || own.as_deref() == Some("atom"));
    let show = |pmu: &str| {
        fs::create_dir_all(sysfs.path().join("bus/event_source/devices").join(pmu)).unwrap();
    };
    show("cpu");
    assert_eq!(types().len(), 1);
    show("cpu_atom");
    assert_eq!(types(), [Some("atom".to_owned())]);
    show("cpu_core");
    assert_eq!(types(), ["core", "atom"].map(|name| Some(name.to_owned())));
}

#[test]
fn a_pmu_v3_is_one_that_linux_calls_so() {
    let sysfs = tempfile::tempdir().unwrap();
    assert!(!identify::has_pmu_v3(sysfs.path()));
    for (pmu, is_one) in [("apple_icestorm_pmu", false), ("armv8_pmuv3_0", true)] {
        fs::create_dir_all(sysfs.path().join("bus/event_source/devices").join(pmu)).unwrap();
        assert_eq!(identify::has_pmu_v3(sysfs.path()), is_one, "{pmu}");
    }
    let nine = tempfile::tempdir().unwrap();
    let pmu = nine
        .path()
        .join("bus/event_source/devices/armv9_cortex_a710");
    fs::create_dir_all(pmu).unwrap();
    assert!(identify::has_pmu_v3(nine.path()));
}
