//! Statistics of the samples recorded so far.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use quipu_linux::sampling::record::kind;
use quipu_linux::sampling::{RawRecord, Record, RecordLayout, Sampler};
use quipu_perf_data::{BuildId, BuildIdOwner};
use quipu_symbols::build_id_of;

/// Counts, and what is to be told at the end.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    samples: Vec<u64>,
    /// Events by the ids of their counters.
    events: HashMap<u64, usize>,
    times: Option<(u64, u64)>,
    mapped: BTreeSet<Vec<u8>>,
}

impl Statistics {
    pub(super) fn new(events: usize, samplers: &[Sampler]) -> Self {
        let counters = samplers.iter().flat_map(Sampler::counters);
        Self {
            samples: vec![0; events],
            events: counters.map(|c| (c.id(), c.event())).collect(),
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
        if !matches!(record.kind(), kind::SAMPLE | kind::MMAP | kind::MMAP2) {
            return Ok(());
        }
        match record.decode(layout)? {
            Record::Sample(sample) => {
                let event = sample.id().and_then(|id| self.events.get(&id).copied());
                if let Some(count) = self.samples.get_mut(event.unwrap_or(0)) {
                    *count += 1;
                }
                if let Some(time) = sample.time() {
                    let (first, last) = self.times.unwrap_or((time, time));
                    self.times = Some((first.min(time), last.max(time)));
                }
            }
            Record::Mapping(mapping) if !self.mapped.contains(mapping.path) => {
                self.mapped.insert(mapping.path.to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the number of samples.
    pub(super) fn samples(&self) -> u64 {
        self.samples.iter().sum()
    }

    /// Returns the number of samples of each event.
    pub(super) fn by_event(&self) -> &[u64] {
        &self.samples
    }

    /// Returns the times of the first and the last sample.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        self.times
    }

    /// Returns the build ids of the files that were mapped.
    pub(super) fn build_ids(&self) -> Vec<BuildId> {
        let files = self.mapped.iter().filter(|path| path.starts_with(b"/"));
        files
            .filter_map(|path| {
                Some(BuildId {
                    owner: BuildIdOwner::User,
                    id: build_id_of(Path::new(OsStr::from_bytes(path)))?,
                    path: path.clone(),
                })
            })
            .collect()
    }
}

/// Returns the number of lost samples: that of the counters where the kernel counts it (Linux 6.0),
/// else what the records say.
pub(super) fn lost(samplers: &[Sampler]) -> u64 {
    let counted = samplers.iter().flat_map(Sampler::counters);
    let counted: Option<u64> = counted.map(|c| c.read().ok()?.1).sum();
    counted.unwrap_or(0).max(lost_records(samplers))
}

/// Returns the number of lost records according to the records themselves.
pub(super) fn lost_records(samplers: &[Sampler]) -> u64 {
    let rings = samplers.iter().flat_map(Sampler::rings);
    rings
        .map(|ring| ring.losses().records + ring.losses().samples)
        .sum()
}
