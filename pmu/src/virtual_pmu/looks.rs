//! The looks at a group whose counters begin at zero. One that another process zeroes shows only as long as it
//! has not passed the value that it had at the last look.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The time after which counters are first looked at, in nanoseconds: with looks of 10 microseconds, a two
/// thousandth of it.
const FIRST: u64 = 20_000_000;

/// The time without a look that never makes a count doubtful: a look may wait for a time slice, which is a tenth of a
/// second on OpenBSD, and a sweep over several CPUs for another.
const SHORT: u64 = 250_000_000;

/// The time without a look that always makes it doubtful, however long was counted before.
const LONG: u64 = 1_000_000_000;

/// The looks at one group since it was last put on counters.
///
/// They come after half as long again as it has counted. A counter that was zeroed in between and goes on at the
/// same rate has then not made up for what it lost.
#[derive(Debug)]
pub(super) struct Looks {
    /// The longest time between two looks in nanoseconds; `None` for a group that needs none.
    longest: Option<u64>,
    began: AtomicU64,
    last: AtomicU64,
    /// The last at which a counter that was zeroed would have shown.
    shown: AtomicU64,
    /// Set when that was too long ago once, until the next reset.
    late: AtomicBool,
    /// Set until a caller has got the error of that.
    unreported: AtomicBool,
}

impl Looks {
    pub(super) fn new(longest: Option<u64>) -> Self {
        Self {
            longest,
            began: AtomicU64::new(0),
            last: AtomicU64::new(0),
            shown: AtomicU64::new(0),
            late: AtomicBool::new(false),
            unreported: AtomicBool::new(false),
        }
    }

    /// Notes that counters begin at zero at `now`.
    pub(super) fn begin(&self, now: u64) {
        for moment in [&self.began, &self.last, &self.shown] {
            moment.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the time of the next look; `u64::MAX` for a group that needs none.
    pub(super) fn due(&self) -> u64 {
        let Some(longest) = self.longest else {
            return u64::MAX;
        };
        let last = self.last.load(Ordering::Relaxed);
        let counted = last.saturating_sub(self.began.load(Ordering::Relaxed));
        last.saturating_add((counted / 2).max(FIRST).min(longest))
    }

    /// Notes a look at `now`, at which a counter that was zeroed would have shown or not.
    pub(super) fn look(&self, now: u64, shown: bool) {
        if self.longest.is_none() {
            return;
        }
        self.last.store(now, Ordering::Relaxed);
        if !shown {
            return;
        }
        let counted = self.shown.load(Ordering::Relaxed);
        let counted = counted.saturating_sub(self.began.load(Ordering::Relaxed));
        if self.unseen_for(now) > counted.clamp(SHORT, LONG) {
            self.late.store(true, Ordering::Relaxed);
            self.unreported.store(true, Ordering::Relaxed);
        }
        self.shown.store(now, Ordering::Relaxed);
    }

    /// Returns the nanoseconds in which a counter that was zeroed would not have shown.
    pub(super) fn unseen_for(&self, now: u64) -> u64 {
        now.saturating_sub(self.shown.load(Ordering::Relaxed))
    }

    /// Returns true if that was too long once, so that the count may be too low.
    pub(super) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Returns true once for each time that it was too long.
    pub(super) fn is_unreported(&self) -> bool {
        self.unreported.load(Ordering::Relaxed) && self.unreported.swap(false, Ordering::Relaxed)
    }

    /// Forgets what was too late: the values count from here.
    pub(super) fn reset(&self) {
        self.late.store(false, Ordering::Relaxed);
        self.unreported.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    #[test]
    fn looks_come_after_half_as_long_again_and_then_all_the_time() {
        let looks = Looks::new(Some(250 * MILLISECOND));
        looks.begin(0);
        let next = |_| {
            let due = looks.due();
            looks.look(due, true);
            due / MILLISECOND
        };
        let due: Vec<u64> = (0..11).map(next).collect();
        assert_eq!(due, [20, 40, 60, 90, 135, 202, 303, 455, 683, 933, 1183]);
        assert!(!looks.is_late());
    }

    #[test]
    fn what_was_not_looked_at_for_longer_than_it_counted_before_is_late() {
        for (seen, unseen, late) in [
            (0, 250, false),
            (0, 251, true),
            (400, 400, false),
            (400, 401, true),
            (60_000, 1_000, false),
            (60_000, 1_001, true),
        ] {
            let looks = Looks::new(Some(250 * MILLISECOND));
            looks.begin(7);
            for now in (0..seen).step_by(50).chain([seen]) {
                looks.look(7 + now * MILLISECOND, true);
            }
            // This one tells nothing.
            looks.look(7 + (seen + unseen / 2) * MILLISECOND, false);
            looks.look(7 + (seen + unseen) * MILLISECOND, true);
            assert_eq!(looks.is_late(), late, "{unseen} ms after {seen}");
            assert_eq!(looks.is_unreported(), late);
            assert!(!looks.is_unreported());
            looks.reset();
            assert!(!looks.is_late());
        }
    }

    #[test]
    fn a_group_that_needs_none_is_never_late() {
        let looks = Looks::new(None);
        looks.begin(0);
        looks.look(u64::MAX / 2, true);
        assert!(!looks.is_late());
        assert_eq!(looks.due(), u64::MAX);
    }
}
