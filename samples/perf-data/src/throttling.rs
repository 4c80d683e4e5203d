//! Throttling: the time in which the kernel had stopped counters that interrupted too often.

use foldhash::HashMap;

use crate::{Record, Sample, SampleId};

/// Number of times that an event was throttled, and the part of the time in which it was not sampled for that.
///
/// The part is of the time of the threads that were throttled, from their first record to their last, or of
/// the whole recording where counters are those of CPUs. A thread that waits while its counter is stopped is
/// counted as stopped until it runs again: the kernel says no more.
///
/// ```
/// use quipu_perf_data::Throttling;
///
/// let throttling = Throttling::default();
/// assert_eq!((throttling.times(), throttling.share()), (0, 0.0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Throttling {
    times: u64,
    /// Counters that were throttled, by their stream ids.
    streams: HashMap<u64, Stream>,
    /// First and last time of each thread, but for those that were seen of late.
    threads: HashMap<i32, Span>,
    /// Threads that were seen of late, each at its number modulo the length.
    recent: [(i32, Span); 32],
    /// First and last time of what is of no thread.
    threadless: Span,
}

/// A counter that was throttled.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// The thread that it counts; `None` if it counts a CPU.
    thread: Option<i32>,
    /// Since when it is stopped.
    since: Option<u64>,
    /// Nanoseconds for which it was stopped before.
    stopped: u64,
}

/// The first and the last time.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: u64,
    last: u64,
}

impl Default for Span {
    /// None yet.
    fn default() -> Self {
        Self {
            first: u64::MAX,
            last: 0,
        }
    }
}

impl Span {
    #[inline]
    fn add(&mut self, time: u64) {
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    fn is_empty(self) -> bool {
        self.first > self.last
    }

    fn len(self) -> u64 {
        self.last.saturating_sub(self.first)
    }
}

impl Throttling {
    /// Accounts for a record of the event with its trailer, or of the end of a thread. Those of one ring
    /// buffer come in its order.
    #[inline]
    pub fn note(&mut self, record: &Record<'_>, trailer: &SampleId) {
        match record {
            Record::Sample(sample) => self.note_sample(sample),
            record => self.note_other(record, trailer),
        }
    }

    /// Accounts for a sample of the event.
    #[inline]
    pub fn note_sample(&mut self, sample: &Sample<'_>) {
        if let Some(time) = sample.time() {
            self.seen(sample.thread().map(|thread| thread.tid), time);
        }
    }

