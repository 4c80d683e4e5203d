//! How often the ring turns: as often as was asked for, unless that would take too much of a CPU.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::nanoseconds;

/// Turning takes at most one part in this many of a CPU.
const SHARE: u64 = 100;

/// The interval that was asked for, and the one in force.
#[derive(Debug)]
pub(super) struct Pace {
    wanted: u64,
    /// What it takes to turn all rings once, in nanoseconds, smoothed.
    cost: AtomicU64,
}

impl Pace {
    pub(super) fn new(wanted: Duration) -> Self {
        Self {
            wanted: nanoseconds(wanted).max(1),
            cost: AtomicU64::new(0),
        }
    }

    /// The interval in force, in nanoseconds.
    pub(super) fn interval(&self) -> u64 {
        let cost = self.cost.load(Ordering::Relaxed);
        self.wanted.max(cost.saturating_mul(SHARE))
    }

    /// The rings have turned, which took so many nanoseconds. Only the thread that turns them calls.
    pub(super) fn note(&self, took: u64) {
        let before = self.cost.load(Ordering::Relaxed);
        // A turn that was interrupted counts for an eighth; one that is always slow, in full.
        let smoothed = if before == 0 {
            took
        } else {
            before - before / 8 + took / 8
        };
        self.cost.store(smoothed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_as_wanted_until_turning_takes_a_hundredth_of_it() {
        let pace = Pace::new(Duration::from_millis(4));
        assert_eq!(pace.interval(), 4_000_000);
        pace.note(40_000);
        assert_eq!(pace.interval(), 4_000_000);
        let slow = Pace::new(Duration::from_millis(4));
        slow.note(1_000_000);
        assert_eq!(slow.interval(), 100_000_000);
    }

    #[test]
    fn a_lasting_change_of_the_cost_is_followed_and_a_single_one_fades() {
        let pace = Pace::new(Duration::from_nanos(1));
        for took in [800, 800, 8_000] {
            pace.note(took);
        }
        assert_eq!(pace.interval(), 170_000);
        for _ in 0..100 {
            pace.note(800);
        }
        assert!(pace.interval() < 82_000, "{}", pace.interval());
        for _ in 0..100 {
            pace.note(80_000);
        }
        assert!(pace.interval() > 7_900_000, "{}", pace.interval());
    }
}
