//! State of one group on one CPU that readers and the scheduler share: the accumulated counts and
//! times, under a sequence lock.
//!
//! The scheduler, which holds the CPU's lock, is the only writer. A reader takes a snapshot, reads
//! the registers and the clock, and starts over if the sequence has moved meanwhile. It writes only
//! the count it has seen, by which the scheduler widens.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::times::{State, Times};
use crate::sequence::Sequence;

/// The counts and times of one group on one CPU.
#[derive(Debug)]
pub(super) struct GroupState {
    /// Only the scheduler writes under it, and only under the CPU's lock.
    pub(super) sequence: Sequence,
    state: AtomicU64,
    total_enabled: AtomicU64,
    total_running: AtomicU64,
    enabled_from: AtomicU64,
    running_from: AtomicU64,
    stopped: AtomicU64,
    /// The times at the last reset.
    pub(super) reset_enabled: AtomicU64,
    pub(super) reset_running: AtomicU64,
    /// Time of the last accumulation by the scheduler.
    pub(super) accumulated_at: AtomicU64,
    /// Time of the reader's last read of the registers.
    pub(super) seen_at: AtomicU64,
    /// Time at which the registers were last known to hold what was written to them; later where verifying
    /// that took long.
    pub(super) verified_at: AtomicU64,
    /// Time for which the registers may go unread before a wrap can be missed.
    pub(super) wrap_timeout: AtomicU64,
    /// Time after which the scheduler has to accumulate again.
    pub(super) accumulate_every: AtomicU64,
    /// Set when they went unread for longer: the values are unknown until the next reset.
    pub(super) wrap_missed: AtomicBool,
    /// Set while an error waits for the reader.
    pub(super) faulted: AtomicBool,
    pub(super) counters: Box<[CounterState]>,
}

/// One member's count.
#[derive(Debug, Default)]
pub(super) struct CounterState {
    /// The count up to the raw value `start`.
    pub(super) base: AtomicU64,
    /// The raw value at which `base` was right.
    pub(super) start: AtomicU64,
    /// The slot it counts on while active.
    pub(super) slot: AtomicUsize,
    /// Count of the last read. Written by the reader only.
    pub(super) seen: AtomicU64,
}

impl GroupState {
    /// Notes that the registers were verified in a span of time. The next read that verifies comes after
    /// `interval`, or after five times as long as it took, so that it takes a sixth of the time at most.
    pub(super) fn verified(&self, took: &Range<u64>, interval: u64) {
        let pause = took.end.saturating_sub(took.start).saturating_mul(5);
        let at = took.end.saturating_add(pause.saturating_sub(interval));
        self.verified_at.store(at, Ordering::Relaxed);
    }

    pub(super) fn new(members: usize) -> Self {
        Self {
            sequence: Sequence::default(),
            state: AtomicU64::new(state_to_bits(State::Off)),
            total_enabled: AtomicU64::new(0),
            total_running: AtomicU64::new(0),
            enabled_from: AtomicU64::new(0),
            running_from: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            reset_enabled: AtomicU64::new(0),
            reset_running: AtomicU64::new(0),
            accumulated_at: AtomicU64::new(0),
            seen_at: AtomicU64::new(0),
            verified_at: AtomicU64::new(0),
            wrap_timeout: AtomicU64::new(u64::MAX),
            accumulate_every: AtomicU64::new(u64::MAX),
            wrap_missed: AtomicBool::new(false),
            faulted: AtomicBool::new(false),
            counters: (0..members).map(|_| CounterState::default()).collect(),
        }
    }

    pub(super) fn event_state(&self) -> State {
        state_from_bits(self.state.load(Ordering::Relaxed))
    }

    pub(super) fn times(&self) -> Times {
        Times {
            state: self.event_state(),
            total_enabled: self.total_enabled.load(Ordering::Relaxed),
            total_running: self.total_running.load(Ordering::Relaxed),
            enabled_from: self.enabled_from.load(Ordering::Relaxed),
            running_from: self.running_from.load(Ordering::Relaxed),
            stopped: self.stopped.load(Ordering::Relaxed),
        }
    }

    pub(super) fn set_times(&self, times: &Times) {
        self.state
            .store(state_to_bits(times.state), Ordering::Relaxed);
        self.total_enabled
            .store(times.total_enabled, Ordering::Relaxed);
        self.total_running
            .store(times.total_running, Ordering::Relaxed);
        self.enabled_from
            .store(times.enabled_from, Ordering::Relaxed);
        self.running_from
            .store(times.running_from, Ordering::Relaxed);
        self.stopped.store(times.stopped, Ordering::Relaxed);
    }

