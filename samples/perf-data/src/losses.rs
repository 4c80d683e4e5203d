//! Losses of a recording, each counted once.

use std::collections::HashMap;

use crate::record::kind;
use crate::{RawRecord, Record, RecordLayout, RecordedEvent, Result};

/// `PERF_RECORD_MISC_LOST_SAMPLES_BPF`: a filter left them out, as it was asked to.
const LEFT_OUT: u16 = 1 << 15;

/// Numbers of samples that were lost, by event.
///
/// A loss may be recorded twice: by [`Record::Lost`] where it happened, as records of any event and kind
/// that shared a ring buffer, and by [`Record::LostSamples`] at the end of the recording, as samples of one
/// counter (perf 6.0 and `quipu record`). The latter counts, where it is there. A [`Record::LostSamples`]
/// with a time is the kernel's own, of samples that never reached the ring.
///
/// ```
/// use quipu_perf_data::{EventAttr, Losses, RawRecord, RecordedEvent, synthesized};
///
/// # fn main() -> Result<(), quipu_perf_data::Error> {
/// let mut attr = [0; 64];
/// attr[4..8].copy_from_slice(&64u32.to_ne_bytes()); // perf_event_attr.size
/// let event = RecordedEvent::new(EventAttr::from_bytes(&attr)?, vec![1], "cycles");
/// let layout = event.attr().layout();
/// let mut losses = Losses::new(&[event]);
/// let record = synthesized::lost_samples(20, &layout, 1);
/// losses.note(&RawRecord::at_start(&record).expect("whole"), &layout)?;
/// assert_eq!(losses.of(0), 20);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Losses {
    events: HashMap<u64, usize>,
    /// Losses that counters reported at the end; the last are of an event that is not known.
    counted: Vec<u64>,
    /// Samples that never reached a ring, likewise.
    before_rings: Vec<u64>,
    /// Records of any kind that found a ring full.
    in_rings: u64,
}

impl Losses {
    /// Returns counts of zero for these events.
    pub fn new(events: &[RecordedEvent]) -> Self {
        let ids = |(i, event): (usize, &RecordedEvent)| {
            let ids: Vec<_> = event.ids().iter().map(|id| (*id, i)).collect();
            ids
        };
        Self {
            events: events.iter().enumerate().flat_map(ids).collect(),
            counted: vec![0; events.len() + 1],
            before_rings: vec![0; events.len() + 1],
            in_rings: 0,
        }
    }

    /// Accounts for a record of loss; ignores all others.
    ///
    /// # Errors
    /// As [`RawRecord::decode`].
    #[inline]
    pub fn note(&mut self, record: &RawRecord<'_>, layout: &RecordLayout) -> Result<()> {
        match record.kind() {
            kind::LOST | kind::LOST_SAMPLES => self.note_loss(record, layout),
            _ => Ok(()),
        }
    }

