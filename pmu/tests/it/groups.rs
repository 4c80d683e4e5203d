//! The virtual PMU over the simulated one: opening, slots, turns, states, wraps, restoring.

use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{
    Attributes, Backend, Count, ErrorKind, Event, EventSpec, Filter, Group, GroupSpec, Hardware,
    Precision, ReadBuf, Target,
};
use quipu_pmu::{
    Access, ManualClock, Pmu, SimModel, SimPmu, SimRegister, Slot, VirtualGroup, VirtualPmu,
};

type Sim = VirtualPmu<SimPmu>;
type SimGroup = VirtualGroup<SimPmu>;

struct Machine {
    clock: ManualClock,
    pmu: SimPmu,
    backend: Sim,
}

impl Machine {
    fn new() -> Self {
        Self::of(SimModel::default())
    }

    fn of(model: SimModel) -> Self {
        let clock = ManualClock::new();
        let pmu = SimPmu::with_model(model, clock.clone());
        let map = Arc::new(pmu.event_map());
        let backend = VirtualPmu::new(pmu.clone(), clock.clone(), map).unwrap();
        Self {
            clock,
            pmu,
            backend,
        }
    }

    fn open(&self, spec: &GroupSpec) -> SimGroup {
        self.backend.open_group(spec, &Target::Cpu(0)).unwrap()
    }

    fn micros(&self, n: u64) {
        self.clock.advance(Duration::from_micros(n));
    }

    fn ticks(&self, n: u32) {
        for _ in 0..n {
            self.micros(100);
            self.backend.tick().unwrap();
        }
    }
}

fn named(names: &[&str]) -> GroupSpec {
    GroupSpec::new(names.iter().map(|name| Event::Named((*name).into())))
}

fn with(names: &[&str], change: impl FnOnce(&mut Attributes)) -> GroupSpec {
    let mut spec = named(names);
    change(&mut spec.attributes);
    spec
}

fn pinned(names: &[&str]) -> GroupSpec {
    with(names, |a| a.pinned = true)
}

fn exclusive(names: &[&str]) -> GroupSpec {
    with(names, |a| a.exclusive = true)
}

fn read(group: &mut SimGroup) -> ReadBuf {
    let mut out = group.read_buf();
    group.read(&mut out).unwrap();
    out
}

/// Value, time enabled and time running of the first member on the first CPU.
fn first(group: &mut SimGroup) -> (u64, u64, u64) {
    let out = read(group);
    let r = out[0][0];
    (r.value, r.time_enabled, r.time_running)
}

#[test]
fn a_group_that_fits_counts_exactly() {
    let m = Machine::new();
    m.micros(7);
    let before: Vec<u64> = (1..=3).map(|e| m.pmu.truth(e, 0)).collect();
    let mut group = m.open(&GroupSpec::new([
        Hardware::Cycles,
        Hardware::Instructions,
        Hardware::Branches,
    ]));
    m.micros(1234);
    let out = read(&mut group);
    for (member, event) in (1..=3).enumerate() {
        let r = out[0][member];
        assert_eq!(r.value, m.pmu.truth(event, 0) - before[member]);
        assert_eq!((r.time_enabled, r.time_running), (1_234_000, 1_234_000));
        assert_eq!(r.count(), Count::Exact(r.value.into()));
    }
}

