//! Reads of a kernel group by the mapped pages of its counters.

use std::cell::Cell;

use quipu_hal::Reading;

use super::{Counter, KernelGroup, ReadFailure};
use crate::user_read::{Times, UserCounters, now};

/// The counters of a group, and where their readings go.
struct Readings<'a> {
    counters: &'a [Counter],
    out: &'a [Cell<Reading>],
    reset: &'a Times,
}

/// A counter and where its reading goes.
type Place<'a> = (&'a Counter, &'a Cell<Reading>);

impl<'a> Readings<'a> {
    /// Returns the places in `out`, if that has one for each counter.
    #[inline(always)]
    fn of(counters: &'a [Counter], out: &'a mut [Reading], reset: &'a Times) -> Option<Self> {
        let out = Cell::from_mut(out).as_slice_of_cells();
        (out.len() == counters.len()).then_some(Self {
            counters,
            out,
            reset,
        })
    }

    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = Place<'a>> + Clone {
        self.counters.iter().zip(self.out)
    }

    /// Returns the reading that all have at these times, but for their values: members that are scheduled together were
    /// reset at the same times.
    #[inline(always)]
    fn at(&self, times: Times) -> Reading {
        times.since(self.reset)
    }
}

/// Puts a value where the counter's reading goes.
#[inline(always)]
fn put((counter, out): Place<'_>, value: u64, times: Reading) {
    out.set(counter.at(value, times));
}

impl KernelGroup {
    /// Returns the mapped pages, if they tell times.
    #[inline(always)]
    pub(crate) fn pages_with_times(&self) -> Option<&UserCounters> {
        self.user.as_ref().ok()?.with_times()
    }

    /// Takes what the page of the only member told; false if it is not the only one.
    #[inline(always)]
    pub(crate) fn take_mapped_counter(
        &self,
        (value, times): (u64, Times),
        out: &mut [Reading],
    ) -> bool {
        let ([counter], [out]) = (&*self.counters, out) else {
            return false;
        };
        *out = counter.at(value, times.since(&self.reset));
        true
    }

    /// Reads every member by its page, among `pages` of this group with times, if that is possible at once; otherwise what
    /// is in `out` means nothing.
    #[inline(always)]
    pub(crate) fn try_mapped_group(&self, pages: &UserCounters, out: &mut [Reading]) -> bool {
        let members = out.len();
        let Some(readings) = Readings::of(&self.counters, out, &self.reset) else {
            return false;
        };
        pages.read_at_once(members, readings.places(), |times| readings.at(times), put)
    }

    /// Returns the mapped pages, and the places in `out` of what they tell.
    #[inline(always)]
    fn pages_and_readings<'a>(
        &'a mut self,
        out: &'a mut [Reading],
    ) -> Option<(&'a mut UserCounters, Readings<'a>)> {
        let user = self.user.as_mut().ok()?;
        Some((user, Readings::of(&self.counters, out, &self.reset)?))
    }

    /// Reads every member into `out` by its page, with the times since a system call, if that is possible at this moment;
    /// otherwise what is in `out` means nothing.
    #[inline(always)]
    pub(crate) fn try_mapped_since_call(&mut self, out: &mut [Reading]) -> bool {
        let Some((user, readings)) = self.pages_and_readings(out) else {
            return false;
        };
        user.read_since_call(readings.places(), |times| readings.at(times), put)
    }

    /// Reads every member into `out` in both ways, and notes what each has cost.
    #[cold]
    pub(super) fn read_both_ways(
        &mut self,
        words: &mut [u64],
        out: &mut [Reading],
    ) -> Result<(), ReadFailure> {
        // A thread that may not read its time stamps asks no clock either.
        let start = self.may_read_here().then(now);
        let in_user_space = start.is_some() && self.read_pages(out);
        let called = in_user_space.then(now);
        self.read_by_system_call(words, out)?;
        if let (Ok(user), Some(start), Some(called)) = (&mut self.user, start, called) {
            user.timed(start, called);
        }
        Ok(())
    }

    /// Returns true if it has mapped pages and the calling thread is the one it counts. Notes if that may not read them, before
    /// it does so for the first time.
    pub(crate) fn may_read_here(&mut self) -> bool {
        let Ok(user) = &mut self.user else {
            return false;
        };
        let checked = user.check_thread();
        if let Err(obstacle) = checked {
            self.user = Err(obstacle);
        }
        checked == Ok(true)
    }

    /// Reads every member into `out` without a system call, if that is possible at this moment on
    /// this thread, which [`may_read_here`](Self::may_read_here) has looked at; otherwise what is in `out` means nothing.
    #[inline(never)]
    pub(crate) fn read_pages(&mut self, out: &mut [Reading]) -> bool {
        let Some((user, readings)) = self.pages_and_readings(out) else {
            return false;
        };
        user.read(readings.places(), |times| readings.at(times), put)
    }
}
