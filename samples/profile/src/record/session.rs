//! A recording in progress: its samplers, and the output that their records are written to.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use quipu::Target;
use quipu_linux::sampling::{RawRecord, RecordLayout, Sampler, SamplerSpec, WhenFull};
use quipu_perf_data::{
    BuildId, BuildIdOwner, Compressor, EventAttr, EventGroup, Features, RecordedEvent, synthesized,
};
use quipu_symbols::build_id_of_this_kernel;

use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::existing;
use super::machine;
use super::off_cpu::OffCpu;
use super::opening::OpenSamplers;
use super::options::NamesIn;
use super::output::{Destination, Output, StandardOutput};
use super::plan::RecordPlan;
use super::statistics::{self, Statistics};
use super::tracepoints;

/// The most bytes that are taken out of rings before they are written.
const MOST_TAKEN: usize = 4 << 20;

/// A recording in progress.
pub(super) struct Recording {
    pub(super) spec: SamplerSpec,
    pub(super) samplers: Vec<Sampler>,
    /// Samplers of records beside samples, where those are recorded apart.
    tracking: Vec<Sampler>,
    /// The events as the file has them.
    events: Vec<RecordedEvent>,
    targets: Vec<Target>,
    /// True if rings hold the newest samples, of which those are written that are asked for.
    overwrites: bool,
    /// The time of the newest record that was written of each ring that is written over.
    written: HashMap<(usize, usize), u64>,
    /// The times off the CPU, if they are sampled.
    off_cpu: Option<OffCpu>,
    /// Room for the records of rings.
    room: Vec<u8>,
    pub(super) output: Output,
    pub(super) statistics: Statistics,
    /// The time of the last progress message.
    pub(super) last_progress: Instant,
    /// True once it was ended by other means than a signal.
    pub(super) is_over: bool,
}

/// Records that were taken out of rings, and what becomes of them.
struct Taken<'a> {
    records: Vec<u8>,
    off_cpu: &'a mut Option<OffCpu>,
    output: &'a mut Output,
    statistics: &'a mut Statistics,
}

impl Taken<'_> {
    /// Writes the records, but those that are for the times off the CPU alone, and takes note of them.
    fn keep(&mut self, layout: &RecordLayout) -> Result<(), Failure> {
        if self.records.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::new();
        if self.off_cpu.is_none() {
            self.output.write_records(&[&self.records]);
        }
        let mut rest = self.records.as_slice();
        while let Some(record) = RawRecord::at_start(rest) {
            rest = &rest[record.bytes().len()..];
            if let Some(off_cpu) = self.off_cpu {
                if !off_cpu.take(&record, layout)? {
                    continue;
                }
                kept.extend_from_slice(record.bytes());
            }
            if !self.output.is_broken() {
                self.statistics.note(&record, layout)?;
            }
        }
        if !kept.is_empty() {
            self.output.write_records(&[&kept]);
        }
        self.records.clear();
        Ok(())
    }
}

impl Recording {
    /// Begins the output with the state of before; from here on everything is recorded.
    pub(super) fn begin(
        plan: &RecordPlan,
        opened: OpenSamplers,
        targets: Vec<Target>,
        stdout: Option<StandardOutput>,
    ) -> Result<Self, Failure> {
        let OpenSamplers {
            samplers,
            tracking,
            spec,
            ..
        } = opened;
        let mut events = recorded_events(&spec, &samplers, &plan.names)?;
        events.extend(tracking_event(&tracking)?);
        let attrs = events.iter().map(RecordedEvent::attr);
        let mut statistics = Statistics::new(attrs, &samplers);
        if plan.names_in != NamesIn::None && matches!(plan.output, Destination::File(_)) {
            statistics.keep_copies();
        }
        let output = begin_output(plan, &spec, &events, stdout)?;
        if plan.scope != Scope::Command {
            // First, so that later mappings are not missed.
            tracking.iter().try_for_each(Sampler::enable)?;
            if plan.delay.is_none() {
                samplers.iter().try_for_each(Sampler::enable)?;
            }
        }
        let last = spec.events.len() - 1;
        let off_cpu = plan.off_cpu.then(|| {
            OffCpu::new(
                &samplers,
                (last, spec.events[last].rate),
                plan.switch_events,
            )
        });
        let mut recording = Self {
            off_cpu,
            overwrites: spec.when_full == WhenFull::Overwrite,
            spec,
            statistics,
            samplers,
            tracking,
            events,
            targets,
            written: HashMap::new(),
            room: Vec::new(),
            output,
            last_progress: Instant::now(),
            is_over: false,
        };
        // A command maps everything anew when it is executed; perf would take what it had before for what it has.
        recording.write_state(plan.scope != Scope::Command);
        recording.output.finish_round();
        Ok(recording)
    }

