//! Events: the names of the generalized ones, which are perf's, the kernel's numbers, and what events count in.

use std::path::PathBuf;

use quipu_hal::{
    Attributes, Breakpoint, BreakpointAccess, Cache, CacheEvent, CacheOp, CacheResult, Event,
    EventSpec, Filter, GroupSpec, Hardware, OverflowSignal, PerfConfig, PmuEvent, Precision, Probe,
    RawEvent, Software, Term, TermValue,
};

/// `enum perf_hw_id` and `enum perf_sw_ids` of `include/uapi/linux/perf_event.h`, and the names that `perf list` has for them.
#[test]
fn generalized_events_have_perfs_names_and_the_kernels_numbers() {
    for (event_type, config, names) in [
        (0, 0, "cycles cpu-cycles"),
        (0, 1, "instructions"),
        (0, 2, "cache-references"),
        (0, 3, "cache-misses"),
        (0, 4, "branches branch-instructions"),
        (0, 5, "branch-misses"),
        (0, 6, "bus-cycles"),
        (0, 7, "stalled-cycles-frontend idle-cycles-frontend"),
        (0, 8, "stalled-cycles-backend idle-cycles-backend"),
        (0, 9, "ref-cycles"),
        (1, 0, "cpu-clock"),
        (1, 1, "task-clock"),
        (1, 2, "page-faults faults"),
        (1, 3, "context-switches cs"),
        (1, 4, "cpu-migrations migrations"),
        (1, 5, "minor-faults"),
        (1, 6, "major-faults"),
        (1, 7, "alignment-faults"),
        (1, 8, "emulation-faults"),
        (1, 9, "dummy"),
        (1, 10, "bpf-output"),
        (1, 11, "cgroup-switches"),
    ] {
        let first = names.split(' ').next().unwrap_or_default();
        for name in names.split(' ') {
            let event = Event::generalized(name).expect(name);
            assert_eq!(event.to_string(), first);
            let words = PerfConfig::of(&event);
            assert_eq!(words, Some(PerfConfig::new(event_type, config)), "{name}");
        }
    }
    let other = [
        Hardware::from_name("faults").is_none(),
        Software::from_name("cycles").is_none(),
    ];
    assert_eq!(other, [true; 2]);
    for software in Software::ALL {
        let is_time = software.name().ends_with("clock");
        assert_eq!(software.unit(), if is_time { "ns" } else { "" });
    }
}

/// `enum perf_hw_cache_id` and the two after it, and perf's spellings (`tools/perf/util/evsel.c`).
#[test]
fn events_of_caches_have_perfs_spellings() {
    for (names, config) in [
        (
            "L1-dcache-loads L1-dcache l1d-read L1-data-load-refs l1-d-ops L1D",
            0,
        ),
        (
            "L1-dcache-load-misses l1d-misses L1-DCACHE-LOADS-MISSES l1d-miss",
            0x1_0000,
        ),
        ("L1-dcache-stores l1d-write-access", 0x100),
        (
            "L1-dcache-store-misses l1d-stores-miss l1d-misses-stores",
            0x1_0100,
        ),
        (
            "L1-icache-prefetches l1i-speculative-read L1-instruction-prefetch",
            0x201,
        ),
        (
            "L1-icache-prefetch-misses l1-i-speculative-load-misses",
            0x1_0201,
        ),
        ("LLC-loads L2-read-Reference", 2),
        ("dTLB-load-misses Data-TLB-read-miss d-tlb-misses", 0x1_0003),
        ("iTLB-loads Instruction-TLB i-tlb", 4),
        ("branch-loads bpu btb-refs bpc-load", 5),
        ("branch-load-misses branches-read-misses", 0x1_0005),
        ("node-prefetch-misses", 0x1_0206),
    ] {
        let first = names.split(' ').next().unwrap_or_default();
        for name in names.split(' ') {
            let event = CacheEvent::from_name(name).expect(name);
            assert_eq!(event.to_string(), first, "{name}");
            assert_eq!(Event::generalized(name), Some(event.into()), "{name}");
            assert_eq!(
                PerfConfig::cache(event),
                PerfConfig::new(3, config),
                "{name}"
            );
        }
    }
    for other in [
        "",
        "L1",
        "L1-dcachex",
        "L1-dcache-",
        "L1-dcache-x",
        "L1-dcache-loads-stores",
        "L1-dcache-misses-refs",
        "L1-dcache-load-misses-x",
        "LLC-loadsx",
    ] {
        assert_eq!(CacheEvent::from_name(other), None, "{other}");
    }
    // The names of hardware events are not those of caches in other letters.
    assert_eq!(
        Event::generalized("branches"),
        Some(Hardware::Branches.into())
    );
    assert_eq!(Event::generalized("BRANCHES"), None);
    assert_eq!(Event::generalized("nothing"), None);
    let all: Vec<_> = CacheEvent::all().collect();
    assert_eq!(all.len(), 7 * 3 * 2);
    let first = CacheEvent::new(Cache::L1d, CacheOp::Read, CacheResult::Access);
    assert_eq!(all[0], first);
}

