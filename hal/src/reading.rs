//! Readings: what a counter says, per part, and the buffer they are read into.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::ptr;
use std::sync::Arc;

use crate::{Count, Error, ErrorKind, MaxRate, Result, scale, total};

/// A counter at one moment: its value, and the times for which it was enabled and really counted.
///
/// The value is what the counter says, and [`count`](Self::count) what it means: a counter that never ran or
/// [jumped](MaxRate) has no count, whatever its value is.
///
/// Times are in nanoseconds and count since the last reset, because the value does; the operating
/// system's own times, which a reset does not touch, are the `raw_` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Reading {
    /// The count, in the event's own unit ([`EventInfo::unit`](crate::EventInfo)).
    pub value: u64,
    /// Nanoseconds enabled since the last reset.
    pub time_enabled: u64,
    /// Nanoseconds really counting since the last reset.
    pub time_running: u64,
    /// Nanoseconds enabled since opening.
    pub raw_time_enabled: u64,
    /// Nanoseconds really counting since opening.
    pub raw_time_running: u64,
    /// The most that the event can occur in the time running. Where that time is not known, there is no bound.
    #[cfg_attr(feature = "serde", serde(default))]
    pub max_rate: MaxRate,
    /// True if a part of the time may not have been counted, so that the value is a lower bound ([`Count::AtLeast`]).
    #[cfg_attr(feature = "serde", serde(default))]
    pub at_least: bool,
}

impl Reading {
    /// Returns the reading of a counter that was never reset.
    #[inline]
    pub const fn new(value: u64, time_enabled: u64, time_running: u64) -> Self {
        Self {
            value,
            time_enabled,
            time_running,
            raw_time_enabled: time_enabled,
            raw_time_running: time_running,
            max_rate: MaxRate::NONE,
            at_least: false,
        }
    }

    /// Sets whether the value is [a lower bound](Self::at_least).
    #[must_use]
    #[inline]
    pub const fn with_at_least(mut self, at_least: bool) -> Self {
        self.at_least = at_least;
        self
    }

    /// Sets the most that the event can occur in the time running.
    #[must_use]
    #[inline]
    pub const fn with_max_rate(mut self, max_rate: MaxRate) -> Self {
        self.max_rate = max_rate;
        self
    }

    /// Returns true if the value is more than can have been counted in the time running: then it means nothing.
    #[must_use]
    #[inline]
    pub const fn has_jumped(&self) -> bool {
        !self.max_rate.allows(self.value, self.time_running)
    }

    /// Sets the times since opening, of a counter that was reset.
    #[must_use]
    #[inline]
    pub const fn with_raw_times(mut self, time_enabled: u64, time_running: u64) -> Self {
        self.raw_time_enabled = time_enabled;
        self.raw_time_running = time_running;
        self
    }

    /// Returns the difference to an earlier reading of the same counter, of the value and of the
    /// times. It scales like any reading.
    ///
    /// There must have been no reset in between; where a field would run backwards it is 0 (use
    /// [`checked_since`](Self::checked_since) for an error).
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            value: self.value.saturating_sub(earlier.value),
            time_enabled: self.time_enabled.saturating_sub(earlier.time_enabled),
            time_running: self.time_running.saturating_sub(earlier.time_running),
            raw_time_enabled: self
                .raw_time_enabled
                .saturating_sub(earlier.raw_time_enabled),
            raw_time_running: self
                .raw_time_running
                .saturating_sub(earlier.raw_time_running),
            max_rate: self.max_rate,
            at_least: self.at_least || earlier.at_least,
        }
    }

    /// Like [`since`](Self::since), but `None` where a field would run backwards: then the counter
    /// was reset in between, or the readings are of different counters.
    #[must_use]
    pub const fn checked_since(&self, earlier: &Self) -> Option<Self> {
        if self.value < earlier.value
            || self.time_enabled < earlier.time_enabled
            || self.time_running < earlier.time_running
        {
            return None;
        }
        Some(self.since(earlier))
    }

    /// Returns the sum with another reading of the same counter, as of two spans ([`since`](Self::since)). It scales like any
    /// reading; that of one that [jumped](Self::has_jumped) has jumped too.
    ///
    /// ```
    /// use quipu_hal::{Count, Reading};
    ///
    /// let spans = [Reading::new(1000, 10, 10), Reading::new(100, 10, 5), Reading::new(0, 4, 0)];
    /// let sum = spans.iter().fold(Reading::default(), |sum, span| sum.plus(span));
    /// assert_eq!(sum.count(), Count::Estimated(1760));
    /// ```
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        let value = match self.has_jumped() || other.has_jumped() {
            true => u64::MAX,
            false => self.value.saturating_add(other.value),
        };
        let max_rate = match self.max_rate.increments_per_second() {
            Some(_) => self.max_rate,
            None => other.max_rate,
        };
        Self {
            value,
            time_enabled: self.time_enabled.saturating_add(other.time_enabled),
            time_running: self.time_running.saturating_add(other.time_running),
            raw_time_enabled: self.raw_time_enabled.saturating_add(other.raw_time_enabled),
            raw_time_running: self.raw_time_running.saturating_add(other.raw_time_running),
            max_rate,
            at_least: self.at_least || other.at_least,
        }
    }

    /// Returns the count for the whole time enabled: exact, estimated, a lower bound, or not counted.
    #[must_use]
    #[inline]
    pub const fn count(&self) -> Count {
        match self.has_jumped() {
            true => Count::Jumped,
            false => scale(self.value, self.time_enabled, self.time_running).bounded(self.at_least),
        }
    }

    /// Returns the level of a gauge ([`ValueKind::Gauge`](crate::ValueKind)): the value as it is, or
    /// not counted.
    #[must_use]
    #[inline]
    pub const fn level(&self) -> Count {
        match self.count() {
            Count::Exact(_) | Count::Estimated(_) | Count::AtLeast(_) => {
                Count::Exact(self.value as u128)
            }
            none => none,
        }
    }
}

