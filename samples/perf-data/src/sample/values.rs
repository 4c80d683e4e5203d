//! Counter values inside of records: the `read_format` of perf_event_open(2).

use crate::ReadFormat;
use crate::bytes::{Cursor, Malformed, Words};

/// Name of the values in errors.
const FIELD: &str = "values that were read";

/// The value of one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CounterValue {
    /// The count.
    pub value: u64,
    /// The id of the counter ([`ReadFormat::ID`]).
    pub id: Option<u64>,
    /// Number of its samples that were lost ([`ReadFormat::LOST`]).
    pub lost: Option<u64>,
}

/// Values of a counter, or of every counter of its group ([`ReadFormat::GROUP`]).
///
/// ```
/// use quipu_perf_data::{ReadFormat, ReadValues};
///
/// let words = [2u64, 1000, 900, 7, 8]; // Two counters, their times, and their values.
/// let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
/// let format = ReadFormat::GROUP | ReadFormat::TIMES;
/// let values = ReadValues::from_bytes(&bytes, format).expect("they are whole");
/// assert_eq!(values.iter().map(|counter| counter.value).collect::<Vec<_>>(), [7, 8]);
/// assert_eq!(values.time_running(), Some(900));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadValues<'a> {
    format: ReadFormat,
    time_enabled: Option<u64>,
    time_running: Option<u64>,
    /// The only counter, whose value stands before the times.
    single: Option<CounterValue>,
    /// The counters of a group.
    group: Words<'a>,
}

/// Returns the words of one counter in a group.
fn words_each(format: ReadFormat) -> usize {
    1 + format
        .intersection(ReadFormat::ID | ReadFormat::LOST)
        .bits()
        .count_ones() as usize
}

impl<'a> ReadValues<'a> {
    /// Returns the values at the start of what a counter gave to be read, in the machine's byte order;
    /// `None` when `bytes` end before they do.
    pub fn from_bytes(bytes: &'a [u8], format: ReadFormat) -> Option<Self> {
        Self::decode(&mut Cursor::new(bytes), format).ok()
    }

    pub(crate) fn decode(cursor: &mut Cursor<'a>, format: ReadFormat) -> Result<Self, Malformed> {
        let first = cursor.u64(FIELD)?;
        let mut optional = |flag| match format.contains(flag) {
            true => cursor.u64(FIELD).map(Some),
            false => Ok(None),
        };
        let time_enabled = optional(ReadFormat::TOTAL_TIME_ENABLED)?;
        let time_running = optional(ReadFormat::TOTAL_TIME_RUNNING)?;
        let (single, words) = match format.contains(ReadFormat::GROUP) {
            true => (None, first.saturating_mul(words_each(format) as u64)),
            false => {
                let single = CounterValue {
                    value: first,
                    id: optional(ReadFormat::ID)?,
                    lost: optional(ReadFormat::LOST)?,
                };
                (Some(single), 0)
            }
        };
        Ok(Self {
            format,
            time_enabled,
            time_running,
            single,
            group: cursor.words(words, FIELD)?,
        })
    }

    /// Nanoseconds enabled ([`ReadFormat::TOTAL_TIME_ENABLED`]).
    pub fn time_enabled(&self) -> Option<u64> {
        self.time_enabled
    }

    /// Nanoseconds running ([`ReadFormat::TOTAL_TIME_RUNNING`]).
    pub fn time_running(&self) -> Option<u64> {
        self.time_running
    }

    /// Returns the number of counters.
    pub fn len(&self) -> usize {
        match self.single {
            Some(_) => 1,
            None => self.group.len() / words_each(self.format),
        }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counter at a position in its group.
    pub fn get(&self, position: usize) -> Option<CounterValue> {
        if self.single.is_some() {
            return self.single.filter(|_| position == 0);
        }
        let at = position.checked_mul(words_each(self.format))?;
        let id = usize::from(self.format.contains(ReadFormat::ID));
        Some(CounterValue {
            value: self.group.get(at)?,
            id: match id {
                1 => Some(self.group.get(at + 1)?),
                _ => None,
            },
            lost: match self.format.contains(ReadFormat::LOST) {
                true => Some(self.group.get(at + 1 + id)?),
                false => None,
            },
        })
    }

    /// Returns every counter, in the order of the group.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = CounterValue> + use<'a> {
        let values = *self;
        (0..self.len()).map(move |i| {
            values.get(i).unwrap_or(CounterValue {
                value: 0,
                id: None,
                lost: None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(words: &[u64], format: ReadFormat) -> Result<(Vec<CounterValue>, usize), Malformed> {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let mut cursor = Cursor::new(&bytes);
        let values = ReadValues::decode(&mut cursor, format)?;
        Ok((values.iter().collect(), cursor.rest().len()))
    }

    fn value(value: u64, id: u64, lost: u64) -> CounterValue {
        CounterValue {
            value,
            id: Some(id),
            lost: Some(lost),
        }
    }

    #[test]
    fn one_counter_has_its_value_before_the_times() {
        let all = ReadFormat::all() - ReadFormat::GROUP;
        assert_eq!(
            decode(&[7, 100, 90, 5, 2, 99], all),
            Ok((vec![value(7, 5, 2)], 8))
        );
        assert_eq!(decode(&[7, 100, 90, 5], all), Err(Malformed(FIELD)));
        let bare = decode(&[7], ReadFormat::empty()).expect("one word");
        assert_eq!((bare.0[0].value, bare.0[0].id), (7, None));
    }

    #[test]
    fn a_group_has_the_times_first_and_is_checked_for_its_size() {
        let all = ReadFormat::all();
        assert_eq!(
            decode(&[2, 100, 90, 7, 1, 0, 8, 2, 3], all),
            Ok((vec![value(7, 1, 0), value(8, 2, 3)], 0))
        );
        for hostile in [3, 1 << 60, u64::MAX] {
            let result = decode(&[hostile, 100, 90, 7, 1, 0, 8, 2, 3], all);
            assert_eq!(result, Err(Malformed(FIELD)));
        }
    }
}
