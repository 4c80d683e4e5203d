//! One group on the CPUs of one schedule, with the operations of the scheduler on it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quipu_hal::{Encoding, Error, MaxRate};

use super::group_state::{CounterState, GroupState, UNSTATED_RATE, wrap_timeout};
use super::looks::Looks;
use super::times::{State, Times};
use crate::{Clock, Slot};

/// A group that a scheduler places on slots: on one CPU, or on several that are set together.
#[derive(Debug)]
pub(super) struct ScheduledGroup {
    /// The schedule's position among those of the PMU.
    pub(super) cpu: usize,
    /// The CPUs it counts on.
    pub(super) cpus: Box<[u32]>,
    /// The counts and times on each of them. They are all on the PMU, or none is.
    pub(super) states: Box<[GroupState]>,
    pub(super) members: Arc<[Member]>,
    pub(super) pinned: bool,
    pub(super) exclusive: bool,
    pub(super) looks: Looks,
    /// Its position in the schedule's ring, while it is there.
    pub(super) place_in_ring: AtomicUsize,
    fault: Mutex<Option<Error>>,
}

/// The counts of a group known before its registers were read: a reader may know more by the time they were.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// The counts, in the members' order.
    pub(super) counts: &'a [u64],
    /// When.
    pub(super) at: u64,
}

/// One event of a group, as far as the scheduler is concerned.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) encoding: Encoding,
    /// The slots it can use, a bit each.
    pub(super) allowed: u64,
    pub(super) max_rate: Option<u64>,
    /// The most that it can count, by which a counter that jumped is found out.
    pub(super) bound: MaxRate,
    pub(super) gauge: bool,
}

impl ScheduledGroup {
    pub(super) fn new(
        cpu: usize,
        cpus: &[u32],
        members: Arc<[Member]>,
        pinned: bool,
        exclusive: bool,
        looks: Looks,
    ) -> Self {
        let state = |_| GroupState::new(members.len());
        Self {
            cpu,
            cpus: cpus.into(),
            states: cpus.iter().map(state).collect(),
            members,
            pinned,
            exclusive,
            looks,
            place_in_ring: AtomicUsize::new(0),
            fault: Mutex::new(None),
        }
    }

    /// Returns the state on the first CPU, for what is the same on all of them.
    pub(super) fn state(&self) -> &GroupState {
        &self.states[0]
    }

    /// Returns false if all its events can be on slots of the set `shared`, which any number of groups can use.
    pub(super) fn needs_counters(&self, shared: u64) -> bool {
        !self
            .members
            .iter()
            .all(|member| member.allowed & shared != 0)
    }

