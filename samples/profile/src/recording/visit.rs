//! Takers of the records of a recording.

use std::ops::ControlFlow;

use quipu_perf_data::{Error, Features, RawRecord, Record, RecordedEvent, Sample};
use quipu_shell::Failure;

use super::replay::Replay;

/// Taker of records.
pub(crate) trait Visit {
    /// Takes any record of the kernel's that can be decoded and is no sample, before it changes the state; does nothing unless it
    /// is written for the visitor. `_event` is the position of its event.
    ///
    /// # Errors
    /// The bytes make no sense: the record is left out.
    fn record(
        &mut self,
        _replay: &Replay,
        _event: usize,
        _raw: &RawRecord<'_>,
        _record: &Record<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Takes a sample. After `Break` no more records are read.
    fn sample(&mut self, replay: &mut Replay, event: usize, sample: &Sample<'_>)
    -> ControlFlow<()>;

    /// Returns false if the description of the recording is all that is asked for: no record is read then.
    fn needs_records(&self) -> bool {
        true
    }

    /// Returns true if what is read appears on the terminal as it comes, where a progress bar would stand in its way.
    fn is_shown_as_it_comes(&self) -> bool {
        false
    }
}

/// Makes the visitor of a recording from its events and its description.
pub(crate) trait Begin<V>:
    FnOnce(&[RecordedEvent], &Features, &[String]) -> Result<V, Failure>
{
}

impl<V, F: FnOnce(&[RecordedEvent], &Features, &[String]) -> Result<V, Failure>> Begin<V> for F {}
