//! Statistics of the samples recorded so far.

use std::collections::{BTreeSet, HashMap};

use quipu_linux::sampling::record::kind;
use quipu_linux::sampling::{RawRecord, Record, RecordLayout, Sampler};
use quipu_perf_data::{BuildId, EventAttr, Excess, Periods, Throttling};
use quipu_symbols::Copies;

use super::copies::FilesOfProcesses;
use super::ended::EndedCounters;
use super::mapped_files::MappedFiles;
use crate::report::jumped;

/// Counts, and what is to be told at the end.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    samples: Vec<u64>,
    throttling: Vec<Throttling>,
    /// Events by the ids of their counters.
    events: HashMap<u64, usize>,
    periods: Vec<Periods>,
    /// Periods that may be impossible, by event.
    excesses: Vec<(usize, Excess)>,
    /// The earliest time of any record.
    begun: Option<u64>,
    times: Option<(u64, u64)>,
    mapped: MappedFiles,
    /// Files that may be gone when names are looked up, where that is done.
    of_processes: Option<FilesOfProcesses>,
    /// The processes that were started and have not ended.
    processes: BTreeSet<i32>,
    ended: EndedCounters,
}

impl Statistics {
    pub(super) fn new<'a>(
        attrs: impl ExactSizeIterator<Item = &'a EventAttr>,
        samplers: &[Sampler],
    ) -> Self {
        let events = attrs.len();
        let counters = samplers.iter().flat_map(Sampler::counters);
        Self {
            samples: vec![0; events],
            throttling: vec![Throttling::default(); events],
            events: counters.map(|c| (c.id(), c.event())).collect(),
            periods: attrs.map(Periods::new).collect(),
            ..Self::default()
        }
    }

    /// Takes note of a record.
    ///
    /// # Errors
    /// When it is none that the kernel can have written.
    pub(super) fn note(
        &mut self,
        record: &RawRecord<'_>,
        layout: &RecordLayout,
    ) -> quipu::Result<()> {
        use kind::{COMM, EXIT, FORK, MMAP, MMAP2, SAMPLE, THROTTLE, UNTHROTTLE};
        if !matches!(
            record.kind(),
            SAMPLE | COMM | MMAP | MMAP2 | FORK | EXIT | THROTTLE | UNTHROTTLE
        ) {
            return Ok(());
        }
        let decoded = record.decode(layout)?;
        let trailer = record.sample_id(layout).unwrap_or_default();
        let time = match &decoded {
            Record::Sample(sample) => sample.time(),
            _ => trailer.time,
        };
        self.begun = match (self.begun, time) {
            (Some(begun), Some(time)) => Some(begun.min(time)),
            (begun, time) => begun.or(time),
        };
        if let Some(time) = time {
            self.ended.note(&decoded, time);
        }
        let event_of = |id: u64| self.events.get(&id).copied().unwrap_or(0);
        match decoded {
            Record::Sample(sample) => {
                let event = sample.id().map_or(0, event_of);
                if let Some(count) = self.samples.get_mut(event) {
                    *count += 1;
                }
                if let Some(throttling) = self.throttling.get_mut(event) {
                    throttling.note(&decoded, &trailer);
                }
                let periods = self.periods.get_mut(event);
                let excess = periods.and_then(|periods| periods.check_sample(&sample));
                self.excesses.extend(excess.map(|excess| (event, excess)));
                if let Some(time) = sample.time() {
                    let (first, last) = self.times.unwrap_or((time, time));
                    self.times = Some((first.min(time), last.max(time)));
                }
            }
            Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
                let event = event_of(throttle.id);
                if let Some(throttling) = self.throttling.get_mut(event) {
                    throttling.note(&decoded, &trailer);
                }
            }
            Record::Fork(task) => {
                self.processes.insert(task.thread.pid);
            }
            Record::Exit(task) => {
                if task.thread.pid == task.thread.tid {
                    self.processes.remove(&task.thread.pid);
                }
                let all = self.throttling.iter_mut();
                all.for_each(|event| event.note(&decoded, &trailer));
            }
            Record::Mapping(mapping) => self.mapped.note(&mapping),
            _ => {}
        }
        self.note_existing(&decoded);
        Ok(())
    }

    /// Keeps files that may be gone when names are looked up, from now on.
    pub(super) fn keep_copies(&mut self) {
        self.of_processes = Some(FilesOfProcesses::new());
    }

    /// Takes note of a record of what was there before.
    pub(super) fn note_existing(&mut self, record: &Record<'_>) {
        if let Some(of_processes) = &mut self.of_processes {
            of_processes.note(record);
        }
    }

    /// Returns the paths of the copies, which are theirs while this lives.
    pub(super) fn copies(&mut self) -> Copies {
        let of_processes = self.of_processes.as_mut();
        of_processes
            .map(FilesOfProcesses::paths)
            .unwrap_or_default()
    }

    /// Returns the number of samples.
    pub(super) fn samples(&self) -> u64 {
        self.samples.iter().sum()
    }

    /// Returns the number of samples of each event, and how it was throttled.
    pub(super) fn by_event(&self) -> impl Iterator<Item = (u64, &Throttling)> {
        self.samples.iter().copied().zip(&self.throttling)
    }

    /// Returns what is to be said of samples of an event whose period is impossible, if there are any.
    pub(super) fn jumped(&self, event: usize) -> Option<String> {
        let begun = self.begun.unwrap_or(0);
        let own = self.excesses.iter().filter(|(of, _)| *of == event);
        jumped(own.filter(|(_, excess)| excess.is_beyond(begun)).count() as u64)
    }

    /// Returns what is to be said of programs that were not sampled, if there are any.
    pub(super) fn not_sampled(&self) -> Option<String> {
        self.ended.remark()
    }

    /// Returns the times of the first and the last sample.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        self.times
    }

    /// Returns the times of the first and the last sample, and begins anew.
    pub(super) fn take_times(&mut self) -> Option<(u64, u64)> {
        self.times.take()
    }

    /// Returns the processes that were started and have not ended.
    pub(super) fn processes(&self) -> impl Iterator<Item = i32> {
        self.processes.iter().copied()
    }

    /// Returns the build IDs of the files that were mapped.
    pub(super) fn build_ids(&self) -> impl Iterator<Item = BuildId> {
        self.mapped.build_ids()
    }
}

