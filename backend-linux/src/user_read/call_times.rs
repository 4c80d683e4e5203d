//! Times for reads in user space where the page gives none: those of the last system call, and the clock
//! since.
//!
//! In a virtual machine the kernel's clock is not the CPU's cycle counter (`cap_user_time` is 0). As long as a
//! group stays on the PMU, both of its times go on with the clock. The kernel changes the page whenever it
//! takes the group off or puts it back (`perf_event_update_userpage` in the `add` and `del` of a PMU), so an
//! unchanged page says that it stayed. On another page than at the last system call, times are not known,
//! and the group is read by a system call again.

use quipu_hal::Reading;

use super::page::TimesOfGroup;
use super::{Registers, Times, UserPage};
use crate::sys;

/// A moment at which a system call told the times, during a stay on the PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anchor {
    /// The state of the leader's page.
    lock: u32,
    /// The clock after the call.
    at: u64,
    times: Times,
}

/// The times of a group by its last system call.
#[derive(Debug)]
pub(super) struct CallTimes {
    anchor: Option<Anchor>,
    /// The latest times that were given out: none is earlier than these.
    given: Times,
}

/// The times since a call, by a clock, and those that it was asked for last.
struct SinceCall<C> {
    anchor: Anchor,
    clock: C,
    told: Times,
}

impl<C: Fn() -> u64> TimesOfGroup for SinceCall<C> {
    #[inline(always)]
    fn now(&mut self, leader: &UserPage) -> Option<Times> {
        if leader.state() != self.anchor.lock {
            return None;
        }
        let since = (self.clock)().saturating_sub(self.anchor.at);
        self.told = Times {
            enabled: self.anchor.times.enabled + since,
            running: self.anchor.times.running + since,
        };
        Some(self.told)
    }
}

impl CallTimes {
    pub(super) fn new() -> Self {
        Self {
            anchor: None,
            given: Times {
                enabled: 0,
                running: 0,
            },
        }
    }

    /// Reads the members, with the times of `now`, if the group has stayed on the PMU; places and times are as for
    /// [`UserPage::read_group_with`].
    #[inline(always)]
    pub(super) fn read<'a, P: Copy, T: Copy>(
        &mut self,
        (leader, own): (&UserPage, P),
        others: &(impl Iterator<Item = (&'a UserPage, P)> + Clone),
        registers: &impl Registers,
        (now, made): (impl Fn() -> u64, impl Fn(Times) -> T),
        found: impl FnMut(P, u64, T),
    ) -> Option<()> {
        let mut since = SinceCall {
            anchor: self.anchor?,
            clock: now,
            told: self.given,
        };
        leader.read_group_with((&mut since, made), own, others, registers, found)?;
        self.given = since.told;
        Some(())
    }

    /// Takes the times that a system call told, of a page that was in state `before` then, or of another
    /// thread's if there is none. The clocks differ by a little: times that would go back stay.
    pub(super) fn told(
        &mut self,
        leader: &UserPage,
        before: Option<u32>,
        now: impl Fn() -> u64,
        out: &mut [Reading],
    ) {
        let Some(first) = out.first() else { return };
        let late = |given: u64, told: u64| given.saturating_sub(told);
        let enabled = late(self.given.enabled, first.raw_time_enabled);
        let running = late(self.given.running, first.raw_time_running);
        for reading in &mut *out {
            reading.time_enabled += enabled;
            reading.time_running += running;
            reading.raw_time_enabled += enabled;
            reading.raw_time_running += running;
        }
        self.given = Times {
            enabled: out[0].raw_time_enabled,
            running: out[0].raw_time_running,
        };
        let Some(before) = before else { return };
        self.anchor = (leader.state() == before && before & 1 == 0).then(|| Anchor {
            lock: before,
            at: now(),
            times: self.given,
        });
    }
}

/// Returns the nanoseconds of a clock that goes on evenly.
#[inline(always)]
pub(crate) fn now() -> u64 {
    sys::monotonic_raw()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use quipu_hal::MaxRate;

    use super::*;
    use crate::user_read::{PageFields, page};

    struct Register(u64);

    impl Registers for Register {
        fn counter(&self, _: u32) -> Option<u64> {
            Some(self.0)
        }

        fn cycles(&self) -> u64 {
            unreachable!("the page has no times")
        }
    }

    fn fields(index: u32) -> PageFields {
        PageFields {
            time_enabled: 5,
            time_running: 5,
            ..page::tests::fields(index, 1000)
        }
    }

    fn read(times: &mut CallTimes, page: &UserPage, clock: u64) -> Option<(u64, u64, u64)> {
        let mut seen = None;
        times.read(
            (page, ()),
            &std::iter::empty(),
            &Register(7),
            (|| clock, |times| times),
            |(), value, times: Times| seen = Some((value, times.enabled, times.running)),
        )?;
        seen
    }

    #[test]
    fn times_go_on_with_the_clock_while_the_group_stays() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        assert_eq!(read(&mut times, &page, 0), None, "no call has told any");
        let mut out = [Reading::new(50, 800, 600)];
        times.told(&page, Some(page.state()), || 100, &mut out);
        assert_eq!(out, [Reading::new(50, 800, 600)]);
        assert_eq!(read(&mut times, &page, 130), Some((1007, 830, 630)));
        // Scheduled out and in again: a call has to tell the times.
        page.publish(&fields(0));
        page.publish(&fields(1));
        assert_eq!(read(&mut times, &page, 140), None);
        times.told(&page, Some(page.state()), || 150, &mut out);
        // It was a little late; nothing goes back.
        assert_eq!(out, [Reading::new(50, 830, 630)]);
        assert_eq!(read(&mut times, &page, 151), Some((1007, 831, 631)));
        // Off the PMU.
        page.publish(&fields(0));
        times.told(&page, Some(page.state()), || 160, &mut out);
        assert_eq!(read(&mut times, &page, 161), None);
    }

    #[test]
    fn a_group_that_moves_during_the_call_or_the_read_is_read_again() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        let mut out = [Reading::new(50, 800, 800)];
        let before = page.state();
        page.publish(&fields(1));
        times.told(&page, Some(before), || 100, &mut out);
        assert_eq!(read(&mut times, &page, 130), None);
        times.told(&page, Some(page.state()), || 100, &mut out);
        let moved = Cell::new(false);
        let clock = || {
            if !moved.replace(true) {
                page.publish(&fields(1));
            }
            130
        };
        let done = times.read(
            (&page, ()),
            &std::iter::empty(),
            &Register(7),
            (clock, |times| times),
            |(), _, _| {},
        );
        assert_eq!(done, None);
    }

    /// The bound by which a counter that jumped is found out stays with each reading.
    #[test]
    fn a_reading_whose_times_are_told_keeps_its_bound() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        let told = Reading::new(50, 800, 800).with_max_rate(MaxRate::CYCLES);
        let mut out = [told];
        times.told(&page, Some(page.state()), || 100, &mut out);
        assert_eq!(out, [told]);
    }

    /// Another thread's call says nothing of the page, and its times are not lost.
    #[test]
    fn a_call_of_another_thread_leaves_the_moment_as_it_is() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        let mut out = [Reading::new(50, 800, 800)];
        times.told(&page, Some(page.state()), || 100, &mut out);
        let mut later = [Reading::new(60, 900, 900)];
        times.told(&page, None, || 201, &mut later);
        assert_eq!(read(&mut times, &page, 210), Some((1007, 910, 910)));
    }

    #[test]
    fn the_clock_goes_on() {
        let first = now();
        while now() == first {}
        assert!(now() > first);
    }
}
