//! The pace of rotation on one CPU: the interval that was asked for, unless turning that often would take too
//! much of the CPU.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::nanoseconds;

/// Turning takes at most one part in this many of a CPU, as long as that makes no turn longer than [`LONGEST`].
const SHARE: u64 = 100;

/// The longest turn in nanoseconds, unless turning then takes more than one part in [`LARGEST_SHARE`]. A command of
/// some seconds is not estimated from a turn or two.
const LONGEST: u64 = 250_000_000;

/// Turning takes at most one part in this many of a CPU, however long the turns are for that.
const LARGEST_SHARE: u64 = 10;

/// The turns of which the quickest is taken for the cost of turning: one that had to wait for the CPU, or was
/// interrupted, says nothing of that. Until there have been so many it is assumed to cost nothing.
const TURNS: usize = 4;

/// The interval of rotation on one CPU.
#[derive(Debug)]
pub(super) struct Pace {
    wanted: u64,
    /// Nanoseconds that the last turns took.
    took: [AtomicU64; TURNS],
    /// The place of the next turn among them.
    next: AtomicUsize,
}

impl Pace {
    pub(super) fn new(wanted: Duration) -> Self {
        Self {
            wanted: nanoseconds(wanted).max(1),
            took: Default::default(),
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the interval in force, in nanoseconds.
    pub(super) fn interval(&self) -> u64 {
        let took = self.took.iter().map(|took| took.load(Ordering::Relaxed));
        let cost = took.min().unwrap_or(0);
        let longest = LONGEST.max(cost.saturating_mul(LARGEST_SHARE));
        self.wanted.max(cost.saturating_mul(SHARE).min(longest))
    }

    /// Records how many nanoseconds turning the ring took. Only the thread that turns it calls this.
    pub(super) fn record_turn(&self, took: u64) {
        let next = self.next.load(Ordering::Relaxed);
        self.took[next].store(took, Ordering::Relaxed);
        self.next.store((next + 1) % TURNS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(turns: impl IntoIterator<Item = u64>) -> u64 {
        let pace = Pace::new(Duration::from_millis(4));
        turns.into_iter().for_each(|took| pace.record_turn(took));
        pace.interval()
    }

    #[test]
    fn the_interval_is_as_wanted_until_turning_takes_a_hundredth_of_it() {
        assert_eq!(pace([]), 4_000_000);
        assert_eq!(pace([40_000; TURNS]), 4_000_000);
        assert_eq!(pace([1_000_000; TURNS]), 100_000_000);
    }

    #[test]
    fn a_turn_is_no_longer_than_a_quarter_of_a_second_unless_turning_took_a_tenth_of_it() {
        assert_eq!(pace([2_500_000; TURNS]), LONGEST);
        assert_eq!(pace([20_000_000; TURNS]), LONGEST);
        assert_eq!(pace([50_000_000; TURNS]), 500_000_000);
    }

    #[test]
    fn a_turn_that_had_to_wait_is_not_taken_for_the_cost() {
        const WAITED: u64 = 93_000_000;
        assert_eq!(pace([WAITED]), 4_000_000);
        assert_eq!(pace([WAITED; TURNS - 1]), 4_000_000);
        assert_eq!(pace([50_000, WAITED, WAITED, WAITED]), 5_000_000);
    }

    #[test]
    fn a_lasting_change_of_the_cost_is_followed() {
        let slower = [50_000; TURNS].into_iter().chain([80_000; TURNS]);
        assert_eq!(pace(slower), 8_000_000);
        let quicker = [80_000; TURNS].into_iter().chain([50_000]);
        assert_eq!(pace(quicker), 5_000_000);
    }
}
