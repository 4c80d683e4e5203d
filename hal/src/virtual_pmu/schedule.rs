//! Which groups are on the PMU of one CPU: pinned ones first, then the others in turns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::assignment::Matching;
use super::seat::Seat;
use super::times::State;
use crate::clock::nanoseconds;
use crate::{Clock, ErrorKind, Gating, Pmu, Result};

/// No moment at all.
pub(super) const NEVER: u64 = u64::MAX;

/// The registers of one CPU, and the clock.
pub(super) struct Registers<'a, P, C> {
    pub(super) pmu: &'a P,
    pub(super) clock: &'a C,
    pub(super) cpu: u32,
    /// Nanoseconds after which waiting groups get their turn.
    pub(super) interval: u64,
}

/// The groups of one CPU.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Groups that are open here.
    open: usize,
    /// Whether the counters are ours.
    held: bool,
    /// Enabled pinned groups that are not in error, in the order they were enabled.
    pinned: Vec<Arc<Seat>>,
    /// Other enabled groups; the one at the front has the first choice.
    ring: VecDeque<Arc<Seat>>,
    /// Groups that count.
    placed: Vec<Arc<Seat>>,
    /// When the ring turns next, if somebody waits.
    rotate_at: Option<u64>,
    scratch: Scratch,
}

/// Room that is kept, so that rotating allocates nothing.
#[derive(Debug, Default)]
struct Scratch {
    next: Vec<Arc<Seat>>,
    kept: Vec<Arc<Seat>>,
    leaving: Vec<Arc<Seat>>,
    arriving: Vec<Arc<Seat>>,
    ready: Vec<Arc<Seat>>,
    slots: Vec<usize>,
    raw: Vec<u64>,
}

impl Schedule {
    /// A group is opened: the first takes the counters.
    pub(super) fn open<P: Pmu, C>(&mut self, at: &Registers<'_, P, C>) -> Result<()> {
        if !self.held {
            at.pmu.acquire(at.cpu)?;
            self.held = true;
        }
        self.open += 1;
        Ok(())
    }

    /// A group is closed: the last gives the counters back.
    pub(super) fn close<P: Pmu, C>(&mut self, at: &Registers<'_, P, C>) {
        self.open -= 1;
        if self.open == 0 {
            // What was interrupted may do a second time.
            self.give_back(at.pmu, at.cpu);
            self.give_back(at.pmu, at.cpu);
        }
    }

    /// Puts back what was found. There is nobody to tell when that fails; the counters stay ours
    /// then, for the next group or the next try.
    pub(super) fn give_back<P: Pmu>(&mut self, pmu: &P, cpu: u32) {
        if self.held {
            self.held = pmu.release(cpu).is_err();
        }
    }

    /// A group that is off or in error is enabled: it goes on now if it fits beside those that are
    /// on. Says whether it was.
    pub(super) fn enable<P: Pmu, C: Clock>(
        &mut self,
        at: &Registers<'_, P, C>,
        seat: &Arc<Seat>,
    ) -> bool {
        if matches!(seat.tally.state(), State::Inactive | State::Active) {
            return false;
        }
        let now = at.clock.now();
        seat.change_times(|times| times.enable(now));
        if seat.pinned {
            self.pinned.push(Arc::clone(seat));
        } else {
            self.ring.push_back(Arc::clone(seat));
        }
        self.arrange(at, Some(seat));
        true
    }

    /// A group is disabled; whoever waits takes its place.
    pub(super) fn disable<P: Pmu, C: Clock>(&mut self, at: &Registers<'_, P, C>, seat: &Arc<Seat>) {
        let counted = seat.is_active();
        self.pinned.retain(|s| !Arc::ptr_eq(s, seat));
        self.ring.retain(|s| !Arc::ptr_eq(s, seat));
        self.arrange(at, None);
        let now = at.clock.now();
        let counted = counted && !seat.tally.faulted.load(Ordering::Relaxed);
        if matches!(seat.tally.state(), State::Inactive) {
            seat.change_times(|times| {
                // What counted to the end was enabled as long as it counted.
                let end = if counted { times.stopped } else { now };
                times.stop(end, State::Off);
            });
        }
    }

    /// The ring turns by one group.
    pub(super) fn rotate<P: Pmu, C: Clock>(&mut self, at: &Registers<'_, P, C>) {
        if self.rotate_at.take().is_some() {
            if let Some(front) = self.ring.pop_front() {
                self.ring.push_back(front);
            }
            self.arrange(at, None);
        }
    }

