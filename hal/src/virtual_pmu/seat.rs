//! One group on one CPU, and what the scheduler does to it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::tally::Tally;
use super::times::{State, Times};
use super::widening::{UNSTATED_RATE, patience};
use crate::{Encoding, Error, Slot};

/// A group on one CPU: a candidate for slots.
#[derive(Debug)]
pub(super) struct Seat {
    /// The CPU's position among those of the PMU.
    pub(super) cpu: usize,
    pub(super) members: Arc<[Member]>,
    pub(super) pinned: bool,
    pub(super) exclusive: bool,
    pub(super) tally: Tally,
    fault: Mutex<Option<Error>>,
}

/// One event of a group, as far as the scheduler is concerned.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) encoding: Encoding,
    /// The slots it can use, a bit each.
    pub(super) allowed: u64,
    pub(super) max_rate: Option<u64>,
    pub(super) gauge: bool,
}

impl Seat {
    pub(super) fn new(cpu: usize, members: Arc<[Member]>, pinned: bool, exclusive: bool) -> Self {
        Self {
            cpu,
            tally: Tally::new(members.len()),
            members,
            pinned,
            exclusive,
            fault: Mutex::new(None),
        }
    }

    /// Whether an event of each group need different values in a shared register.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.conflict(&other.members).is_some())
    }

    pub(super) fn is_active(&self) -> bool {
        self.tally.state() == State::Active
    }

    /// The slots its members are on, in their order.
    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        let lanes = self.tally.lanes.iter();
        lanes.map(|lane| lane.slot.load(Ordering::Relaxed))
    }

    /// Keeps an error for the next caller that can be told.
    pub(super) fn set_fault(&self, error: Error) {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(error);
        self.tally.faulted.store(true, Ordering::Release);
    }

    /// The error that waits for a caller, if there is one.
    pub(super) fn take_fault(&self) -> Option<Error> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        self.tally.faulted.store(false, Ordering::Release);
        fault.take()
    }

    /// It counts from these raw values on, and is to be looked at after `vigilance` nanoseconds.
    pub(super) fn schedule_in(
        &self,
        slots: &[Slot],
        raw: &[u64],
        vigilance: u64,
        fresh: bool,
        now: impl Fn() -> u64,
    ) {
        let (mut limit, mut every) = (u64::MAX, vigilance);
        for (slot, member) in self.slots().zip(&*self.members) {
            if member.gauge {
                continue;
            }
            let mask = slots[slot].mask();
            if let Some(rate) = member.max_rate {
                limit = limit.min(patience(mask, rate));
            }
            every = every.min(patience(mask, member.max_rate.unwrap_or(UNSTATED_RATE)) / 4);
        }
        let tally = &self.tally;
        tally.sequence.write(|| {
            let now = now();
            for (lane, &raw) in tally.lanes.iter().zip(raw) {
                lane.start.store(raw, Ordering::Relaxed);
            }
            tally.patience.store(limit, Ordering::Relaxed);
            tally.fold_every.store(every, Ordering::Relaxed);
            tally.folded_at.store(now, Ordering::Relaxed);
            let mut times = tally.times();
            if fresh {
                // It was enabled for this very moment, so that it counts all the time it is enabled.
                times.stop(times.stopped, State::Off);
                times.enable(now);
            }
            times.schedule_in(now);
            tally.set_times(&times);
        });
    }

    /// It counted up to these raw values, and goes on counting or has stopped.
    pub(super) fn fold(&self, slots: &[Slot], raw: &[u64], stopped: bool, now: impl Fn() -> u64) {
        let tally = &self.tally;
        tally.sequence.write(|| {
            let now = now();
            let lanes = tally.lanes.iter().zip(&*self.members).zip(raw);
            for ((lane, member), &raw) in lanes {
                let mask = slots[lane.slot.load(Ordering::Relaxed)].mask();
                let count = member.count(raw, mask, || lane.widen(raw, mask));
                lane.base.store(count, Ordering::Relaxed);
                lane.start.store(raw, Ordering::Relaxed);
            }
            if now.saturating_sub(tally.known_at()) > tally.patience.load(Ordering::Relaxed) {
                tally.lapsed.store(true, Ordering::Relaxed);
            }
            tally.folded_at.store(now, Ordering::Relaxed);
            if stopped {
                let mut times = tally.times();
                times.schedule_out(now);
                tally.set_times(&times);
            }
        });
    }

    /// It has stopped, and what it counted since its values were last known cannot be told: that
    /// span is neither counted nor time running.
    pub(super) fn forfeit(&self) {
        let tally = &self.tally;
        tally.sequence.write(|| {
            for lane in &tally.lanes {
                lane.base.store(lane.known(), Ordering::Relaxed);
            }
            let mut times = tally.times();
            times.schedule_out(tally.known_at());
            tally.set_times(&times);
        });
    }

    /// Its values are zero, and its times count from here.
    pub(super) fn reset(&self, raw: Option<&[u64]>, now: impl Fn() -> u64) {
        let tally = &self.tally;
        tally.sequence.write(|| {
            let now = now();
            for (i, (lane, member)) in tally.lanes.iter().zip(&*self.members).enumerate() {
                if !member.gauge {
                    lane.base.store(0, Ordering::Relaxed);
                    lane.seen.store(0, Ordering::Relaxed);
                }
                if let Some(raw) = raw {
                    lane.start.store(raw[i], Ordering::Relaxed);
                }
            }
            let (enabled, running) = tally.times().at(now);
            tally.reset_enabled.store(enabled, Ordering::Relaxed);
            tally.reset_running.store(running, Ordering::Relaxed);
            tally.folded_at.store(now, Ordering::Relaxed);
            tally.lapsed.store(false, Ordering::Relaxed);
        });
    }

    /// Changes only its state and times.
    pub(super) fn change_times(&self, change: impl FnOnce(&mut Times)) {
        let tally = &self.tally;
        tally.sequence.write(|| {
            let mut times = tally.times();
            change(&mut times);
            tally.set_times(&times);
        });
    }
}

impl Member {
    /// The first of other events that needs another value in a register besides its slot's, and the
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

    /// What a raw value says: a gauge shows itself, a counter goes on.
    pub(super) fn count(&self, raw: u64, mask: u64, widen: impl FnOnce() -> u64) -> u64 {
        if self.gauge { raw & mask } else { widen() }
    }
}