#[test]
fn values_and_times_stand_still_while_disabled_and_reset_keeps_raw_times() {
    let m = Machine::new();
    let mut group = m.open(&with(&["CYCLES"], |a| a.disabled = true));
    m.micros(10);
    assert_eq!(first(&mut group), (0, 0, 0));
    group.enable().unwrap();
    group.enable().unwrap();
    m.micros(10);
    assert_eq!(first(&mut group), (30_000, 10_000, 10_000));
    group.disable().unwrap();
    group.disable().unwrap();
    m.micros(10);
    assert_eq!(first(&mut group), (30_000, 10_000, 10_000));
    group.enable().unwrap();
    m.micros(5);
    assert_eq!(first(&mut group), (45_000, 15_000, 15_000));
    group.reset().unwrap();
    assert_eq!(first(&mut group), (0, 0, 0));
    m.micros(2);
    let out = read(&mut group);
    let r = out[0][0];
    assert_eq!(
        (r.value, r.time_enabled, r.raw_time_enabled),
        (6_000, 2_000, 17_000)
    );
    group.disable().unwrap();
    group.reset().unwrap();
    assert_eq!(first(&mut group), (0, 0, 0));
}

#[test]
fn every_cpu_is_a_part() {
    let m = Machine::new();
    let mut all = m
        .backend
        .open_group(&named(&["CYCLES"]), &Target::AllCpus)
        .unwrap();
    let mut one = m
        .backend
        .open_group(&named(&["CYCLES"]), &Target::Cpus(vec![1]))
        .unwrap();
    m.pmu.set_current_cpu(1);
    let mut current = m
        .backend
        .open_group(&named(&["CYCLES"]), &Target::CurrentCpu)
        .unwrap();
    m.micros(10);
    let out = read(&mut all);
    let cpus: Vec<_> = out.parts().iter().map(|part| part.cpu).collect();
    assert_eq!(cpus, [Some(0), Some(1)]);
    assert_eq!(out[0][0].value, m.pmu.truth(1, 0));
    assert_eq!(out[1][0].value, m.pmu.truth(1, 1));
    assert_ne!(out[0][0].value, out[1][0].value);
    assert_eq!(first(&mut one).0, m.pmu.truth(1, 1));
    assert_eq!(first(&mut current).0, m.pmu.truth(1, 1));
}

#[test]
fn filters_leave_out_what_they_say() {
    let m = Machine::new();
    let cycles = |levels| {
        EventSpec::new(Hardware::Cycles).with_filter(Filter::default().with_levels(levels))
    };
    let mut group = m.open(&GroupSpec::new([
        cycles(Filter::LEVELS),
        cycles(Filter::USER),
        cycles(Filter::KERNEL),
        cycles(Filter::HYPERVISOR),
    ]));
    m.micros(10);
    let out = read(&mut group);
    let values: Vec<u64> = out[0].iter().map(|r| r.value).collect();
    assert_eq!(values, [30_000, 20_000, 10_000, 0]);
    let all = m.pmu.truth_at(1, 0, Filter::USER, 10_000);
    assert_eq!(values[1], all);
}

