//! The engine behind a virtual PMU and its groups: one schedule for each CPU, and who drives them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use super::Drive;
use super::pace::Pace;
use super::rotator::Rotator;
use super::schedule::{NEVER, Registers, Schedule};
use super::seat::Seat;
use super::times::State;
use crate::{Access, Clock, Error, ErrorKind, Pmu, Reading, Result};

/// What the groups of one virtual PMU share. The last of them ends the rotator.
pub(super) struct Engine<P: Pmu, C: Clock> {
    // First, so that the thread has ended before anything else is dropped.
    rotator: Rotator,
    pub(super) core: Arc<Core<P, C>>,
}

/// The part that the rotator works on too.
pub(super) struct Core<P: Pmu, C: Clock> {
    pub(super) pmu: P,
    pub(super) clock: C,
    pub(super) pace: Pace,
    pub(super) drive: Drive,
    /// In the order of [`Pmu::cpus`].
    cpus: Box<[Cpu]>,
    owner: Mutex<Owner>,
}

#[derive(Debug)]
struct Cpu {
    number: u32,
    schedule: Mutex<Schedule>,
    /// When the schedule wants to be looked at.
    due: AtomicU64,
}

/// The thread that all groups belong to, where the PMU needs one.
#[derive(Debug, Default)]
struct Owner {
    thread: Option<ThreadId>,
    groups: usize,
}

/// Room for reading one group, and what has been reported of it.
pub(super) struct Reader {
    slots: Box<[usize]>,
    raw: Box<[u64]>,
    /// Time running as last reported, for each part.
    running: Box<[u64]>,
}

impl Reader {
    pub(super) fn new(members: usize, parts: usize) -> Self {
        Self {
            slots: vec![0; members].into(),
            raw: vec![0; members].into(),
            running: vec![0; parts].into(),
        }
    }
}

impl<P: Pmu, C: Clock> Engine<P, C> {
    pub(super) fn new(pmu: P, clock: C, interval: Duration, drive: Drive) -> Self {
        let cpus = pmu.cpus().iter().map(|&number| Cpu {
            number,
            schedule: Mutex::default(),
            due: AtomicU64::new(NEVER),
        });
        Self {
            rotator: Rotator::default(),
            core: Arc::new(Core {
                cpus: cpus.collect(),
                pace: Pace::new(interval),
                drive,
                owner: Mutex::default(),
                pmu,
                clock,
            }),
        }
    }

    /// Enables a group on one CPU and says whether it was off; an error leaves it off.
    pub(super) fn enable(&self, seat: &Arc<Seat>) -> Result<bool> {
        let core = &self.core;
        if core.drive == Drive::Background {
            let core = Arc::clone(core);
            self.rotator.start(move || core.serve())?;
        }
        let due = &core.cpus[seat.cpu].due;
        let before = due.load(Ordering::Relaxed);
        let enabled = core.with(seat.cpu, |schedule, at| schedule.enable(at, seat));
        if enabled && let Some(e) = seat.take_fault() {
            core.with(seat.cpu, |schedule, at| schedule.disable(at, seat));
            return Err(e);
        }
        if core.drive == Drive::Background && due.load(Ordering::Relaxed) < before {
            self.rotator.wake();
        }
        Ok(enabled)
    }
}

impl<P: Pmu, C: Clock> Core<P, C> {
    /// A CPU's position, by its number.
    pub(super) fn position(&self, number: u32) -> Option<usize> {
        self.cpus.iter().position(|cpu| cpu.number == number)
    }

