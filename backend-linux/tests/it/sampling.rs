//! Sampling: what is in the records is known exactly.

mod attach;
mod breakpoints;
mod calls;
mod control;
mod cycles;
mod forks;
mod memory;
mod open;
mod rings;
mod shell;
mod side_band;
mod signals;
mod targets;

use quipu_hal::Target;
use quipu_linux::sampling::{Record, RecordLayout, Sample, Sampler, SamplerSpec};

/// Opens a sampler, or says why this machine or user cannot.
///
/// # Panics
/// When it fails for another reason than that the machine lacks something.
fn open(test: &str, spec: &SamplerSpec, target: &Target) -> Option<Sampler> {
    crate::machine::unless_lacking(
        test,
        crate::machine::backend(test)?.open_sampler(spec, target),
    )
}

/// Shows `look` every record in every ring.
fn each_record(sampler: &mut Sampler, mut look: impl FnMut(Record<'_>, &RecordLayout)) {
    let layout = *sampler.layout();
    for ring in sampler.rings_mut() {
        for record in &mut ring.records() {
            let record = record.expect("a record");
            look(record.decode(&layout).expect("of the layout"), &layout);
        }
    }
}

/// Returns the results of `look` for every sample.
fn samples<T>(sampler: &mut Sampler, mut look: impl FnMut(Sample<'_>) -> T) -> Vec<T> {
    let mut seen = Vec::new();
    each_record(sampler, |record, _| {
        if let Record::Sample(sample) = record {
            seen.push(look(sample));
        }
    });
    seen
}
