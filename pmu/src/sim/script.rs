//! Scripts of simulated events: the times at which they happen.

use std::time::Duration;

use super::SimSelect;
use crate::clock::nanoseconds;

/// Frequency of an event, in events a microsecond; for a gauge, its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Rate {
    /// In user mode.
    pub user: u64,
    /// In kernel mode.
    pub kernel: u64,
}

impl Rate {
    /// Rates in user and kernel mode.
    pub const fn new(user: u64, kernel: u64) -> Self {
        Self { user, kernel }
    }
}

/// The times at which an event happens: in phases of a steady rate that repeat for ever, and in bursts besides.
///
/// Counts are exact: after `t` nanoseconds at `r` events a microsecond, `r x t / 1000` events have
/// happened in a mode, rounded down once over all phases.
///
/// ```
/// use std::time::Duration;
/// use quipu_pmu::{Rate, Script};
///
/// let busy_half_the_time = Script::phases([
///     (Duration::from_millis(1), Rate::new(2000, 0)),
///     (Duration::from_millis(1), Rate::default()),
/// ])
/// .with_burst(Duration::from_micros(1500), 40, 2);
/// assert_eq!(busy_half_the_time.user_count(1_000_000), 2_000_000);
/// assert_eq!(busy_half_the_time.user_count(2_500_000), 2_000_000 + 40 + 1_000_000);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    phases: Vec<Phase>,
    /// The sum of the phases' durations, never 0.
    cycle: u64,
    bursts: Vec<Burst>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phase {
    duration: u64,
    rate: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Burst {
    at: u64,
    user: u64,
    kernel: u64,
}

impl Script {
    /// Returns a script of a constant rate.
    pub fn steady(rate: Rate) -> Self {
        Self {
            phases: vec![Phase {
                duration: u64::MAX,
                rate,
            }],
            cycle: u64::MAX,
            bursts: Vec::new(),
        }
    }

    /// Phases one after the other, and again from the first. Without any that takes time, the event
    /// never happens.
    pub fn phases(phases: impl IntoIterator<Item = (Duration, Rate)>) -> Self {
        let phases: Vec<Phase> = phases
            .into_iter()
            .map(|(duration, rate)| Phase {
                duration: nanoseconds(duration),
                rate,
            })
            .collect();
        let cycle = phases
            .iter()
            .fold(0u64, |sum, phase| sum.saturating_add(phase.duration));
        if cycle == 0 {
            return Self::steady(Rate::default());
        }
        Self {
            phases,
            cycle,
            bursts: Vec::new(),
        }
    }

    /// Adds events that happen all at one time, once.
    #[must_use]
    pub fn with_burst(mut self, at: Duration, user: u64, kernel: u64) -> Self {
        self.bursts.push(Burst {
            at: nanoseconds(at),
            user,
            kernel,
        });
        self
    }

    /// Returns the number of events in user mode up to a time, in nanoseconds; modulo 2^64.
    pub fn user_count(&self, time: u64) -> u64 {
        self.count(time, |rate| rate.user, |burst| burst.user)
    }

    /// Returns the number of events in kernel mode up to a time, in nanoseconds; modulo 2^64.
    pub fn kernel_count(&self, time: u64) -> u64 {
        self.count(time, |rate| rate.kernel, |burst| burst.kernel)
    }

    /// Returns the count of a register that is programmed so, up to a time.
    pub(super) fn count_as(&self, select: SimSelect, time: u64) -> u64 {
        let user = if select.user {
            self.user_count(time)
        } else {
            0
        };
        let kernel = if select.kernel {
            self.kernel_count(time)
        } else {
            0
        };
        user.wrapping_add(kernel)
    }

    /// The level of a gauge at a time, as far as a register is programmed to show it.
    pub(super) fn level_as(&self, select: SimSelect, time: u64) -> u64 {
        let mut rest = time % self.cycle;
        let mut level = Rate::default();
        for phase in &self.phases {
            level = phase.rate;
            if rest < phase.duration {
                break;
            }
            rest -= phase.duration;
        }
        let user = if select.user { level.user } else { 0 };
        let kernel = if select.kernel { level.kernel } else { 0 };
        user.wrapping_add(kernel)
    }

    fn count(&self, time: u64, rate: impl Fn(Rate) -> u64, size: impl Fn(&Burst) -> u64) -> u64 {
        let steady = match &*self.phases {
            [phase] => thousandth(rate(phase.rate), time),
            phases => {
                // In thousandths of an event. A cycle's sum fits in 128 bits; what overflows after
                // that is beyond 64 bits of events.
                let in_phase = |phase: &Phase, ns: u64| {
                    u128::from(rate(phase.rate)).wrapping_mul(u128::from(ns))
                };
                let cycle = phases
                    .iter()
                    .fold(0u128, |sum, p| sum.wrapping_add(in_phase(p, p.duration)));
                let mut sum = cycle.wrapping_mul(u128::from(time / self.cycle));
                let mut rest = time % self.cycle;
                for phase in phases {
                    let ns = rest.min(phase.duration);
                    sum = sum.wrapping_add(in_phase(phase, ns));
                    rest -= ns;
                }
                (sum / 1000) as u64
            }
        };
        let past = self.bursts.iter().filter(|burst| burst.at <= time);
        past.fold(steady, |sum, burst| sum.wrapping_add(size(burst)))
    }
}

/// rate x time / 1000, modulo 2^64.
fn thousandth(rate: u64, time: u64) -> u64 {
    match rate.checked_mul(time) {
        Some(product) => product / 1000,
        None => (u128::from(rate) * u128::from(time) / 1000) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The model walks through time in small steps.
        #[test]
        fn counts_add_up_over_phases(
            phases in prop::collection::vec((0..50u64, 0..5000u64), 1..5),
            time in 0..1_000u64,
        ) {
            let script = Script::phases(phases.iter().map(|&(ns, rate)| {
                (Duration::from_nanos(ns), Rate::new(rate, 0))
            }));
            let mut thousandths = 0u64;
            if phases.iter().any(|&(ns, _)| ns > 0) {
                let every = phases.iter().flat_map(|&(ns, rate)| (0..ns).map(move |_| rate));
                thousandths = every.cycle().take(time as usize).sum();
            }
            prop_assert_eq!(script.user_count(time), thousandths / 1000);
            prop_assert_eq!(script.kernel_count(time), 0);
        }

        #[test]
        fn one_phase_is_steady(rate in any::<u64>(), time in any::<u64>()) {
            let count = Script::steady(Rate::new(0, rate)).kernel_count(time);
            prop_assert_eq!(count, (u128::from(rate) * u128::from(time) / 1000) as u64);
        }
    }

    #[test]
    fn bursts_have_happened_from_their_moment_on() {
        let script = Script::steady(Rate::default()).with_burst(Duration::from_nanos(10), 3, 4);
        assert_eq!((script.user_count(9), script.user_count(10)), (0, 3));
        assert_eq!(script.kernel_count(u64::MAX), 4);
    }

    #[test]
    fn a_level_follows_the_phases() {
        let ns = Duration::from_nanos;
        let script = Script::phases([(ns(10), Rate::new(40, 2)), (ns(5), Rate::new(50, 3))]);
        let all = SimSelect::new(1);
        assert_eq!(
            [0, 9, 10, 14, 15].map(|t| script.level_as(all, t)),
            [42, 42, 53, 53, 42]
        );
    }
}
