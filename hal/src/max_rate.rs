//! The bound on what a counter can have counted in a time, by which a counter that jumped is found out.

use crate::{Encoding, PerfConfig};

/// The most that an event can occur in a time, in increments of its counter.
///
/// A counter that moved further than that has jumped: on virtual machines values were seen to change by
/// multiples of 2^47 while counters were multiplexed. A [`Reading`](crate::Reading) with such a bound is then
/// not a count ([`Count::Jumped`](crate::Count)).
///
/// The bounds are above what CPUs can do, and [`LAG`](Self::LAG) is added to each time, so that no true count is
/// refused. A jump is found out as long as it is more than the bound: one of 2^47 in the first 3 minutes of an
/// event of 64 a cycle, and in the first 36 of a generalized one. Intervals are bounded each by itself.
///
/// ```
/// use quipu_hal::{Count, MaxRate, Reading};
///
/// let second = 1_000_000_000;
/// let reading = |value| Reading::new(value, second, second).with_max_rate(MaxRate::EVENTS);
/// assert_eq!(reading(5 * second).scaled(), Count::Exact(5_000_000_000));
/// assert_eq!(reading(10 << 47).scaled(), Count::Jumped);
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

    /// Of clock cycles: 10 in a nanosecond.
    pub const CYCLES: Self = Self(10_000_000_000);

    /// Of generalized events, which occur a few times in a cycle: 64 in a nanosecond.
    pub const EVENTS: Self = Self(64_000_000_000);

    /// Of events by their number: 64 in a cycle, 640 in a nanosecond. AMD's floating point operations reach as
    /// many (event 0x03), and so do events that add the entries of a queue in each cycle.
    pub const OTHER: Self = Self(640_000_000_000);

    /// Nanoseconds by which the value may be ahead of the time running: two ticks of a kernel at 100 Hz, by which
    /// its clock may be corrected, or an interrupt come between time and value.
    pub const LAG: u64 = 20_000_000;

    /// Returns the bound of an event that occurs at most so many times a second; [`NONE`](Self::NONE) for 0.
    pub const fn per_second(increments: u64) -> Self {
        Self(increments)
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
    #[inline]
    pub const fn allows(self, value: u64, time_running: u64) -> bool {
        const SECOND: u128 = 1_000_000_000;
        let time = time_running as u128 + Self::LAG as u128;
        self.0 == 0 || value as u128 * SECOND <= time * self.0 as u128
    }

    /// Returns the bound of what these bits select: that of a generalized event of `perf_event_open`, that of the
    /// fixed counters and the time stamp counter, and else [`OTHER`](Self::OTHER); [`NONE`](Self::NONE) for
    /// types of `perf_event_open` that are no core PMU's.
    pub const fn of(encoding: &Encoding) -> Self {
        match encoding {
            Encoding::Perf(config) => Self::of_perf(config),
            Encoding::TimeStamp => Self::CYCLES,
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
