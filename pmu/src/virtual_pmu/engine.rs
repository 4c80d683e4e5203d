//! The engine behind a virtual PMU and its groups: one schedule for each CPU, and who drives them.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Reading, Result};

use super::Drive;
use super::cpu_thread::{Call, CpuThread};
use super::group_state::GroupState;
use super::pace::Pace;
use super::refusals::{not_looked_at, not_scheduled, unknown, wrong_thread};
use super::schedule::{CpuContext, NEVER, Schedule, is_out_of_reach, written};
use super::scheduled_group::ScheduledGroup;
use super::times::State;
use crate::clock::nanoseconds;
use crate::{Access, Clock, Pmu};

/// State shared by the groups of one virtual PMU. The last of them ends the threads.
pub(super) struct Engine<P: Pmu> {
    // First, so that the threads have ended before anything else is dropped.
    /// In the order of [`Pmu::cpus`].
    pub(super) threads: Box<[CpuThread]>,
    pub(super) core: Arc<Core<P>>,
}

/// The part that the threads work on too.
pub(super) struct Core<P: Pmu> {
    pub(super) pmu: P,
    pub(super) clock: Box<dyn Clock>,
    pub(super) drive: Drive,
    /// [`Pmu::read_verify_interval`] in nanoseconds.
    read_verify_interval: u64,
    /// In the order of [`Pmu::cpus`], or the first for all of them.
    pub(super) cpus: Box<[Cpu]>,
    owner: Mutex<Owner>,
    /// The id of the process that the registers and the threads are of; a forked one has copies of this memory, and
    /// no threads.
    process: u32,
}

#[derive(Debug)]
pub(super) struct Cpu {
    pub(super) number: u32,
    pub(super) schedule: Mutex<Schedule>,
    pace: Pace,
    /// Time at which the schedule has work due.
    due: AtomicU64,
    /// Time at which the thread wakes by itself, if it sleeps.
    wakes_at: AtomicU64,
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

impl<P: Pmu> Engine<P> {
    pub(super) fn new(pmu: P, clock: Box<dyn Clock>, interval: Duration, drive: Drive) -> Self {
        let cpu = |&number: &u32| Cpu {
            number,
            schedule: Mutex::default(),
            pace: Pace::new(interval),
            due: AtomicU64::new(NEVER),
            wakes_at: AtomicU64::new(NEVER),
        };
        let schedules = if pmu.sets_all_cpus() { 1 } else { usize::MAX };
        let cpus: Box<[Cpu]> = pmu.cpus().iter().take(schedules).map(cpu).collect();
        Self {
            threads: cpus.iter().map(|_| CpuThread::default()).collect(),
            core: Arc::new(Core {
                cpus,
                drive,
                read_verify_interval: pmu.read_verify_interval().map_or(NEVER, nanoseconds),
                owner: Mutex::default(),
                process: process::id(),
                pmu,
                clock,
            }),
        }
    }

    /// Adds an opened group; the first on a CPU acquires the counters.
    pub(super) fn open(&self, group: &Arc<ScheduledGroup>) -> Result<()> {
        let cpu = group.cpu;
        if self.core.drive == Drive::Background {
            let (pinning, working) = (Arc::clone(&self.core), Arc::clone(&self.core));
            let number = self.core.number(cpu);
            self.threads[cpu].start(
                move || pinning.pmu.pin(number),
                move |call| {
                    match call {
                        Some(Call::Accumulate(group)) => {
                            working.with(cpu, |schedule, at| schedule.refresh_now(at, &group));
                        }
                        Some(Call::Other(call)) => call(),
                        None => return working.run_due(cpu),
                    }
                    None
                },
            )?;
        }
        let group = Arc::clone(group);
        self.on_cpu(cpu, move |core| {
            core.with(cpu, |schedule, at| schedule.open(at, group))
        })
    }

