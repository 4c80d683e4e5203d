//! The words of Linux's `perf_event_attr`, and the kernel's own numbers of events.

use crate::{
    Breakpoint, BreakpointAccess, Cache, CacheEvent, CacheOp, CacheResult, Event, Hardware,
    RawEvent, Software,
};

/// A perf_event type with its config words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
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
    /// `HW_BREAKPOINT_*`, the accesses that a breakpoint counts; 0 for other events.
    pub bp_type: u32,
}

impl PerfConfig {
    /// `PERF_TYPE_HARDWARE`.
    pub const HARDWARE: u32 = 0;
    /// `PERF_TYPE_SOFTWARE`.
    pub const SOFTWARE: u32 = 1;
    /// `PERF_TYPE_TRACEPOINT`.
    pub const TRACEPOINT: u32 = 2;
    /// `PERF_TYPE_HW_CACHE`.
    pub const HW_CACHE: u32 = 3;
    /// `PERF_TYPE_RAW`.
    pub const RAW: u32 = 4;
    /// `PERF_TYPE_BREAKPOINT`.
    pub const BREAKPOINT: u32 = 5;

    /// Returns the words of an event whose numbers the kernel itself defines: hardware, software and cache events, raw
    /// bits and breakpoints. Those of other events are the machine's.
    ///
    /// ```
    /// use quipu_hal::{Event, PerfConfig, Software};
    ///
    /// let faults = PerfConfig::of(&Software::PageFaults.into());
    /// assert_eq!(faults.map(|words| (words.type_, words.config)), Some((1, 2)));
    /// assert_eq!(PerfConfig::of(&Event::Named("INST_RETIRED".into())), None);
    /// ```
    pub fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::Hardware(event) => Self::hardware(*event),
            Event::Software(event) => Self::software(*event),
            Event::Cache(event) => Self::cache(*event),
            Event::Raw(event) => Self::raw(*event),
            Event::Breakpoint(event) => Self::breakpoint(*event),
            _ => return None,
        })
    }

    /// Returns the words of a hardware event (`enum perf_hw_id`).
    pub fn hardware(event: Hardware) -> Self {
        Self::new(Self::HARDWARE, position(Hardware::ALL, &event))
    }

    /// Returns the words of a software event (`enum perf_sw_ids`).
    pub fn software(event: Software) -> Self {
        Self::new(Self::SOFTWARE, position(Software::ALL, &event))
    }

    /// Returns the words of a cache event (`enum perf_hw_cache_id`, `perf_hw_cache_op_id` and
    /// `perf_hw_cache_op_result_id`).
    pub fn cache(event: CacheEvent) -> Self {
        Self::new(
            Self::HW_CACHE,
            position(Cache::ALL, &event.cache)
                | position(CacheOp::ALL, &event.op) << 8
                | position(CacheResult::ALL, &event.result) << 16,
        )
    }

    /// Returns the words of raw bits.
    pub fn raw(event: RawEvent) -> Self {
        Self::new(Self::RAW, event.config)
            .with_config1(event.config1)
            .with_config2(event.config2)
            .with_config3(event.config3)
    }

    /// Returns the words of a breakpoint: its address and length are in the words that `config1` and `config2` share
    /// (`include/uapi/linux/hw_breakpoint.h`).
    pub fn breakpoint(event: Breakpoint) -> Self {
        let accesses = match event.access {
            BreakpointAccess::Read => 1,
            BreakpointAccess::Write => 2,
            BreakpointAccess::ReadWrite => 3,
            BreakpointAccess::Execute => 4,
        };
        Self::new(Self::BREAKPOINT, 0)
            .with_config1(event.address)
            .with_config2(event.len.into())
            .with_bp_type(accesses)
    }

    /// Returns the generalized event that has these words, if one does. On a hybrid CPU the upper half of `config` is the
    /// core PMU's (`PERF_PMU_TYPE_SHIFT`).
    pub fn generalized(&self) -> Option<Event> {
        let config = self.config & 0xffff_ffff;
        let at = |shift: u32| usize::try_from(config >> shift & 0xff).ok();
        let number = usize::try_from(config).ok()?;
        match self.type_ {
            Self::HARDWARE => Hardware::ALL.get(number).copied().map(Event::from),
            Self::SOFTWARE => Software::ALL.get(number).copied().map(Event::from),
            Self::HW_CACHE if config >> 24 == 0 => {
                let cache = *Cache::ALL.get(at(0)?)?;
                let op = *CacheOp::ALL.get(at(8)?)?;
                let result = *CacheResult::ALL.get(at(16)?)?;
                Some(CacheEvent::new(cache, op, result).into())
            }
            _ => None,
        }
    }

    /// Returns a type with its main word; the extra words are 0.
    pub const fn new(type_: u32, config: u64) -> Self {
        Self {
            type_,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
            bp_type: 0,
        }
    }

    /// Sets the first extra word.
    #[must_use]
    pub const fn with_config1(mut self, config1: u64) -> Self {
        self.config1 = config1;
        self
    }

    /// Sets the second extra word.
    #[must_use]
    pub const fn with_config2(mut self, config2: u64) -> Self {
        self.config2 = config2;
        self
    }

    /// Sets the third extra word.
    #[must_use]
    pub const fn with_config3(mut self, config3: u64) -> Self {
        self.config3 = config3;
        self
    }

    /// Sets the accesses that a breakpoint counts.
    #[must_use]
    pub const fn with_bp_type(mut self, bp_type: u32) -> Self {
        self.bp_type = bp_type;
        self
    }
}

/// Returns the kernel's number of a value: its place in a list that is in the kernel's order.
fn position<T: PartialEq>(all: &[T], value: &T) -> u64 {
    // A value that the list lacks gets a number the kernel refuses.
    all.iter().position(|v| v == value).unwrap_or(all.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_to_generalized_events() {
        let hardware = Hardware::ALL.iter().copied().map(Event::from);
        let software = Software::ALL.iter().copied().map(Event::from);
        let cache = CacheEvent::all().map(Event::from);
        for event in hardware.chain(software).chain(cache) {
            let words = PerfConfig::of(&event).unwrap();
            assert_eq!(words.generalized(), Some(event));
        }
        let on_core = PerfConfig::new(PerfConfig::HARDWARE, 10 << 32 | 1);
        assert_eq!(on_core.generalized(), Some(Hardware::Instructions.into()));
        for (type_, config) in [
            (0, 10),
            (1, 12),
            (3, 7),
            (3, 0x300),
            (3, 0x20000),
            (3, 1 << 24),
            (4, 0),
        ] {
            assert_eq!(PerfConfig::new(type_, config).generalized(), None);
        }
    }
}