#[test]
fn what_cannot_be_honoured_is_refused_with_its_reason() {
    let m = Machine::new();
    let refuse = |spec: &GroupSpec, target: &Target| {
        let e = m.backend.open(spec, target).unwrap_err();
        (e.kind(), e.member(), format!("{e:#}"))
    };
    let cpu = Target::Cpu(0);
    let cycles = || EventSpec::new(Hardware::Cycles);
    let second = |spec: EventSpec| GroupSpec::new([cycles(), spec]);

    let precise = second(cycles().with_precision(Precision::Constant));
    let (kind, member, text) = refuse(&precise, &cpu);
    assert_eq!((kind, member), (ErrorKind::UnsupportedFeature, Some(1)));
    assert!(text.contains("precision"), "{text}");

    let no_idle = second(cycles().with_filter(Filter::all() - Filter::IDLE));
    let (kind, member, _) = refuse(&no_idle, &cpu);
    assert_eq!((kind, member), (ErrorKind::UnsupportedFeature, Some(1)));

    let (kind, member, text) = refuse(&named(&["CYCLES", "CYCLE"]), &cpu);
    assert_eq!((kind, member), (ErrorKind::UnsupportedEvent, Some(1)));
    assert!(text.ends_with("the nearest name is CYCLES"), "{text}");

    let (kind, _, text) = refuse(&named(&["REFERENCE_CYCLES"]), &cpu);
    assert_eq!(kind, ErrorKind::UnsupportedEvent);
    assert!(text.contains("no counter here"), "{text}");

    for target in [Target::CurrentThread, Target::Thread(1), Target::Process(1)] {
        let (kind, _, text) = refuse(&named(&["CYCLES"]), &target);
        assert_eq!(kind, ErrorKind::UnsupportedFeature);
        assert!(text.contains("bare registers"), "{text}");
    }
    let (kind, _, text) = refuse(&with(&["CYCLES"], |a| a.inherit = true), &cpu);
    assert_eq!(kind, ErrorKind::UnsupportedFeature);
    assert!(text.contains("inheritance"), "{text}");
    let (kind, _, text) = refuse(&with(&["CYCLES"], |a| a.enable_on_exec = true), &cpu);
    assert_eq!(kind, ErrorKind::UnsupportedFeature);
    assert!(text.contains("exec"), "{text}");

    for (target, expected) in [
        (Target::Cpu(9), ErrorKind::NoSuchTarget),
        (Target::Cpus(vec![0, 9]), ErrorKind::NoSuchTarget),
        (Target::Cpus(vec![]), ErrorKind::InvalidConfiguration),
        (Target::Cpus(vec![1, 1]), ErrorKind::InvalidConfiguration),
    ] {
        assert_eq!(refuse(&named(&["CYCLES"]), &target).0, expected);
    }
    assert_eq!(refuse(&named(&[]), &cpu).0, ErrorKind::InvalidConfiguration);
    // Nothing of all that has taken the counters.
    m.pmu.acquire(0).unwrap();
}

#[test]
fn a_group_that_never_fits_is_told_why() {
    let m = Machine::new();
    let refuse = |names: &[&str]| {
        let e = m
            .backend
            .open_group(&named(names), &Target::Cpu(0))
            .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::TooManyEvents);
        (e.member(), e.reason().unwrap().to_owned())
    };
    assert_eq!(
        refuse(&["CYCLES", "FLOPS", "CYCLES_DIV_BUSY"]),
        (
            Some(2),
            "FLOPS and CYCLES_DIV_BUSY both need counter 0".into()
        )
    );
    assert_eq!(
        refuse(&["PAGE_WALKS", "FLOPS", "CYCLES", "PAGE_WALKS"]),
        (
            Some(3),
            "PAGE_WALKS, FLOPS and PAGE_WALKS are 3 events for 2 counters: \
             they can only use counter 0 and counter 1"
                .into()
        )
    );
    assert_eq!(refuse(&["CYCLES"; 5]).0, Some(4));
}

#[test]
fn events_move_over_for_one_that_needs_their_slot() {
    let m = Machine::new();
    let mut first_come = m.open(&pinned(&["CYCLES"]));
    let mut picky = m.open(&pinned(&["FLOPS", "PAGE_WALKS"]));
    let mut last = m.open(&pinned(&["FILL_BUFFER_FULL"]));
    m.micros(10);
    assert_eq!(first(&mut first_come), (30_000, 10_000, 10_000));
    assert_eq!(first(&mut picky), (16_000, 10_000, 10_000));
    assert_eq!(first(&mut last).2, 10_000);
    assert_eq!(m.pmu.registers(0)[0].select, 7);
}

#[test]
fn groups_take_turns_and_each_estimate_is_exact_for_a_steady_event() {
    let m = Machine::new();
    let mut groups: Vec<_> = (0..6).map(|_| m.open(&named(&["CYCLES"; 3]))).collect();
    m.ticks(60);
    for group in &mut groups {
        let out = read(group);
        let r = out[0][2];
        assert_eq!((r.time_enabled, r.time_running), (6_000_000, 1_000_000));
        assert_eq!(r.count(), Count::Estimated(18_000_000));
    }
}

