//! Times for reads in user space where the page gives none: those of the last system call, and the clock
//! since.
//!
//! In a virtual machine the kernel's clock is not the CPU's cycle counter (`cap_user_time` is 0). As long as a
//! group stays on the PMU, both of its times go on with the clock. The kernel changes the page whenever it
//! takes the group off or puts it back (`perf_event_update_userpage` in the `add` and `del` of a PMU), so an
//! unchanged page says that it stayed. On another page than at the last system call, times are not known,
//! and the group is read by a system call again.

use crate::sys;
use crate::user_page::registers::Registers;
use crate::user_page::{Times, UserPage};

/// A moment at which a system call returned the times, during a stay on the PMU.
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

impl Anchor {
    /// Returns the times up to now by the clock, if the group has stayed on the PMU since.
    fn times(&self, leader: &UserPage, now: impl Fn() -> u64) -> Option<Times> {
        if leader.state() != self.lock {
            return None;
        }
        let since = now().saturating_sub(self.at);
        Some(Times {
            enabled: self.times.enabled + since,
            running: self.times.running + since,
        })
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

    /// Reads a group as [`UserPage::read_group`] does, with times by the clock `now`, if the group has stayed on the PMU.
    pub(super) fn read<'a>(
        &mut self,
        leader: &UserPage,
        others: &(impl Iterator<Item = &'a UserPage> + Clone),
        registers: &impl Registers,
        now: impl Fn() -> u64,
        found: impl FnMut(usize, u64, Times),
    ) -> Option<()> {
        let anchor = self.anchor?;
        let times = || anchor.times(leader, &now);
        self.given = leader.read_group_at(others, registers, times, found)?;
        Some(())
    }

    /// Takes the times of a system call, of a page that was in state `before` then, or of another thread's if there is
    /// none, and returns those to give out. The clocks differ by a little: times that would go back stay.
    pub(super) fn noted(
        &mut self,
        leader: &UserPage,
        before: Option<u32>,
        now: impl Fn() -> u64,
        returned: Times,
    ) -> Times {
        self.given = Times {
            enabled: returned.enabled.max(self.given.enabled),
            running: returned.running.max(self.given.running),
        };
        if let Some(before) = before {
            self.anchor = (leader.state() == before && before & 1 == 0).then(|| Anchor {
                lock: before,
                at: now(),
                times: self.given,
            });
        }
        self.given
    }
}

/// Returns the nanoseconds of a clock that goes on evenly.
pub(super) fn now() -> u64 {
    sys::monotonic_raw()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::user_page::{PageFields, tests as page};

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
            ..page::fields(index, 1000)
        }
    }

    fn at(enabled: u64, running: u64) -> Times {
        Times { enabled, running }
    }

    fn read(times: &mut CallTimes, page: &UserPage, clock: u64) -> Option<(u64, u64, u64)> {
        let mut seen = None;
        times.read(
            page,
            &std::iter::empty(),
            &Register(7),
            || clock,
            |_, value, times| seen = Some((value, times.enabled, times.running)),
        )?;
        seen
    }

    #[test]
    fn times_go_on_with_the_clock_while_the_group_stays() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        assert_eq!(read(&mut times, &page, 0), None, "no call has returned any");
        let noted = times.noted(&page, Some(page.state()), || 100, at(800, 600));
        assert_eq!(noted, at(800, 600));
        assert_eq!(read(&mut times, &page, 130), Some((1007, 830, 630)));
        // Scheduled out and in again: a call has to return the times.
        page.publish(&fields(0));
        page.publish(&fields(1));
        assert_eq!(read(&mut times, &page, 140), None);
        let noted = times.noted(&page, Some(page.state()), || 150, at(800, 600));
        // It was a little late; nothing goes back.
        assert_eq!(noted, at(830, 630));
        assert_eq!(read(&mut times, &page, 151), Some((1007, 831, 631)));
        // Off the PMU.
        page.publish(&fields(0));
        times.noted(&page, Some(page.state()), || 160, at(831, 631));
        assert_eq!(read(&mut times, &page, 161), None);
    }

    #[test]
    fn a_group_that_moves_during_the_call_or_the_read_is_read_again() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        let before = page.state();
        page.publish(&fields(1));
        times.noted(&page, Some(before), || 100, at(800, 800));
        assert_eq!(read(&mut times, &page, 130), None);
        times.noted(&page, Some(page.state()), || 100, at(800, 800));
        let moved = Cell::new(false);
        let clock = || {
            if !moved.replace(true) {
                page.publish(&fields(1));
            }
            130
        };
        let done = times.read(
            &page,
            &std::iter::empty(),
            &Register(7),
            clock,
            |_, _, _| {},
        );
        assert_eq!(done, None);
    }

    /// Another thread's call says nothing of the page, and its times are not lost.
    #[test]
    fn a_call_of_another_thread_leaves_the_moment_as_it_is() {
        let page = UserPage::recorded(&fields(1));
        let mut times = CallTimes::new();
        times.noted(&page, Some(page.state()), || 100, at(800, 800));
        times.noted(&page, None, || 201, at(900, 900));
        assert_eq!(read(&mut times, &page, 210), Some((1007, 910, 910)));
    }

    #[test]
    fn the_clock_goes_on() {
        let first = now();
        while now() == first {}
        assert!(now() > first);
    }
}