    fn note_loss(&mut self, record: &RawRecord<'_>, layout: &RecordLayout) -> Result<()> {
        match record.decode(layout)? {
            Record::Lost(lost) => self.in_rings = self.in_rings.saturating_add(lost.records),
            Record::LostSamples(lost) if record.misc().0 & LEFT_OUT == 0 => {
                let trailer = record.sample_id(layout).unwrap_or_default();
                let unknown = self.counted.len() - 1;
                let event = match unknown {
                    1 => 0,
                    _ => {
                        let event = trailer.id.and_then(|id| self.events.get(&id));
                        event.copied().unwrap_or(unknown)
                    }
                };
                let list = match trailer.time {
                    None | Some(0) => &mut self.counted,
                    Some(_) => &mut self.before_rings,
                };
                if let Some(count) = list.get_mut(event) {
                    *count = count.saturating_add(lost.samples);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of samples of an event that were lost, by its position.
    pub fn of(&self, event: usize) -> u64 {
        let get = |list: &[u64]| list.get(event).copied().unwrap_or(0);
        let counted = match self.counted.len() {
            // All records are of the only event, or are taken for samples of it.
            2 if !self.is_counted() => self.in_rings,
            _ => get(&self.counted),
        };
        counted.saturating_add(get(&self.before_rings))
    }

    /// Returns the number of lost records that may not be samples, or whose event is not in the file.
    pub fn of_unknown(&self) -> u64 {
        let unknown = self.counted.len() - 1;
        let in_rings = match self.is_counted() || unknown == 1 {
            true => self.counted[unknown],
            false => self.in_rings,
        };
        in_rings.saturating_add(self.before_rings[unknown])
    }

    /// Returns the number of lost records that are no samples: of mappings, names and tasks, without which
    /// functions may have no or other names.
    pub fn of_others(&self) -> u64 {
        match self.is_counted() {
            true => self.in_rings.saturating_sub(self.counted.iter().sum()),
            false => 0,
        }
    }

    /// Returns true if counters reported their losses at the end.
    fn is_counted(&self) -> bool {
        self.counted.iter().any(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventAttr, synthesized};

    /// `PERF_SAMPLE_TIME` and `_ID`.
    const SAMPLE_TYPE: u64 = 1 << 2 | 1 << 6;
    const SAMPLE_ID_ALL: u64 = if cfg!(target_endian = "big") {
        1 << 45
    } else {
        1 << 18
    };

    fn events(count: u64) -> Vec<RecordedEvent> {
        let mut attr = [0; 64];
        attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
        attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_ne_bytes());
        attr[40..48].copy_from_slice(&SAMPLE_ID_ALL.to_ne_bytes());
        let attr = EventAttr::from_bytes(&attr).expect("good");
        let event = |i| RecordedEvent::new(attr.clone(), vec![10 + i], "e");
        (0..count).map(event).collect()
    }

    /// A record of loss, with the time and id of its trailer.
    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + 8 * words.len() as u16).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn losses(events: &[RecordedEvent], records: &[Vec<u8>]) -> Losses {
        let layout = events[0].attr().layout();
        let mut losses = Losses::new(events);
        for record in records {
            let record = RawRecord::at_start(record).expect("whole");
            losses.note(&record, &layout).expect("well-formed");
        }
        losses
    }

    fn lost(records: u64) -> Vec<u8> {
        record(kind::LOST, 0, &[10, records, 500, 10])
    }

    #[test]
    fn what_is_told_twice_counts_once() {
        let one = events(1);
        let layout = one[0].attr().layout();
        let counted = |count, id| synthesized::lost_samples(count, &layout, id);
        assert_eq!(losses(&one, &[lost(20), lost(10)]).of(0), 30);
        // Two of those in the rings were no samples.
        let all = losses(&one, &[lost(20), lost(10), counted(28, 10)]);
        assert_eq!((all.of(0), all.of_unknown(), all.of_others()), (28, 0, 2));
        // Without a ring that was full.
        assert_eq!(losses(&one, &[counted(28, u64::MAX)]).of(0), 28);
    }

    #[test]
    fn what_the_kernel_lost_before_the_ring_is_another_loss() {
        let before = record(kind::LOST_SAMPLES, 0, &[5, 600, 10]);
        let one = events(1);
        assert_eq!(losses(&one, &[lost(20), before.clone()]).of(0), 25);
        let left_out = record(kind::LOST_SAMPLES, LEFT_OUT, &[7, 600, 10]);
        assert_eq!(losses(&one, &[left_out, before]).of(0), 5);
    }

    #[test]
    fn each_event_has_its_own() {
        let two = events(2);
        let layout = two[0].attr().layout();
        let counted = |count, id| synthesized::lost_samples(count, &layout, id);
        let all = losses(&two, &[lost(30), counted(20, 10), counted(10, 11)]);
        assert_eq!((all.of(0), all.of(1), all.of_unknown()), (20, 10, 0));
        // A ring is everybody's: which event noticed says nothing.
        let all = losses(&two, &[lost(30)]);
        assert_eq!((all.of(0), all.of(1), all.of_unknown()), (0, 0, 30));
        let all = losses(&two, &[counted(3, 99)]);
        assert_eq!((all.of(0), all.of(1), all.of_unknown()), (0, 0, 3));
    }
}
