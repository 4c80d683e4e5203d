//! The shortest way to counts: by values alone, where all of them are exact.

use super::quipu_count;
use crate::set::OpenSet;

impl OpenSet {
    /// Reads the values of all events and writes their counts, if all are exact.
    ///
    /// # Safety
    /// As [`write_counts`](Self::write_counts).
    #[inline(always)]
    pub(super) unsafe fn read_exact(&mut self, out: *mut quipu_count) -> bool {
        let Some(time) = self.set.read_exact_timed(&mut self.values) else {
            return false;
        };
        // SAFETY: there is a value for each event, and the caller's promise.
        unsafe { write_exact(&self.values, time, out) };
        true
    }
}

/// Writes the counts of values that were counted for all of a time.
///
/// # Safety
/// `out` points to as many as there are values.
#[inline(always)]
pub(super) unsafe fn write_exact(mut values: &[u64], time: u64, mut out: *mut quipu_count) {
    // SAFETY: it is called once for each value, by the caller's promise.
    let mut write = |value: &u64| unsafe {
        out.write(quipu_count::exact(*value, time, time));
        out = out.add(1);
    };
    // A single value comes first because it is the most frequent; a loop over single values takes a third more instructions.
    if let [value] = values {
        return write(value);
    }
    while let Some((four, rest)) = values.split_first_chunk::<4>() {
        four.iter().for_each(&mut write);
        values = rest;
    }
    if let Some((two, rest)) = values.split_first_chunk::<2>() {
        two.iter().for_each(&mut write);
        values = rest;
    }
    if let [last] = values {
        write(last);
    }
}
