//! One kernel group: its counters, and the system call that reads them.

mod exact;
mod fds;
mod mapped;

use std::iter;
use std::sync::Arc;

use quipu_hal::{Error, GroupSpec, MaxRate, Overflows, Reading, Result as HalResult};

use crate::event_bits::EventBits;
use crate::overflow::{self, OverflowRing, SharedRing};
use crate::own_counters;
use crate::sys::{CounterFd, ReadFormat};
pub(crate) use exact::take_exact;
pub(crate) use fds::Fds;

use crate::user_read::{Obstacle, Pages, Times, UserCounters, Way, explain};

/// The words of a group read before the members: how many there are, and both times.
const GROUP_HEADER: usize = 3;
/// The words of a group read for each member: value and id.
const GROUP_ENTRY: usize = 2;
/// The words of a single read: value and both times.
const SINGLE: usize = 3;

/// The way a kernel group is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPlan {
    /// The leader is all there is.
    Single,
    /// One read of the leader returns every member.
    Snapshot,
    /// A read for each member, one after the other.
    OneByOne,
}

impl ReadPlan {
    /// The format that the counters have to be opened with.
    pub(crate) fn format(self) -> ReadFormat {
        match self {
            Self::Single | Self::OneByOne => ReadFormat::TIMES,
            Self::Snapshot => ReadFormat::TIMES | ReadFormat::GROUP | ReadFormat::ID,
        }
    }

    /// Returns the number of words that a read of `members` at once needs.
    pub(crate) fn words(self, members: usize) -> usize {
        match self {
            Self::Single | Self::OneByOne => 0,
            Self::Snapshot => GROUP_HEADER + GROUP_ENTRY * members,
        }
    }
}

/// Why a kernel group was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The kernel refused.
    Errno(i32),
    /// End of file: the group is pinned and not on the PMU.
    ErrorState,
    /// The kernel wrote something else than was asked for.
    Malformed,
}

/// The id of a counter in a group read, its value at the last reset, and the most that it can count.
#[derive(Debug, Clone, Copy)]
struct Counter {
    id: u64,
    value: u64,
    max_rate: MaxRate,
    /// The most that it can have counted since the last reset, by the time running when that was last looked at.
    possible: u64,
}

impl Counter {
    /// Returns a counter that was just opened.
    #[inline]
    fn new(id: u64) -> Self {
        let mut counter = Self {
            id,
            value: 0,
            max_rate: MaxRate::NONE,
            possible: 0,
        };
        counter.note_possible(0);
        counter
    }

    /// Returns the reading since the last reset, at these times.
    #[inline(always)]
    fn at(&self, value: u64, mut times: Reading) -> Reading {
        times.value = value.saturating_sub(self.value);
        times.max_rate = self.max_rate;
        times
    }
}

impl Times {
    /// Those of a counter that was just opened.
    const NONE: Self = Self {
        enabled: 0,
        running: 0,
    };

    /// Returns a reading of these times since those of the last reset. The kernel's may go backwards by a little
    /// between CPUs; they stop at zero here.
    #[inline(always)]
    fn since(self, reset: &Self) -> Reading {
        let enabled = self.enabled.saturating_sub(reset.enabled);
        let running = self.running.saturating_sub(reset.running);
        Reading::new(0, enabled, running).with_raw_times(self.enabled, self.running)
    }
}

/// The counters of a part that were just opened, and the way to read them.
#[derive(Debug)]
pub(crate) struct Opened {
    plan: ReadPlan,
    fds: Fds,
    counters: Box<[Counter]>,
}

impl Opened {
    /// Returns counters that are read so.
    ///
    /// # Errors
    /// The errno with which the kernel refused to tell a counter's id.
    pub(crate) fn new(plan: ReadPlan, fds: Fds) -> Result<Self, i32> {
        if plan == ReadPlan::Single {
            let counters = Box::new([Counter::new(0)]);
            return Ok(Self {
                plan,
                fds,
                counters,
            });
        }
        let mut counters = Vec::with_capacity(fds.len());
        for fd in fds.iter() {
            counters.push(Counter::new(match plan {
                ReadPlan::Snapshot => fd.id()?,
                ReadPlan::Single | ReadPlan::OneByOne => 0,
            }));
        }
        Ok(Self {
            plan,
            fds,
            counters: counters.into(),
        })
    }
}

