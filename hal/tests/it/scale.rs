//! Scaling and sums against integers of any size, and what one core type of several says.

use num_bigint::BigUint;
use proptest::prelude::*;
use quipu_hal::{Count, Part, Reading, scale, total};

fn big(v: u128) -> BigUint {
    BigUint::from(v)
}

/// Values that are likely to break arithmetic, and any others.
fn edgy() -> impl Strategy<Value = u64> {
    const WEEK: u64 = 7 * 24 * 3600 * 1_000_000_000;
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 1),
        Just(1 << 63),
        Just(WEEK),
        Just(WEEK - 1),
        0..1000u64,
        any::<u64>(),
    ]
}

proptest! {
    #[test]
    fn scale_agrees_with_big_integers(value in edgy(), enabled in edgy(), running in edgy()) {
        match scale(value, enabled, running) {
            Count::Exact(v) => {
                prop_assert_eq!(v, u128::from(value));
                prop_assert!(running >= enabled);
            }
            Count::NotCounted => prop_assert!(running == 0 && enabled > 0),
            Count::Estimated(v) => {
                prop_assert!(0 < running && running < enabled);
                let (value, enabled, running) =
                    (big(value.into()), big(enabled.into()), big(running.into()));
                let rounded = (value * enabled * 2u8 + &running) / (running * 2u8);
                prop_assert_eq!(big(v), rounded);
            }
            other => prop_assert!(false, "{other:?} of one reading"),
        }
    }

    #[test]
    fn total_is_the_sum_of_its_scaled_parts(
        readings in prop::collection::vec((edgy(), edgy(), edgy()), 0..9)
    ) {
        let readings: Vec<Reading> =
            readings.into_iter().map(|(v, e, r)| Reading::new(v, e, r)).collect();
        let part = Part::whole();
        let sum: BigUint =
            readings.iter().filter_map(|r| r.count().value()).map(big).sum();
        let sum = sum.min(big(u128::MAX));
        let missing = readings.iter().filter(|r| r.count() == Count::NotCounted).count();
        let estimated = readings.iter().any(|r| matches!(r.count(), Count::Estimated(_)));
        let got = total(readings.iter().map(|r| (&part, r)));
        prop_assert_eq!(got.is_estimate(), estimated);
        match got {
            Count::Exact(v) => {
                prop_assert!(!estimated && missing == 0);
                prop_assert_eq!(big(v), sum);
            }
            Count::Estimated(v) => {
                prop_assert!(missing == 0);
                prop_assert_eq!(big(v), sum);
            }
            Count::Partial { value, missing: m, parts, .. } => {
                prop_assert_eq!((m, parts), (missing, readings.len()));
                prop_assert!(missing > 0 && missing < readings.len());
                prop_assert_eq!(big(value), sum);
            }
            Count::NotCounted => prop_assert!(missing == readings.len() && missing > 0),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn a_difference_scales_like_a_reading(
        a in (0..1u64 << 62, 0..1u64 << 62, 0..1u64 << 62),
        d in (0..1u64 << 62, 0..1u64 << 62, 0..1u64 << 62),
    ) {
        let earlier = Reading::new(a.0, a.1, a.2);
        let later = Reading::new(a.0 + d.0, a.1 + d.1, a.2 + d.2);
        prop_assert_eq!(later.since(&earlier), Reading::new(d.0, d.1, d.2));
        prop_assert_eq!(later.checked_since(&earlier), Some(Reading::new(d.0, d.1, d.2)));
        prop_assert_eq!(earlier.checked_since(&later).is_some(), d == (0, 0, 0));
    }
}

#[test]
fn never_enabled_is_exact_and_running_longer_than_enabled_too() {
    assert_eq!(scale(5, 0, 0), Count::Exact(5));
    assert_eq!(scale(5, 10, 11), Count::Exact(5));
}

#[test]
fn ten_seconds_at_half_time_do_not_overflow() {
    // Ten seconds at half time overflow 64-bit arithmetic from 1.8e9 events on.
    assert_eq!(
        scale(3_000_000_000, 10_000_000_000, 5_000_000_000),
        Count::Estimated(6_000_000_000)
    );
}

fn hybrid(parts: &[(&str, Reading)]) -> Count {
    let parts: Vec<_> = parts
        .iter()
        .map(|(core, r)| (Part::whole().with_core(*core), *r))
        .collect();
    total(parts.iter().map(|(p, r)| (p, r)))
}

#[test]
fn core_types_in_turns_are_not_multiplexed() {
    let both = [
        ("cpu_core", Reading::new(600, 1000, 600)),
        ("cpu_atom", Reading::new(100, 998, 400)),
    ];
    assert_eq!(hybrid(&both), Count::Exact(700));
}

#[test]
fn core_types_that_leave_a_gap_are_scaled_together() {
    let gap = [
        ("cpu_core", Reading::new(600, 1000, 300)),
        ("cpu_atom", Reading::new(100, 1000, 200)),
    ];
    assert_eq!(hybrid(&gap), Count::Estimated(1400));
}

#[test]
fn one_core_type_alone_is_neither_scaled_nor_called_exact() {
    assert_eq!(
        hybrid(&[("cpu_core", Reading::new(600, 1000, 300))]),
        Count::Estimated(600)
    );
    assert_eq!(
        hybrid(&[("cpu_core", Reading::new(0, 1000, 0))]),
        Count::NotCounted
    );
}

#[test]
fn threads_on_a_hybrid_machine_are_kept_apart() {
    let part = |tid, core: &str| Part::of_thread(tid).with_core(core);
    let parts = [
        (part(1, "cpu_core"), Reading::new(10, 100, 100)),
        (part(1, "cpu_atom"), Reading::new(0, 100, 0)),
        (part(2, "cpu_core"), Reading::new(0, 100, 0)),
        (part(2, "cpu_atom"), Reading::new(0, 100, 0)),
    ];
    assert_eq!(
        total(parts.iter().map(|(p, r)| (p, r))),
        Count::Partial {
            value: 10,
            estimated: false,
            missing: 2,
            parts: 4
        }
    );
}

/// A lower bound is never a fact, whatever it is added to or subtracted from.
#[test]
fn lower_bounds_are_no_facts() {
    let short = Reading::new(10, 100, 100).with_at_least(true);
    let whole = Reading::new(5, 100, 100);
    assert_eq!(short.count(), Count::AtLeast(10));
    assert_eq!(short.count().to_string(), "10 (at least)");
    assert_eq!(short.count().exact(), None);
    let parts = [Part::on_cpu(0), Part::on_cpu(1)];
    let sum = |readings: [&Reading; 2]| total(parts.iter().zip(readings));
    assert_eq!(sum([&short, &whole]), Count::AtLeast(15));
    assert_eq!(sum([&whole, &whole]), Count::Exact(10));
    let never = Reading::new(0, 100, 0);
    assert_eq!(sum([&short, &never]).missing(), 1);
    let half = Reading::new(5, 100, 50);
    assert_eq!(sum([&short, &half]), Count::Estimated(20));
    let later = Reading::new(30, 300, 300);
    assert_eq!(later.since(&short).count(), Count::AtLeast(20));
    assert_eq!(
        Reading::new(9, 100, 100).with_at_least(true).level(),
        Count::Exact(9)
    );
}
