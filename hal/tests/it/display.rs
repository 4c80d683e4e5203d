//! The text that events are displayed as; `quipu-text` tests that it reads back.

use std::path::PathBuf;

use quipu_hal::{
    Attributes, Breakpoint, BreakpointAccess, Count, Event, EventSpec, Filter, GroupSpec, Hardware,
    Part, PmuEvent, Precision, Probe, RawEvent, Software, Target, TargetKinds, Term, TermValue,
};

#[test]
fn control_characters_are_written_as_escapes() {
    let named = Event::Named("a b\n\u{1b}'\\é".into());
    assert_eq!(named.to_string(), r"'a b\u{a}\u{1b}\'\\é'");
}

#[test]
fn events_are_written_as_perf_reads_them() {
    let raw = RawEvent::new(0x1c0);
    let text = Term {
        name: "cpus".into(),
        value: Some(TermValue::Text("core".into())),
    };
    let digits = Term {
        name: "event".into(),
        value: Some(TermValue::Text("0x3c".into())),
    };
    let mut with_text = PmuEvent::new("cpu").with("period");
    with_text.terms.extend([text, digits]);
    let breakpoint = Breakpoint {
        address: 0x40_0000,
        len: 4,
        access: BreakpointAccess::ReadWrite,
    };
    for (event, expected) in [
        (Event::from(Hardware::Cycles), "cycles"),
        (Software::CpuClock.into(), "cpu-clock"),
        (raw.into(), "r01c0"),
        (RawEvent::new(0x5_01c0).into(), "r501c0"),
        (
            raw.with_extra([0x3ff, 0, 0]).into(),
            "raw/config=0x1c0,config1=0x3ff/",
        ),
        (
            raw.with_extra([0, 2, 0]).into(),
            "raw/config=0x1c0,config2=0x2/",
        ),
        (
            raw.with_extra([1, 0, 3]).into(),
            "raw/config=0x1c0,config1=0x1,config3=0x3/",
        ),
        (
            raw.with_extra([1, 1, 0]).into(),
            "raw/config=0x1c0,config1=0x1,config2=0x1/",
        ),
        (breakpoint.into(), "mem:0x400000/4:rw"),
        (PmuEvent::new("cpu").into(), "cpu//"),
        (
            PmuEvent::new("cpu")
                .with_value("event", 9)
                .with_value("umask", 10)
                .into(),
            "cpu/event=9,umask=0xa/",
        ),
        (PmuEvent::new("raw").with("a").into(), "'raw'/a/"),
        (PmuEvent::new("a b").with("c=").into(), "'a b'/'c='/"),
        (with_text.into(), "cpu/'period',cpus=core,event='0x3c'/"),
        (
            Event::tracepoint("sched", "sched_switch"),
            "tracepoint:sched:sched_switch",
        ),
        (Event::tracepoint("a:b", "c d"), "tracepoint:'a:b':'c d'"),
        (Probe::kernel("do_exit").into(), "kprobe:do_exit"),
        (
            Probe::kernel("do_exit").at(9).returning().into(),
            "kretprobe:do_exit+9",
        ),
        (Probe::kernel("9th").into(), "kprobe:'9th'"),
        (
            Probe::user("libc", "malloc").at(16).into(),
            "uprobe:libc:malloc+0x10",
        ),
        (
            Probe::user("/a b", "f+g").returning().into(),
            "uretprobe:'/a b':'f+g'",
        ),
        (Probe::user_offset("/bin/x", 9).into(), "uprobe:/bin/x:0x9"),
        (Event::Named("INST_RETIRED:ANY".into()), "INST_RETIRED:ANY"),
        (Event::Named("L1D:REPLACEMENT".into()), "L1D:REPLACEMENT"),
        (Event::Named("L1D".into()), "'L1D'"),
    ] {
        assert_eq!(event.to_string(), expected);
    }
}