#[test]
fn events_beside_the_generalized_have_their_words() {
    let raw = RawEvent::new(0x1c0).with_extra([1, 2, 3]);
    let words = PerfConfig::new(4, 0x1c0)
        .with_config1(1)
        .with_config2(2)
        .with_config3(3);
    assert_eq!(PerfConfig::of(&raw.into()), Some(words));
    // `HW_BREAKPOINT_R` and those after it (`include/uapi/linux/hw_breakpoint.h`).
    for (access, letters, number) in [
        (BreakpointAccess::Read, "r", 1),
        (BreakpointAccess::Write, "w", 2),
        (BreakpointAccess::ReadWrite, "rw", 3),
        (BreakpointAccess::Execute, "x", 4),
    ] {
        let event = Breakpoint {
            address: 0x1000,
            len: 4,
            access,
        };
        let words = PerfConfig::new(5, 0).with_config1(0x1000).with_config2(4);
        assert_eq!(
            PerfConfig::of(&event.into()),
            Some(words.with_bp_type(number))
        );
        assert_eq!(access.letters(), letters);
    }
    let execute = Breakpoint::execute(0x1000);
    let is_x86 = cfg!(any(target_arch = "x86_64", target_arch = "x86"));
    let len = if is_x86 { size_of::<usize>() } else { 4 };
    assert_eq!((execute.address, usize::from(execute.len)), (0x1000, len));
    assert_eq!(execute.access, BreakpointAccess::Execute);
    assert_eq!(PerfConfig::of(&Event::Named("x".into())), None);
    assert_eq!(PerfConfig::of(&PmuEvent::new("cpu").into()), None);
}

#[test]
fn terms_are_appended() {
    let event = PmuEvent::new("cpu").with("any").with_value("event", 0xc0);
    let term = |name: &str, value| Term {
        name: name.into(),
        value,
    };
    let number = Some(TermValue::Number(0xc0));
    assert_eq!(event.terms, [term("any", None), term("event", number)]);
}

#[test]
fn probes_are_built_of_their_parts() {
    let kernel = Probe::kernel("do_exit");
    assert_eq!(
        (&kernel.object, kernel.symbol.as_deref()),
        (&None, Some("do_exit"))
    );
    assert_eq!(
        (kernel.offset, kernel.on_return, kernel.kind()),
        (0, false, "kprobe")
    );
    let moved = kernel.at(4);
    assert_eq!(
        (moved.offset, moved.symbol.as_deref()),
        (4, Some("do_exit"))
    );
    assert_eq!(Probe::kernel("x").returning().kind(), "kretprobe");
    let user = Probe::user("libc", "malloc");
    assert_eq!(
        (user.object.as_ref(), user.kind()),
        (Some(&PathBuf::from("libc")), "uprobe")
    );
    assert_eq!((user.symbol.as_deref(), user.offset), (Some("malloc"), 0));
    assert_eq!(user.returning().kind(), "uretprobe");
    let byte = Probe::user_offset("/bin/x", 0x1139);
    assert_eq!((byte.object, byte.symbol), (Some("/bin/x".into()), None));
    assert_eq!((byte.offset, byte.on_return), (0x1139, false));
}

/// Switches happen in the kernel, as tracepoints do, and probes where they are put.
#[test]
fn events_occur_at_their_levels() {
    for (event, levels) in [
        (Software::ContextSwitches.into(), Filter::KERNEL),
        (Software::CpuMigrations.into(), Filter::KERNEL),
        (Software::CgroupSwitches.into(), Filter::KERNEL),
        (Software::PageFaults.into(), Filter::LEVELS),
        (Event::tracepoint("sched", "sched_switch"), Filter::KERNEL),
        (Probe::kernel("do_exit").into(), Filter::KERNEL),
        (Probe::user("libc", "malloc").into(), Filter::USER),
        (Hardware::Cycles.into(), Filter::LEVELS),
    ] {
        assert_eq!(event.levels(), levels, "{event}");
    }
    let levels = Filter::all().with_levels(Filter::USER | Filter::GUEST);
    assert_eq!(levels, Filter::USER_ONLY);
    assert!(Filter::default().counts_everywhere() && !levels.counts_everywhere());
    let more = Filter::HOST.with_levels(Filter::KERNEL);
    assert_eq!(more, Filter::HOST | Filter::KERNEL);
}

#[test]
fn each_attribute_is_set_alone() {
    type A = Attributes;
    let setters: [fn(A, bool) -> A; 9] = [
        A::with_inherit,
        A::with_inherit_thread,
        A::with_pinned,
        A::with_exclusive,
        A::with_weak,
        A::with_sampled_by_leader,
        A::with_enable_on_exec,
        A::with_remove_on_exec,
        A::with_disabled,
    ];
    let fields = |a: A| {
        [
            a.inherit,
            a.inherit_thread,
            a.pinned,
            a.exclusive,
            a.weak,
            a.sampled_by_leader,
            a.enable_on_exec,
            a.remove_on_exec,
            a.disabled,
        ]
    };
    let all = setters.iter().fold(A::default(), |all, set| set(all, true));
    assert_eq!(fields(all), [true; 9]);
    for (i, set) in setters.iter().enumerate() {
        let expected = std::array::from_fn(|at| at == i);
        assert_eq!(fields(set(A::default(), true)), expected);
        let unset = expected.map(|is_it| !is_it);
        assert_eq!(fields(set(all, false)), unset);
    }
    let group = GroupSpec::new([Hardware::Cycles]).with_attributes(all);
    assert_eq!((group.members.len(), group.attributes), (1, all));
}

#[test]
fn parts_of_a_specification_are_set_alone() {
    let signal = OverflowSignal::new(1000, 29);
    assert_eq!((signal.period, signal.signal), (1000, 29));
    let spec = EventSpec::new(Hardware::Cycles)
        .with_filter(Filter::USER_ONLY)
        .with_precision(Precision::Constant)
        .with_condition("pid > 1")
        .with_overflow(signal)
        .with_event(Hardware::Instructions);
    assert_eq!(spec.event, Hardware::Instructions.into());
    assert_eq!(
        (spec.filter, spec.precision),
        (Filter::USER_ONLY, Precision::Constant)
    );
    assert_eq!(
        (spec.condition.as_deref(), spec.overflow),
        (Some("pid > 1"), Some(signal))
    );
}
