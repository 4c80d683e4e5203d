//! Samples that are looked at as they are taken, in place of being written to a file.

use std::time::Duration;

use quipu::Woken;
use quipu_perf_data::RecordedEvent;
use quipu_shell::Failure;

use super::super::options::Options;
use super::NO_ROOM;
use super::plan::Plan;
use super::samples::Samples;

/// A sampler that runs, and the records that it takes.
pub(crate) struct Live {
    pub(crate) events: Vec<RecordedEvent>,
    /// Notes for the user on what will be missing; what is other than it was asked for is refused here.
    pub(crate) notes: Vec<String>,
    samples: Samples,
    has_ended: bool,
}

impl Live {
    /// Opens and enables the sampler that the options of a recording name.
    pub(crate) fn open(options: &Options) -> Result<Self, Failure> {
        let plan = Plan::new(options)?;
        let mut samples = Samples::open(&plan, &quipu::hwpmc_backend()?, None)?;
        samples.sampler.enable()?;
        Ok(Self {
            events: samples.events.clone(),
            notes: samples.records.note_on_kernel().into_iter().collect(),
            samples,
            has_ended: false,
        })
    }

    /// Appends the records that have been taken since the last time.
    pub(crate) fn drain(&mut self, records: &mut Vec<u8>) -> Result<(), Failure> {
        // Before the samples are taken, so that those of what has ended are all there.
        self.wait(Duration::ZERO)?;
        records.append(self.samples.drain()?);
        Ok(())
    }

    /// Waits until there are samples that are worth it, but not longer than `timeout`.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Result<(), Failure> {
        self.has_ended |= self.samples.sampler.wait(Some(timeout))? == Woken::Ended;
        Ok(())
    }

    /// Returns true if nothing is left to sample.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the number of interrupts and records for which the driver had no room.
    pub(crate) fn lost(&self) -> u64 {
        self.samples.sampler.lost()
    }

    /// Returns what is to be said in the end of what was not sampled.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let lost = Some(self.lost()).filter(|lost| *lost > 0);
        let lost = lost.map(|lost| format!("{lost} samples were lost: {NO_ROOM}"));
        lost.into_iter().collect()
    }
}
