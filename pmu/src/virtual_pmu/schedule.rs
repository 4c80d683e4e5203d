//! The schedule of one CPU: pinned groups first, then the others in turns.

mod look;
mod plan;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_hal::{Error, ErrorKind, Result};

pub(super) use self::look::is_out_of_reach;
use self::look::{accumulate_each, look_at, refresh_group};
use super::group_state::{CounterState, GroupState};
use super::ring::Ring;
use super::scheduled_group::{Known, ScheduledGroup};
use super::times::State;
use crate::assign::Matching;
use crate::clock::nanoseconds;
use crate::pmu::free_running;
use crate::{Clock, Pmu, Slot};

/// Sentinel deadline: never.
pub(super) const NEVER: u64 = u64::MAX;

/// The registers of one CPU, and the clock.
pub(super) struct CpuContext<'a, P> {
    pub(super) pmu: &'a P,
    pub(super) clock: &'a dyn Clock,
    pub(super) cpu: u32,
    /// Nanoseconds after which waiting groups get their turn.
    pub(super) interval: u64,
}

impl<P: Pmu> CpuContext<'_, P> {
    /// Returns the slots that any number of groups can use, since they always count.
    fn shared(&self) -> u64 {
        free_running(self.pmu.slots())
    }
}

/// The groups of one CPU.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Groups that are open here.
    open: usize,
    /// Those of them that are disabled.
    disabled: Ring,
    /// Set while the counters are acquired.
    held: bool,
    /// Enabled pinned groups that are not in error, in the order they were enabled.
    pinned: Vec<Arc<ScheduledGroup>>,
    /// Other enabled groups that need no counter: they never wait.
    unlimited: Vec<Arc<ScheduledGroup>>,
    /// Other enabled groups; the one at the front has the first choice.
    ring: Ring,
    /// Groups that count.
    placed: Vec<Arc<ScheduledGroup>>,
    /// Time of the next rotation, if a group waits.
    rotate_at: Option<u64>,
    /// Time before which CPUs that are set together are not all looked at between reads.
    sweep_from: u64,
    scratch: Scratch,
}

/// Buffers that are kept, so that rotating allocates nothing.
#[derive(Debug, Default)]
struct Scratch {
    next: Vec<Arc<ScheduledGroup>>,
    kept: Vec<Arc<ScheduledGroup>>,
    leaving: Vec<Arc<ScheduledGroup>>,
    arriving: Vec<Arc<ScheduledGroup>>,
    slots: Vec<usize>,
    raw: Vec<u64>,
    known: Vec<u64>,
}

impl Schedule {
    /// Adds an opened group, which is disabled; the first acquires the counters.
    pub(super) fn open<P: Pmu>(
        &mut self,
        at: &CpuContext<'_, P>,
        group: Arc<ScheduledGroup>,
    ) -> Result<()> {
        if !self.held {
            at.pmu.acquire(at.cpu)?;
            self.held = true;
        }
        self.open += 1;
        self.disabled.push_back(group);
        Ok(())
    }

    /// Removes a disabled group that is closed; the last releases the counters.
    pub(super) fn close<P: Pmu>(&mut self, at: &CpuContext<'_, P>, group: &Arc<ScheduledGroup>) {
        self.disabled.remove(group);
        self.open -= 1;
        if self.open == 0 {
            self.release_or_retry(at);
        }
    }

    /// Disables all groups, and gives the counters back.
    pub(super) fn give_back<P: Pmu>(&mut self, at: &CpuContext<'_, P>) {
        let unpinned = self.ring.iter().chain(&self.unlimited);
        let enabled: Vec<_> = unpinned.chain(&self.pinned).cloned().collect();
        for group in &enabled {
            self.disable(at, group);
        }
        self.release_or_retry(at);
    }

    /// Releases the counters; if that was interrupted, it may succeed the second time.
    fn release_or_retry<P: Pmu>(&mut self, at: &CpuContext<'_, P>) {
        self.release(at.pmu, at.cpu);
        self.release(at.pmu, at.cpu);
    }

    /// Restores the registers. When that fails the counters stay acquired, for the next group or the
    /// next try.
    pub(super) fn release<P: Pmu>(&mut self, pmu: &P, cpu: u32) {
        if self.held {
            self.held = pmu.release(cpu).is_err();
        }
    }