/// The counters that the kernel schedules together: one part of a group. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct KernelGroup {
    plan: ReadPlan,
    live: bool,
    fds: Fds,
    /// The leader comes first.
    counters: Box<[Counter]>,
    /// The times of the leader at the last reset: of all members that are read with it.
    reset: Times,
    /// The times of the other members at the last reset, where each is read by itself.
    other_resets: Box<[Times]>,
    /// The id of the last member, once the kernel has listed all in their order; 0 before.
    last_in_order: u64,
    /// The mapped pages of the counters, or why they cannot be read without a system call.
    user: Result<UserCounters, Obstacle>,
    /// The rings of members that send signals, by their positions.
    overflows: Box<[(usize, SharedRing)]>,
}

impl KernelGroup {
    /// A kernel group of open counters. `live` says that the kernel counts some of them
    /// [while they happen](crate::event_bits::EventBits::is_counted_live).
    #[inline]
    pub(crate) fn new(opened: Opened, live: bool) -> Self {
        let other_resets = match opened.plan {
            ReadPlan::OneByOne => vec![Times::NONE; opened.counters.len() - 1].into(),
            ReadPlan::Single | ReadPlan::Snapshot => Box::default(),
        };
        Self {
            plan: opened.plan,
            live,
            fds: opened.fds,
            counters: opened.counters,
            reset: Times::NONE,
            other_resets,
            last_in_order: 0,
            user: Err(Obstacle::SwitchedOff),
            overflows: Box::default(),
        }
    }

    /// Adds counters that were opened under the leader. `live` is as for [`new`](Self::new), of all counters.
    ///
    /// # Errors
    /// The errno with which the kernel refused to tell a counter's id; nothing is added then.
    pub(crate) fn add(&mut self, more: Vec<CounterFd>, live: bool) -> Result<(), i32> {
        let mut added = Vec::with_capacity(more.len());
        for fd in &more {
            added.push(Counter::new(fd.id()?));
        }
        self.fds.extend(more);
        let mut counters = std::mem::take(&mut self.counters).into_vec();
        counters.append(&mut added);
        self.counters = counters.into();
        self.last_in_order = 0;
        self.live = live;
        if let Ok(user) = &mut self.user {
            let mapped = match live {
                true => Err(Obstacle::NoRegister),
                false => user.map(&self.fds, None).map(|_| ()),
            };
            if let Err(obstacle) = mapped {
                self.user = Err(obstacle);
            }
        }
        Ok(())
    }

    /// The counters in member order.
    pub(crate) fn fds(&self) -> &Fds {
        &self.fds
    }

    /// Sets the most that a member can count in the time running, by which a counter that jumped is found out.
    pub(crate) fn set_max_rate(&mut self, member: usize, max_rate: MaxRate) {
        if let Some(counter) = self.counters.get_mut(member) {
            counter.max_rate = max_rate;
            counter.note_possible(0);
        }
    }

    /// Reads this group in user space from now on, whenever the calling thread may. It has to be
    /// one of the calling thread alone. Where that is not possible, the reason is noted, and returned, else what its pages
    /// tell, which may be `known`.
    pub(crate) fn read_in_user_space(&mut self, known: Option<Pages>) -> Result<Pages, Obstacle> {
        self.user = match self.live {
            true => Err(Obstacle::NoRegister),
            false => UserCounters::new(),
        };
        let mapped = match &mut self.user {
            Ok(user) => user.map(&self.fds, known),
            Err(obstacle) => Err(*obstacle),
        };
        if let Err(obstacle) = mapped {
            self.user = Err(obstacle);
        }
        mapped
    }

