//! The end of a wait for samples.

/// The end of a wait for samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Woken {
    /// As many samples as were to be waited for are there.
    Data,
    /// Every thread that was sampled has ended. The samples that are there are the last.
    Ended,
    /// The time is over.
    TimedOut,
    /// A signal was caught.
    Interrupted,
}