/// Returns the time of a record, 0 if it has none.
pub(super) fn time_of(record: &RawRecord<'_>, layout: &RecordLayout) -> quipu::Result<u64> {
    let time = match record.kind() {
        kind::SAMPLE => match record.decode(layout)? {
            Record::Sample(sample) => sample.time(),
            _ => None,
        },
        _ => record.sample_id(layout).and_then(|trailer| trailer.time),
    };
    Ok(time.unwrap_or(0))
}

/// Samples that were lost.
#[derive(Debug, Default)]
pub(super) struct LostSamples {
    /// Those of each counter that lost any, by its id, where the kernel counts them (Linux 6.0).
    pub(super) counted: Vec<(u64, u64)>,
    pub(super) by_event: Vec<u64>,
    /// All, of any event.
    pub(super) all: u64,
}

/// Returns the losses that the counters tell where the kernel counts them, else what the records say.
pub(super) fn losses(samplers: &[Sampler], events: usize) -> LostSamples {
    let mut losses = LostSamples {
        by_event: vec![0; events],
        ..LostSamples::default()
    };
    let mut is_counted = true;
    for counter in samplers.iter().flat_map(Sampler::counters) {
        match counter.read().ok().and_then(|read| read.1) {
            Some(0) => {}
            Some(lost) => {
                losses.counted.push((counter.id(), lost));
                losses.by_event[counter.event()] += lost;
                losses.all += lost;
            }
            None => is_counted = false,
        }
    }
    let rings = samplers.iter().flat_map(Sampler::rings);
    losses.all += rings.map(|ring| ring.losses().samples).sum::<u64>();
    if !is_counted {
        losses.all = losses.all.max(lost_records(samplers));
    }
    losses
}

/// Returns the number of lost records according to the records themselves.
pub(super) fn lost_records(samplers: &[Sampler]) -> u64 {
    let rings = samplers.iter().flat_map(Sampler::rings);
    rings
        .map(|ring| ring.losses().records + ring.losses().samples)
        .sum()
}

#[cfg(test)]
mod tests {
    use quipu_linux::sampling::SampleType;

    use super::*;

    /// The attributes of cycles, which are sampled by period and started by exec(2).
    fn attr() -> EventAttr {
        let sample_type = SampleType::TIME | SampleType::PERIOD | SampleType::IDENTIFIER;
        let mut bytes = [0; 128];
        bytes[4..8].copy_from_slice(&128u32.to_ne_bytes());
        bytes[24..32].copy_from_slice(&sample_type.bits().to_ne_bytes());
        let enable_on_exec: u64 = if cfg!(target_endian = "big") {
            1 << 51
        } else {
            1 << 12
        };
        bytes[40..48].copy_from_slice(&enable_on_exec.to_ne_bytes());
        EventAttr::from_bytes(&bytes).expect("good")
    }

    #[test]
    fn a_period_that_cannot_be_is_told_of_its_event() {
        let attr = attr();
        let mut statistics = Statistics::new([&attr, &attr].into_iter(), &[]);
        statistics.events = HashMap::from([(7, 0), (8, 1)]);
        let mut sample = |id: u64, time: u64, period: u64| {
            let mut bytes = Vec::from(kind::SAMPLE.to_ne_bytes());
            bytes.extend_from_slice(&[0; 2]);
            bytes.extend_from_slice(&32u16.to_ne_bytes());
            for word in [id, time, period] {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
            let record = RawRecord::at_start(&bytes).expect("whole");
            statistics.note(&record, &attr.layout()).expect("good");
            [0, 1].map(|event| statistics.jumped(event))
        };
        // Cycles are at most 10 in a nanosecond, of the time since the sample before, or the recording's
        // beginning, and 20 ms.
        let most = 10 * 20_000_000;
        assert_eq!(sample(7, 1_000_000_000, most), [None, None]);
        assert_eq!(sample(8, 1_000_000_000, most), [None, None]);
        assert_eq!(sample(8, 1_000_000_100, most + 1_000), [None, None]);
        let sentence = "beyond what the counter can have counted: it jumped";
        let one = Some(format!("the period of 1 sample is {sentence}"));
        assert_eq!(sample(8, 1_000_000_200, most + 1_001), [None, one.clone()]);
        assert_eq!(
            sample(7, 1_000_000_200, 1 << 47),
            [one.clone(), one.clone()]
        );
        let two = Some(format!("the periods of 2 samples are {sentence}"));
        assert_eq!(sample(8, 1_000_000_300, 1 << 47), [one, two]);
    }
}