    /// Enables a group that is off or in error: it goes on now if it fits beside those that are on.
    /// Returns false if it was enabled already.
    pub(super) fn enable<P: Pmu>(
        &mut self,
        at: &CpuContext<'_, P>,
        group: &Arc<ScheduledGroup>,
    ) -> bool {
        if matches!(group.state().event_state(), State::Inactive | State::Active) {
            return false;
        }
        let now = at.clock.now();
        group.change_times(|times| times.enable(now));
        self.disabled.remove(group);
        if group.pinned {
            self.pinned.push(Arc::clone(group));
        } else if !group.needs_counters(at.shared()) {
            self.unlimited.push(Arc::clone(group));
        } else {
            self.ring.push_back(Arc::clone(group));
        }
        self.reschedule(at, Some(group));
        true
    }

    /// Disables a group; waiting groups take its place.
    pub(super) fn disable<P: Pmu>(&mut self, at: &CpuContext<'_, P>, group: &Arc<ScheduledGroup>) {
        let counted = group.is_active();
        self.pinned.retain(|s| !Arc::ptr_eq(s, group));
        self.unlimited.retain(|s| !Arc::ptr_eq(s, group));
        self.ring.remove(group);
        self.disabled.remove(group);
        self.disabled.push_back(Arc::clone(group));
        self.reschedule(at, None);
        let now = at.clock.now();
        let counted = counted && !group.state().faulted.load(Ordering::Relaxed);
        if matches!(group.state().event_state(), State::Inactive) {
            group.change_times(|times| {
                // A group that counted to the end was enabled as long as it counted.
                let end = if counted { times.stopped } else { now };
                times.stop(end, State::Off);
            });
        }
    }

    /// Disables a group that was just enabled and could not be started: it was enabled for no time.
    pub(super) fn withdraw<P: Pmu>(&mut self, at: &CpuContext<'_, P>, group: &Arc<ScheduledGroup>) {
        if matches!(group.state().event_state(), State::Inactive) {
            group.change_times(|times| times.stop(times.stopped, State::Off));
        }
        self.disable(at, group);
    }

    /// Turns the ring by one group.
    pub(super) fn rotate<P: Pmu>(&mut self, at: &CpuContext<'_, P>) {
        if self.rotate_at.take().is_some() {
            self.ring.turn();
            self.reschedule(at, None);
        }
    }

    /// Reads and verifies the groups that are due for accumulation or a look.
    pub(super) fn refresh<P: Pmu>(&mut self, at: &CpuContext<'_, P>) {
        let now = at.clock.now();
        let mut lost = false;
        let Self {
            placed,
            scratch,
            sweep_from,
            ..
        } = self;
        for group in placed.iter() {
            if accumulate_at(group) <= now {
                lost |= !refresh_group(at, group, scratch, true);
            } else if group.looks.due() <= now {
                lost |= !look_at(at, group, scratch, sweep_from);
            }
        }
        if lost {
            self.reschedule(at, None);
        }
    }

    /// Reads a group now if it counts, and verifies it if that is due for a read.
    pub(super) fn refresh_now<P: Pmu>(
        &mut self,
        at: &CpuContext<'_, P>,
        group: &Arc<ScheduledGroup>,
    ) {
        let verified_at = group.state().verified_at.load(Ordering::Relaxed);
        let since = at.clock.now().saturating_sub(verified_at);
        let every = at.pmu.read_verify_interval().map_or(NEVER, nanoseconds);
        if group.is_active() && !refresh_group(at, group, &mut self.scratch, since >= every) {
            self.reschedule(at, None);
        }
    }

    /// Sets the values of a group to zero.
    pub(super) fn reset<P: Pmu>(
        &mut self,
        at: &CpuContext<'_, P>,
        group: &Arc<ScheduledGroup>,
    ) -> Result<()> {
        // Before the registers are read, so that no count is without its time.
        let now = at.clock.now();
        let active = group.is_active();
        if active {
            self.scratch.take_slots(group);
            at.pmu.look_at(&group.cpus, &self.scratch.slots)?;
        }
        for (&cpu, state) in group.cpus.iter().zip(&group.states) {
            if active {
                self.scratch.take_slots(group);
                let Scratch { slots, raw, .. } = &mut self.scratch;
                at.pmu.read(cpu, slots, raw)?;
            }
            group.reset(state, active.then_some(&*self.scratch.raw), now);
        }
        group.looks.reset();
        Ok(())
    }

