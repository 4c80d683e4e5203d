//! Scaling: from a count that covers part of the time to a statement about all of it.
//!
//! The rules: a counter that ran as long as it was enabled, or was never enabled, is **exact**; one
//! that ran for a part of the time is **estimated** as value x enabled / running, rounded to
//! nearest; one that was enabled and never ran has **no value**. Running longer than enabled
//! happens in the field and counts as exact.

use crate::{Count, Part, Reading};

/// Returns the count for the whole time enabled, by the rules of this module.
///
/// The arithmetic is exact for all inputs: it is done in 128 bits and rounds half up.
///
/// ```
/// use quipu_hal::{Count, scale};
///
/// assert_eq!(scale(1000, 10, 10), Count::Exact(1000));
/// assert_eq!(scale(1000, 10, 4), Count::Estimated(2500));
/// assert_eq!(scale(0, 10, 0), Count::NotCounted);
/// ```
#[inline]
pub const fn scale(value: u64, time_enabled: u64, time_running: u64) -> Count {
    if time_running >= time_enabled {
        Count::Exact(value as u128)
    } else if time_running == 0 {
        Count::NotCounted
    } else {
        Count::Estimated(mul_div(value as u128, time_enabled, time_running))
    }
}

/// value x enabled / running, rounded to nearest, saturating at `u128::MAX`; `running` is not 0.
const fn mul_div(value: u128, enabled: u64, running: u64) -> u128 {
    let (enabled, running) = (enabled as u128, running as u128);
    let whole = (value / running).saturating_mul(enabled);
    // The remainder is below 2^64, so this product and its rounding fit in 128 bits.
    let rest = ((value % running) * enabled + running / 2) / running;
    whole.saturating_add(rest)
}

/// The sum of a counter's readings over the parts of its target: each part is scaled by its own
/// times, then they are added.
///
/// Neighbouring parts that differ only in their [core PMU](Part::core) watch the same thread or CPU
/// in turns: their values are added unscaled as long as their running times together cover the time
/// enabled, and scaled together where they do not. A single part of a core PMU that did not run all
/// the time may have been multiplexed or may have waited on another core type; its value is not
/// scaled up, and not called exact. The sum saturates at `u128::MAX`.
pub fn total<'a>(parts: impl IntoIterator<Item = (&'a Part, &'a Reading)>) -> Count {
    let mut sum = Sum::default();
    let mut turn: Option<Turns<'a>> = None;
    for (part, reading) in parts {
        if part.core.is_some() {
            match &mut turn {
                Some(t) if t.same_target(part) => t.add(reading),
                _ => {
                    if let Some(done) = turn.replace(Turns::start(part, reading)) {
                        done.finish(&mut sum);
                    }
                }
            }
        } else {
            if let Some(done) = turn.take() {
                done.finish(&mut sum);
            }
            let count = reading.scaled();
            match count.value() {
                Some(value) => sum.add(value, count.is_estimate(), 1),
                None => sum.missing += 1,
            }
        }
    }
    if let Some(done) = turn {
        done.finish(&mut sum);
    }
    sum.total()
}

#[derive(Default)]
struct Sum {
    value: u128,
    counted: usize,
    missing: usize,
    estimated: bool,
}

impl Sum {
    fn add(&mut self, value: u128, estimated: bool, parts: usize) {
        self.value = self.value.saturating_add(value);
        self.counted += parts;
        self.estimated |= estimated;
    }

    fn total(self) -> Count {
        let parts = self.counted + self.missing;
        Count::of_parts(self.value, self.estimated, self.missing, parts)
    }
}

/// Parts of one target that count in turns, one for each core PMU.
struct Turns<'a> {
    part: &'a Part,
    parts: usize,
    value: u128,
    enabled: u64,
    running: u128,
}

impl<'a> Turns<'a> {
    fn start(part: &'a Part, reading: &Reading) -> Self {
        Self {
            part,
            parts: 1,
            value: u128::from(reading.value),
            enabled: reading.time_enabled,
            running: u128::from(reading.time_running),
        }
    }

    fn same_target(&self, other: &Part) -> bool {
        (self.part.cpu, self.part.thread) == (other.cpu, other.thread)
    }

    /// The siblings were opened one after the other: the time enabled of all is the shortest.
    fn add(&mut self, reading: &Reading) {
        self.parts += 1;
        self.value += u128::from(reading.value);
        self.enabled = self.enabled.min(reading.time_enabled);
        self.running += u128::from(reading.time_running);
    }

    fn finish(self, sum: &mut Sum) {
        if self.running >= u128::from(self.enabled) {
            sum.add(self.value, false, self.parts);
        } else if self.running == 0 {
            sum.missing += self.parts;
        } else if self.parts == 1 && self.part.cpu.is_none() {
            sum.add(self.value, true, self.parts);
        } else {
            // Below `enabled`, so it fits in 64 bits.
            let running = self.running as u64;
            sum.add(mul_div(self.value, self.enabled, running), true, self.parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use proptest::prelude::*;

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
                Count::Partial { .. } => prop_assert!(false, "of one reading"),
                Count::Estimated(v) => {
                    prop_assert!(0 < running && running < enabled);
                    let (value, enabled, running) =
                        (big(value.into()), big(enabled.into()), big(running.into()));
                    let rounded = (value * enabled * 2u8 + &running) / (running * 2u8);
                    prop_assert_eq!(big(v), rounded);
                }
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
                readings.iter().filter_map(|r| r.scaled().value()).map(big).sum();
            let sum = sum.min(big(u128::MAX));
            let missing = readings.iter().filter(|r| r.scaled() == Count::NotCounted).count();
            let estimated = readings.iter().any(|r| matches!(r.scaled(), Count::Estimated(_)));
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
}
