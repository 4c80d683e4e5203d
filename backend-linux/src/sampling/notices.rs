//! The kernel's notices among the records: what was lost, and when it stopped a counter that interrupted too
//! often.

use quipu_perf_data::Words;
use quipu_perf_data::record::{RawRecord, kind};

/// The losses of a ring so far, by its own records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Losses {
    /// Records of any type that there was no room for (`PERF_RECORD_LOST`).
    pub records: u64,
    /// Samples that did not get as far as the ring (`PERF_RECORD_LOST_SAMPLES`).
    pub samples: u64,
}

/// Throttling of an event so far, by the records of a ring: no samples are taken while it is stopped, though
/// it is enabled (`kernel.perf_event_max_sample_rate`, `kernel.perf_cpu_time_max_percent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Throttled {
    /// Number of times that the kernel stopped it (`PERF_RECORD_THROTTLE`).
    pub times: u64,
    /// Nanoseconds from these until it went on (`PERF_RECORD_UNTHROTTLE`). A stop that has not ended, or
    /// whose end was lost, is not in it: it is at least so long.
    pub nanoseconds: u64,
}

impl Throttled {
    /// Adds that of another ring.
    pub(super) fn add(&mut self, other: Self) {
        self.times += other.times;
        self.nanoseconds += other.nanoseconds;
    }
}

/// Counters of one ring that were throttled at all; only more of them make noting one allocate.
const THROTTLED: usize = 64;

/// Counters of one ring that are stopped at the same moment; of more, the first is forgotten.
const STOPPED: usize = 16;

/// Sums of the notices of a ring so far.
#[derive(Debug)]
pub(super) struct Notices {
    pub(super) losses: Losses,
    /// By the ids of counters.
    throttled: Vec<(u64, Throttled)>,
    /// Counters that are stopped, by their stream ids, and since when.
    stopped: Vec<(u64, u64)>,
}

impl Notices {
    /// Returns those of a ring that has said none.
    pub(super) fn new() -> Self {
        Self {
            losses: Losses::default(),
            throttled: Vec::with_capacity(THROTTLED),
            stopped: Vec::with_capacity(STOPPED),
        }
    }

    /// Returns how the counter of an id was throttled.
    pub(super) fn throttled(&self, id: u64) -> Throttled {
        let mut all = self.throttled.iter();
        all.find(|(of, _)| *of == id)
            .map_or_else(Throttled::default, |(_, throttled)| *throttled)
    }

    /// Returns true if a record of this kind is a notice.
    pub(super) fn is_notice(kind: u32) -> bool {
        matches!(
            kind,
            kind::LOST | kind::LOST_SAMPLES | kind::THROTTLE | kind::UNTHROTTLE
        )
    }

    /// Takes note of a record; one that is cut short says nothing.
    pub(super) fn note(&mut self, record: &RawRecord<'_>) {
        let mut body = Words::new(record.body()).iter();
        let [first, second, third] = [(); 3].map(|()| body.next().unwrap_or(0));
        match record.kind() {
            kind::LOST => self.losses.records += second,
            kind::LOST_SAMPLES => self.losses.samples += first,
            throttle => self.throttle(throttle == kind::THROTTLE, first, second, third),
        }
    }

    /// Notes that a counter was stopped, or goes on.
    fn throttle(&mut self, stops: bool, time: u64, id: u64, stream: u64) {
        let since = self.stopped.iter().position(|(of, _)| *of == stream);
        let since = since.map(|at| self.stopped.swap_remove(at).1);
        let known = self.throttled.iter().position(|(of, _)| *of == id);
        let at = known.unwrap_or_else(|| {
            self.throttled.push((id, Throttled::default()));
            self.throttled.len() - 1
        });
        let throttled = &mut self.throttled[at].1;
        if stops {
            throttled.times += 1;
            if self.stopped.len() == STOPPED {
                self.stopped.remove(0);
            }
            self.stopped.push((stream, time));
        } else if let Some(since) = since {
            throttled.nanoseconds += time.saturating_sub(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(notices: &mut Notices, kind: u32, words: &[u64]) {
        let size = (8 * (words.len() + 1)) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(&size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        let record = RawRecord::at_start(&bytes).expect("whole");
        assert!(Notices::is_notice(record.kind()));
        notices.note(&record);
    }

    #[test]
    fn losses_add_up() {
        let mut notices = Notices::new();
        note(&mut notices, kind::LOST, &[1, 40]);
        note(&mut notices, kind::LOST_SAMPLES, &[5]);
        note(&mut notices, kind::LOST, &[1, 2]);
        note(&mut notices, kind::LOST, &[]);
        assert_eq!((notices.losses.records, notices.losses.samples), (42, 5));
    }

    #[test]
    fn the_time_from_stop_to_start_is_known_by_counter() {
        let mut notices = Notices::new();
        let throttled = |notices: &Notices, id| {
            let throttled = notices.throttled(id);
            (throttled.times, throttled.nanoseconds)
        };
        for (kind, time, id, stream) in [
            (kind::UNTHROTTLE, 90, 1, 1), // Its stop was lost.
            (kind::THROTTLE, 100, 1, 1),
            (kind::THROTTLE, 110, 2, 2),
            (kind::THROTTLE, 120, 1, 11), // The same event, inherited.
            (kind::UNTHROTTLE, 150, 1, 1),
            (kind::UNTHROTTLE, 170, 1, 11),
            (kind::THROTTLE, 200, 1, 1), // Its end is lost.
            (kind::THROTTLE, 300, 1, 1),
            (kind::UNTHROTTLE, 301, 1, 1),
        ] {
            note(&mut notices, kind, &[time, id, stream]);
        }
        assert_eq!(throttled(&notices, 1), (4, 50 + 50 + 1));
        assert_eq!(throttled(&notices, 2), (1, 0));
        assert_eq!(throttled(&notices, 3), (0, 0));
        for stream in 0..100 {
            note(&mut notices, kind::THROTTLE, &[400, 1, stream]);
        }
        assert_eq!(notices.stopped.len(), STOPPED);
    }
}