#[test]
fn what_still_fits_beside_the_front_of_the_ring_counts_too() {
    let m = Machine::new();
    let mut big = m.open(&named(&["CYCLES"; 3]));
    let mut small = m.open(&named(&["BRANCHES"]));
    let mut other = m.open(&named(&["CACHE_MISSES"; 4]));
    m.ticks(30);
    assert_eq!(first(&mut big).2, 1_000_000);
    // Beside `big`, then before `other`, which does not fit beside it.
    assert_eq!(first(&mut small).2, 2_000_000);
    assert_eq!(first(&mut other).2, 1_000_000);
}

#[test]
fn nothing_rotates_while_everything_fits() {
    let m = Machine::new();
    let mut a = m.open(&named(&["CYCLES", "FLOPS"]));
    let mut b = m.open(&named(&["BRANCHES", "CACHE_MISSES"]));
    m.ticks(10);
    assert_eq!(read(&mut a)[0][1].count(), Count::Exact(1_600_000));
    assert_eq!(first(&mut b), (1_030_000, 1_000_000, 1_000_000));
}

#[test]
fn the_ring_stands_still_once_nobody_waits_any_more() {
    let m = Machine::new();
    let _first = m.open(&named(&["CYCLES"; 3]));
    let waits = m.open(&named(&["CYCLES"; 2]));
    let _second = m.open(&named(&["CYCLES"]));
    drop(waits);
    m.ticks(1);
    let mut last = m.open(&named(&["CYCLES"; 2]));
    m.ticks(1);
    // The first goes to the end, and the second and the last are on.
    m.ticks(1);
    assert_eq!(first(&mut last).2, 100_000);
}

#[test]
fn a_group_that_has_had_no_turn_is_not_counted() {
    let m = Machine::new();
    let _on = m.open(&named(&["CYCLES"; 4]));
    let mut waits = m.open(&named(&["CYCLES"]));
    m.micros(5);
    assert_eq!(read(&mut waits)[0][0].count(), Count::NotCounted);
}

#[test]
fn a_pinned_group_stays_and_one_too_many_is_in_error() {
    let m = Machine::new();
    let mut stays = m.open(&pinned(&["CYCLES"; 3]));
    let mut fails = m.open(&pinned(&["BRANCHES"; 2]));
    let mut flexible = m.open(&named(&["FLOPS"]));
    let mut other = m.open(&named(&["CYCLES_DIV_BUSY"]));
    m.ticks(10);
    assert_eq!(first(&mut stays), (3_000_000, 1_000_000, 1_000_000));
    assert_eq!(first(&mut flexible).2, 500_000);
    assert_eq!(first(&mut other).2, 500_000);
    let mut out = fails.read_buf();
    let e = fails.read(&mut out).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CounterInErrorState);
    // Disabling leaves it in error, as the kernel does; enabling tries again.
    fails.disable().unwrap();
    assert_eq!(
        fails.read(&mut out).unwrap_err().kind(),
        ErrorKind::CounterInErrorState
    );
    drop(stays);
    fails.enable().unwrap();
    m.micros(10);
    assert_eq!(first(&mut fails), (10_300, 10_000, 10_000));
}

#[test]
fn an_exclusive_group_counts_alone() {
    let m = Machine::new();
    let mut alone = m.open(&exclusive(&["CYCLES"]));
    let mut other = m.open(&named(&["BRANCHES"]));
    m.ticks(20);
    assert_eq!(first(&mut alone), (3_000_000, 2_000_000, 1_000_000));
    assert_eq!(first(&mut other).2, 1_000_000);
    let _pinned = m.open(&pinned(&["FLOPS"]));
    alone.reset().unwrap();
    m.ticks(20);
    assert_eq!(read(&mut alone)[0][0].count(), Count::NotCounted);
}