    /// Programs a group again whose registers another process has changed.
    pub(super) fn recover<P: Pmu>(&mut self, at: &CpuContext<'_, P>, group: &Arc<ScheduledGroup>) {
        if group.is_active() {
            group.discard_interval();
            self.reschedule(at, None);
        }
    }

    /// Returns the time at which work is due next.
    pub(super) fn due(&self) -> u64 {
        let due = |group: &Arc<ScheduledGroup>| accumulate_at(group).min(group.looks.due());
        let due = self.placed.iter().map(due).min();
        self.rotate_at().min(due.unwrap_or(NEVER))
    }

    /// Returns the time of the next rotation; [`NEVER`] while no group waits.
    pub(super) fn rotate_at(&self) -> u64 {
        self.rotate_at.unwrap_or(NEVER)
    }

    /// Schedules the planned groups in and all others out.
    fn reschedule<P: Pmu>(&mut self, at: &CpuContext<'_, P>, fresh: Option<&Arc<ScheduledGroup>>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (matching, in_use) = loop {
            let in_use = at.pmu.in_use(at.cpu);
            let matching = self.plan(at, in_use, &mut scratch.next);
            self.compare(&mut scratch, &matching);
            let leaving = std::mem::take(&mut scratch.leaving);
            for group in &leaving {
                stop_group(at, group, &mut scratch);
            }
            scratch.leaving = leaving;
            // Who stops a counter may find that another process has set it since.
            let taken = at.pmu.in_use(at.cpu).taken & !in_use.taken;
            if scratch.leaving.is_empty() || taken == 0 {
                break (matching, in_use);
            }
            scratch.clear();
        };
        let mut event = 0;
        for group in &scratch.next {
            // A group that stays has these slots already.
            for state in &group.states {
                for (member, counter) in state.counters.iter().enumerate() {
                    let slot = matching.slot_of(event + member);
                    counter.slot.store(slot, Ordering::Relaxed);
                }
            }
            event += group.members.len();
        }
        let arriving = std::mem::take(&mut scratch.arriving);
        for group in &arriving {
            let fresh = fresh.is_some_and(|fresh| Arc::ptr_eq(fresh, group));
            start_group(at, group, fresh, &mut scratch);
        }
        self.place_witnesses(at, in_use, &matching, &arriving);
        self.placed.clear();
        let on = scratch.next.iter().filter(|group| group.is_active());
        self.placed.extend(on.cloned());
        self.pinned.retain(|group| {
            if !group.is_active() {
                let now = at.clock.now();
                group.change_times(|times| times.stop(now, State::Error));
            }
            group.is_active()
        });
        let enabled = self.pinned.len() + self.unlimited.len() + self.ring.len();
        let waiting = self.placed.len() < enabled;
        if !waiting {
            self.rotate_at = None;
        } else if self.rotate_at.is_none() {
            self.rotate_at = Some(at.clock.now().saturating_add(at.interval));
        }
        scratch.arriving = arriving;
        scratch.clear();
        self.scratch = scratch;
    }

    /// Sorts groups into those that stay, leave and arrive.
    fn compare(&self, scratch: &mut Scratch, matching: &Matching) {
        let mut event = 0;
        for group in &scratch.next {
            let first = event;
            event += group.members.len();
            let same = (first..event)
                .map(|e| matching.slot_of(e))
                .eq(group.slots());
            if group.is_active() && same {
                scratch.kept.push(Arc::clone(group));
            } else {
                scratch.arriving.push(Arc::clone(group));
            }
        }
        // A group whose interval was discarded is on the list, but does not count any more.
        let on = self.placed.iter().filter(|group| group.is_active());
        let kept = &scratch.kept;
        scratch
            .leaving
            .extend(on.filter(|s| !is_among(kept, s)).cloned());
    }
}

fn is_among(groups: &[Arc<ScheduledGroup>], group: &Arc<ScheduledGroup>) -> bool {
    groups.iter().any(|other| Arc::ptr_eq(other, group))
}

