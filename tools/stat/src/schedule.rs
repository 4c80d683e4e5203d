//! The deadlines of a measurement.

use std::time::{Duration, Instant};

use super::plan::Plan;

/// The longest sleep while a command runs. A signal that arrives just before the sleep begins does
/// not end it.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// When the next interval ends, and when all is over.
pub(super) struct Schedule {
    interval: Option<(Duration, Instant)>,
    /// The number of intervals that are still to end, where it is bounded.
    left: Option<u32>,
    end: Option<Instant>,
    /// When counting begins, if it has not.
    begin: Option<Instant>,
    /// The time when it was last looked at.
    now: Instant,
}

impl Schedule {
    /// Returns the clock of a run that began now. What is measured from the beginning of counting waits for it.
    pub(super) fn new(plan: &Plan, started: Instant) -> Self {
        match plan.delay {
            Some(delay) if delay < Duration::MAX => Self {
                interval: None,
                left: None,
                end: None,
                begin: Some(started + delay),
                now: started,
            },
            _ => Self::counting(plan, started),
        }
    }

    pub(super) fn counting(plan: &Plan, started: Instant) -> Self {
        Self {
            begin: None,
            now: started,
            interval: plan.interval.map(|length| (length, started + length)),
            left: plan.interval_count,
            end: plan.timeout.map(|timeout| started + timeout),
        }
    }

    /// Takes note of the time.
    pub(super) fn look(&mut self) {
        self.now = Instant::now();
    }

    /// Returns the time until the next deadline.
    pub(super) fn next(&self) -> Duration {
        let due = self.interval.map(|(_, at)| at).into_iter().chain(self.end);
        let due = due.chain(self.begin);
        // Not since the last look: reading and writing a line may have taken long.
        let now = Instant::now();
        due.map(|at| at.saturating_duration_since(now))
            .min()
            .unwrap_or(LONGEST_SLEEP)
    }

    /// Returns true once for each interval that has ended. Intervals that were slept through are
    /// skipped, so that they stay where they belong.
    pub(super) fn interval_is_over(&mut self) -> bool {
        let Some((length, at)) = &mut self.interval else {
            return false;
        };
        let now = self.now;
        if now < *at {
            return false;
        }
        while *at <= now {
            *at += *length;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                self.interval = None;
            }
        }
        true
    }

    /// Returns true once, when counting is to begin.
    pub(super) fn delay_is_over(&mut self) -> bool {
        let over = self.begin.is_some_and(|at| at <= self.now);
        if over {
            self.begin = None;
        }
        over
    }

    /// Returns true if the last interval to be reported has ended.
    pub(super) fn no_more_intervals(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns true once, when the time is over.
    pub(super) fn time_is_over(&mut self) -> bool {
        let over = self.end.is_some_and(|at| at <= self.now);
        if over {
            self.end = None;
        }
        over
    }
}
