//! Raw events: the bits themselves.

/// The bits of an event for the CPU's own PMU.
///
/// On x86 `config` is the event select word (event, unit mask, edge, invert, counter mask), on ARM
/// the event number. The others are extra registers where a PMU has them (Linux's `config1` to
/// `config3`, perf_event_open(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct RawEvent {
    /// The main word.
    pub config: u64,
    /// First extra word.
    pub config1: u64,
    /// Second extra word.
    pub config2: u64,
    /// Third extra word.
    pub config3: u64,
}

impl RawEvent {
    /// A raw event with the main word only.
    pub const fn new(config: u64) -> Self {
        Self {
            config,
            config1: 0,
            config2: 0,
            config3: 0,
        }
    }

    /// Sets the extra words, `config1` to `config3`.
    #[must_use]
    pub const fn with_extra(mut self, [config1, config2, config3]: [u64; 3]) -> Self {
        self.config1 = config1;
        self.config2 = config2;
        self.config3 = config3;
        self
    }
}
