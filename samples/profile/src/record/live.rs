//! Samples that are looked at as they are taken, in place of being written to a file.

use std::time::Duration;

use quipu::Target;
use quipu_linux::sampling::record::kind;
use quipu_linux::sampling::{Sampler, Woken};
use quipu_perf_data::RecordedEvent;

use quipu_shell::Failure;
use quipu_shell::target::Scope;
use quipu_shell::tasks::{any_alive, raise_open_file_limit};

use super::ended::EndedCounters;
use super::existing;
use super::opening::OpenSamplers;
use super::options::Options;
use super::plan::RecordPlan;
use super::session::recorded_events;
use super::statistics;

/// Samplers that run, and the records that they take.
pub(crate) struct Live {
    pub(crate) events: Vec<RecordedEvent>,
    /// Notes for the user on what is other than it was asked for.
    pub(crate) notes: Vec<String>,
    targets: Vec<Target>,
    are_tasks: bool,
    samplers: Vec<Sampler>,
    /// Records of the state of before, until they are taken.
    existing: Vec<u8>,
    ended: EndedCounters,
}

impl Live {
    /// Opens and enables the samplers that the options of a recording name.
    pub(crate) fn open(options: &Options) -> Result<Self, Failure> {
        let plan = RecordPlan::new(options)?;
        raise_open_file_limit();
        let targets = plan.targets(None);
        let OpenSamplers {
            samplers,
            spec,
            notes,
            ..
        } = OpenSamplers::open(&plan, &targets)?;
        let events = recorded_events(&spec, &samplers, &plan.names)?;
        // First, so that later mappings are not missed.
        samplers.iter().try_for_each(Sampler::enable)?;
        let trailer = samplers[0].layout().trailer_len();
        Ok(Self {
            existing: existing::records(&targets, std::iter::empty(), false, trailer),
            are_tasks: matches!(plan.scope, Scope::Tasks(_)),
            events,
            notes,
            targets,
            samplers,
            ended: EndedCounters::default(),
        })
    }

    /// Appends the records that have been taken since the last time.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) -> Result<(), Failure> {
        records.append(&mut self.existing);
        for sampler in &mut self.samplers {
            let layout = *sampler.layout();
            for ring in sampler.rings_mut() {
                for record in &mut ring.records() {
                    let record = record?;
                    records.extend_from_slice(record.bytes());
                    if self.are_tasks && record.kind() != kind::SAMPLE {
                        let time = statistics::time_of(&record, &layout)?;
                        self.ended.note(&record.decode(&layout)?, time);
                    }
                }
            }
        }
        Ok(())
    }

    /// Stops sampling. What was taken can still be drained.
    pub(crate) fn disable(&self) -> Result<(), Failure> {
        self.samplers.iter().try_for_each(Sampler::disable)?;
        Ok(())
    }

    /// Waits until a ring is half full, but not longer than `timeout`.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<(), Failure> {
        if let [one] = self.samplers.as_mut_slice()
            && one.wait(Some(timeout))? != Woken::Ended
        {
            return Ok(());
        }
        if self.samplers.len() > 1 {
            std::thread::sleep(timeout);
        }
        Ok(())
    }

    /// Returns true if nothing is left to sample.
    pub(crate) fn has_ended(&self) -> bool {
        self.are_tasks && !any_alive(&self.targets)
    }

    /// Returns what is to be said in the end of what was not sampled.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let lost = Some(self.lost()).filter(|lost| *lost > 0);
        let lost = lost.map(|lost| {
            format!("{lost} records were lost because a ring buffer was full: use more pages (-m) or a lower rate (-F)")
        });
        self.ended.remark().into_iter().chain(lost).collect()
    }

    /// Returns the number of records that were lost because a ring was full.
    pub(crate) fn lost(&self) -> u64 {
        statistics::lost_records(&self.samplers)
    }
}