#[test]
fn narrow_counters_are_followed_through_their_wraps() {
    for width in [32, 40, 48] {
        let m = Machine::of(SimModel {
            slots: (0..4).map(|n| Slot::general(n, width)).collect(),
            ..SimModel::default()
        });
        // 1030 a microsecond; no maximum rate is stated.
        let mut group = m.open(&named(&["BRANCHES"]));
        let mut other = m.open(&named(&["BRANCHES"]));
        let wrap_ns = (1u128 << width) * 1000 / 1030;
        let step = Duration::from_nanos((wrap_ns * 9 / 10) as u64);
        for n in 0..30 {
            m.clock.advance(step);
            assert_eq!(first(&mut group).0, m.pmu.truth(3, 0), "{width} bits");
            if n % 7 == 0 {
                m.backend.tick().unwrap();
            }
            if n % 5 == 0 {
                other.disable().unwrap();
                other.enable().unwrap();
            }
            first(&mut other);
        }
        group.disable().unwrap();
        assert_eq!(first(&mut group).0, m.pmu.truth(3, 0));
        assert_eq!(first(&mut other).0, m.pmu.truth(3, 0));
    }
}

#[test]
fn a_gap_that_can_hide_a_wrap_is_an_error_until_the_reset() {
    let m = Machine::of(SimModel {
        slots: vec![Slot::general(0, 32)],
        ..SimModel::default()
    });
    // At most 6e9 a second, so 715.827882 ms are safe.
    let mut group = m.open(&named(&["CYCLES"]));
    m.clock.advance(Duration::from_nanos(715_827_882));
    assert_eq!(first(&mut group).0, m.pmu.truth(1, 0));
    m.clock.advance(Duration::from_nanos(715_827_883));
    let mut out = group.read_buf();
    for _ in 0..2 {
        let e = group.read(&mut out).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CounterInErrorState);
        assert!(e.reason().unwrap().contains("715.827882ms"), "{e}");
    }
    group.reset().unwrap();
    m.micros(1);
    assert_eq!(first(&mut group), (3_000, 1_000, 1_000));
    // The same when the scheduler comes too late.
    m.clock.advance(Duration::from_secs(1));
    group.disable().unwrap();
    assert!(group.read(&mut out).is_err());
}

#[test]
fn a_gauge_shows_the_moment_and_is_not_added_up() {
    let m = Machine::new();
    let mut group = m.open(&named(&["TEMPERATURE"]));
    m.micros(9_999);
    assert_eq!(first(&mut group).0, 45);
    m.backend.tick().unwrap();
    m.micros(1);
    assert_eq!(first(&mut group).0, 60);
    group.disable().unwrap();
    m.micros(10_000);
    assert_eq!(first(&mut group).0, 60);
}

#[test]
fn two_owners_are_refused_and_what_was_found_is_put_back() {
    let m = Machine::new();
    let found = SimRegister {
        select: 6,
        counting: false,
        raw: 99,
    };
    m.pmu.overwrite(0, 1, found);
    let before = m.pmu.registers(0);
    let map = Arc::new(m.pmu.event_map());
    let second = VirtualPmu::new(m.pmu.clone(), m.clock.clone(), map).unwrap();
    let group = m.open(&named(&["CYCLES"; 4]));
    let open = || second.open(&named(&["CYCLES"]), &Target::AllCpus);
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Busy);
    m.micros(10);
    assert_ne!(m.pmu.registers(0), before);
    drop(group);
    assert_eq!(m.pmu.registers(0), before);
    drop(open().unwrap());
    let counts = SimRegister {
        counting: true,
        ..found
    };
    m.pmu.overwrite(0, 1, counts);
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Busy);
}

#[test]
fn a_panic_puts_back_what_was_found() {
    let m = Machine::new();
    let before = m.pmu.registers(0);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _group = m.open(&named(&["CYCLES", "FLOPS"]));
        m.micros(3);
        panic!("in the measured code");
    }));
    assert!(caught.is_err());
    assert_eq!(m.pmu.registers(0), before);
    m.pmu.acquire(0).unwrap();
}

