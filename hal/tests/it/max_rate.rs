//! The bound on what a counter can have counted: it refuses jumps, and no true count.

use proptest::prelude::*;
use quipu_hal::{
    Count, Encoding, ErrorKind, FixedCounter, MaxRate, P5Function, Part, PerfConfig, Reading,
    X86Select, total,
};

/// The most that a bound allows, by the definition in its documentation.
fn most(rate: u64, time: u64) -> u64 {
    let most = u128::from(rate) * (u128::from(time) + u128::from(MaxRate::LAG)) / 1_000_000_000;
    u64::try_from(most).unwrap_or(u64::MAX)
}

fn rates() -> impl Strategy<Value = u64> {
    prop_oneof![
        1..1000u64,
        1_000_000_000..10_000_000_000u64,
        Just((1 << 33) - 1),
        Just(1 << 33),
        Just(10_000_000_000),
        Just(64_000_000_000),
        1..1u64 << 63,
    ]
}

fn times() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..1_000_000u64,
        0..1u64 << 50,
        1u64 << 58..1 << 61,
        any::<u64>()
    ]
}

proptest! {
    /// Whatever is counted at no more than the rate is a count, and so is what is counted after a jump.
    #[test]
    fn no_true_count_is_refused(
        rate in rates(),
        (begun, from) in (any::<u64>(), times()),
        time in times(),
        millionths in 0..=1_000_000u128,
    ) {
        let most = most(rate, time);
        let value = (u128::from(most) * millionths / 1_000_000) as u64;
        let bounded = |value, time| {
            Reading::new(value, time, time).with_max_rate(MaxRate::per_second(rate))
        };
        prop_assert_eq!(bounded(value, time).count(), Count::Exact(value.into()));
        if most < u64::MAX {
            prop_assert_eq!(bounded(most, time).count(), Count::Exact(most.into()));
            prop_assert_eq!(bounded(most + 1, time).count(), Count::Jumped);
        }
        let (begun, from) = (begun.min(u64::MAX - value), from.min(u64::MAX - time));
        let (earlier, later) = (bounded(begun, from), bounded(begun + value, from + time));
        prop_assert_eq!(later.since(&earlier).count(), Count::Exact(value.into()));
    }

    /// Counts of an event that adds at most so much in a cycle, on a clock that changes, are counts: the bound is
    /// above every sum over stretches of which each has its frequency, to 10 GHz, and its share of the increment.
    #[test]
    fn no_count_of_real_cycles_is_refused(
        increment in 1..=255u8,
        stretches in prop::collection::vec((0..10_000u64, 0..=10_000u64, 0..=100u64), 1..50),
    ) {
        let (mut value, mut time) = (0, 0);
        for (microseconds, megahertz, percent) in stretches {
            let cycles = microseconds * megahertz;
            value += cycles * u64::from(increment) * percent / 100;
            time += microseconds * 1_000;
        }
        let reading = Reading::new(value, time, time).with_max_rate(MaxRate::per_cycle(increment));
        prop_assert_eq!(reading.count(), Count::Exact(value.into()));
    }

    /// As seen on virtual machines: n x 2^47 more than was counted, on counters that run all the time or take turns.
    #[test]
    fn jumps_are_refused(
        n in 1..1u64 << 16,
        counted in 0..1u64 << 40,
        time in 0..50_000_000_000u64,
        waited in 0..100_000_000_000u64,
        bound in prop::sample::select(vec![MaxRate::CYCLES, MaxRate::EVENTS, MaxRate::OTHER]),
    ) {
        let jumped = Reading::new((n << 47) + counted, time + waited, time).with_max_rate(bound);
        prop_assert_eq!(jumped.count(), Count::Jumped);
        prop_assert_eq!(jumped.level(), Count::Jumped);
        let error = jumped.count().checked("instructions").expect_err("it jumped");
        prop_assert_eq!(error.kind(), ErrorKind::CounterJumped);
        prop_assert!(error.hint().is_some());
    }

    #[test]
    fn without_a_bound_everything_is_a_count(value in any::<u64>(), time in times()) {
        prop_assert_eq!(Reading::new(value, time, time).count(), Count::Exact(value.into()));
    }
}