    /// Reads and verifies what has gone without it for long.
    pub(super) fn refresh<P: Pmu, C: Clock>(&mut self, at: &Registers<'_, P, C>) {
        let now = at.clock.now();
        let mut lost = false;
        let Self {
            placed, scratch, ..
        } = self;
        for seat in placed.iter().filter(|seat| fold_at(seat) <= now) {
            scratch.take_slots(std::slice::from_ref(seat));
            let read = at.pmu.read(at.cpu, &scratch.slots, &mut scratch.raw);
            match read.and_then(|()| at.pmu.verify(at.cpu, &scratch.slots)) {
                Ok(()) => seat.fold(at.pmu.slots(), &scratch.raw, false, || at.clock.now()),
                Err(e) => {
                    if e.kind() == ErrorKind::Interference {
                        seat.forfeit();
                        lost = true;
                    }
                    seat.set_fault(e);
                }
            }
        }
        if lost {
            self.arrange(at, None);
        }
    }

    /// A group's registers were changed by somebody else: it is programmed anew.
    pub(super) fn recover<P: Pmu, C: Clock>(&mut self, at: &Registers<'_, P, C>, seat: &Arc<Seat>) {
        if seat.is_active() {
            seat.forfeit();
            self.arrange(at, None);
        }
    }

    /// When something has to be done next.
    pub(super) fn due(&self) -> u64 {
        let fold = self.placed.iter().map(|seat| fold_at(seat)).min();
        self.rotate_at().min(fold.unwrap_or(NEVER))
    }

    /// When the ring turns next; [`NEVER`] while nobody waits.
    pub(super) fn rotate_at(&self) -> u64 {
        self.rotate_at.unwrap_or(NEVER)
    }

    /// Puts on the PMU what shall be there, and takes off what shall not.
    fn arrange<P: Pmu, C: Clock>(&mut self, at: &Registers<'_, P, C>, fresh: Option<&Arc<Seat>>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let matching = self.plan(&mut scratch.next);
        self.compare(&mut scratch, &matching, at.pmu.gating());
        let all_at_once = at.pmu.gating() == Gating::Shared;
        let leaving = std::mem::take(&mut scratch.leaving);
        for seats in batches(&leaving, all_at_once) {
            halt(at, seats, &mut scratch);
        }
        let mut event = 0;
        for seat in &scratch.next {
            // A group that stays has these slots already.
            for lane in &seat.tally.lanes {
                let slot = matching.slot_of(event);
                lane.slot.store(slot, Ordering::Relaxed);
                event += 1;
            }
        }
        let arriving = std::mem::take(&mut scratch.arriving);
        for seats in batches(&arriving, all_at_once) {
            launch(at, seats, fresh, &mut scratch);
        }
        self.placed.clear();
        let on = scratch.next.iter().filter(|seat| seat.is_active());
        self.placed.extend(on.cloned());
        self.pinned.retain(|seat| {
            if !seat.is_active() {
                let now = at.clock.now();
                seat.change_times(|times| times.stop(now, State::Error));
            }
            seat.is_active()
        });
        let waiting = self.placed.len() < self.pinned.len() + self.ring.len();
        if !waiting {
            self.rotate_at = None;
        } else if self.rotate_at.is_none() {
            self.rotate_at = Some(at.clock.now().saturating_add(at.interval));
        }
        scratch.leaving = leaving;
        scratch.arriving = arriving;
        scratch.clear();
        self.scratch = scratch;
    }

    /// Who shall be on: every pinned group that fits, and the ring from its front up to the first
    /// that does not. So the work depends on the slots, not on how many wait.
    fn plan(&self, next: &mut Vec<Arc<Seat>>) -> Matching {
        let mut matching = Matching::new();
        let mut alone = false;
        let mut take = |seat: &Arc<Seat>| {
            if alone
                || (seat.exclusive && !next.is_empty())
                || next.iter().any(|other| seat.conflicts(other))
            {
                return false;
            }
            let counts = seat.is_active();
            let wishes = seat.slots().map(|slot| counts.then_some(slot));
            let events = seat.members.iter().map(|member| member.allowed);
            let fits = matching.add_all(events.zip(wishes)).is_ok();
            if fits {
                alone = seat.exclusive;
                next.push(Arc::clone(seat));
            }
            fits
        };
        for seat in &self.pinned {
            take(seat);
        }
        let _first_that_waits = self.ring.iter().find(|seat| !take(seat));
        matching
    }