    /// Stops sampling.
    pub(super) fn stop(&self) {
        for sampler in self.samplers.iter().chain(&self.tracking) {
            // Threads that have ended have nothing to stop.
            let _ = sampler.disable();
        }
    }

    /// Writes the records in the rings as they are; returns true if there were some. Those of rings that are written over
    /// stay there.
    pub(super) fn drain(&mut self) -> Result<bool, Failure> {
        let mut is_found = false;
        let samplers = match self.overwrites {
            true => &mut [],
            false => self.samplers.as_mut_slice(),
        };
        let mut taken = Taken {
            records: std::mem::take(&mut self.room),
            off_cpu: &mut self.off_cpu,
            output: &mut self.output,
            statistics: &mut self.statistics,
        };
        for sampler in samplers.iter_mut().chain(&mut self.tracking) {
            let layout = *sampler.layout();
            for ring in sampler.rings_mut() {
                let mut batch = ring.records();
                if batch.remaining() == 0 {
                    continue;
                }
                is_found = true;
                // A ring has room again before anything is done with what was in it.
                for piece in batch.bytes() {
                    taken.records.extend_from_slice(piece);
                }
                let read = batch.iter().try_for_each(|record| record.map(drop));
                drop(batch);
                if read.is_err() || taken.records.len() > MOST_TAKEN {
                    taken.keep(&layout)?;
                }
                read?;
            }
            taken.keep(&layout)?;
        }
        self.room = taken.records;
        self.write_times_off_cpu()?;
        if is_found && !self.overwrites {
            self.output.finish_round();
        }
        Ok(is_found)
    }

    /// Writes the samples of threads that are on a CPU again.
    fn write_times_off_cpu(&mut self) -> Result<(), Failure> {
        let Some(off_cpu) = &mut self.off_cpu else {
            return Ok(());
        };
        let layout = *self.samplers[0].layout();
        for sample in off_cpu.finish_round(layout.sample_type()) {
            self.output.write_records(&[&sample]);
            if let Some(record) = RawRecord::at_start(&sample)
                && !self.output.is_broken()
            {
                self.statistics.note(&record, &layout)?;
            }
        }
        Ok(())
    }

    /// Writes all records there are: of rings that are written over, those since the last time.
    pub(super) fn drain_all(&mut self) -> Result<(), Failure> {
        self.drain()?;
        if !self.overwrites {
            return Ok(());
        }
        for (i, sampler) in self.samplers.iter_mut().enumerate() {
            let layout = *sampler.layout();
            for (j, ring) in sampler.rings_mut().iter_mut().enumerate() {
                let last = self.written.entry((i, j)).or_default();
                let (mut newest, mut records) = (*last, Vec::new());
                // A counter that is gone writes nothing.
                let is_paused = ring.pause(true).is_ok();
                for record in &mut ring.records() {
                    let record = record?;
                    let time = statistics::time_of(&record, &layout)?;
                    if time <= *last {
                        break;
                    }
                    newest = newest.max(time);
                    records.extend_from_slice(record.bytes());
                    self.statistics.note(&record, &layout)?;
                }
                *last = newest;
                if is_paused {
                    ring.pause(false)?;
                }
                self.output.write_records(&[&records]);
            }
        }
        self.output.finish_round();
        Ok(())
    }

    /// Ends the output and goes on in a new one, which begins with the state of now; the first is kept under the name
    /// `kept`. Returns its length.
    pub(super) fn switch(&mut self, plan: &RecordPlan, kept: &Path) -> Result<u64, Failure> {
        self.drain_all()?;
        self.output.rename(kept)?;
        let new = begin_output(plan, &self.spec, &self.events, None)?;
        let old = std::mem::replace(&mut self.output, new);
        let mut features = features(&self.spec);
        features.build_ids.extend(self.statistics.build_ids());
        features.sample_time = self.statistics.take_times();
        let len = old.finish(features)?;
        self.write_state(true);
        Ok(len)
    }