/// One part of a fan-out target: a kernel group or register set of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Part {
    /// The CPU it counts on, when it counts on one only.
    pub cpu: Option<u32>,
    /// The thread it counts, when it counts one only.
    pub thread: Option<i32>,
    /// The core PMU (`cpu_core`, `cpu_atom`, `armv8_cortex_a72`) on a machine with several core
    /// types. Parts of one target that differ only in this are summed without scaling one up for
    /// the time spent on the other type.
    pub core: Option<Box<str>>,
    /// The PMU of a unit outside of the cores (`uncore_imc_0`), of which there may be several instances.
    pub pmu: Option<Box<str>>,
}

impl Part {
    /// A part that is the whole target.
    pub const fn whole() -> Self {
        Self {
            cpu: None,
            thread: None,
            core: None,
            pmu: None,
        }
    }

    /// The part of one CPU.
    pub const fn on_cpu(cpu: u32) -> Self {
        Self {
            cpu: Some(cpu),
            thread: None,
            core: None,
            pmu: None,
        }
    }

    /// The part of one thread.
    pub const fn of_thread(thread: i32) -> Self {
        Self {
            cpu: None,
            thread: Some(thread),
            core: None,
            pmu: None,
        }
    }

    /// Sets the core PMU.
    #[must_use]
    pub fn with_core(mut self, core: impl Into<Box<str>>) -> Self {
        self.core = Some(core.into());
        self
    }

    /// Sets the PMU of a unit outside of the cores.
    #[must_use]
    pub fn with_pmu(mut self, pmu: impl Into<Box<str>>) -> Self {
        self.pmu = Some(pmu.into());
        self
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sep = "";
        if let Some(cpu) = self.cpu {
            write!(f, "CPU {cpu}")?;
            sep = ", ";
        }
        if let Some(thread) = self.thread {
            write!(f, "{sep}thread {thread}")?;
            sep = ", ";
        }
        for pmu in [&self.core, &self.pmu].into_iter().flatten() {
            write!(f, "{sep}{pmu}")?;
            sep = ", ";
        }
        if sep.is_empty() {
            f.write_str("whole target")?;
        }
        Ok(())
    }
}

/// A buffer for the readings of a group: one [`Reading`] for each part and member, preallocated and reusable.
///
/// Made by [`Group::read_buf`](crate::Group::read_buf). Cloning it keeps a reading for
/// [`Reading::since`]; `clone_from` of a buffer of the same shape allocates nothing. An index gives the readings of
/// all members in a part, in member order; it panics, as that of a slice does, where there is no such part.
///
/// ```
/// use quipu_hal::{Part, ReadBuf, Reading, Count};
///
/// let mut buf = ReadBuf::new(2, vec![Part::on_cpu(0), Part::on_cpu(1)]);
/// buf[1][0] = Reading::new(7, 100, 100);
/// assert_eq!(buf[1][0].count(), Count::Exact(7));
/// assert_eq!(buf.total(0), Count::Exact(7));
/// assert_eq!(buf.get(2, 0), None);
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct ReadBuf {
    members: usize,
    parts: Arc<[Part]>,
    readings: Box<[Reading]>,
}

