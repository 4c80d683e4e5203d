//! What readers and the scheduler share of one group on one CPU: the accumulated counts and times,
//! under a sequence lock.
//!
//! The scheduler, which holds the CPU's lock, is the only writer. A reader takes a snapshot, reads
//! the registers and the clock, and starts over if the sequence has moved meanwhile. It writes only
//! what it has seen, for the scheduler to widen by.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::times::{State, Times};
use crate::sequence::Sequence;

/// The counts and times of one group on one CPU.
#[derive(Debug)]
pub(super) struct Tally {
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
    /// When the scheduler last brought the lanes up to date.
    pub(super) folded_at: AtomicU64,
    /// When the reader last had a value from the registers.
    pub(super) seen_at: AtomicU64,
    /// How long the registers may go unread before a wrap can be lost.
    pub(super) patience: AtomicU64,
    /// How soon the scheduler has to bring the lanes up to date again.
    pub(super) fold_every: AtomicU64,
    /// They went unread for longer: the values are unknown until the next reset.
    pub(super) lapsed: AtomicBool,
    /// An error waits for the reader.
    pub(super) faulted: AtomicBool,
    pub(super) lanes: Box<[Lane]>,
}

/// One member's count.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The count up to the raw value `start`.
    pub(super) base: AtomicU64,
    /// The raw value at which `base` was right.
    pub(super) start: AtomicU64,
    /// The slot it counts on while active.
    pub(super) slot: AtomicUsize,
    /// The count the reader last had. It is the reader's to write.
    pub(super) seen: AtomicU64,
}

impl Tally {
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
            folded_at: AtomicU64::new(0),
            seen_at: AtomicU64::new(0),
            patience: AtomicU64::new(u64::MAX),
            fold_every: AtomicU64::new(u64::MAX),
            lapsed: AtomicBool::new(false),
            faulted: AtomicBool::new(false),
            lanes: (0..members).map(|_| Lane::default()).collect(),
        }
    }

    pub(super) fn state(&self) -> State {
        state_from_bits(self.state.load(Ordering::Relaxed))
    }

    pub(super) fn times(&self) -> Times {
        Times {
            state: self.state(),
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

    /// When the registers were last known.
    pub(super) fn known_at(&self) -> u64 {
        let folded = self.folded_at.load(Ordering::Relaxed);
        folded.max(self.seen_at.load(Ordering::Relaxed))
    }
}

impl Lane {
    /// The count that was known last.
    pub(super) fn known(&self) -> u64 {
        let base = self.base.load(Ordering::Relaxed);
        base.max(self.seen.load(Ordering::Relaxed))
    }

    /// The count at a raw value: what the register moved since `start` is known only modulo its
    /// width, so it is the first such count not below the one known last.
    pub(super) fn widen(&self, raw: u64, mask: u64) -> u64 {
        let base = self.base.load(Ordering::Relaxed);
        let moved = raw.wrapping_sub(self.start.load(Ordering::Relaxed));
        let known = self.known();
        let beyond = base.wrapping_add(moved).wrapping_sub(known) & mask;
        known.wrapping_add(beyond)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Reads and folds in any order, less than one wrap apart, never lose one.
        #[test]
        fn widening_follows_a_counter_through_its_wraps(
            width in 32..=64u32,
            first in any::<u64>(),
            steps in prop::collection::vec((any::<u64>(), any::<bool>()), 1..20),
        ) {
            let mask = u64::MAX >> (64 - width);
            let lane = Lane::default();
            lane.start.store(first & mask, Ordering::Relaxed);
            let (mut raw, mut truth) = (first, 0u64);
            for (step, fold) in steps {
                // A count stays below 2^64 in total, as it has no other way of being right.
                let step = (step & mask) >> if width > 58 { 6 } else { 0 };
                raw = raw.wrapping_add(step);
                truth = truth.wrapping_add(step);
                let got = lane.widen(raw & mask, mask);
                prop_assert_eq!(got, truth);
                if fold {
                    lane.base.store(got, Ordering::Relaxed);
                    lane.start.store(raw & mask, Ordering::Relaxed);
                } else {
                    lane.seen.store(got, Ordering::Relaxed);
                }
            }
        }
    }
}