    /// Removes a closed group; the last on a CPU releases the counters.
    pub(super) fn close(&self, group: &Arc<ScheduledGroup>) {
        let (cpu, group) = (group.cpu, Arc::clone(group));
        // An error has no receiver here; what keeps its registers is tried again in the end.
        let _ = self.on_cpu(cpu, move |core| {
            core.with(cpu, |schedule, at| schedule.close(at, &group));
            Ok(())
        });
    }

    /// Enables a group on one CPU and says whether it was off; an error leaves it off.
    pub(super) fn enable(&self, group: &Arc<ScheduledGroup>) -> Result<bool> {
        let cpu = group.cpu;
        let group = Arc::clone(group);
        let enabled = self.on_cpu(cpu, move |core| core.enable(&group))?;
        let Cpu { due, wakes_at, .. } = &self.core.cpus[cpu];
        // A group that starts and stops often must not wake it each time.
        let sleeps_too_long = due.load(Ordering::SeqCst) < wakes_at.load(Ordering::SeqCst);
        if self.core.drive == Drive::Background && sleeps_too_long {
            self.threads[cpu].wake();
        }
        Ok(enabled)
    }

    pub(super) fn disable(&self, group: &Arc<ScheduledGroup>) -> Result<()> {
        let (cpu, group) = (group.cpu, Arc::clone(group));
        self.on_cpu(cpu, move |core| {
            core.with(cpu, |schedule, at| schedule.disable(at, &group));
            group.take_fault().map_or(Ok(()), Err)
        })
    }

    pub(super) fn reset(&self, group: &Arc<ScheduledGroup>) -> Result<()> {
        let (cpu, group) = (group.cpu, Arc::clone(group));
        self.on_cpu(cpu, move |core| {
            core.with(cpu, |schedule, at| schedule.reset(at, &group))
        })
    }

    /// Does what is due before a group is read.
    pub(super) fn begin_read(
        &self,
        group: &Arc<ScheduledGroup>,
        reader: &mut Reader,
    ) -> Result<()> {
        self.core.begin_read(group, reader)
    }

    /// Reads a group on one of its CPUs, the part of that number in what the caller opened. It allocates nothing. Where
    /// the calling thread may access the registers it takes no lock, unless something is wrong; otherwise the thread of
    /// the CPU reads.
    pub(super) fn read(
        &self,
        group: &Arc<ScheduledGroup>,
        at: usize,
        reader: &mut Reader,
        part: usize,
        out: &mut [Reading],
    ) -> Result<()> {
        let thread = &self.threads[group.cpu];
        let direct = !thread.is_pinned();
        if !direct && group.is_active() {
            thread.make(Call::Accumulate(Arc::clone(group)));
        }
        self.core.read((group, at), reader, part, direct, out)
    }

    /// Does work that calls the driver, on the CPU's thread if that is pinned.
    pub(super) fn on_cpu<T: Send + 'static>(
        &self,
        cpu: usize,
        work: impl FnOnce(&Core<P>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let thread = &self.threads[cpu];
        if !thread.is_pinned() {
            return work(&self.core);
        }
        let core = Arc::clone(&self.core);
        let done = Arc::new(Mutex::new(None));
        let result = Arc::clone(&done);
        thread.make(Call::Other(Box::new(move || {
            *lock(&result) = Some(work(&core));
        })));
        let done = lock(&done).take();
        done.unwrap_or_else(|| {
            let attempted = format!("reach the counters of CPU {}", self.core.number(cpu));
            Err(Error::new(ErrorKind::Os, attempted).with_reason("its driver has panicked"))
        })
    }
}

impl<P: Pmu> Core<P> {
    /// Returns the position of a CPU's schedule, by the CPU's number.
    pub(super) fn position(&self, number: u32) -> Option<usize> {
        if self.pmu.sets_all_cpus() {
            return self.pmu.cpus().contains(&number).then_some(0);
        }
        self.cpus.iter().position(|cpu| cpu.number == number)
    }