impl Clone for ReadBuf {
    fn clone(&self) -> Self {
        Self {
            members: self.members,
            parts: Arc::clone(&self.parts),
            readings: self.readings.clone(),
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.members = source.members;
        self.parts.clone_from(&source.parts);
        self.readings.clone_from(&source.readings);
    }
}

impl ReadBuf {
    /// Returns a buffer of zeros for `members` counters in each of `parts`, which it may share with the group.
    pub fn new(members: usize, parts: impl Into<Arc<[Part]>>) -> Self {
        let parts = parts.into();
        Self {
            members,
            readings: vec![Reading::default(); members * parts.len()].into(),
            parts,
        }
    }

    /// Returns the number of members of the group.
    #[inline]
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the parts, in the order of the readings.
    #[inline]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Checks that the buffer was made for a group of `members` in `parts`, as a group does before it
    /// fills the buffer. Parts that the group shares with the buffer are not compared one by one.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when it was made by another group.
    #[inline]
    pub fn check_shape(&self, members: usize, parts: &[Part]) -> Result<()> {
        if self.members == members && ptr::eq(&*self.parts, parts) {
            return Ok(());
        }
        self.compare_shape(members, parts)
    }

    fn compare_shape(&self, members: usize, parts: &[Part]) -> Result<()> {
        if self.members == members && *self.parts == *parts {
            return Ok(());
        }
        let error = Error::new(ErrorKind::InvalidConfiguration, "read a group of counters");
        Err(error.with_reason("the buffer was made by another group"))
    }

    /// Returns the readings of all members in each part, one part after the other.
    #[inline]
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Returns the reading of a member in a part, if there are both.
    #[inline]
    pub fn get(&self, part: usize, member: usize) -> Option<&Reading> {
        let members = self.readings.chunks_exact(self.members.max(1)).nth(part)?;
        members.get(member)
    }

    /// Returns the readings of one member in every part, if there is such a member.
    #[inline]
    pub fn member(
        &self,
        member: usize,
    ) -> Option<impl ExactSizeIterator<Item = (&Part, &Reading)>> {
        if member >= self.members {
            return None;
        }
        let readings = self.readings.get(member..).unwrap_or_default();
        Some(self.parts.iter().zip(readings.iter().step_by(self.members)))
    }

    /// Returns the total of one member over all parts, each scaled by its own times.
    ///
    /// # Panics
    /// As an index does, if there is no such member.
    pub fn total(&self, member: usize) -> Count {
        match self.member(member) {
            Some(readings) => total(readings),
            None => panic!("there is no member {member} of {}", self.members),
        }
    }

    /// Turns the readings of one member into their difference from `earlier`, a buffer of the same
    /// group ([`Reading::since`]).
    ///
    /// # Errors
    /// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) when the buffers have different
    /// parts or numbers of members, or there is no such member.
    pub fn subtract(&mut self, member: usize, earlier: &Self) -> Result<()> {
        self.check_member(member, earlier, "subtract readings")?;
        let mut at = member;
        while let (Some(now), Some(then)) = (self.readings.get_mut(at), earlier.readings.get(at)) {
            *now = now.since(then);
            at += self.members;
        }
        Ok(())
    }

    /// Adds the difference of two readings of one member, in buffers of the same group, to its readings here
    /// ([`Reading::plus`]), which sums spans up.
    ///
    /// # Errors
    /// As [`subtract`](Self::subtract).
    pub fn add_since(&mut self, member: usize, earlier: &Self, now: &Self) -> Result<()> {
        self.check_member(member, earlier, "add readings")?;
        self.check_member(member, now, "add readings")?;
        let mut at = member;
        while let Some(sum) = self.readings.get_mut(at) {
            *sum = sum.plus(&now.readings[at].since(&earlier.readings[at]));
            at += self.members;
        }
        Ok(())
    }

    fn check_member(&self, member: usize, other: &Self, attempted: &str) -> Result<()> {
        let same_parts = Arc::ptr_eq(&self.parts, &other.parts) || self.parts == other.parts;
        if member < self.members && self.members == other.members && same_parts {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidConfiguration, attempted)
            .with_reason("the buffers are of different groups, or the group has no such member"))
    }
}

impl Index<usize> for ReadBuf {
    type Output = [Reading];

    #[inline]
    fn index(&self, part: usize) -> &[Reading] {
        &self.readings[part * self.members..][..self.members]
    }
}

impl IndexMut<usize> for ReadBuf {
    #[inline]
    fn index_mut(&mut self, part: usize) -> &mut [Reading] {
        &mut self.readings[part * self.members..][..self.members]
    }
}
