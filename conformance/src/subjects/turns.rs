//! Time that passes on a simulated machine, and the turns of the groups on its virtual PMU.

use std::sync::atomic::{AtomicU64, Ordering};

/// Who has to be told that a rotation interval is over, where time passes only when it is made to.
#[derive(Debug)]
pub struct Turns {
    interval: u64,
    /// Nanoseconds since the last turn.
    waited: AtomicU64,
}

impl Turns {
    /// A turn after every `interval` nanoseconds, of which there is at least one.
    pub const fn new(interval: u64) -> Self {
        Self {
            interval,
            waited: AtomicU64::new(0),
        }
    }

    /// Nanoseconds from one turn to the next.
    pub const fn interval(&self) -> u64 {
        self.interval
    }

    /// Lets nanoseconds pass: `advance` moves the machine's clock on by some of them, and `turn` is
    /// called whenever an interval is over.
    pub fn pass(&self, nanoseconds: u64, advance: impl Fn(u64), turn: impl Fn()) {
        let mut left = nanoseconds;
        while left > 0 {
            let waited = self.waited.load(Ordering::Relaxed);
            let step = left.min(self.interval - waited);
            advance(step);
            left -= step;
            let waited = (waited + step) % self.interval;
            self.waited.store(waited, Ordering::Relaxed);
            if waited == 0 {
                turn();
            }
        }
    }
}
