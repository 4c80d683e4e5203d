//! One kernel group: its counters, and the readings of them.

use std::sync::Arc;

use quipu_hal::{Error, GroupSpec, MaxRate, Overflows, Reading, Result as HalResult};

use super::overflow::{self, OverflowRing, SharedRing};
use super::own_counters;
use crate::events::EventBits;
use crate::read::{Fds, Obstacle, Pages, ReadFailure, ReadPlan, Reader, Source};
use crate::sys::CounterFd;
use crate::user_page::Times;

/// The value and times at the last reset of a counter, and the most that it can count.
#[derive(Debug, Clone, Copy)]
struct Counter {
    value: u64,
    times: Times,
    max_rate: MaxRate,
}

impl Counter {
    /// A counter that was just opened.
    const OPENED: Self = Self {
        value: 0,
        times: Times {
            enabled: 0,
            running: 0,
        },
        max_rate: MaxRate::NONE,
    };

    /// Returns the reading since the last reset. The kernel's times may go backwards by a little between CPUs; they stop
    /// at zero here.
    fn reading(&self, value: u64, times: Times) -> Reading {
        Reading::new(
            value.saturating_sub(self.value),
            times.enabled.saturating_sub(self.times.enabled),
            times.running.saturating_sub(self.times.running),
        )
        .with_raw_times(times.enabled, times.running)
        .with_max_rate(self.max_rate)
    }
}

/// The counters that the kernel schedules together: one part of a group. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct KernelGroup {
    live: bool,
    source: Source,
    /// The leader comes first.
    counters: Vec<Counter>,
    /// The rings of members that send signals, by their positions.
    overflows: Box<[(usize, SharedRing)]>,
}

/// A reader of a kernel group for any thread. Values and times count from the last reset before it was made.
#[derive(Debug)]
pub(crate) struct KernelGroupReader {
    reader: Reader,
    counters: Box<[Counter]>,
}

impl KernelGroupReader {
    /// Reads every member into `out`, which has one reading for each.
    pub(crate) fn read(&self, out: &mut [Reading]) -> Result<(), ReadFailure> {
        self.reader.read(readings_of(&self.counters, out))
    }
}

impl KernelGroup {
    /// A kernel group of open counters. `live` says that the kernel counts some of them
    /// [while they happen](crate::events::EventBits::is_counted_live).
    pub(crate) fn new(source: Source, live: bool) -> Self {
        Self {
            live,
            counters: vec![Counter::OPENED; source.fds().len()],
            source,
            overflows: Box::default(),
        }
    }

    /// Adds counters that were opened under the leader. `live` is as for [`new`](Self::new), of all counters.
    ///
    /// # Errors
    /// The errno with which the kernel refused to give a counter's id; nothing is added then.
    pub(crate) fn add(&mut self, more: Vec<CounterFd>, live: bool) -> Result<(), i32> {
        self.source.extend(more, !live)?;
        self.counters
            .resize(self.source.fds().len(), Counter::OPENED);
        self.live = live;
        Ok(())
    }

    /// The counters in member order.
    pub(crate) fn fds(&self) -> &Fds {
        self.source.fds()
    }

    /// Sets the most that a member can count in the time running, by which a counter that jumped is found out.
    pub(crate) fn set_max_rate(&mut self, member: usize, max_rate: MaxRate) {
        if let Some(counter) = self.counters.get_mut(member) {
            counter.max_rate = max_rate;
        }
    }

    /// Reads this group in user space from now on, whenever that is possible and quicker. It has to be one of the calling
    /// thread alone. Returns what its pages have, which may be `known`.
    ///
    /// # Errors
    /// The reason why that is not possible, which is noted.
    pub(crate) fn read_in_user_space(&mut self, known: Option<Pages>) -> Result<Pages, Obstacle> {
        if self.live {
            self.source.refuse_pages(Obstacle::NoRegister);
            return Err(Obstacle::NoRegister);
        }
        self.source.map_pages(known)
    }

    /// Has signals sent for overflows of the members that ask for them.
    pub(crate) fn send_signals(&mut self, spec: &GroupSpec, bits: &[EventBits]) -> HalResult<()> {
        if !overflow::is_asked_for(spec) {
            return Ok(());
        }
        let mut rings = Vec::new();
        let leader = self.fds().leader();
        for (i, (fd, member)) in self.fds().iter().zip(&spec.members).enumerate() {
            if let Some(asked) = member.overflow {
                let live = bits.get(i).is_some_and(EventBits::is_counted_live);
                let ring = OverflowRing::new(fd, (i > 0).then_some(leader), asked, live);
                let ring = ring.map_err(|e| e.with_member(i))?;
                rings.push((i, SharedRing::from(ring)));
            }
        }
        self.overflows = rings.into();
        Ok(())
    }

