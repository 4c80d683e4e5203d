//! Counts between samples, from the values that samples have read.

use foldhash::HashMap;

use crate::{ReadValues, Sample};

/// The last values of counters, by which those of the next sample become counts (`deliver_sample_value`,
/// `tools/perf/lib/session.c`): the members of `{a,b}:S` are sampled by their leader, which reads them all.
///
/// ```
/// use quipu_perf_data::{ReadDeltas, ReadFormat, ReadValues};
///
/// let format = ReadFormat::GROUP | ReadFormat::ID;
/// let read = |value: u64| {
///     let words = [2, 1000 * value, 1, value, 2]; // Two counters, each its value and id.
///     words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
/// };
/// let mut deltas = ReadDeltas::default();
/// for (value, counts) in [(5, [5000, 5]), (7, [2000, 2])] {
///     let bytes = read(value);
///     let values = ReadValues::from_bytes(&bytes, format).expect("whole");
///     let of_each: Vec<u64> = deltas.counts(&values, 0).map(|(_, count)| count).collect();
///     assert_eq!(of_each, counts);
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadDeltas {
    /// By id and thread.
    last: HashMap<(u64, i32), u64>,
}

impl ReadDeltas {
    /// Returns the ids of the counters and how much they counted since the sample before. `thread` distinguishes
    /// threads that have inherited the counters, whose values are each thread's own; else it is
    /// 0. Counters without an id are passed over.
    pub fn counts<'a>(
        &'a mut self,
        values: &ReadValues<'a>,
        thread: i32,
    ) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        values.iter().filter_map(move |counter| {
            let id = counter.id?;
            let last = self.last.entry((id, thread)).or_default();
            let count = counter.value.saturating_sub(*last);
            *last = counter.value.max(*last);
            Some((id, count))
        })
    }

    /// Returns the [counts](Self::counts) of a sample; empty if it has no values.
    pub fn of_sample<'a>(
        &'a mut self,
        sample: &Sample<'a>,
        is_inherited: bool,
    ) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let thread = match sample.thread() {
            Some(thread) if is_inherited => thread.tid,
            _ => 0,
        };
        let values = sample.values();
        values.into_iter().flat_map(move |values| {
            let counts: Vec<_> = self.counts(&values, thread).collect();
            counts
        })
    }
}
