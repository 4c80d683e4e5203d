//! Readings at the ends of intervals.

use std::mem;
use std::time::Instant;

use quipu_shell::Failure;

use super::sets::{Sets, Snapshot};

/// Intervals of fewer reads than this are too short to divide by: the counters and the clock are read one after the other.
const FEWEST_READS: f64 = 20.0;

/// The readings of the last interval and of this one.
pub(super) struct Intervals {
    /// The readings at the end of the last interval, and their time in seconds.
    pub(super) last: Snapshot,
    pub(super) ended: f64,
    /// The longest time that a read took, in seconds.
    read: f64,
    /// The readings of now, and what they are more than the last.
    pub(super) now: Snapshot,
    pub(super) difference: Snapshot,
}

impl Intervals {
    pub(super) fn new(sets: &Sets) -> Self {
        Self {
            last: sets.snapshot(),
            ended: 0.0,
            read: 0.0,
            now: sets.snapshot(),
            difference: sets.snapshot(),
        }
    }

    /// Reads the counters of now.
    pub(super) fn read(&mut self, sets: &mut Sets) -> Result<(), Failure> {
        let begun = Instant::now();
        sets.read(&mut self.now)?;
        self.read = self.read.max(begun.elapsed().as_secs_f64());
        Ok(())
    }

    /// Returns the seconds by which counts of an interval are divided; 0 if it is too short for that.
    pub(super) fn divisor(&self, seconds: f64) -> f64 {
        divisor(seconds, self.read)
    }

    /// Ends the interval at which it is now.
    pub(super) fn end(&mut self, now: f64) {
        mem::swap(&mut self.last, &mut self.now);
        self.ended = now;
    }
}

fn divisor(seconds: f64, read: f64) -> f64 {
    match seconds < FEWEST_READS * read {
        true => 0.0,
        false => seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_divided_by_the_time_of_a_few_reads() {
        for (seconds, read, expected) in [
            (42e-6, 50e-6, 0.0),
            (0.9e-3, 50e-6, 0.0),
            (1.1e-3, 50e-6, 1.1e-3),
            (0.2, 50e-6, 0.2),
            (0.2, 0.0, 0.2),
        ] {
            assert_eq!(divisor(seconds, read), expected, "{seconds}");
        }
    }
}