#[test]
fn a_process_that_ends_gives_back_what_it_has_not_closed() {
    let m = Machine::new();
    let before = m.pmu.registers(0);
    let mut groups: Vec<_> = (0..3)
        .map(|_| m.open(&named(&["CYCLES", "FLOPS"])))
        .collect();
    m.micros(3);
    assert_ne!(m.pmu.registers(0), before);
    m.backend.give_back();
    assert_eq!(m.pmu.registers(0), before);
    // What was counted is still there, and nothing is set any more.
    let counted = first(&mut groups[0]);
    m.micros(3);
    m.backend.tick().unwrap();
    assert_eq!(first(&mut groups[0]), counted);
    assert_eq!(m.pmu.registers(0), before);
    drop(groups);
    m.pmu.acquire(0).unwrap();
}

#[test]
fn a_thread_bound_pmu_answers_other_threads() {
    let m = Machine::of(SimModel {
        access: Access::MeasuringThread,
        ..SimModel::default()
    });
    let refused = m.backend.open_group(&named(&["CYCLES"]), &Target::Cpu(0));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnsupportedFeature);
    let open = || {
        m.backend
            .open_group(&named(&["CYCLES"]), &Target::CurrentCpu)
    };
    let mut group = open().unwrap();
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            let mut out = group.read_buf();
            let kinds = [
                group.read(&mut out).unwrap_err().kind(),
                group.enable().unwrap_err().kind(),
                group.disable().unwrap_err().kind(),
                group.reset().unwrap_err().kind(),
                open().unwrap_err().kind(),
                m.backend.tick().unwrap_err().kind(),
            ];
            assert_eq!(kinds, [ErrorKind::WrongThread; 6]);
        });
        elsewhere.join().unwrap();
    });
    m.micros(1);
    assert_eq!(first(&mut group).0, 3_000);
    m.pmu.set_current_cpu(1);
    let mut out = group.read_buf();
    assert_eq!(
        group.read(&mut out).unwrap_err().kind(),
        ErrorKind::WrongThread
    );
    m.pmu.set_current_cpu(0);
    assert_eq!(first(&mut group).0, 3_000);
    drop(group);
    // Nobody owns it any more.
    std::thread::scope(|scope| scope.spawn(|| open().unwrap()).join().unwrap());
}

#[test]
fn a_span_with_interference_is_told_and_not_counted() {
    let m = Machine::new();
    let mut group = m.open(&named(&["CYCLES"]));
    m.micros(10);
    assert_eq!(first(&mut group), (30_000, 10_000, 10_000));
    m.micros(10);
    let slot = m.pmu.registers(0).iter().position(|r| r.counting).unwrap();
    let theirs = SimRegister {
        select: 5,
        counting: true,
        raw: 1 << 40,
    };
    m.pmu.overwrite(0, slot, theirs);
    m.micros(10);
    let mut out = group.read_buf();
    let e = group.read(&mut out).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Interference);
    m.micros(10);
    let out = read(&mut group);
    let r = out[0][0];
    assert_eq!(
        (r.value, r.time_enabled, r.time_running),
        (60_000, 40_000, 20_000)
    );
    assert_eq!(r.count(), Count::Estimated(120_000));
    // Found while taking it off the PMU.
    m.pmu.overwrite(0, slot, theirs);
    m.micros(10);
    assert_eq!(group.disable().unwrap_err().kind(), ErrorKind::Interference);
    m.micros(10);
    assert_eq!(first(&mut group), (60_000, 50_000, 20_000));
}

#[test]
fn a_buffer_of_another_group_is_refused() {
    let m = Machine::new();
    let one = m.open(&named(&["CYCLES"]));
    let mut two = m.open(&named(&["CYCLES", "BRANCHES"]));
    let e = two.read(&mut one.read_buf()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
}