    /// Returns true if a member sends signals.
    pub(crate) fn sends_signals(&self) -> bool {
        !self.overflows.is_empty()
    }

    /// Returns a reader of this group for any thread.
    pub(crate) fn reader(&self) -> KernelGroupReader {
        KernelGroupReader {
            reader: self.source.reader(),
            counters: self.counters.as_slice().into(),
        }
    }

    /// Returns the ring of a member that sends signals.
    pub(crate) fn overflows(&self, member: usize) -> Option<Arc<dyn Overflows>> {
        self.ring(member).map(overflow::shared)
    }

    fn ring(&self, member: usize) -> Option<&SharedRing> {
        let mut rings = self.overflows.iter();
        rings.find_map(|(i, ring)| (*i == member).then_some(ring))
    }

    /// Notes why this group is read by system calls.
    pub(crate) fn read_by_calls(&mut self, obstacle: Obstacle) {
        self.source.refuse_pages(obstacle);
    }

    /// Returns the reason why this group is read by system calls, if it is.
    pub(crate) fn no_user_reads(&self) -> Option<Error> {
        self.source.obstacle()
    }

    /// Returns the way this group is read by system calls.
    pub(crate) fn plan(&self) -> ReadPlan {
        self.source.plan()
    }

    /// Returns true if a read is of one moment. Counts that are kept live go on while the kernel copies
    /// one after the other (`perf_read_group`, `kernel/events/core.c`), unless the measured thread is
    /// the one that reads; so do registers that are read in user space.
    pub(crate) fn is_snapshot(&self) -> bool {
        match self.plan() {
            ReadPlan::Single => true,
            ReadPlan::Snapshot => !self.live && !self.source.has_pages(),
            ReadPlan::OneByOne => false,
        }
    }

    /// Starts every member at the same moment, as long as none was ever stopped by itself.
    pub(crate) fn start(&self) -> Result<(), i32> {
        self.fds().leader().enable()
    }

    /// Starts every member, also those that [`stop_own_counters`](crate::stop_own_counters) or an overflow may
    /// have stopped one by one: else the leader is enough, whose members are never stopped by themselves.
    ///
    /// The leader comes last, and takes the others onto the PMU. `PERF_IOC_FLAG_GROUP` would start
    /// it first; members that are started under a leader that counts already stay off the PMU until
    /// the next context switch, with nothing in the leader's times to show for it (seen on 6.18).
    pub(crate) fn enable(&self) -> Result<(), i32> {
        if !own_counters::were_stopped() && self.overflows.is_empty() {
            return self.start();
        }
        for member in (0..self.fds().len()).rev() {
            match (self.ring(member), self.fds().of(member)) {
                (Some(ring), _) => ring.enable()?,
                (None, Some(fd)) => fd.enable()?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Stops every member at the same moment: none is ever on the PMU without the leader, so it is
    /// enough to stop that, and exact.
    pub(crate) fn disable(&self) -> Result<(), i32> {
        self.fds().leader().disable()
    }

    /// Reads every member into `out`, which has one reading for each.
    pub(crate) fn read(&mut self, out: &mut [Reading]) -> Result<(), ReadFailure> {
        let counters = &self.counters;
        self.source.read(readings_of(counters, out))
    }

    /// Reads every member into `out` by read(2).
    pub(crate) fn read_by_system_call(&mut self, out: &mut [Reading]) -> Result<(), ReadFailure> {
        // What notes the times of a call reads a clock.
        self.source.may_read_here();
        let counters = &self.counters;
        self.source.read_by_system_call(readings_of(counters, out))
    }

    /// Reads every member into `out` without a system call; false if that is not possible at this moment on this thread.
    pub(crate) fn read_pages(&mut self, out: &mut [Reading]) -> bool {
        let counters = &self.counters;
        self.source.read_pages(readings_of(counters, out))
    }

    /// Makes this moment the one that values and times count from, except for the values of members that `keeps_value`
    /// names. After an error, those that were read count from then.
    ///
    /// The kernel's own reset (`PERF_EVENT_IOC_RESET`) is not enough: it leaves the counts that
    /// children have added when they ended, and it gives no times, which a second call would read
    /// at another moment.
    pub(crate) fn reset(&mut self, keeps_value: impl Fn(usize) -> bool) -> Result<(), ReadFailure> {
        let counters = &mut self.counters;
        self.source.read(|member, value, times| {
            let counter = &mut counters[member];
            counter.times = times;
            if !keeps_value(member) {
                counter.value = value;
            }
        })
    }
}

/// Returns the visitor of a source that makes the readings of these counters.
fn readings_of(counters: &[Counter], out: &mut [Reading]) -> impl FnMut(usize, u64, Times) {
    |member, value, times| out[member] = counters[member].reading(value, times)
}

#[cfg(test)]
pub(crate) mod tests;