    /// Writes the kernel's mapping, and the processes that there are, with their threads and mappings.
    fn write_state(&mut self, with_targets: bool) {
        let targets = match with_targets {
            true => self.targets.as_slice(),
            false => &[],
        };
        // As it was asked of the kernel with copies of stacks.
        let with_data = self.spec.user_stack > 0;
        let trailer = self.samplers[0].layout().trailer_len();
        let records = existing::records(targets, self.statistics.processes(), with_data, trailer);
        self.output.write(&[&records]);
        let (layout, mut rest) = (self.samplers[0].layout(), &records[..]);
        while let Some(record) = RawRecord::at_start(rest) {
            if let Ok(record) = record.decode(layout) {
                self.statistics.note_existing(&record);
            }
            rest = &rest[record.bytes().len()..];
        }
    }
}

/// Begins a file with the names of its events, or the stream.
fn begin_output(
    plan: &RecordPlan,
    spec: &SamplerSpec,
    events: &[RecordedEvent],
    stdout: Option<StandardOutput>,
) -> Result<Output, Failure> {
    let compressor = plan.compression.map(Compressor::new).transpose();
    let compressor =
        compressor.map_err(|_| Failure::usage("-z: this quipu was built without zstd"))?;
    let mut output = match (&plan.output, stdout) {
        (Destination::File(path), _) => {
            let mut output = Output::create(path, events.to_vec())?;
            let ids = events
                .iter()
                .map(|event| (event.name(), event.ids().first()));
            let names: Vec<_> = ids
                .filter_map(|(name, id)| Some(synthesized::event_name(*id?, name?)))
                .collect();
            // Before anything else, so that a file that is not finished has them.
            output.write(&names.iter().map(Vec::as_slice).collect::<Vec<_>>());
            output
        }
        (Destination::Stream, None) => return Err(Failure::new("standard output is closed")),
        (Destination::Stream, Some(stdout)) => {
            let mut features = features(spec);
            features.compression = compressor.as_ref().map(Compressor::description);
            Output::stream(stdout, events, &features)?
        }
    };
    output.compress(compressor);
    Ok(output)
}

/// Returns the events with the ids of all their counters.
pub(super) fn recorded_events(
    spec: &SamplerSpec,
    samplers: &[Sampler],
    names: &[Option<String>],
) -> Result<Vec<RecordedEvent>, Failure> {
    let events = spec.events.iter().zip(names).enumerate();
    events
        .map(|(index, (sampled, name))| {
            let name = name.clone().unwrap_or_else(|| sampled.event.to_string());
            recorded_event(samplers, index, name)
        })
        .collect()
}

/// Returns the event of the records beside samples, where those are recorded apart.
fn tracking_event(tracking: &[Sampler]) -> Result<Option<RecordedEvent>, Failure> {
    let event = (!tracking.is_empty()).then(|| recorded_event(tracking, 0, "dummy:u".to_owned()));
    event.transpose()
}

/// Returns an event of samplers with the ids of all its counters.
fn recorded_event(
    samplers: &[Sampler],
    index: usize,
    name: String,
) -> Result<RecordedEvent, Failure> {
    let counters = samplers.iter().flat_map(Sampler::counters);
    let own: Vec<_> = counters.filter(|c| c.event() == index).collect();
    let attr = own.first().map(|c| c.attr_bytes()).unwrap_or_default();
    let attr = EventAttr::from_bytes(&attr)
        .map_err(|e| Failure::new(format_args!("cannot describe {name} in a file: {e}")))?;
    let ids = own.iter().map(|c| c.id()).collect();
    Ok(RecordedEvent::new(attr, ids, name))
}

/// Returns the description of a recording, as far as it is known at its start.
pub(super) fn features(spec: &SamplerSpec) -> Features {
    let mut features = machine::features();
    let events = spec.events.iter().map(|s| &s.event.event);
    features.tracing_data = tracepoints::formats(events).map(|data| data.to_bytes());
    features.groups = groups(spec);
    let kernel = build_id_of_this_kernel();
    let kernel = kernel.map(|id| BuildId::new(BuildIdOwner::Kernel, id, "[kernel.kallsyms]"));
    features.build_ids.extend(kernel);
    features
}

/// Returns the groups of several events.
fn groups(spec: &SamplerSpec) -> Vec<EventGroup> {
    let mut leader = 0;
    let groups = spec
        .events
        .chunk_by(|_, next| next.is_member)
        .map(|events| {
            let len = events.len() as u32;
            leader += len;
            EventGroup::new(leader - len, len)
        });
    groups.filter(|group| group.len > 1).collect()
}
