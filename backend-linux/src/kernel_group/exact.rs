//! Reads of values alone, of a kernel group that was counted all the time since the last reset.

use quipu_hal::Reading;

use super::{Counter, GROUP_ENTRY, KernelGroup, SINGLE};
use crate::user_read::{Times, Way};

impl Counter {
    /// Notes what is possible in this time running since the last reset, and in any that is longer.
    pub(super) fn note_possible(&mut self, time_running: u64) {
        self.possible = self.max_rate.most(time_running).min(i64::MAX as u64);
    }

    /// Returns the value since the last reset, if it is possible for all that is known.
    #[inline(always)]
    fn possible(&self, value: u64) -> Option<u64> {
        // A value below that of the reset is a large one here.
        let since_reset = value.wrapping_sub(self.value);
        (since_reset <= self.possible).then_some(since_reset)
    }
}

impl KernelGroup {
    /// Returns the time enabled since the last reset, if it was counted all of it.
    #[inline(always)]
    fn time_of_all(&self, enabled: u64, running: u64) -> Option<u64> {
        let since_reset = enabled.wrapping_sub(self.reset.enabled);
        (running.wrapping_sub(self.reset.running) == since_reset).then_some(since_reset)
    }

    /// Returns true if the leader's page says so, whose times are those of its last change: both go on together while the
    /// counter is on the PMU, so that no clock is needed.
    #[inline(always)]
    fn was_on_all_the_time(&self, times: Times) -> bool {
        self.time_of_all(times.enabled, times.running).is_some()
    }

    /// Reads the only member in one system call, if it was counted all the time, which it returns.
    #[inline(always)]
    pub(crate) fn exact_counter(&self, values: &mut [u64]) -> Option<u64> {
        let [value, enabled, running] = self.fds.leader().words::<SINGLE>()?;
        let ([counter], [out]) = (&*self.counters, values) else {
            return None;
        };
        let time = self.time_of_all(enabled, running)?;
        *out = counter.possible(value)?;
        Some(time)
    }

    /// Reads every member in one system call of the leader, if the group was counted all the time, which it returns, and
    /// the kernel lists the members in their order. `words` are the plan's.
    #[inline(always)]
    pub(crate) fn exact_snapshot(&self, words: &mut [u64], values: &mut [u64]) -> Option<u64> {
        if !self.fds.leader().fills(words) {
            return None;
        }
        let (&[_listed, enabled, running, ref entries @ ..], Some(&last)) = (&*words, words.last())
        else {
            return None;
        };
        let time = self.time_of_all(enabled, running)?;
        let (entries, _) = entries.as_chunks::<GROUP_ENTRY>();
        let members = values.len();
        // The kernel fills all words, with zeros after the members that it lists: where the last word is the last
        // member's id, it lists all.
        if last != self.last_in_order || self.counters.len() != members || entries.len() < members {
            return None;
        }
        for ((counter, &[value, _]), out) in self.counters.iter().zip(entries).zip(values) {
            *out = counter.possible(value)?;
        }
        Some(time)
    }

    /// Reads the only member by its page, if possible at this moment on this thread, and it was counted all the time;
    /// otherwise what is in `values` means nothing.
    #[inline(always)]
    pub(crate) fn exact_mapped_counter(&self, values: &mut [u64]) -> bool {
        let Ok(user) = &self.user else {
            return false;
        };
        let [counter] = &*self.counters else {
            return false;
        };
        let [out] = values else {
            return false;
        };
        user.read_value(
            |times| self.was_on_all_the_time(times),
            |value| {
                let possible = counter.possible(value);
                *out = possible.unwrap_or_default();
                possible.is_some()
            },
        )
    }

    /// Reads every member by its page, if that is known to be quicker, possible at this moment on this thread, and the
    /// group was counted all the time; otherwise what is in `values` means nothing.
    #[inline(always)]
    pub(crate) fn exact_mapped(&self, values: &mut [u64]) -> bool {
        let Ok(user) = &self.user else {
            return false;
        };
        if user.way() != Way::UserSpace || values.len() != self.counters.len() {
            return false;
        }
        let members = self.counters.iter().zip(values);
        user.read_values(
            |times| self.was_on_all_the_time(times),
            members,
            |(counter, out), value| {
                let possible = counter.possible(value);
                *out = possible.unwrap_or_default();
                possible.is_some()
            },
        )
    }

    /// Notes what is possible in the time of each of these readings, so that values up to that need no look at their time.
    pub(crate) fn note_possible(&mut self, readings: &[Reading]) {
        for (counter, reading) in self.counters.iter_mut().zip(readings) {
            counter.note_possible(reading.time_running);
        }
    }
}

/// Takes the values of readings, if all of them are exact and below 2^63; of as many as there are values. Returns their time.
#[inline(always)]
pub(crate) fn take_exact(readings: &[Reading], values: &mut [u64]) -> Option<u64> {
    for (reading, out) in readings.iter().zip(values) {
        *out = reading.exact().filter(|value| *value <= i64::MAX as u64)?;
    }
    readings.first().map(|first| first.time_enabled)
}