    fn note_other(&mut self, record: &Record<'_>, trailer: &SampleId) {
        let thread = trailer.thread.map(|thread| thread.tid);
        match record {
            Record::Exit(task) => self.seen(Some(task.thread.tid), task.time),
            Record::Throttle(throttle) => {
                self.times += 1;
                self.seen(thread, throttle.time);
                let stream = self.stream(throttle.stream_id, thread);
                stream.since.get_or_insert(throttle.time);
            }
            Record::Unthrottle(throttle) => {
                self.seen(thread, throttle.time);
                let stream = self.stream(throttle.stream_id, thread);
                if let Some(since) = stream.since.take() {
                    stream.stopped += throttle.time.saturating_sub(since);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn seen(&mut self, thread: Option<i32>, time: u64) {
        let Some(thread) = thread else {
            return self.threadless.add(time);
        };
        let slot = thread.cast_unsigned() as usize % self.recent.len();
        if self.recent[slot].0 != thread {
            self.make_recent(thread, slot);
        }
        self.recent[slot].1.add(time);
    }

    #[inline(never)]
    fn make_recent(&mut self, thread: i32, slot: usize) {
        let span = self.threads.remove(&thread).unwrap_or_default();
        let (before, its) = std::mem::replace(&mut self.recent[slot], (thread, span));
        if !its.is_empty() {
            self.threads.insert(before, its);
        }
    }

    /// Returns the first and the last time of a thread that was seen.
    fn span_of(&self, thread: i32) -> Option<Span> {
        let (recent, span) = self.recent[thread.cast_unsigned() as usize % self.recent.len()];
        match recent == thread && !span.is_empty() {
            true => Some(span),
            false => self.threads.get(&thread).copied(),
        }
    }

    fn stream(&mut self, id: u64, thread: Option<i32>) -> &mut Stream {
        let stream = self.streams.entry(id).or_insert(Stream {
            thread,
            since: None,
            stopped: 0,
        });
        if stream.thread != thread {
            stream.thread = None;
        }
        stream
    }

    /// Returns the number of times that the kernel stopped a counter.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// Returns the part of the time in which counters were stopped, from 0 to 1.
    pub fn share(&self) -> f64 {
        let spans = self.recent.iter().map(|(_, span)| span);
        let spans = spans.chain(self.threads.values());
        let whole = spans.fold(self.threadless, |whole, span| Span {
            first: whole.first.min(span.first),
            last: whole.last.max(span.last),
        });
        let (mut stopped, mut all) = (0, 0);
        let mut threads = Vec::new();
        for stream in self.streams.values() {
            let own = stream.thread.and_then(|thread| self.span_of(thread));
            let span = own.unwrap_or(whole);
            let open = stream.since.map(|since| span.last.saturating_sub(since));
            stopped += stream.stopped + open.unwrap_or(0);
            // A thread has a counter on each CPU that it was on.
            let is_new = stream
                .thread
                .is_none_or(|thread| !threads.contains(&thread));
            if is_new {
                threads.extend(stream.thread);
                all += span.len();
            }
        }
        match all {
            0 => 0.0,
            all => (stopped as f64 / all as f64).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::kind;
    use crate::{RawRecord, RecordLayout, SampleType, ThreadId};

    const THROTTLE: u32 = kind::THROTTLE;
    const UNTHROTTLE: u32 = kind::UNTHROTTLE;

    /// Notes samples (kind, time, thread) and changes (kind, time, thread, counter).
    fn noted(records: &[(u32, u64, i32, u64)]) -> Throttling {
        let layout = RecordLayout::new(SampleType::TID | SampleType::TIME);
        let mut throttling = Throttling::default();
        for (of, time, tid, stream) in records {
            let words = match *of {
                kind::SAMPLE => vec![
                    u64::from_ne_bytes(
                        [*tid, *tid]
                            .map(i32::to_ne_bytes)
                            .as_flattened()
                            .try_into()
                            .expect("8"),
                    ),
                    *time,
                ],
                _ => vec![*time, 1, *stream],
            };
            let mut bytes = of.to_ne_bytes().to_vec();
            bytes.extend(
                [0, 8 + 8 * words.len() as u16]
                    .iter()
                    .flat_map(|n| n.to_ne_bytes()),
            );
            bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            let record = RawRecord::at_start(&bytes).expect("whole");
            let thread = ThreadId {
                pid: *tid,
                tid: *tid,
            };
            let trailer = SampleId {
                thread: Some(thread),
                ..SampleId::default()
            };
            throttling.note(&record.decode(&layout).expect("well-formed"), &trailer);
        }
        throttling
    }

    #[test]
    fn a_thread_is_not_sampled_while_its_counters_are_stopped() {
        let sample = kind::SAMPLE;
        let throttling = noted(&[
            (sample, 100, 7, 0),
            (THROTTLE, 110, 7, 1),
            (UNTHROTTLE, 140, 7, 1),
            // On another CPU.
            (THROTTLE, 150, 7, 2),
            (UNTHROTTLE, 170, 7, 2),
            (sample, 200, 7, 0),
            // One that was never stopped.
            (sample, 0, 8, 0),
            (sample, 1000, 8, 0),
        ]);
        assert_eq!((throttling.times(), throttling.share()), (2, 0.5));
    }

    #[test]
    fn what_is_never_let_go_on_is_stopped_to_the_end() {
        let throttling = noted(&[
            (kind::SAMPLE, 100, 7, 0),
            (THROTTLE, 120, 7, 1),
            (kind::SAMPLE, 300, 8, 0),
            (THROTTLE, 180, 7, 1),
            (UNTHROTTLE, 190, 9, 3),
            (kind::SAMPLE, 200, 7, 0),
        ]);
        assert_eq!((throttling.times(), throttling.share()), (2, 0.8));
    }

    #[test]
    fn counters_of_cpus_are_stopped_for_everybody() {
        let throttling = noted(&[
            (kind::SAMPLE, 0, 7, 0),
            (THROTTLE, 100, 7, 1),
            (UNTHROTTLE, 300, 8, 1),
            (THROTTLE, 0, 9, 2),
            (UNTHROTTLE, 400, 10, 2),
            (kind::SAMPLE, 1000, 7, 0),
        ]);
        assert_eq!((throttling.times(), throttling.share()), (2, 0.3));
    }
}