    /// Returns true if an event of each group need different values in a shared register.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.conflict(&other.members).is_some())
    }

    pub(super) fn is_active(&self) -> bool {
        self.state().event_state() == State::Active
    }

    /// Returns the slots its members are on, in their order.
    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        let counters = self.state().counters.iter();
        counters.map(|counter| counter.slot.load(Ordering::Relaxed))
    }

    /// Keeps an error for the next caller.
    pub(super) fn set_fault(&self, error: Error) {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(error);
        self.state().faulted.store(true, Ordering::Release);
    }

    /// Takes the error that waits for a caller, if there is one.
    pub(super) fn take_fault(&self) -> Option<Error> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        self.state().faulted.store(false, Ordering::Release);
        fault.take()
    }

    /// Makes it count from these raw values on, which the counters had at `now` or later; it is verified
    /// after `verify_interval` nanoseconds.
    pub(super) fn schedule_in(
        &self,
        slots: &[Slot],
        raw: &[u64],
        verify_interval: u64,
        fresh: bool,
        now: u64,
    ) {
        let (mut limit, mut every) = (u64::MAX, verify_interval);
        for (slot, member) in self.slots().zip(&*self.members) {
            if member.gauge {
                continue;
            }
            let mask = slots[slot].mask();
            if let Some(rate) = member.max_rate {
                limit = limit.min(wrap_timeout(mask, rate));
            }
            every = every.min(wrap_timeout(mask, member.max_rate.unwrap_or(UNSTATED_RATE)) / 4);
        }
        self.looks.begin(now);
        for state in &self.states {
            state.sequence.write(|| {
                for (counter, &raw) in state.counters.iter().zip(raw) {
                    counter.start.store(raw, Ordering::Relaxed);
                }
                state.wrap_timeout.store(limit, Ordering::Relaxed);
                state.accumulate_every.store(every, Ordering::Relaxed);
                state.accumulated_at.store(now, Ordering::Relaxed);
                state.verified_at.store(now, Ordering::Relaxed);
                let mut times = state.times();
                if fresh {
                    // It was enabled for this very moment, so that it counts all the time it is enabled.
                    times.stop(times.stopped, State::Off);
                    times.enable(now);
                }
                times.schedule_in(now);
                state.set_times(&times);
            });
        }
    }

    /// Adds the counts from those known before these raw values were read up to them; the group goes on
    /// counting or has stopped.
    ///
    /// # Errors
    /// The slot of a counter whose value went back, as when another program writes it; nothing is added then.
    pub(super) fn accumulate(
        &self,
        state: &GroupState,
        slots: &[Slot],
        raw: &[u64],
        known: &Known<'_>,
        stopped: bool,
        clock: &dyn Clock,
    ) -> Result<(), usize> {
        let members = || {
            state
                .counters
                .iter()
                .zip(&*self.members)
                .zip(raw)
                .zip(known.counts)
        };
        let elapsed = clock.now().saturating_sub(known.at);
        for (((counter, member), &raw), &known) in members() {
            let slot = counter.slot.load(Ordering::Relaxed);
            if member.went_back(counter, raw, slots[slot].mask(), known, elapsed) {
                return Err(slot);
            }
        }
        state.sequence.write(|| {
            let now = clock.now();
            self.looks.look(now, true);
            for (((counter, member), &raw), &known) in members() {
                let mask = slots[counter.slot.load(Ordering::Relaxed)].mask();
                let count = member.count(raw, mask, || counter.widen(raw, mask, known));
                counter.base.store(count, Ordering::Relaxed);
                counter.start.store(raw, Ordering::Relaxed);
            }
            if now.saturating_sub(state.last_known_at())
                > state.wrap_timeout.load(Ordering::Relaxed)
            {
                state.wrap_missed.store(true, Ordering::Relaxed);
            }
            state.accumulated_at.store(now, Ordering::Relaxed);
            if stopped {
                let mut times = state.times();
                times.schedule_out(now);
                state.set_times(&times);
            }
        });
        Ok(())
    }

    /// Takes a stopped group off without the counts since its last read, which are unknown: that
    /// interval is neither counted nor time running.
    pub(super) fn discard_interval(&self) {
        self.states.iter().for_each(GroupState::discard_interval);
    }

    /// Sets its values on a CPU to zero; its times count from here.
    pub(super) fn reset(&self, state: &GroupState, raw: Option<&[u64]>, now: u64) {
        state.sequence.write(|| {
            for (i, (counter, member)) in state.counters.iter().zip(&*self.members).enumerate() {
                if !member.gauge {
                    counter.base.store(0, Ordering::Relaxed);
                    counter.seen.store(0, Ordering::Relaxed);
                }
                if let Some(raw) = raw {
                    counter.start.store(raw[i], Ordering::Relaxed);
                }
            }
            let (enabled, running) = state.times().at(now);
            state.reset_enabled.store(enabled, Ordering::Relaxed);
            state.reset_running.store(running, Ordering::Relaxed);
            state.accumulated_at.store(now, Ordering::Relaxed);
            state.wrap_missed.store(false, Ordering::Relaxed);
        });
    }

    /// Changes its event state and times only, on every CPU.
    pub(super) fn change_times(&self, change: impl Fn(&mut Times)) {
        for state in &self.states {
            state.sequence.write(|| {
                let mut times = state.times();
                change(&mut times);
                state.set_times(&times);
            });
        }
    }
}

impl Member {
    /// Returns the first of other events that needs another value in a register besides its slot's, and the
    /// register's address. Such registers are shared by all slots.
    pub(super) fn conflict(&self, others: &[Self]) -> Option<(usize, u32)> {
        let Encoding::X86(own) = &self.encoding else {
            return None;
        };
        own.extra.iter().find_map(|mine| {
            let differs = |other: &Self| match &other.encoding {
                Encoding::X86(select) => select
                    .extra
                    .iter()
                    .any(|theirs| theirs.address == mine.address && theirs.value != mine.value),
                _ => false,
            };
            Some((others.iter().position(differs)?, mine.address))
        })
    }

    /// Returns true if a register went back since its count was `known` and cannot have wrapped in the nanoseconds
    /// that have passed: another program has written it.
    pub(super) fn went_back(
        &self,
        counter: &CounterState,
        raw: u64,
        mask: u64,
        known: u64,
        elapsed: u64,
    ) -> bool {
        let moved = counter.wrapped(raw, mask, known);
        !self.gauge && moved.is_some_and(|moved| !self.bound.allows(moved, elapsed))
    }

    /// Returns the value at a raw value: a gauge shows the register, a counter its widened count.
    pub(super) fn count(&self, raw: u64, mask: u64, widen: impl FnOnce() -> u64) -> u64 {
        if self.gauge { raw & mask } else { widen() }
    }
}
