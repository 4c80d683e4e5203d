//! Refusals, and their reasons.

use quipu_hal::{
    Attributes, Backend, ErrorKind, EventSpec, Filter, GroupSpec, Hardware, PmuEvent, RawEvent,
    Software, Target,
};
use quipu_hwpmc::{Class, ClassOfCounters, SamplerSpec};

use crate::events::backend;
use crate::simulated::{Sim, own};

/// Returns the kind, the member and the text of a refusal.
fn refusal(sim: &Sim, spec: &GroupSpec, target: &Target) -> (ErrorKind, Option<usize>, String) {
    let backend = backend(sim).expect("a backend");
    let before = sim.lock().taken();
    let error = backend
        .open(spec, target)
        .map(drop)
        .expect_err("it is refused");
    assert_eq!(sim.lock().taken(), before, "counters are given back");
    (error.kind(), error.member(), format!("{error:#}"))
}

fn single() -> GroupSpec {
    GroupSpec::single(Hardware::Instructions)
}

#[test]
fn machines_without_such_counters_are_refused() {
    let refused = |sim: &Sim| backend(sim).map(drop).expect_err("it is refused");
    let sim = Sim::new();
    sim.lock().version = 0x0b00_0000;
    assert!(
        refused(&sim)
            .to_string()
            .ends_with("its version is 11.0, and those of FreeBSD 12 to 15 are known: 9 and 10")
    );
    let sim = Sim::new();
    sim.lock().machine.classes.clear();
    assert_eq!(refused(&sim).kind(), ErrorKind::NoSuchDevice);
    // The driver has a kind of CPU for those whose counters it does not use.
    sim.lock().machine.cpu_type = 0x400;
    assert_eq!(refused(&sim).kind(), ErrorKind::NoSuchDevice);
    let sim = Sim::new();
    sim.lock().machine.cpu_type = 1;
    sim.lock().machine.classes = vec![ClassOfCounters {
        class: Class::AMD,
        // Of the caches and the memory too.
        counters: 16,
        width: 48,
    }];
    assert!(refused(&sim).to_string().contains("PerfCtrExtCore"));
    sim.lock().machine.has_amd_extended_counters = true;
    assert_eq!(backend(&sim).unwrap().capabilities().slots, Some(6));
    // AMD has no counting of the core's other thread by this bit.
    let any_thread = GroupSpec::single(RawEvent::new(0xc2 | 1 << 21));
    let (kind, ..) = refusal(&sim, &any_thread, &Target::CurrentThread);
    assert_eq!(kind, ErrorKind::UnsupportedFeature);
    sim.lock().machine.classes[0].width = 40;
    let narrow = refused(&sim).to_string();
    assert!(narrow.contains("counters of 40 bits"), "{narrow}");
}

/// The driver writes values at switches: a counter that does not take them whole counts no process.
#[test]
fn counters_that_lose_values_count_no_process() {
    let sim = Sim::new();
    sim.lock().kept_bits = 31;
    sim.lock().is_root = true;
    let branches = GroupSpec::single(Hardware::Branches);
    for target in [Target::CurrentThread, Target::Process(own())] {
        let (kind, member, text) = refusal(&sim, &branches, &target);
        assert_eq!((kind, member), (ErrorKind::UnsupportedFeature, Some(0)));
        assert!(text.contains("take 32 bits"), "{text}");
    }
    let backend = backend(&sim).expect("a backend");
    let opens = |spec: &GroupSpec, target| backend.open(spec, &target).is_ok();
    assert!(opens(&branches, Target::Cpu(0)));
    // A fixed counter is written whole.
    assert!(opens(&single(), Target::CurrentThread));
    let twice = GroupSpec::new(vec![Hardware::Instructions; 2]);
    assert!(!opens(&twice, Target::CurrentThread));
}

#[test]
fn targets_and_attributes_that_it_has_not_are_refused() {
    let sim = Sim::new();
    let kind = |spec: &GroupSpec, target: Target| refusal(&sim, spec, &target).0;
    assert_eq!(
        kind(&single(), Target::Process(9_999)),
        ErrorKind::NoSuchTarget
    );
    assert_eq!(kind(&single(), Target::Cpu(2)), ErrorKind::NoSuchTarget);
    for cpu in [Target::Cpu(1), Target::CurrentCpu] {
        let (denied, _, text) = refusal(&sim, &single(), &cpu);
        assert_eq!(denied, ErrorKind::NoPermission);
        assert!(
            text.contains("security.bsd.unprivileged_syspmcs=1"),
            "{text}"
        );
    }
    assert_eq!(
        kind(&GroupSpec::default(), Target::CurrentThread),
        ErrorKind::InvalidConfiguration
    );
    for attributes in [
        Attributes::default().with_exclusive(true),
        Attributes::default().with_remove_on_exec(true),
        Attributes::default().with_enable_on_exec(true),
    ] {
        let spec = single().with_attributes(attributes);
        assert_eq!(
            kind(&spec, Target::Process(own())),
            ErrorKind::UnsupportedFeature
        );
    }
    // Those of the kernel that it counts are no others' by another name: faults to fetch instructions are not among them.
    let faults = GroupSpec::single(Software::PageFaults);
    assert_eq!(
        kind(&faults, Target::CurrentThread),
        ErrorKind::UnsupportedEvent
    );
    // The driver takes 32 bits of the select register.
    let in_transaction = GroupSpec::single(RawEvent::new(0xc0 | 1 << 32));
    assert_eq!(
        kind(&in_transaction, Target::CurrentThread),
        ErrorKind::UnsupportedFeature
    );
}

