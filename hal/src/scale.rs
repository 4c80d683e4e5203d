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
            let count = reading.count();
            match count.value() {
                Some(value) => {
                    sum.add(value, count.is_estimate(), 1);
                    sum.at_least |= reading.at_least;
                }
                None => sum.lack(1, count == Count::Jumped),
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
    jumped: bool,
    at_least: bool,
}

impl Sum {
    fn add(&mut self, value: u128, estimated: bool, parts: usize) {
        self.value = self.value.saturating_add(value);
        self.counted += parts;
        self.estimated |= estimated;
    }

    fn lack(&mut self, parts: usize, jumped: bool) {
        self.missing += parts;
        self.jumped |= jumped;
    }

    fn total(self) -> Count {
        let parts = self.counted + self.missing;
        match Count::of_parts(self.value, self.estimated, self.missing, parts) {
            Count::NotCounted if self.jumped => Count::Jumped,
            count => count.bounded(self.at_least),
        }
    }
}

/// Parts of one target that count in turns, one for each core PMU.
struct Turns<'a> {
    part: &'a Part,
    parts: usize,
    value: u128,
    enabled: u64,
    running: u128,
    jumped: bool,
}

impl<'a> Turns<'a> {
    fn start(part: &'a Part, reading: &Reading) -> Self {
        Self {
            part,
            parts: 1,
            value: u128::from(reading.value),
            enabled: reading.time_enabled,
            running: u128::from(reading.time_running),
            jumped: reading.has_jumped(),
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
        self.jumped |= reading.has_jumped();
    }

    fn finish(self, sum: &mut Sum) {
        if self.jumped {
            sum.lack(self.parts, true);
        } else if self.running >= u128::from(self.enabled) {
            sum.add(self.value, false, self.parts);
        } else if self.running == 0 {
            sum.lack(self.parts, false);
        } else if self.parts == 1 && self.part.cpu.is_none() {
            sum.add(self.value, true, self.parts);
        } else {
            // Below `enabled`, so it fits in 64 bits.
            let running = self.running as u64;
            sum.add(mul_div(self.value, self.enabled, running), true, self.parts);
        }
    }
}