#[test]
fn modifiers_follow_the_event() {
    let cycles = || EventSpec::new(Hardware::Cycles);
    let pmu = || EventSpec::new(PmuEvent::new("cpu").with("a"));
    let extra = || EventSpec::new(RawEvent::new(1).with_extra([1, 0, 0]));
    let all = Filter::all();
    let switch = || EventSpec::new(Event::Named("sched:sched_switch".into()));
    for (spec, expected) in [
        (cycles(), "cycles"),
        (cycles().with_filter(Filter::USER_ONLY), "cycles:u"),
        (cycles().with_filter(all - Filter::USER), "cycles:kh"),
        (cycles().with_filter(all - Filter::IDLE), "cycles:I"),
        (cycles().with_filter(all - Filter::HOST), "cycles:G"),
        (cycles().with_filter(all - Filter::GUEST), "cycles:H"),
        (cycles().with_filter(all - Filter::LEVELS), "cycles:-ukh"),
        (cycles().with_filter(all - Filter::WORLDS), "cycles:-GH"),
        (cycles().with_filter(Filter::USER), "cycles:uI-GH"),
        (cycles().with_precision(Precision::Constant), "cycles:p"),
        (
            cycles().with_precision(Precision::RequestedZero),
            "cycles:pp",
        ),
        (
            cycles().with_precision(Precision::RequiredZero),
            "cycles:ppp",
        ),
        (cycles().with_precision(Precision::Best), "cycles:P"),
        (pmu().with_filter(Filter::USER_ONLY), "cpu/a/u"),
        (
            extra().with_filter(Filter::USER_ONLY),
            "raw/config=0x1,config1=0x1/u",
        ),
        (
            EventSpec::new(RawEvent::new(1)).with_filter(Filter::USER_ONLY),
            "r0001:u",
        ),
        (
            switch().with_condition("prev_pid > 1"),
            "sched:sched_switch/filter='prev_pid > 1'/",
        ),
        (
            cycles().with_condition("a").with_filter(Filter::USER_ONLY),
            "cycles/filter='a'/u",
        ),
    ] {
        assert_eq!(spec.to_string(), expected);
        assert_eq!(GroupSpec::from(spec).to_string(), expected);
    }
}

#[test]
fn groups_of_several_stand_in_braces() {
    let none = Attributes::default;
    let user = EventSpec::new(Hardware::Cycles).with_filter(Filter::USER_ONLY);
    let one = GroupSpec::single(user.clone());
    let two = GroupSpec::new([user, Hardware::Instructions.into()]);
    for (attributes, of_one, of_two) in [
        (none(), "cycles:u", "{cycles:u,instructions}"),
        (
            none().with_pinned(true),
            "cycles:uD",
            "{cycles:u,instructions}:D",
        ),
        (
            none().with_exclusive(true),
            "cycles:ue",
            "{cycles:u,instructions}:e",
        ),
        (
            none().with_weak(true),
            "{cycles:u}:W",
            "{cycles:u,instructions}:W",
        ),
        (
            none().with_sampled_by_leader(true),
            "{cycles:u}:S",
            "{cycles:u,instructions}:S",
        ),
        (
            none().with_inherit(true),
            "cycles:u",
            "{cycles:u,instructions}",
        ),
        (
            none()
                .with_pinned(true)
                .with_exclusive(true)
                .with_weak(true)
                .with_sampled_by_leader(true),
            "{cycles:u}:DeWS",
            "{cycles:u,instructions}:DeWS",
        ),
    ] {
        assert_eq!(one.clone().with_attributes(attributes).to_string(), of_one);
        assert_eq!(two.clone().with_attributes(attributes).to_string(), of_two);
    }
}

