//! The `Pmu` over a device: counters of the CPU one is on, shared with everybody.

mod cpu;
mod not_restored;

use std::sync::{Mutex, MutexGuard, PoisonError};

use quipu_hal::{
    Access, CpuModel, Encoding, Error, ErrorKind, Gating, Pmu, Result, Simultaneity, Slot,
    SlotClass,
};

use self::cpu::Cpu;
pub use self::not_restored::NotRestored;
use crate::abi::{MAX_COUNTERS, Status};
use crate::control::{Control, Discovery, TO_WRITE};
use crate::device::{PctrDevice, SetScope};
use crate::function::{CounterKind, ENABLE};

/// How often a call that was interrupted by a move to another CPU is made again.
const ATTEMPTS: u32 = 16;

/// The highest CPU number that is made room for, at least: the 8-bit APIC ids.
const LAST_CPU: u32 = 255;

/// In so many cycles counters are read in user mode, or else the thread was interrupted in between.
const UNINTERRUPTED: u64 = 10_000;

/// The counters behind a pctr(4) device, for [`VirtualPmu`](quipu_hal::VirtualPmu).
///
/// CPUs are numbered by their APIC ids, as CPUID tells them. Slots are the counters, then the time
/// stamp counter.
///
/// Nobody owns the counters: whoever may write the device may set them. So a function that
/// somebody else changed during a measurement is reported as
/// [`Interference`](ErrorKind::Interference), what was found is put back in the end, and what could
/// not be put back is told by [`not_restored`](Self::not_restored). A counter's value cannot be put
/// back, since setting a function zeroes it; counters that are not needed are left alone.
pub struct PctrPmu<D> {
    control: Control<D>,
    kind: Option<CounterKind>,
    slots: Vec<Slot>,
    /// How many of the slots are counters.
    counters: usize,
    /// Why there are no counters.
    refusal: Option<Refusal>,
    cpu_numbers: Vec<u32>,
    cpus: Box<[Cpu]>,
    reads_in_user_mode: bool,
    not_restored: Mutex<Vec<NotRestored>>,
}

/// Why no counter can be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    kind: ErrorKind,
    reason: &'static str,
    hint: Option<&'static str>,
}

