//! The event of a `perf_event_attr`: its type and config words (perf_event_open(2)).

/// A perf_event type with its config words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PerfConfig {
    /// `PERF_TYPE_*`, or the number in a PMU's `type` file.
    pub type_: u32,
    /// The main word.
    pub config: u64,
    /// First extra word.
    pub config1: u64,
    /// Second extra word.
    pub config2: u64,
    /// Third extra word.
    pub config3: u64,
}