#[test]
fn targets_and_parts_have_names() {
    let cgroup = |cpus: &[u32]| Target::Cgroup {
        path: PathBuf::from("user.slice"),
        cpus: cpus.to_vec(),
    };
    let on_cpu = |thread| Target::ThreadOnCpu { thread, cpu: 3 };
    let thread_on_cpu = TargetKinds::THREAD | TargetKinds::CPU;
    for (target, expected, kind) in [
        (
            Target::CurrentThread,
            "this thread",
            TargetKinds::CURRENT_THREAD,
        ),
        (Target::Thread(7), "thread 7", TargetKinds::THREAD),
        (on_cpu(Some(7)), "thread 7 on CPU 3", thread_on_cpu),
        (on_cpu(None), "this thread on CPU 3", thread_on_cpu),
        (Target::Process(7), "process 7", TargetKinds::PROCESS),
        (Target::CurrentCpu, "this CPU", TargetKinds::CURRENT_CPU),
        (Target::Cpu(3), "CPU 3", TargetKinds::CPU),
        (Target::Cpus(vec![0, 2, 5]), "CPUs 0,2,5", TargetKinds::CPU),
        (Target::AllCpus, "all CPUs", TargetKinds::ALL_CPUS),
        (cgroup(&[]), "cgroup user.slice", TargetKinds::CGROUP),
        (
            cgroup(&[1, 2]),
            "cgroup user.slice on CPUs 1,2",
            TargetKinds::CGROUP,
        ),
    ] {
        assert_eq!(target.to_string(), expected);
        assert_eq!(target.kind(), kind, "{target}");
    }
    for (part, expected) in [
        (Part::whole(), "whole target"),
        (Part::on_cpu(3), "CPU 3"),
        (Part::of_thread(7), "thread 7"),
        (
            Part::of_thread(7).with_core("cpu_core"),
            "thread 7, cpu_core",
        ),
        (Part::whole().with_pmu("uncore_imc_0"), "uncore_imc_0"),
        (
            Part::on_cpu(3).with_core("cpu_core").with_pmu("x"),
            "CPU 3, cpu_core, x",
        ),
    ] {
        assert_eq!(part.to_string(), expected);
    }
}

#[test]
fn counts_say_how_sure_they_are() {
    let part = |value, estimated| Count::of_parts(value, estimated, 1, 4);
    for (count, expected, value) in [
        (Count::of_parts(0, false, 0, 1), "0", Some(0)),
        (Count::Exact(999), "999", Some(999)),
        (Count::Exact(1000), "1,000", Some(1000)),
        (Count::Exact(1_234_567), "1,234,567", Some(1_234_567)),
        (Count::of_parts(12_345, true, 0, 1), "~12,345", Some(12_345)),
        (Count::AtLeast(7), "7 (at least)", Some(7)),
        (part(7, false), "7 (1 of 4 parts missing)", Some(7)),
        (part(7, true), "~7 (1 of 4 parts missing)", Some(7)),
        (Count::of_parts(7, false, 4, 4), "<not counted>", None),
        (Count::Jumped, "<not counted>", None),
    ] {
        assert_eq!(count.to_string(), expected);
        assert_eq!(format!("{count:>30}"), format!("{expected:>30}"));
        assert_eq!(count.value(), value, "{expected}");
        let is_exact = matches!(count, Count::Exact(_));
        assert_eq!(count.exact().is_some(), is_exact, "{expected}");
        assert_eq!(count.is_estimate(), expected.starts_with('~'));
        assert_eq!(count.is_lower_bound(), expected.ends_with("(at least)"));
        assert_eq!(count.missing(), usize::from(expected.contains("missing")));
        let is_whole = value.is_some() && !expected.contains("missing");
        assert_eq!(count.is_complete(), is_whole, "{expected}");
        assert_eq!(count.bounded(false), count);
        assert_eq!(
            count.bounded(true).is_lower_bound(),
            is_exact || count.is_lower_bound()
        );
        assert_eq!(count.checked("cycles").is_err(), count == Count::Jumped);
    }
    let jumped = Count::Jumped.checked("cycles").expect_err("it jumped");
    assert!(
        jumped
            .to_string()
            .starts_with("cannot count cycles: the counter jumped: ")
    );
}