impl Refusal {
    /// The error for something that needs a counter.
    pub(crate) fn error(self, attempted: String) -> Error {
        let error = Error::new(self.kind, attempted).with_reason(self.reason);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl<D: PctrDevice> PctrPmu<D> {
    /// The counters behind `device`, which count as `cpu` says.
    ///
    /// Nothing is set. Without a CPU model, without permission to write or on a CPU that the driver
    /// knows no counters of, only the time stamp counter is there.
    ///
    /// # Errors
    /// When the device does not speak the protocol of pctr(4), or there is not even a time stamp
    /// counter.
    pub fn new(device: D, cpu: Option<&CpuModel>) -> Result<Self> {
        let discovery = Control::new(device.reader()?)?.discover()?;
        let control = Control::new(device)?;
        let driver = control.device().driver();
        let kind = cpu.and_then(CounterKind::of);
        let refusal = refusal(discovery, kind, control.device().is_writable());
        let mut slots = Vec::new();
        if let (Discovery::Counters(number), Some(cpu), None) = (discovery, cpu, refusal) {
            let width = driver.arch.visible_width(general_width(cpu));
            slots.extend((0..number).map(|n| Slot::general(n, width)));
        }
        let counters = slots.len();
        if control.read()?.time_stamp != 0 {
            slots.push(Slot {
                class: SlotClass::TimeStamp,
                number: 0,
                width: 64,
            });
        }
        if slots.is_empty() {
            let attempted = "use the performance counters".to_owned();
            return Err(match refusal {
                Some(refusal) => refusal.error(attempted),
                None => Error::new(ErrorKind::NoSuchDevice, attempted),
            });
        }
        let last = control.device().cpu()?.max(LAST_CPU);
        Ok(Self {
            cpu_numbers: (0..=last).collect(),
            cpus: (0..=last).map(|_| Cpu::default()).collect(),
            control,
            kind,
            slots,
            counters,
            refusal,
            reads_in_user_mode: false,
            not_restored: Mutex::default(),
        })
    }

    /// Reads counters in user mode, by `rdpmc`, where that is known to be allowed: on amd64 kernels
    /// since 2019, once a function is set, which it is while something counts. Elsewhere nothing
    /// changes.
    ///
    /// It spares the system call. Such a read cannot see that somebody else has set a function;
    /// that shows when the counters are stopped.
    #[must_use]
    pub fn reading_in_user_mode(mut self) -> Self {
        let driver = self.control.device().driver();
        self.reads_in_user_mode = driver.scope == SetScope::AllCpus
            && !matches!(self.kind, None | Some(CounterKind::P5 { .. }));
        self
    }

    /// The device, with its calls typed.
    pub fn control(&self) -> &Control<D> {
        &self.control
    }

    /// The kind of the counters, where it is known.
    pub fn kind(&self) -> Option<CounterKind> {
        self.kind
    }

    /// The counters that were not put back as they were found, so far.
    pub fn not_restored(&self) -> Vec<NotRestored> {
        lock(&self.not_restored).clone()
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    fn cpu(&self, number: u32) -> Result<&Cpu> {
        self.cpus.get(number as usize).ok_or_else(|| {
            Error::new(ErrorKind::NoSuchTarget, format!("reach CPU {number}"))
                .with_reason("there is no CPU with this APIC id")
        })
    }

    /// The counters among slots, in the order in which they have to be started: on a P6, whose
    /// counter 0 gates both, that one last.
    fn counters_of<'s>(&self, slots: &'s [usize]) -> impl DoubleEndedIterator<Item = usize> + 's {
        let counters = self.counters;
        let order: [usize; MAX_COUNTERS] = match self.kind {
            Some(CounterKind::P6) => [3, 2, 1, 0],
            _ => [0, 1, 2, 3],
        };
        order
            .into_iter()
            .filter(move |c| *c < counters && slots.contains(c))
    }

    fn is_p6(&self) -> bool {
        self.kind == Some(CounterKind::P6)
    }

    /// Reads everything on a CPU: between two looks at which CPU this is, again when the thread was
    /// moved meanwhile.
    fn read_on(&self, cpu: u32) -> Result<Status> {
        for _ in 0..ATTEMPTS {
            self.expect_on(cpu, "read its counters")?;
            let status = self.control.read()?;
            if self.control.device().cpu()? == cpu {
                return Ok(status);
            }
        }
        Err(moving(cpu, "read its counters"))
    }

    /// Sets a function on a CPU, or on all where that is what the driver does.
    fn set_on(&self, cpu: u32, counter: usize, word: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
        if self.control.device().driver().scope == SetScope::AllCpus {
            self.control.set(counter as u8, word)?;
            state.set(counter, word);
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            self.expect_on(cpu, "set its counters")?;
            let set = self.control.set(counter as u8, word);
            let here = self.control.device().cpu()?;
            if here == cpu {
                set?;
                state.set(counter, word);
                return Ok(());
            }
            // The thread was moved just now, and the function may be set on the CPU it has left, or
            // on this one, where it is not wanted and what was there is not known.
            state.set(counter, word);
            let there = self.read_on(here);
            if set.is_ok() && there.is_ok_and(|s| self.function(&s, counter) == word) {
                self.note(here, counter, None, None);
            }
        }
        Err(moving(cpu, "set its counters"))
    }

    fn expect_on(&self, cpu: u32, attempted: &str) -> Result<()> {
        let here = self.control.device().cpu()?;
        if here == cpu {
            return Ok(());
        }
        Err(
            Error::new(ErrorKind::WrongThread, format!("{attempted} on CPU {cpu}"))
                .with_reason(format!(
                    "the thread has migrated to CPU {here}, and only the CPU it is on can be reached"
                )),
        )
    }

    /// Has counter 0 of a P6, which is not to count, gate the other: set to its enable bit alone it counts
    /// nothing. What somebody else counts there gates as well, and is left alone.
    fn open_gate(&self, cpu: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
        if !state.is_touched(0) {
            // It may have been set since it was found.
            let now = self.function(&self.read_on(cpu)?, 0);
            state.found(0, now);
            if let Some(found) = lock(&state.held).as_mut() {
                found[0] = now;
            }
            if now & ENABLE != 0 {
                return Ok(());
            }
        }
        if state.word(0) != ENABLE {
            self.set_on(cpu, 0, ENABLE)?;
        }
        Ok(())
    }

    /// Another CPU whose counters are taken, where a set reaches every CPU: what is set for the one
    /// would be taken for what was found on the other.
    fn held_elsewhere(&self, cpu: u32) -> Option<u32> {
        if self.control.device().driver().scope == SetScope::ThisCpu {
            return None;
        }
        let others = self.cpu_numbers.iter().zip(&self.cpus);
        let mut held = others.filter(|(n, state)| **n != cpu && lock(&state.held).is_some());
        held.next().map(|(number, _)| *number)
    }

    /// Refuses a status in which the function of a counter is not what it was set to.
    fn check_undisturbed(&self, cpu: u32, slots: &[usize], status: &Status) -> Result<()> {
        let state = self.cpu(cpu)?;
        let gate = self.is_p6() && self.counters_of(slots).next().is_some();
        for counter in 0..self.counters {
            if !(slots.contains(&counter) || gate && counter == 0) {
                continue;
            }
            let (ours, now) = (state.word(counter), self.function(status, counter));
            if ours != now {
                let attempted = format!("read counter {counter} of CPU {cpu}");
                return Err(Error::new(ErrorKind::Interference, attempted)
                    .with_reason(format!("it was set to {ours:#x} and is now {now:#x}")));
            }
        }
        Ok(())
    }

    /// The function of a counter, without what else may stand in the register.
    fn function(&self, status: &Status, counter: usize) -> u32 {
        let mask = self.kind.map_or(u32::MAX, CounterKind::word_mask);
        status.functions[counter] & mask
    }

    fn values(&self, status: &Status, slots: &[usize], raw: &mut [u64]) {
        for (slot, raw) in slots.iter().zip(raw) {
            *raw = if *slot < self.counters {
                status.counters[*slot]
            } else {
                status.time_stamp
            };
        }
    }

    /// Whether the kernel lets `rdpmc` read these slots: it allows it when the first word is set that
    /// is not 0, and before that the instruction kills the process.
    fn may_read_in_user_mode(&self, cpu: u32, slots: &[usize]) -> Result<bool> {
        if !self.reads_in_user_mode {
            return Ok(false);
        }
        let state = self.cpu(cpu)?;
        let is_set = |slot: &usize| *slot >= self.counters || state.word(*slot) != 0;
        Ok(slots.iter().all(is_set))
    }

    /// Reads in user mode; false when the thread was interrupted each time.
    fn read_in_user_mode(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<bool> {
        let device = self.control.device();
        for _ in 0..ATTEMPTS {
            self.expect_on(cpu, "read its counters")?;
            let begin = device.rdtsc();
            for (slot, raw) in slots.iter().zip(&mut *raw) {
                *raw = if *slot < self.counters {
                    device.rdpmc(*slot as u8)
                } else {
                    begin
                };
            }
            let took = device.rdtsc().wrapping_sub(begin);
            if took <= UNINTERRUPTED && device.cpu()? == cpu {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts back the functions that were found on a CPU, where they are still the ones set here.
    fn restore(&self, cpu: u32, found: &[u32; MAX_COUNTERS]) -> Result<()> {
        let state = self.cpu(cpu)?;
        let touched: Vec<usize> = (0..self.counters)
            .filter(|c| state.is_touched(*c))
            .collect();
        if touched.is_empty() {
            return Ok(());
        }
        let status = if self.control.device().driver().scope == SetScope::AllCpus {
            self.control.read()?
        } else {
            self.read_on(cpu)?
        };
        for counter in self.counters_of(&touched) {
            let (now, ours) = (self.function(&status, counter), state.word(counter));
            let found = found[counter];
            if now != found && now != ours {
                self.note(cpu, counter, Some(found), Some(now));
            } else {
                if now != found {
                    self.set_on(cpu, counter, found)?;
                }
                lock(&self.not_restored)
                    .retain(|n| (n.cpu, usize::from(n.counter)) != (cpu, counter));
            }
            state.untouch(counter);
        }
        Ok(())
    }

    fn note(&self, cpu: u32, counter: usize, found: Option<u32>, taken_over: Option<u32>) {
        let counter = counter as u8;
        let mut list = lock(&self.not_restored);
        list.retain(|n| (n.cpu, n.counter) != (cpu, counter));
        list.push(NotRestored {
            cpu,
            counter,
            found,
            taken_over,
        });
    }
}

impl<D: PctrDevice> Pmu for PctrPmu<D> {
    fn name(&self) -> &'static str {
        "pctr"
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn cpus(&self) -> &[u32] {
        &self.cpu_numbers
    }

    fn current_cpu(&self) -> Result<u32> {
        self.control.device().cpu()
    }

    fn gating(&self) -> Gating {
        if self.is_p6() {
            Gating::Shared
        } else {
            Gating::PerSlot
        }
    }

    fn access(&self) -> Access {
        Access::MeasuringThread
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    fn accepts(&self, slot: usize, encoding: &Encoding) -> bool {
        if slot >= self.counters {
            return *encoding == Encoding::TimeStamp;
        }
        self.kind.is_some_and(|kind| kind.word(encoding).is_ok())
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
        let busy = |reason: String| {
            let attempted = format!("take the counters of CPU {cpu}");
            Err(Error::new(ErrorKind::Busy, attempted).with_reason(reason))
        };
        if let Some(other) = self.held_elsewhere(cpu) {
            return busy(format!(
                "this process has taken those of CPU {other}, and the driver sets every CPU at once"
            ));
        }
        let mut held = lock(&state.held);
        if held.is_some() {
            return busy("this process has taken them already".to_owned());
        }
        let status = self.read_on(cpu)?;
        let mut found = [0; MAX_COUNTERS];
        for (counter, found) in found.iter_mut().enumerate().take(self.counters) {
            *found = self.function(&status, counter);
            state.found(counter, *found);
        }
        *held = Some(found);
        Ok(())
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        if slot >= self.counters {
            return Ok(());
        }
        let Some(kind) = self.kind else {
            return Err(Error::new(ErrorKind::UnsupportedEvent, "program a counter"));
        };
        self.cpu(cpu)?.want(slot, kind.word(encoding)?);
        Ok(())
    }

    fn clear(&self, cpu: u32, slot: usize) -> Result<()> {
        // A counter that is set to 0 already is zeroed when its function is set.
        if slot < self.counters && self.cpu(cpu)?.word(slot) != 0 {
            self.set_on(cpu, slot, 0)?;
        }
        Ok(())
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let state = self.cpu(cpu)?;
        if self.is_p6() && self.counters_of(slots).next().is_some() {
            // What was set here and could not be stopped does not go on counting.
            for other in (1..self.counters).filter(|c| !slots.contains(c)) {
                if state.is_touched(other) && state.word(other) != 0 {
                    self.set_on(cpu, other, 0)?;
                }
            }
            if !slots.contains(&0) {
                self.open_gate(cpu)?;
            }
        }
        for counter in self.counters_of(slots) {
            self.set_on(cpu, counter, state.wanted(counter))?;
        }
        self.read(cpu, slots, raw)
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let state = self.cpu(cpu)?;
        let read = self.read_on(cpu);
        let scope = self.control.device().driver().scope;
        let status = match &read {
            // The CPU cannot be reached from here.
            Err(_) if scope == SetScope::ThisCpu => return read.map(|_| ()),
            Err(_) => None,
            Ok(status) => Some(status),
        };
        let found = status.map(|status| self.check_undisturbed(cpu, slots, status));
        let gate = self.is_p6() && !slots.contains(&0) && state.is_touched(0);
        for counter in self.counters_of(slots).rev().chain(gate.then_some(0)) {
            // What somebody else has set is left alone.
            let ours = |s: &Status| self.function(s, counter) == state.word(counter);
            if status.is_none_or(ours) {
                self.set_on(cpu, counter, 0)?;
            }
        }
        self.values(&read?, slots, raw);
        found.unwrap_or(Ok(()))
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        if self.may_read_in_user_mode(cpu, slots)? && self.read_in_user_mode(cpu, slots, raw)? {
            return Ok(());
        }
        let status = self.read_on(cpu)?;
        self.values(&status, slots, raw);
        self.check_undisturbed(cpu, slots, &status)
    }

    fn release(&self, cpu: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
        let mut held = lock(&state.held);
        let Some(found) = *held else {
            return Ok(());
        };
        let restored = self.restore(cpu, &found);
        if restored.is_ok() {
            *held = None;
        } else {
            for counter in (0..self.counters).filter(|c| state.is_touched(*c)) {
                self.note(cpu, counter, Some(found[counter]), None);
            }
        }
        restored
    }

    fn not_restored(&self) -> Vec<String> {
        let list = lock(&self.not_restored);
        list.iter().map(ToString::to_string).collect()
    }
}

/// The width of a CPU's general counters; 40 bits, as on the first CPUs, where it is not known.
fn general_width(cpu: &CpuModel) -> u8 {
    let general = cpu.counters.iter().find(|b| b.class == SlotClass::General);
    general.map_or(40, |bank| bank.width)
}

fn refusal(discovery: Discovery, kind: Option<CounterKind>, writable: bool) -> Option<Refusal> {
    let unsupported = |reason| Refusal {
        kind: ErrorKind::UnsupportedEvent,
        reason,
        hint: None,
    };
    match (discovery, kind) {
        (Discovery::NoCounters, _) => Some(unsupported(
            "the driver knows no counters on this CPU, only the time stamp counter",
        )),
        (Discovery::Counters(_), None) => Some(unsupported(
            "it is not known what the functions of this CPU's counters mean",
        )),
        (Discovery::Counters(_), Some(_)) if !writable => Some(Refusal {
            kind: ErrorKind::NoPermission,
            reason: "setting a function needs permission to write the device",
            hint: Some(TO_WRITE),
        }),
        _ => None,
    }
}

fn moving(cpu: u32, attempted: &str) -> Error {
    Error::new(ErrorKind::WrongThread, format!("{attempted} on CPU {cpu}"))
        .with_reason("the thread is moved from CPU to CPU all the time")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