    /// Has signals sent for overflows of the members that ask for them.
    pub(crate) fn send_signals(&mut self, spec: &GroupSpec, bits: &[EventBits]) -> HalResult<()> {
        if !overflow::is_asked_for(spec) {
            return Ok(());
        }
        let mut rings = Vec::new();
        let leader = self.fds.leader();
        for (i, (fd, member)) in self.fds.iter().zip(&spec.members).enumerate() {
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
        self.user = Err(obstacle);
    }

    /// Returns true if this group has mapped pages, and may be read in user space.
    pub(crate) fn is_mapped(&self) -> bool {
        self.user.is_ok()
    }

    /// Returns true if this group is best read by its pages.
    pub(crate) fn is_best_read_by_pages(&self) -> bool {
        matches!(&self.user, Ok(user) if user.way() == Way::UserSpace)
    }

    /// Returns true if it is one counter.
    pub(crate) fn is_one(&self) -> bool {
        self.counters.len() == 1
    }

    /// Returns true if it has mapped pages that tell times.
    pub(crate) fn tells_times(&self) -> bool {
        (self.user.as_ref()).is_ok_and(|user| user.pages().tell_times)
    }

    /// Returns the reason why this group is read by system calls, if it is.
    pub(crate) fn no_user_reads(&self) -> Option<Error> {
        match &self.user {
            Ok(user) => user.obstacle(),
            Err(obstacle) => Some(explain(*obstacle)),
        }
    }

    /// Returns true once the kernel has listed the members in their order. It stays so: the kernel appends a member when
    /// that is opened (`perf_group_attach`, `kernel/events/core.c`), and puts none back that it took out.
    pub(crate) fn is_in_order(&self) -> bool {
        self.last_in_order != 0
    }

    /// Returns the way this group is read.
    #[inline]
    pub(crate) fn plan(&self) -> ReadPlan {
        self.plan
    }

    /// Returns true if a read is of one moment. Counts that are kept live go on while the kernel copies
    /// one after the other (`perf_read_group`, `kernel/events/core.c`), unless the measured thread is
    /// the one that reads; so do registers that are read in user space.
    pub(crate) fn is_snapshot(&self) -> bool {
        match self.plan {
            ReadPlan::Single => true,
            ReadPlan::Snapshot => !self.live && self.user.is_err(),
            ReadPlan::OneByOne => false,
        }
    }

    /// Starts every member at the same moment, as long as none was ever stopped by itself.
    pub(crate) fn start(&self) -> Result<(), i32> {
        self.fds.leader().enable()
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
        for member in (0..self.fds.len()).rev() {
            match (self.ring(member), self.fds.of(member)) {
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
        self.fds.leader().disable()
    }

    /// Reads the only member, if the first call succeeds.
    #[inline(always)]
    pub(crate) fn try_counter(&self, out: &mut [Reading]) -> bool {
        let Some([value, enabled, running]) = self.fds.leader().words::<SINGLE>() else {
            return false;
        };
        let ([counter], [out]) = (&*self.counters, out) else {
            return false;
        };
        *out = counter.at(value, Times { enabled, running }.since(&self.reset));
        true
    }

    /// Reads every member in a call of the leader into `out`, which has one reading for each, if the first call
    /// succeeds and the kernel lists them in their order. `words` are the plan's.
    #[inline(always)]
    pub(crate) fn try_snapshot(&self, words: &mut [u64], out: &mut [Reading]) -> bool {
        self.fds.leader().fills(words) && self.take_snapshot(words, out) == Ok(true)
    }

    /// Reads every member into `out`, which has one reading for each, by way of `words`, which has
    /// room for the plan's words.
    pub(crate) fn read(
        &mut self,
        words: &mut [u64],
        out: &mut [Reading],
    ) -> Result<(), ReadFailure> {
        match &self.user {
            Err(_) => self.read_words(words, out),
            Ok(user) => match user.way() {
                Way::UserSpace if self.read_pages(out) => Ok(()),
                Way::UserSpace | Way::SystemCall => self.read_by_system_call(words, out),
                Way::Both => self.read_both_ways(words, out),
            },
        }
    }

    /// Reads every member into `out` by read(2).
    #[inline(never)]
    pub(crate) fn read_by_system_call(
        &mut self,
        words: &mut [u64],
        out: &mut [Reading],
    ) -> Result<(), ReadFailure> {
        let state = self.user.as_ref().ok().and_then(UserCounters::state);
        self.read_words(words, out)?;
        if let Ok(user) = &mut self.user {
            user.told(state, out);
        }
        Ok(())
    }

    #[inline(always)]
    fn read_words(&mut self, words: &mut [u64], out: &mut [Reading]) -> Result<(), ReadFailure> {
        match self.plan {
            ReadPlan::Snapshot => self.read_snapshot(words, out),
            ReadPlan::Single | ReadPlan::OneByOne => self.read_each(out),
        }
    }

    /// Makes this moment the one that values and times count from, except for the values of members
    /// that `keeps_value` says. Uses `out` for what it reads.
    ///
    /// The kernel's own reset (`PERF_EVENT_IOC_RESET`) is not enough: it leaves the counts that
    /// children have added when they ended, and it tells no times, which a second call would read
    /// at another moment.
    pub(crate) fn reset(
        &mut self,
        words: &mut [u64],
        out: &mut [Reading],
        keeps_value: impl Fn(usize) -> bool,
    ) -> Result<(), ReadFailure> {
        self.read(words, out)?;
        for (i, (counter, read)) in self.counters.iter_mut().zip(&*out).enumerate() {
            if !keeps_value(i) {
                counter.value += read.value;
            }
            counter.note_possible(0);
        }
        let resets = iter::once(&mut self.reset).chain(&mut self.other_resets);
        for (reset, read) in resets.zip(out) {
            *reset = Times {
                enabled: read.raw_time_enabled,
                running: read.raw_time_running,
            };
        }
        Ok(())
    }

    #[inline(always)]
    fn read_snapshot(&mut self, words: &mut [u64], out: &mut [Reading]) -> Result<(), ReadFailure> {
        let words = &mut words[..self.plan.words(self.counters.len())];
        read_exactly(self.fds.leader(), words)?;
        if !self.take_snapshot(words, out)? {
            return self.match_by_id(words, out);
        }
        self.last_in_order = self.counters.last().map_or(0, |last| last.id);
        Ok(())
    }

    /// Takes the members in their order, in which the kernel lists them; false where it does not.
    #[inline(always)]
    fn take_snapshot(&self, words: &[u64], out: &mut [Reading]) -> Result<bool, ReadFailure> {
        let members = self.counters.len();
        let &[listed, enabled, running, ref entries @ ..] = words else {
            return Err(ReadFailure::Malformed);
        };
        let (entries, _) = entries.as_chunks::<GROUP_ENTRY>();
        if listed != members as u64 || entries.len() != members || out.len() != members {
            return Err(ReadFailure::Malformed);
        }
        let times = Times { enabled, running }.since(&self.reset);
        let mut id_mismatch = 0;
        for ((counter, &[value, id]), out) in self.counters.iter().zip(entries).zip(out) {
            id_mismatch |= id ^ counter.id;
            *out = counter.at(value, times);
        }
        Ok(id_mismatch == 0)
    }

    /// Takes the members as the kernel lists them in another order.
    #[cold]
    fn match_by_id(&self, words: &[u64], out: &mut [Reading]) -> Result<(), ReadFailure> {
        let (header, entries) = words.split_at(GROUP_HEADER);
        let (enabled, running) = (header[1], header[2]);
        let times = Times { enabled, running }.since(&self.reset);
        let (entries, _) = entries.as_chunks::<GROUP_ENTRY>();
        for (counter, out) in self.counters.iter().zip(out) {
            let entry = entries.iter().find(|entry| entry[1] == counter.id);
            let &[value, _] = entry.ok_or(ReadFailure::Malformed)?;
            *out = counter.at(value, times);
        }
        Ok(())
    }

    #[inline(always)]
    fn read_each(&self, out: &mut [Reading]) -> Result<(), ReadFailure> {
        let mut words = [0; SINGLE];
        let resets = iter::once(&self.reset).chain(&self.other_resets);
        let members = self.fds.iter().zip(&self.counters).zip(resets);
        for (((fd, counter), reset), out) in members.zip(out) {
            read_exactly(fd, &mut words)?;
            let [value, enabled, running] = words;
            *out = counter.at(value, Times { enabled, running }.since(reset));
        }
        Ok(())
    }
}

/// Fills `words` from a counter, in one system call.
#[inline(always)]
fn read_exactly(fd: &CounterFd, words: &mut [u64]) -> Result<(), ReadFailure> {
    let wanted = size_of_val(words);
    match fd.read(words) {
        Ok(n) if n == wanted => Ok(()),
        Ok(0) => Err(ReadFailure::ErrorState),
        Ok(_) => Err(ReadFailure::Malformed),
        Err(errno) => Err(ReadFailure::Errno(errno)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