impl Scratch {
    /// Collects the slots of a group, with as much room for raw values and the counts that are known before these
    /// are read.
    fn take_slots(&mut self, group: &ScheduledGroup) {
        self.slots.clear();
        self.slots.extend(group.slots());
        self.raw.clear();
        self.raw.resize(self.slots.len(), 0);
        let counters = &group.state().counters;
        self.known.clear();
        self.known
            .extend(counters.iter().map(CounterState::last_known));
    }

    fn clear(&mut self) {
        self.next.clear();
        self.kept.clear();
        self.leaving.clear();
        self.arriving.clear();
    }
}

fn accumulate_at(group: &ScheduledGroup) -> u64 {
    let load = |moment: &AtomicU64| moment.load(Ordering::Relaxed);
    let of = |s: &GroupState| load(&s.accumulated_at).saturating_add(load(&s.accumulate_every));
    group.states.iter().map(of).max().unwrap_or(NEVER)
}

/// Adds what a group has counted on a CPU.
fn accumulate<P: Pmu>(
    at: &CpuContext<'_, P>,
    (cpu, group, state): (u32, &ScheduledGroup, &GroupState),
    raw: &[u64],
    counts: &[u64],
    known_at: u64,
    stopped: bool,
) -> Result<()> {
    let slots = at.pmu.slots();
    let known = Known {
        counts,
        at: known_at,
    };
    let done = group.accumulate(state, slots, raw, &known, stopped, at.clock);
    done.map_err(|slot| written(slots[slot], cpu))
}

/// Returns the error of a counter that another program has written.
#[cold]
pub(super) fn written(slot: Slot, cpu: u32) -> Error {
    Error::new(
        ErrorKind::Interference,
        format!("count with {slot} of CPU {cpu}"),
    )
    .with_reason("its value went back, as when another program writes it")
}

/// Stops a group and accumulates its counts.
fn stop_group<P: Pmu>(at: &CpuContext<'_, P>, group: &Arc<ScheduledGroup>, scratch: &mut Scratch) {
    scratch.take_slots(group);
    let looked = at.pmu.look_at(&group.cpus, &scratch.slots);
    scratch.take_slots(group);
    // A reader may learn more until they have stopped; then less time has passed, and the bound is lower.
    let stopped = looked.and(at.pmu.stop(at.cpu, &scratch.slots, &mut scratch.raw));
    if at.pmu.sets_all_cpus() && stopped.is_ok() {
        if let Err(e) = accumulate_each(at, group, scratch, false, true) {
            group.set_fault(e);
        }
        return;
    }
    let known_at = group.state().last_known_at();
    let done = stopped.and_then(|()| {
        let part = (at.cpu, &**group, group.state());
        accumulate(at, part, &scratch.raw, &scratch.known, known_at, true)
    });
    if let Err(e) = done {
        group.discard_interval();
        group.set_fault(e);
    }
}

/// Programs and starts a group; one that fails waits for another turn, and its error for a caller.
fn start_group<P: Pmu>(
    at: &CpuContext<'_, P>,
    group: &Arc<ScheduledGroup>,
    fresh: bool,
    scratch: &mut Scratch,
) {
    if let Err(e) = program(at, group) {
        group.set_fault(e);
        return;
    }
    scratch.take_slots(group);
    // Before they count, so that no count is without its time.
    let now = at.clock.now();
    match at.pmu.start(at.cpu, &scratch.slots, &mut scratch.raw) {
        Ok(()) => {
            let verify_interval = at.pmu.verify_interval().map_or(u64::MAX, nanoseconds);
            group.schedule_in(at.pmu.slots(), &scratch.raw, verify_interval, fresh, now);
        }
        Err(e) => {
            // Some may count. The stop error is ignored: the start error is reported.
            let _ = at.pmu.stop(at.cpu, &scratch.slots, &mut scratch.raw);
            group.set_fault(e);
        }
    }
}

fn program<P: Pmu>(at: &CpuContext<'_, P>, group: &ScheduledGroup) -> Result<()> {
    for (slot, member) in group.slots().zip(&*group.members) {
        at.pmu.program(at.cpu, slot, &member.encoding)?;
        at.pmu.clear(at.cpu, slot)?;
    }
    Ok(())
}