/// The values that were printed as exact on a first machine with a PMU, of runs of some 40 ms.
#[test]
fn a_bound_keeps_its_number() {
    for rate in [
        1,
        1000,
        (1 << 33) - 1,
        1 << 33,
        64_000_000_000,
        (1 << 63) - 1,
    ] {
        let bound = MaxRate::per_second(rate);
        assert_eq!(bound.increments_per_second(), Some(rate));
        assert_eq!(format!("{bound:?}"), format!("MaxRate({rate})"));
        assert_ne!(bound, MaxRate::NONE);
    }
    for none in [0, 1 << 63, u64::MAX] {
        assert_eq!(MaxRate::per_second(none), MaxRate::NONE);
        assert_eq!(MaxRate::per_second(none).increments_per_second(), None);
    }
    assert_eq!(MaxRate::default(), MaxRate::NONE);
}

#[cfg(feature = "serde")]
#[test]
fn a_bound_is_written_as_its_number() {
    for rate in [0, 1000, 64_000_000_000] {
        let bound = MaxRate::per_second(rate);
        let text = serde_json::to_string(&bound).expect("a number");
        assert_eq!(text, rate.to_string());
        let read: MaxRate = serde_json::from_str(&text).expect("a bound");
        assert_eq!(read, bound);
    }
}

#[test]
fn the_jumps_that_were_seen() {
    for (value, time) in [
        (1_407_374_883_711_534, 38_000_000),
        (216_320_368_977_854, 139_000_000),
    ] {
        let seen = Reading::new(value, time, time)
            .with_max_rate(MaxRate::of(&Encoding::Perf(PerfConfig::new(0, 1))));
        assert_eq!(seen.count(), Count::Jumped);
        assert_eq!(seen.count().value(), None);
    }
}

#[test]
fn a_part_that_jumped_is_missing() {
    let parts = [Part::on_cpu(0), Part::on_cpu(1)];
    let bounded = |value, running| Reading::new(value, 100, running).with_max_rate(MaxRate::EVENTS);
    let of = |readings: [Reading; 2]| total(parts.iter().zip(&readings));
    let (good, bad) = (bounded(7, 100), bounded(10 << 47, 100));
    assert_eq!(of([good, good]), Count::Exact(14));
    let partial = Count::Partial {
        value: 7,
        estimated: false,
        missing: 1,
        parts: 2,
    };
    assert_eq!(of([good, bad]), partial);
    assert_eq!(of([bad, good]), partial);
    assert_eq!(of([bad, bounded(0, 0)]), Count::Jumped);
    // One of two core types jumped: how much the other counted says nothing about the target.
    let cores = ["cpu_core", "cpu_atom"].map(|core| Part::whole().with_core(core));
    assert_eq!(
        total(cores.iter().zip(&[bounded(10 << 47, 60), bounded(7, 40)])),
        Count::Jumped
    );
}

#[test]
fn bounds_by_what_the_bits_select() {
    let perf = |type_, config| MaxRate::of(&Encoding::Perf(PerfConfig::new(type_, config)));
    assert_eq!(perf(0, 0), MaxRate::CYCLES);
    assert_eq!(perf(0, 1), MaxRate::EVENTS);
    // The high half names the core PMU of a hybrid machine.
    assert_eq!(perf(0, 8 << 32), MaxRate::CYCLES);
    assert_eq!(perf(3, 0x10002), MaxRate::EVENTS);
    assert_eq!(perf(4, 0x03), MaxRate::OTHER);
    // Software, tracepoints, breakpoints, and PMUs outside of the cores.
    for other in [1, 2, 5, 11] {
        assert_eq!(perf(other, 0), MaxRate::NONE);
    }
    assert_eq!(
        MaxRate::of(&Encoding::X86(X86Select::new(0xc0, 0))),
        MaxRate::OTHER
    );
    let word = X86Select::new(0x60, 1);
    for once in [
        Encoding::X86(word.clone().with_counter_mask(1)),
        Encoding::X86(word.with_flags(X86Select::EDGE)),
        Encoding::P5(P5Function::new(3).with_flags(P5Function::CLOCKS)),
        Encoding::TimeStamp,
    ] {
        assert_eq!(MaxRate::of(&once), MaxRate::CYCLES, "{once:?}");
    }
    let p5 = Encoding::P5(P5Function::new(3));
    assert_eq!(MaxRate::of(&p5), MaxRate::EVENTS);
    let fixed = |index| MaxRate::of(&Encoding::Fixed(FixedCounter { index, control: 2 }));
    let [few, once] = [MaxRate::EVENTS, MaxRate::CYCLES];
    assert_eq!([0, 1, 2, 3].map(fixed), [few, once, once, few]);
}
