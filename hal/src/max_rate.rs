//! The bound on what a counter can have counted in a time, by which a counter that jumped is found out.

use crate::{Encoding, P5Function, PerfConfig, X86Select};

/// The most that an event can occur in a time, in increments of its counter.
///
/// A counter that moved further than that has jumped: on virtual machines values were seen to change by
/// multiples of 2^47 while counters were multiplexed. A [`Reading`](crate::Reading) with such a bound is then
/// not a count ([`Count::Jumped`](crate::Count)).
///
/// The bounds are above what CPUs can do, and [`LAG`](Self::LAG) is added to each time, so that no true count is
/// refused. A jump is found out as long as it is more than the bound: one of 2^47 in the first 36 minutes of an
/// event with the bound [`EVENTS`](Self::EVENTS), and in the first 55 seconds of one with
/// [`OTHER`](Self::OTHER). Intervals are bounded each by itself.
///
/// ```
/// use quipu_hal::{Count, MaxRate, Reading};
///
/// let second = 1_000_000_000;
/// let reading = |value| Reading::new(value, second, second).with_max_rate(MaxRate::EVENTS);
/// assert_eq!(reading(5 * second).count(), Count::Exact(5_000_000_000));
/// assert_eq!(reading(10 << 47).count(), Count::Jumped);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct MaxRate(
    /// Increments a second, 0 for no bound.
    u64,
);

impl MaxRate {
    /// No bound: of what is not counted in the CPU's clock, or over an unknown time.
    pub const NONE: Self = Self(0);

    /// Of clock cycles, and of what is counted once in a cycle: 10 in a nanosecond. No CPU has a clock of 10 GHz.
    pub const CYCLES: Self = Self::per_cycle(1);

    /// Of events that occur to instructions, operations and requests: 64 in a nanosecond. CPUs start and retire
    /// at most 10 in a cycle over any time (Arm's widest cores; x86 has 8), and have less than 6.4 GHz.
    pub const EVENTS: Self = Self::per_second(64_000_000_000);

    /// Of events of which nothing is known but their number: 255 in a cycle. An event may add the entries of a
    /// queue in each cycle, or the elements of vectors; 255 is as much as the counter mask of x86 can be compared
    /// with (8 bits; Intel SDM, volume 3, `IA32_PERFEVTSELx`).
    pub const OTHER: Self = Self::per_cycle(255);

    /// Nanoseconds by which the value may be ahead of the time running: two ticks of a kernel at 100 Hz, by which
    /// its clock may be corrected, or an interrupt come between time and value.
    pub const LAG: u64 = 20_000_000;

    const SECOND: u128 = 1_000_000_000;

    /// Returns the bound of an event that occurs at most so many times a second; [`NONE`](Self::NONE) for 0, and for 2^63
    /// and more, which nothing comes near.
    pub const fn per_second(increments: u64) -> Self {
        match increments > i64::MAX as u64 {
            true => Self::NONE,
            false => Self(increments),
        }
    }

    /// Returns the bound of an event that adds at most so many in a cycle, of clocks up to 10 GHz.
    pub const fn per_cycle(increments: u8) -> Self {
        Self::per_second(increments as u64 * 10_000_000_000)
    }

    /// Returns the increments a second, or `None` for no bound.
    pub const fn increments_per_second(self) -> Option<u64> {
        match self.0 {
            0 => None,
            rate => Some(rate),
        }
    }

    /// Returns true if a counter can count `value` while it runs for `time_running` nanoseconds.
    #[must_use]
    pub const fn allows(self, value: u64, time_running: u64) -> bool {
        let time = time_running as u128 + Self::LAG as u128;
        self.0 == 0 || value as u128 * Self::SECOND <= time * self.0 as u128
    }

    /// Returns the bound of what these bits select, without knowledge of the CPU's events: that of a generalized
    /// event of `perf_event_open`, of the fixed counters and the time stamp counter, of a word with a counter
    /// mask or edge detection ([`CYCLES`](Self::CYCLES)), and else [`OTHER`](Self::OTHER);
    /// [`NONE`](Self::NONE) for types of `perf_event_open` that are no core PMU's.
    ///
    /// [`EventMap::max_rate`](crate::EventMap::max_rate) knows the events, too.
    pub const fn of(encoding: &Encoding) -> Self {
        match encoding {
            Encoding::Perf(config) => Self::of_perf(config),
            Encoding::TimeStamp => Self::CYCLES,
            Encoding::X86(word)
                if word.counter_mask() != 0 || word.select & X86Select::EDGE != 0 =>
            {
                Self::CYCLES
            }
            // Core cycles and reference cycles (SDM, volume 3, "Fixed-Function Performance Counters").
            Encoding::Fixed(counter) if matches!(counter.index, 1 | 2) => Self::CYCLES,
            Encoding::P5(word) if word.0 & P5Function::CLOCKS != 0 => Self::CYCLES,
            Encoding::Fixed(_) | Encoding::P5(_) => Self::EVENTS,
            Encoding::X86(_)
            | Encoding::Armv8(_)
            | Encoding::Simulated(_)
            | Encoding::Other { .. } => Self::OTHER,
        }
    }

    /// The numbers are those of `enum perf_type_id` and `enum perf_hw_id`. The high half of a generalized
    /// event's `config` may name a PMU.
    const fn of_perf(config: &PerfConfig) -> Self {
        const HARDWARE: u32 = 0;
        const CACHE: u32 = 3;
        const RAW: u32 = 4;
        const CYCLES: u32 = 0;
        const REFERENCE_CYCLES: u32 = 9;
        match (config.type_, config.config as u32) {
            (HARDWARE, CYCLES | REFERENCE_CYCLES) => Self::CYCLES,
            (HARDWARE | CACHE, _) => Self::EVENTS,
            (RAW, _) => Self::OTHER,
            _ => Self::NONE,
        }
    }
}
