//! Samples: counters that interrupt every so many events, and the driver's log that says where.

mod log;
mod open_sampler;
mod record;
mod sampler;

use quipu_hal::{Attributes, EventSpec};

pub use record::Program;
pub use sampler::{HwpmcSampler, LogRecord, Sample};

/// The description of a [`HwpmcSampler`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplerSpec {
    /// The events, and after how many of each a sample is taken: 1000 to 2^31 - 1.
    pub events: Vec<(EventSpec, u64)>,
    /// Attributes; with [`inherit`](Attributes::inherit) children of a process are sampled too.
    pub attributes: Attributes,
    /// True if samples have call chains, by following frame pointers in the mode that was interrupted.
    pub call_chains: bool,
    /// The number of samples after which a wait ends.
    pub wake_after: usize,
}

impl SamplerSpec {
    /// Returns a description of samples of events, each with its period.
    pub fn new(events: impl IntoIterator<Item = (EventSpec, u64)>) -> Self {
        Self {
            events: events.into_iter().collect(),
            attributes: Attributes::default().with_disabled(true),
            call_chains: false,
            wake_after: 1,
        }
    }
}