#[test]
fn a_group_for_which_there_is_no_room_is_refused_by_its_member() {
    let sim = Sim::new();
    let of = |members: usize| GroupSpec::new(vec![Hardware::Instructions; members]);
    // One fixed counter and one programmable one count instructions.
    let (kind, member, text) = refusal(&sim, &of(3), &Target::CurrentThread);
    assert_eq!((kind, member), (ErrorKind::TooManyEvents, Some(2)));
    let those = "left beside those of instructions, instructions; count fewer";
    assert!(text.contains(those), "{text}");
    let backend = backend(&sim).expect("a backend");
    let held = backend.open(&of(2), &Target::CurrentThread).expect("two");
    let (kind, member, _) = refusal(&sim, &of(1), &Target::CurrentThread);
    assert_eq!((kind, member), (ErrorKind::Busy, Some(0)));
    drop(held);
    assert_eq!(sim.lock().taken(), 0);
}

#[test]
fn who_has_the_counters_is_named() {
    let sim = Sim::new();
    sim.lock().is_root = true;
    let backend = backend(&sim).expect("a backend");
    let of = |members: usize| GroupSpec::new(vec![Hardware::Instructions; members]);
    let why = |target: &Target| refusal(&sim, &single(), target).2;
    let held = backend.open(&of(2), &Target::CurrentThread).expect("two");
    assert!(why(&Target::CurrentThread).contains("other groups of this process have them"));
    assert!(why(&Target::Cpu(0)).contains("processes are counted with them, and no CPU"));
    drop(held);
    let _held = backend.open(&of(2), &Target::Cpu(1)).expect("two");
    assert!(why(&Target::CurrentThread).contains("other groups of this process have them"));
    sim.lock().owner_of_cpus = 812;
    let text = why(&Target::CurrentThread);
    assert!(text.contains("process 812 counts CPUs with them"), "{text}");
}

/// The driver gives the same counters to two programs that count one process.
#[test]
fn a_process_that_another_program_counts_is_counted_with_other_counters() {
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    sim.lock().of_others = vec![
        (Class::INTEL_FIXED, 0),
        (Class::INTEL, 0),
        (Class::INTEL, 1),
    ];
    let backend = backend(&sim).expect("a backend");
    let branches = GroupSpec::new(vec![Hardware::Branches; 2]);
    let group = backend.open(&branches, &Target::Process(pid));
    let group = group.expect("two are left");
    assert_eq!(sim.lock().taken(), 2, "what is in use is given back");
    drop(group);
    // Those of instructions are all in use.
    let (kind, member, text) = refusal(&sim, &single(), &Target::Process(pid));
    assert_eq!((kind, member), (ErrorKind::Busy, Some(0)));
    assert!(text.contains("other programs count the process"), "{text}");
    let sampled = SamplerSpec::new([(EventSpec::new(Hardware::Branches), 1000)]);
    let sampler = backend.open_sampler(&sampled, &Target::Process(pid));
    assert!(sampler.is_ok());
}

#[test]
fn events_of_the_kernel_are_known_by_its_names() {
    let sim = Sim::new();
    let backend = backend(&sim).expect("a backend");
    let named = |name: &str| EventSpec::new(PmuEvent::new("soft").with(name));
    let faults = GroupSpec::new(vec![named("page_fault.write"), named("PAGE_FAULT.WRITE")]);
    let group = backend.open(&faults, &Target::CurrentThread);
    let group = group.expect("as many as there are counters");
    assert_eq!(&*group.members()[0].name, "soft/page_fault.write/");
    assert_eq!(sim.lock().asked, Some((0x2_0003, 0x26)));
    let (kind, member, text) = refusal(
        &sim,
        &GroupSpec::single(named("page_fault.fetch")),
        &Target::CurrentThread,
    );
    assert_eq!((kind, member), (ErrorKind::UnsupportedEvent, Some(0)));
    assert!(text.contains("lock.failed, page_fault.write"), "{text}");
    // It would count those of the kernel too.
    let in_user_mode = named("page_fault.write").with_filter(Filter::USER_ONLY);
    let (kind, ..) = refusal(&sim, &in_user_mode.into(), &Target::CurrentThread);
    assert_eq!(kind, ErrorKind::UnsupportedFeature);
    sim.lock().software_events.clear();
    let (_, _, text) = refusal(
        &sim,
        &GroupSpec::single(named("page_fault.write")),
        &Target::CurrentThread,
    );
    assert!(text.contains("built without HWPMC_HOOKS"), "{text}");
}

#[test]
fn levels_are_those_of_the_filter() {
    let sim = Sim::new();
    let backend = backend(&sim).expect("a backend");
    let kernel =
        EventSpec::new(Hardware::Branches).with_filter(Filter::all().with_levels(Filter::KERNEL));
    assert!(
        backend
            .open(&GroupSpec::from(kernel), &Target::CurrentThread)
            .is_ok()
    );
    assert_eq!(sim.lock().asked, Some((0x0002_00c4, 0x124)));
}

/// While other threads run, a process is not the calling thread.
#[test]
fn a_thread_is_not_read_when_others_have_run() {
    let sim = Sim::new();
    let backend = backend(&sim).expect("a backend");
    let mut group = backend
        .open(&single(), &Target::CurrentThread)
        .expect("it has one thread");
    let mut buf = group.read_buf();
    group.read(&mut buf).expect("it reads");
    let other = sim.lock().spawn(own());
    assert_eq!(
        refusal(&sim, &single(), &Target::CurrentThread).0,
        ErrorKind::UnsupportedFeature
    );
    sim.lock().end(own(), other);
    let refused = group.read(&mut buf).expect_err("another thread has run");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    let mut later = backend
        .open(&single(), &Target::CurrentThread)
        .expect("it has one thread again");
    later.read(&mut buf).expect("it reads");
}
