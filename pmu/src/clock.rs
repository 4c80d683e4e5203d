//! Clocks: the source of the virtual PMU's times.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A clock that never runs backwards.
pub trait Clock: Send + Sync + 'static {
    /// Returns nanoseconds since an origin that stays the same for the life of the clock and its clones.
    fn now(&self) -> u64;

    /// Returns true if time stands still until it is advanced. The virtual PMU then rotates only when
    /// [`tick`](crate::VirtualPmu::tick) is called, so that everything is repeatable.
    fn is_manual(&self) -> bool {
        false
    }
}

/// The system's monotonic clock ([`Instant`]), counted from the making of this value.
#[derive(Debug, Clone)]
pub struct MonotonicClock {
    origin: Instant,
}

impl MonotonicClock {
    /// Returns a clock that starts at 0 now.
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> u64 {
        nanoseconds(self.origin.elapsed())
    }
}

/// A clock that stands still until it is advanced. Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// use quipu_pmu::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let other = clock.clone();
/// clock.advance(Duration::from_micros(3));
/// assert_eq!(other.now(), 3_000);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
}

impl ManualClock {
    /// Returns a clock that shows 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves time forward; at the end of its 584 years it stands still.
    pub fn advance(&self, by: Duration) {
        let by = nanoseconds(by);
        let forward = |now: u64| Some(now.saturating_add(by));
        // The closure always gives a value, so the update cannot fail.
        let _ = self
            .now
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, forward);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn is_manual(&self) -> bool {
        true
    }
}

/// A duration in nanoseconds, at most `u64::MAX`.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_never_back() {
        let clock = ManualClock::new();
        assert_eq!((clock.now(), clock.now()), (0, 0));
        clock.advance(Duration::from_nanos(5));
        assert_eq!(clock.now(), 5);
        clock.advance(Duration::MAX);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(clock.now(), u64::MAX);
    }

    #[test]
    fn clones_of_a_monotonic_clock_share_its_origin() {
        let clock = MonotonicClock::new();
        let before = clock.now();
        let between = clock.clone().now();
        assert!(before <= between && between <= clock.now());
    }
}