    /// Sorts out who stays where it is, who leaves and who arrives. With one gate for all, any
    /// change stops everybody.
    fn compare(&self, scratch: &mut Scratch, matching: &Matching, gating: Gating) {
        let mut event = 0;
        for seat in &scratch.next {
            let first = event;
            event += seat.members.len();
            let same = (first..event).map(|e| matching.slot_of(e)).eq(seat.slots());
            if seat.is_active() && same {
                scratch.kept.push(Arc::clone(seat));
            } else {
                scratch.arriving.push(Arc::clone(seat));
            }
        }
        let kept = &scratch.kept;
        let stays = |seat: &&Arc<Seat>| kept.iter().any(|k| Arc::ptr_eq(k, seat));
        // A group whose span was forfeited is on the list, but does not count any more.
        let on = self.placed.iter().filter(|seat| seat.is_active());
        scratch.leaving.extend(on.filter(|s| !stays(s)).cloned());
        let changed = !scratch.leaving.is_empty() || !scratch.arriving.is_empty();
        if gating == Gating::Shared && changed {
            scratch.leaving.append(&mut scratch.kept);
            scratch.arriving.clear();
            scratch.arriving.extend_from_slice(&scratch.next);
        }
    }
}

impl Scratch {
    /// The slots of these groups, one after the other, and as much room for raw values.
    fn take_slots(&mut self, seats: &[Arc<Seat>]) {
        self.slots.clear();
        self.slots
            .extend(seats.iter().flat_map(|seat| seat.slots()));
        self.raw.clear();
        self.raw.resize(self.slots.len(), 0);
    }

    fn clear(&mut self) {
        self.next.clear();
        self.kept.clear();
        self.leaving.clear();
        self.arriving.clear();
        self.ready.clear();
    }
}

fn fold_at(seat: &Seat) -> u64 {
    let load = |moment: &AtomicU64| moment.load(Ordering::Relaxed);
    load(&seat.tally.folded_at).saturating_add(load(&seat.tally.fold_every))
}

/// Groups one by one, or all together.
fn batches(seats: &[Arc<Seat>], all_at_once: bool) -> std::slice::Chunks<'_, Arc<Seat>> {
    seats.chunks(if all_at_once { seats.len().max(1) } else { 1 })
}

/// Stops groups and takes in what they counted.
fn halt<P: Pmu, C: Clock>(at: &Registers<'_, P, C>, seats: &[Arc<Seat>], scratch: &mut Scratch) {
    scratch.take_slots(seats);
    match at.pmu.stop(at.cpu, &scratch.slots, &mut scratch.raw) {
        Ok(()) => {
            let mut raw = &*scratch.raw;
            for seat in seats {
                let own;
                (own, raw) = raw.split_at(seat.members.len());
                seat.fold(at.pmu.slots(), own, true, || at.clock.now());
            }
        }
        Err(e) => {
            for seat in seats {
                seat.forfeit();
                seat.set_fault(e.clone());
            }
        }
    }
}

/// Programs and starts groups; one that cannot be waits for another turn, and its error for a
/// caller.
fn launch<P: Pmu, C: Clock>(
    at: &Registers<'_, P, C>,
    seats: &[Arc<Seat>],
    fresh: Option<&Arc<Seat>>,
    scratch: &mut Scratch,
) {
    scratch.ready.clear();
    for seat in seats {
        match program(at, seat) {
            Ok(()) => scratch.ready.push(Arc::clone(seat)),
            Err(e) => seat.set_fault(e),
        }
    }
    let ready = std::mem::take(&mut scratch.ready);
    scratch.take_slots(&ready);
    let started = match &*ready {
        [] => Ok(()),
        _ => at.pmu.start(at.cpu, &scratch.slots, &mut scratch.raw),
    };
    match started {
        Ok(()) => {
            let vigilance = at.pmu.vigilance().map_or(u64::MAX, nanoseconds);
            let mut raw = &*scratch.raw;
            for seat in &ready {
                let own;
                (own, raw) = raw.split_at(seat.members.len());
                let fresh = fresh.is_some_and(|fresh| Arc::ptr_eq(fresh, seat));
                seat.schedule_in(at.pmu.slots(), own, vigilance, fresh, || at.clock.now());
            }
        }
        Err(e) => {
            // Some may count; that they do not stop either is no news.
            let _ = at.pmu.stop(at.cpu, &scratch.slots, &mut scratch.raw);
            for seat in &ready {
                seat.set_fault(e.clone());
            }
        }
    }
    scratch.ready = ready;
}

fn program<P: Pmu, C>(at: &Registers<'_, P, C>, seat: &Seat) -> Result<()> {
    for (slot, member) in seat.slots().zip(&*seat.members) {
        at.pmu.program(at.cpu, slot, &member.encoding)?;
        at.pmu.clear(at.cpu, slot)?;
    }
    Ok(())
}