    pub(super) fn number(&self, cpu: usize) -> u32 {
        self.cpus[cpu].number
    }

    /// Returns the number of schedules.
    pub(super) fn schedules(&self) -> usize {
        self.cpus.len()
    }

    /// Runs `work` with the schedule of a CPU locked.
    pub(super) fn with<T>(
        &self,
        cpu: usize,
        work: impl FnOnce(&mut Schedule, &CpuContext<'_, P>) -> T,
    ) -> T {
        let cpu = &self.cpus[cpu];
        let mut schedule = lock(&cpu.schedule);
        let at = CpuContext {
            pmu: &self.pmu,
            clock: &*self.clock,
            cpu: cpu.number,
            interval: cpu.pace.interval(),
        };
        let done = work(&mut schedule, &at);
        cpu.due.store(schedule.due(), Ordering::SeqCst);
        done
    }

    /// Enables a group and says whether it was off; an error leaves it off.
    ///
    /// A slot that another process takes between its choice and its start is replaced by another, since nothing has
    /// been counted yet. If none is free the group waits, and its next read says who has the last one.
    fn enable(&self, group: &Arc<ScheduledGroup>) -> Result<bool> {
        let mut taken = None;
        // Each time one slot less is free.
        for _ in 0..=self.pmu.slots().len() {
            let enabled = self.with(group.cpu, |schedule, at| schedule.enable(at, group));
            let fault = if enabled { group.take_fault() } else { None };
            let Some(e) = fault else {
                if let Some(e) = taken.filter(|_| !group.is_active()) {
                    group.set_fault(e);
                }
                return Ok(enabled);
            };
            self.with(group.cpu, |schedule, at| schedule.withdraw(at, group));
            if e.kind() != ErrorKind::Interference {
                return Err(e);
            }
            taken = Some(e);
        }
        taken.map_or(Ok(true), Err)
    }

    /// Returns the time that groups on a CPU count before its ring turns, in nanoseconds.
    pub(super) fn interval(&self, cpu: usize) -> u64 {
        self.cpus[cpu].pace.interval()
    }

    /// Turns every ring now, and reads the counters that are due for accumulation.
    pub(super) fn tick(&self) {
        for cpu in 0..self.cpus.len() {
            self.with(cpu, |schedule, at| {
                schedule.rotate(at);
                schedule.refresh(at);
            });
        }
    }

    /// Returns true if a CPU's schedule has work due.
    fn is_due(&self, cpu: usize) -> bool {
        self.cpus[cpu].due.load(Ordering::Relaxed) <= self.clock.now()
    }

    /// Does the work that is due on a CPU.
    fn maintain(&self, cpu: usize) {
        let pace = &self.cpus[cpu].pace;
        let began = self.clock.now();
        self.with(cpu, |schedule, at| {
            let turned = schedule.rotate_at() <= at.clock.now();
            if turned {
                schedule.rotate(at);
            }
            schedule.refresh(at);
            if turned && self.drive == Drive::Background {
                pace.record_turn(at.clock.now().saturating_sub(began));
            }
        });
    }

    /// Does the work that is due on a CPU, and returns the time until more is due.
    fn run_due(&self, cpu: usize) -> Option<Duration> {
        if self.is_due(cpu) {
            self.maintain(cpu);
        }
        let Cpu { due, wakes_at, .. } = &self.cpus[cpu];
        // Until both are the same: who brings forward what is due sees when this thread wakes, or is seen here.
        let due = loop {
            let due = due.load(Ordering::SeqCst);
            if wakes_at.swap(due, Ordering::SeqCst) == due {
                break due;
            }
        };
        // A clock that is advanced elsewhere may stand still at the moment that is waited for.
        let ns = due.saturating_sub(self.clock.now()).max(1_000);
        (due != NEVER).then(|| Duration::from_nanos(ns))
    }

    fn begin_read(&self, group: &Arc<ScheduledGroup>, reader: &mut Reader) -> Result<()> {
        match self.drive {
            Drive::Background => self.check_process("read a group")?,
            // To ask for the process at every read would cost more than reading.
            Drive::Reads if self.is_due(group.cpu) => {
                self.check_process("read a group")?;
                self.maintain(group.cpu);
            }
            Drive::Reads | Drive::Manual => {}
        }
        let since = group.state().sequence.begin();
        if !group.is_active() {
            return Ok(());
        }
        reader.load_slots(group);
        match self.pmu.look_at(&group.cpus, &reader.slots) {
            // If it was stopped meanwhile, others may have been on these slots.
            Err(e) if group.state().sequence.unchanged(since) => Err(self.failed(group, e)),
            _ => Ok(()),
        }
    }

    /// Reads a group on one CPU: its registers if this thread may (`direct`), or what was accumulated or scheduled in.
    fn read(
        &self,
        (group, at): (&Arc<ScheduledGroup>, usize),
        reader: &mut Reader,
        part: usize,
        direct: bool,
        out: &mut [Reading],
    ) -> Result<()> {
        let (cpu, state) = (group.cpus[at], &group.states[at]);
        loop {
            let since = state.sequence.begin();
            if group.state().faulted.load(Ordering::Acquire)
                && let Some(e) = group.take_fault()
            {
                return Err(e);
            }
            let mut times = state.times();
            if self.drive == Drive::Background && group.looks.is_unreported() {
                // Who takes turns has no exact count anyway.
                let (enabled, running) = times.at(self.clock.now());
                if running == enabled {
                    return Err(not_looked_at(cpu));
                }
            }
            let mut overdue = state.wrap_missed.load(Ordering::Relaxed);
            let mut looked = false;
            let now;
            if times.state == State::Active && direct {
                reader.load_slots(group);
                let got = self.pmu.read(cpu, &reader.slots, &mut reader.raw);
                now = self.clock.now();
                let out_of_reach =
                    self.pmu.sets_all_cpus() && got.as_ref().is_err_and(is_out_of_reach);
                overdue |= now.saturating_sub(state.last_known_at())
                    > state.wrap_timeout.load(Ordering::Relaxed);
                let slots = self.pmu.slots();
                let elapsed = now.saturating_sub(state.last_known_at());
                let mut gone_back = None;
                let counters = state.counters.iter().zip(&*group.members);
                for (((counter, member), &raw), (&slot, out)) in counters
                    .zip(&reader.raw)
                    .zip(reader.slots.iter().zip(&mut *out))
                {
                    let (mask, known) = (slots[slot].mask(), counter.last_known());
                    out.value = member.count(raw, mask, || counter.widen(raw, mask, known));
                    if member.went_back(counter, raw, mask, known, elapsed) {
                        gone_back = Some(slot);
                    }
                }
                if !state.sequence.unchanged(since) {
                    continue;
                }
                let got = got.and_then(|()| match gone_back {
                    // The writer of the value may have taken the counter: the driver is to notice.
                    Some(slot) => self
                        .pmu
                        .verify(cpu, &reader.slots)
                        .and_then(|()| Err(written(slots[slot], cpu))),
                    None => self.verify(group, state, &reader.slots, now),
                });
                if out_of_reach {
                    // It goes on counting there: the next read may return the error.
                    for (counter, out) in state.counters.iter().zip(&mut *out) {
                        out.value = counter.last_known();
                    }
                    times.schedule_out(state.last_known_at());
                } else if let Err(e) = got {
                    return Err(self.failed(group, e));
                } else {
                    looked = true;
                }
            } else {
                now = match times.state {
                    State::Active => state.accumulated_at.load(Ordering::Relaxed),
                    _ => self.clock.now(),
                };
                for (counter, out) in state.counters.iter().zip(&mut *out) {
                    out.value = counter.base.load(Ordering::Relaxed);
                }
                if !state.sequence.unchanged(since) {
                    continue;
                }
            }
            if times.state == State::Error {
                return Err(not_scheduled(cpu));
            }
            if overdue {
                state.wrap_missed.store(true, Ordering::Relaxed);
                return Err(unknown(cpu, state));
            }
            if times.state == State::Active {
                if looked {
                    group.looks.look(now, true);
                }
                state.seen_at.store(now, Ordering::Relaxed);
                for (counter, out) in state.counters.iter().zip(&*out) {
                    counter.seen.store(out.value, Ordering::Relaxed);
                }
            }
            let (enabled, mut running) = times.at(now);
            if group.looks.is_late() {
                // Less than all the time, so that it is an estimate.
                running = running.min(enabled.saturating_sub(1));
            }
            // A CPU may read its clock a little after it has looked whether anything changed, and
            // time must not run backwards for that.
            let running = running.max(reader.running[part]);
            reader.running[part] = running;
            let reset_enabled = state.reset_enabled.load(Ordering::Relaxed);
            let reset_running = state.reset_running.load(Ordering::Relaxed);
            let since_reset = (
                enabled.saturating_sub(reset_enabled),
                running.saturating_sub(reset_running),
            );
            for (out, member) in out.iter_mut().zip(&*group.members) {
                *out = Reading::new(out.value, since_reset.0, since_reset.1)
                    .with_raw_times(enabled, running)
                    .with_max_rate(member.bound);
            }
            return Ok(());
        }
    }

    /// Verifies the slots of a group that were just read, if that is due.
    fn verify(
        &self,
        group: &ScheduledGroup,
        state: &GroupState,
        slots: &[usize],
        now: u64,
    ) -> Result<()> {
        let since = now.saturating_sub(state.verified_at.load(Ordering::Relaxed));
        if since >= self.read_verify_interval {
            self.pmu.verify(self.cpus[group.cpu].number, slots)?;
            let took = now..self.clock.now();
            state.verified(&took, self.read_verify_interval);
        }
        Ok(())
    }

    /// Handles an error of the driver while reading.
    fn failed(&self, group: &Arc<ScheduledGroup>, error: Error) -> Error {
        if error.kind() == ErrorKind::Interference {
            self.with(group.cpu, |schedule, at| schedule.recover(at, group));
        }
        error
    }

    /// Returns true in the process that the registers are of.
    pub(super) fn is_here(&self) -> bool {
        self.process == process::id()
    }

    /// Refuses a call of a process forked from that one.
    pub(super) fn check_process(&self, attempted: &str) -> Result<()> {
        if self.is_here() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::WrongThread, attempted)
            .with_reason("its counters belong to the process that this one was forked from")
            .with_hint("open a backend and groups after fork(2)"))
    }

    /// Registers the calling thread for a group; refuses all but the owner of a PMU that has one.
    pub(super) fn enter(&self) -> Result<Option<ThreadId>> {
        self.check_process("open a group")?;
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

    /// Unregisters a group for which [`enter`](Self::enter) was called.
    pub(super) fn leave(&self) {
        if self.pmu.access() == Access::MeasuringThread {
            let mut owner = lock(&self.owner);
            owner.groups -= 1;
            if owner.groups == 0 {
                owner.thread = None;
            }
        }
    }

    /// Refuses a tick by a thread that may not drive the PMU.
    pub(super) fn check_ticker(&self) -> Result<()> {
        self.check_process("rotate groups")?;
        if self.pmu.access() == Access::MeasuringThread {
            let me = std::thread::current().id();
            if lock(&self.owner).thread.is_some_and(|owner| owner != me) {
                return Err(wrong_thread("rotate groups"));
            }
        }
        Ok(())
    }
}

impl Reader {
    /// Copies the slots of an active group.
    fn load_slots(&mut self, group: &ScheduledGroup) {
        for (slot, now) in self.slots.iter_mut().zip(group.slots()) {
            *slot = now;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