    pub(super) fn number(&self, cpu: usize) -> u32 {
        self.cpus[cpu].number
    }

    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Works on the schedule of a CPU.
    fn with<T>(
        &self,
        cpu: usize,
        work: impl FnOnce(&mut Schedule, &Registers<'_, P, C>) -> T,
    ) -> T {
        let cpu = &self.cpus[cpu];
        let mut schedule = lock(&cpu.schedule);
        let at = Registers {
            pmu: &self.pmu,
            clock: &self.clock,
            cpu: cpu.number,
            interval: self.pace.interval(),
        };
        let done = work(&mut schedule, &at);
        cpu.due.store(schedule.due(), Ordering::Relaxed);
        done
    }

    pub(super) fn open(&self, cpu: usize) -> Result<()> {
        self.with(cpu, Schedule::open)
    }

    pub(super) fn close(&self, cpu: usize) {
        self.with(cpu, Schedule::close);
    }

    pub(super) fn disable(&self, seat: &Arc<Seat>) -> Result<()> {
        self.with(seat.cpu, |schedule, at| schedule.disable(at, seat));
        seat.take_fault().map_or(Ok(()), Err)
    }

    pub(super) fn reset(&self, seat: &Seat, reader: &mut Reader) -> Result<()> {
        self.with(seat.cpu, |_, at| {
            let raw = if seat.is_active() {
                reader.aim(seat);
                at.pmu.read(at.cpu, &reader.slots, &mut reader.raw)?;
                Some(&*reader.raw)
            } else {
                None
            };
            seat.reset(raw, || at.clock.now());
            Ok(())
        })
    }

    /// Turns the rings whether it is time or not, and reads what has gone unread for long.
    pub(super) fn tick(&self) {
        for cpu in 0..self.cpus.len() {
            self.with(cpu, |schedule, at| {
                schedule.rotate(at);
                schedule.refresh(at);
            });
        }
    }

    /// Does what is due on a CPU; whether its ring turned.
    fn maintain(&self, cpu: usize) -> bool {
        let mut turned = false;
        if self.cpus[cpu].due.load(Ordering::Relaxed) <= self.clock.now() {
            self.with(cpu, |schedule, at| {
                turned = schedule.rotate_at() <= at.clock.now();
                if turned {
                    schedule.rotate(at);
                }
                schedule.refresh(at);
            });
        }
        turned
    }

    /// Does what is due everywhere, and says how long there is nothing more to do.
    fn serve(&self) -> Option<Duration> {
        let began = self.clock.now();
        let mut turned = false;
        for cpu in 0..self.cpus.len() {
            turned |= self.maintain(cpu);
        }
        if turned {
            self.pace.note(self.clock.now().saturating_sub(began));
        }
        let due = self.cpus.iter().map(|cpu| cpu.due.load(Ordering::Relaxed));
        let next = due.min().filter(|&due| due != NEVER)?;
        // A clock that somebody else advances may stand still at the moment that is waited for.
        let ns = next.saturating_sub(self.clock.now()).max(1_000);
        Some(Duration::from_nanos(ns))
    }

    /// Reads a group on one CPU. It takes no lock, unless something is wrong or the reading thread
    /// is the one that rotates.
    pub(super) fn read(
        &self,
        seat: &Arc<Seat>,
        reader: &mut Reader,
        part: usize,
        out: &mut [Reading],
    ) -> Result<()> {
        if self.drive == Drive::Reads {
            self.maintain(seat.cpu);
        }
        let tally = &seat.tally;
        loop {
            let since = tally.sequence.begin();
            if tally.faulted.load(Ordering::Acquire)
                && let Some(e) = seat.take_fault()
            {
                return Err(e);
            }
            let times = tally.times();
            let mut overdue = tally.lapsed.load(Ordering::Relaxed);
            let now;
            if times.state == State::Active {
                reader.aim(seat);
                let cpu = self.cpus[seat.cpu].number;
                let got = self.pmu.read(cpu, &reader.slots, &mut reader.raw);
                now = self.clock.now();
                overdue |=
                    now.saturating_sub(tally.known_at()) > tally.patience.load(Ordering::Relaxed);
                let slots = self.pmu.slots();
                let lanes = tally.lanes.iter().zip(&*seat.members);
                for (((lane, member), &raw), (&slot, out)) in lanes
                    .zip(&reader.raw)
                    .zip(reader.slots.iter().zip(&mut *out))
                {
                    let mask = slots[slot].mask();
                    out.value = member.count(raw, mask, || lane.widen(raw, mask));
                }
                if !tally.sequence.unchanged(since) {
                    continue;
                }
                if let Err(e) = got {
                    return Err(self.failed(seat, e));
                }
            } else {
                now = self.clock.now();
                for (lane, out) in tally.lanes.iter().zip(&mut *out) {
                    out.value = lane.base.load(Ordering::Relaxed);
                }
                if !tally.sequence.unchanged(since) {
                    continue;
                }
            }
            if times.state == State::Error {
                return Err(self.not_scheduled(seat));
            }
            if overdue {
                tally.lapsed.store(true, Ordering::Relaxed);
                return Err(self.unknown(seat));
            }
            if times.state == State::Active {
                tally.seen_at.store(now, Ordering::Relaxed);
                for (lane, out) in tally.lanes.iter().zip(&*out) {
                    lane.seen.store(out.value, Ordering::Relaxed);
                }
            }
            let (enabled, running) = times.at(now);
            // A CPU may read its clock a little after it has looked whether anything changed, and
            // time must not run backwards for that.
            let running = running.max(reader.running[part]);
            reader.running[part] = running;
            let reset_enabled = tally.reset_enabled.load(Ordering::Relaxed);
            let reset_running = tally.reset_running.load(Ordering::Relaxed);
            for out in out {
                out.raw_time_enabled = enabled;
                out.raw_time_running = running;
                out.time_enabled = enabled.saturating_sub(reset_enabled);
                out.time_running = running.saturating_sub(reset_running);
            }
            return Ok(());
        }
    }

    /// What to make of a driver's error while reading.
    #[cold]
    fn failed(&self, seat: &Arc<Seat>, error: Error) -> Error {
        if error.kind() == ErrorKind::Interference {
            self.with(seat.cpu, |schedule, at| schedule.recover(at, seat));
        }
        error
    }

    #[cold]
    fn not_scheduled(&self, seat: &Seat) -> Error {
        let cpu = self.number(seat.cpu);
        Error::new(
            ErrorKind::CounterInErrorState,
            format!("read a pinned group on CPU {cpu}"),
        )
        .with_reason("it could not be put on the PMU when it was enabled")
        .with_hint("disable other pinned groups, then enable this one again")
    }

    #[cold]
    fn unknown(&self, seat: &Seat) -> Error {
        let cpu = self.number(seat.cpu);
        let limit = Duration::from_nanos(seat.tally.patience.load(Ordering::Relaxed));
        Error::new(
            ErrorKind::CounterInErrorState,
            format!("read a group on CPU {cpu}"),
        )
        .with_reason(format!(
            "its counters went unread for more than {limit:?}, in which one can have wrapped unseen"
        ))
        .with_hint("reset the group, and read it more often than that")
    }

    /// Lets a thread use a group: any, or the one that owns the PMU.
    pub(super) fn enter(&self) -> Result<Option<ThreadId>> {
        if self.pmu.access() == Access::AnyThread {
            return Ok(None);
        }
        let me = std::thread::current().id();
        let mut owner = lock(&self.owner);
        if *owner.thread.get_or_insert(me) != me {
            return Err(wrong_thread("open a group"));
        }
        owner.groups += 1;
        Ok(Some(me))
    }

    /// The group that [`enter`](Self::enter) was for is gone.
    pub(super) fn leave(&self) {
        if self.pmu.access() == Access::MeasuringThread {
            let mut owner = lock(&self.owner);
            owner.groups -= 1;
            if owner.groups == 0 {
                owner.thread = None;
            }
        }
    }

    /// Whether the calling thread may tick.
    pub(super) fn check_ticker(&self) -> Result<()> {
        if self.pmu.access() == Access::MeasuringThread {
            let me = std::thread::current().id();
            if lock(&self.owner).thread.is_some_and(|owner| owner != me) {
                return Err(wrong_thread("rotate groups"));
            }
        }
        Ok(())
    }
}

impl<P: Pmu, C: Clock> Drop for Core<P, C> {
    /// Tries once more where giving back failed.
    fn drop(&mut self) {
        for cpu in &mut self.cpus {
            let schedule = cpu.schedule.get_mut();
            let schedule = schedule.unwrap_or_else(PoisonError::into_inner);
            schedule.give_back(&self.pmu, cpu.number);
        }
    }
}

impl Reader {
    /// Takes over the slots of an active group.
    fn aim(&mut self, seat: &Seat) {
        for (slot, now) in self.slots.iter_mut().zip(seat.slots()) {
            *slot = now;
        }
    }
}

#[cold]
pub(super) fn wrong_thread(attempted: &str) -> Error {
    Error::new(ErrorKind::WrongThread, attempted)
        .with_reason("these counters can only be driven by the thread that opened the first group")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