    /// Takes a stopped group off without the counts since its last read.
    pub(super) fn discard_interval(&self) {
        self.sequence.write(|| {
            for counter in &self.counters {
                counter.base.store(counter.last_known(), Ordering::Relaxed);
            }
            let mut times = self.times();
            times.schedule_out(self.last_known_at());
            self.set_times(&times);
        });
    }

    /// Returns the time of the last read or accumulation.
    pub(super) fn last_known_at(&self) -> u64 {
        let folded = self.accumulated_at.load(Ordering::Relaxed);
        folded.max(self.seen_at.load(Ordering::Relaxed))
    }
}

impl CounterState {
    /// Returns the count of the last read or accumulation.
    pub(super) fn last_known(&self) -> u64 {
        let base = self.base.load(Ordering::Relaxed);
        base.max(self.seen.load(Ordering::Relaxed))
    }

    /// Returns the count at a raw value: what the register moved since `start` is known only modulo its
    /// width, so it is the first such count not below `known`.
    pub(super) fn widen(&self, raw: u64, mask: u64, known: u64) -> u64 {
        let base = self.base.load(Ordering::Relaxed);
        let moved = raw.wrapping_sub(self.start.load(Ordering::Relaxed));
        let beyond = base.wrapping_add(moved).wrapping_sub(known) & mask;
        known.wrapping_add(beyond)
    }

    /// Returns what the register moved since the count was `known` if its value is below that of then: it has
    /// wrapped, or was written.
    pub(super) fn wrapped(&self, raw: u64, mask: u64, known: u64) -> Option<u64> {
        let since_start = known.wrapping_sub(self.base.load(Ordering::Relaxed));
        let then = self.start.load(Ordering::Relaxed).wrapping_add(since_start);
        let back = raw & mask < then & mask;
        back.then(|| raw.wrapping_sub(then) & mask)
    }
}

fn state_to_bits(state: State) -> u64 {
    match state {
        State::Error => 0,
        State::Off => 1,
        State::Inactive => 2,
        State::Active => 3,
    }
}

fn state_from_bits(bits: u64) -> State {
    match bits {
        0 => State::Error,
        1 => State::Off,
        2 => State::Inactive,
        _ => State::Active,
    }
}

/// The rate assumed for scheduling reads of events that state none, in events a second: 16 every
/// nanosecond, more than any CPU retires.
pub(super) const UNSTATED_RATE: u64 = 16_000_000_000;

/// The longest time, in nanoseconds, in which a counter that counts at most `rate` events a second
/// cannot come round to the same raw value.
pub(super) fn wrap_timeout(mask: u64, rate: u64) -> u64 {
    if rate == 0 {
        return u64::MAX;
    }
    // elapsed x rate must stay below 2^width x 10^9.
    let events = (u128::from(mask) + 1) * 1_000_000_000;
    u64::try_from((events - 1) / u128::from(rate)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Reads and accumulations in any order, less than one wrap apart, never lose one.
        #[test]
        fn widening_follows_a_counter_through_its_wraps(
            width in 32..=64u32,
            first in any::<u64>(),
            steps in prop::collection::vec((any::<u64>(), any::<bool>()), 1..20),
        ) {
            let mask = u64::MAX >> (64 - width);
            let counter = CounterState::default();
            counter.start.store(first & mask, Ordering::Relaxed);
            let (mut raw, mut truth) = (first, 0u64);
            for (step, accumulate) in steps {
                // A count stays below 2^64 in total, as it has no other way of being right.
                let step = (step & mask) >> if width > 58 { 6 } else { 0 };
                raw = raw.wrapping_add(step);
                truth = truth.wrapping_add(step);
                let got = counter.widen(raw & mask, mask, counter.last_known());
                prop_assert_eq!(got, truth);
                if accumulate {
                    counter.base.store(got, Ordering::Relaxed);
                    counter.start.store(raw & mask, Ordering::Relaxed);
                } else {
                    counter.seen.store(got, Ordering::Relaxed);
                }
            }
        }
    }

    #[test]
    fn the_timeout_ends_with_the_last_nanosecond_that_is_safe() {
        let mask = u64::from(u32::MAX);
        assert_eq!(wrap_timeout(mask, 1 << 32), 999_999_999);
        assert_eq!(wrap_timeout(mask, 4_000_000_000), 1_073_741_823);
        assert_eq!(wrap_timeout(mask, 0), u64::MAX);
        assert_eq!(wrap_timeout(u64::MAX, 1), u64::MAX);
    }
}
