//! The `Pmu` over a device: counters of the calling thread's CPU, shared with other processes.

mod checks;
mod cpu;
mod driver;
mod looks;
mod unavailable;
mod unrestored;
mod witness;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_hal::{CpuModel, Error, ErrorKind, EventMap, Result, SlotClass};
use quipu_pmu::Slot;

use self::cpu::CpuState;
use self::looks::{Looks, Sets};
pub(crate) use self::unavailable::Unavailable;
pub use self::unrestored::{LostValue, UnrestoredCounter};
use crate::abi::{Layout, MAX_COUNTERS, Status};
use crate::control::{Control, Discovery};
use crate::device::{PctrDevice, SetScope, witness_on};
use crate::function::{CounterKind, ENABLE};

/// The number of times that a call is repeated when the thread is moved to another CPU.
const ATTEMPTS: u32 = 16;

/// The highest CPU number that is made room for, at least: the 8-bit APIC ids.
const LAST_CPU: u32 = 255;

/// In so many cycles counters are read in user mode, or else the thread was interrupted in between.
const UNINTERRUPTED: u64 = 10_000;

/// The number of the time stamp counter among the free-running slots.
const TIME_STAMP: u8 = 0;

/// The number of the count of the idle loop among them.
pub(crate) const IDLE: u8 = 1;

/// The counters behind a pctr(4) device, for [`VirtualPmu`](quipu_pmu::VirtualPmu).
///
/// CPUs are numbered by their APIC ids, as CPUID has them. Slots are the counters, then the time
/// stamp counter, and the count of the idle loop where the kernel has one.
///
/// Several CPUs on which a function is set at once ([`SetScope::AllCpus`]) are scheduled as one
/// ([`Pmu::sets_all_cpus`](quipu_pmu::Pmu::sets_all_cpus)), and threads that get to every CPU read them
/// ([`PctrDevice::visit_cpus`]). Elsewhere a CPU is counted by the thread that is there.
///
/// The driver grants the counters to no process: any that may write the device may set them. So a
/// function that another process changes during a measurement is reported as
/// [`Interference`](ErrorKind::Interference), and so is a counter that moved by more than it can count in the
/// cycles of the time stamp counter since: setting the same function again zeroes it, as suspending the
/// machine does. A counter that another process has set is left to it, and free ones are used before those
/// that were found set. The functions that were found are restored in the end, and
/// [`unrestored_counters`](Self::unrestored_counters) lists those that could not be. A value cannot be restored,
/// since setting a function zeroes the counter; [`lost_values`](Self::lost_values) lists them.
///
/// ```
/// use quipu_hal::{Encoding, X86Select};
/// use quipu_pctr::PctrPmu;
/// use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
/// use quipu_pmu::Pmu;
///
/// let machine = SimMachine::new(Era::Amd64Of2019, Processor::K8, 1);
/// let pmu = PctrPmu::new(machine.open(), machine.cpu_model().as_ref())?;
/// let cpu = pmu.current_cpu()?;
/// let instructions = X86Select::new(0xc0, 0).with_flags(X86Select::USER);
/// let mut value = [0];
/// pmu.acquire(cpu)?;
/// pmu.program(cpu, 0, &Encoding::X86(instructions))?;
/// pmu.start(cpu, &[0], &mut value)?;
/// machine.occur(0xc0, 0, Level::User, 1000);
/// pmu.stop(cpu, &[0], &mut value)?;
/// assert_eq!(value, [1000]);
/// pmu.release(cpu)?;
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub struct PctrPmu<D> {
    control: Control<D>,
    kind: Option<CounterKind>,
    slots: Vec<Slot>,
    /// The number of slots that are counters.
    counters: usize,
    /// Why there are no counters.
    unavailable: Option<Unavailable>,
    cpu_numbers: Vec<u32>,
    cpus: Box<[CpuState]>,
    sets: Sets,
    /// The looks at several CPUs, if they are set together.
    looks: Option<Looks>,
    /// Knows how often events occur.
    map: Option<Arc<dyn EventMap>>,
    reads_in_user_mode: bool,
    unrestored: Mutex<Vec<UnrestoredCounter>>,
    lost_values: Mutex<Vec<LostValue>>,
}

impl<D: PctrDevice> PctrPmu<D> {
    /// Creates a PMU of the counters behind `device`, on a CPU of this model.
    ///
    /// Nothing is set. Without a CPU model, without permission to write or on a CPU that the driver
    /// knows no counters of, only the time stamp counter is there.
    ///
    /// # Errors
    /// When the device does not speak the protocol of pctr(4), or there is not even a time stamp
    /// counter, or no thread gets to one of several CPUs that are set together.
    pub fn new(device: D, cpu: Option<&CpuModel>) -> Result<Self> {
        let discovery = Control::new(device.reader()?)?.discover()?;
        let control = Control::new(device)?;
        let driver = control.device().driver();
        let kind = cpu.and_then(CounterKind::of);
        let foreign = cpu.is_some_and(|cpu| !control.is_of(cpu));
        let writable = control.device().is_writable();
        let unavailable = Unavailable::of(discovery, kind, foreign, writable);
        let mut slots = Vec::new();
        if let (Discovery::Counters(number), Some(cpu), None) = (discovery, cpu, unavailable) {
            let width = driver.arch.visible_width(general_width(cpu));
            slots.extend((0..number).map(|n| Slot::general(n, width)));
        }
        let counters = slots.len();
        // Whatever it says: each CPU with counters has one.
        if counters > 0 || control.read()?.time_stamp != 0 {
            slots.push(Slot::free_running(TIME_STAMP, 64));
        }
        if !slots.is_empty() && control.layout() == Layout::Legacy {
            slots.push(Slot::free_running(IDLE, 64));
        }
        if slots.is_empty() {
            let attempted = "use the performance counters".to_owned();
            return Err(match unavailable {
                Some(unavailable) => unavailable.error(attempted),
                None => Error::new(ErrorKind::NoSuchDevice, attempted),
            });
        }
        let (here, online) = (control.device().cpu()?, control.device().cpus_online());
        let looks = match driver.scope {
            SetScope::AllCpus if online > 1 => Some(found(Looks::new(control.device()), online)?),
            _ => None,
        };
        let cpu_numbers = match &looks {
            Some(looks) => looks.cpus().to_vec(),
            None if online == 1 => vec![here],
            None => (0..=here.max(LAST_CPU)).collect(),
        };
        let last = cpu_numbers
            .last()
            .map_or(LAST_CPU, |&last| last.max(LAST_CPU));
        Ok(Self {
            cpu_numbers,
            looks,
            sets: Sets::default(),
            map: None,
            cpus: (0..=last).map(|_| CpuState::default()).collect(),
            control,
            kind,
            slots,
            counters,
            unavailable,
            reads_in_user_mode: false,
            unrestored: Mutex::default(),
            lost_values: Mutex::default(),
        })
    }

    /// Reads counters in user mode, by `rdpmc`, where that is known to be allowed: on amd64 kernels
    /// since 2019 with one CPU, once a function is set, which it is while something counts. Elsewhere nothing
    /// changes.
    ///
    /// It spares the system call. Such a read cannot see that another process has set a function; the
    /// driver is asked every 100 microseconds, and when the counters are stopped.
    #[must_use]
    pub fn reading_in_user_mode(mut self) -> Self {
        let driver = self.control.device().driver();
        self.reads_in_user_mode =
            driver.scope == SetScope::AllCpus && !matches!(self.kind, None | Some(CounterKind::P5));
        self
    }

    /// Bounds what counters can have counted by what the map knows of their events ([`EventMap::max_rate`]), instead of
    /// by what follows from their bits.
    #[must_use]
    pub fn with_max_rates_of(mut self, map: Option<Arc<dyn EventMap>>) -> Self {
        self.map = map;
        self
    }

    /// Returns the device, with typed calls.
    pub fn control(&self) -> &Control<D> {
        &self.control
    }

    /// Returns the kind of the counters, if it is known.
    pub fn kind(&self) -> Option<CounterKind> {
        self.kind
    }

    /// Returns the counters that could not be restored so far.
    pub fn unrestored_counters(&self) -> Vec<UnrestoredCounter> {
        lock(&self.unrestored).clone()
    }

    /// Returns the values that counters had which another process had set, and that were needed.
    pub fn lost_values(&self) -> Vec<LostValue> {
        lock(&self.lost_values).clone()
    }

    /// Returns true if the kernel reports the passes of its idle loop.
    pub(crate) fn counts_idle(&self) -> bool {
        let is_idle = |slot: &Slot| (slot.class, slot.number) == (SlotClass::FreeRunning, IDLE);
        self.slots.iter().any(is_idle)
    }

    pub(crate) fn unavailable(&self) -> Option<Unavailable> {
        self.unavailable
    }

    /// Returns the functions of a CPU, which are those of every CPU where all are set together.
    fn cpu(&self, number: u32) -> Result<&CpuState> {
        match &self.looks {
            Some(looks) => self.readings(looks.cpus()[0]),
            None => self.readings(number),
        }
    }

    /// Returns the last readings of a CPU.
    fn readings(&self, number: u32) -> Result<&CpuState> {
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

    fn known_kind(&self) -> Result<CounterKind> {
        self.kind
            .ok_or_else(|| Error::new(ErrorKind::UnsupportedEvent, "program a counter"))
    }

    fn is_p6(&self) -> bool {
        self.kind == Some(CounterKind::P6)
    }

    /// Reads the functions of a CPU.
    fn status(&self, cpu: u32) -> Result<Status> {
        match &self.looks {
            Some(_) => self.control.read(),
            None => self.read_on(cpu),
        }
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
            return self.sets.setting(|| {
                self.control.set(counter as u8, word)?;
                state.set(counter, word);
                if let Some(looks) = &self.looks {
                    looks.set(counter, word);
                }
                Ok(())
            });
        }
        self.sets
            .setting(|| self.set_where_the_thread_is(cpu, counter, word))
    }

    fn set_where_the_thread_is(&self, cpu: u32, counter: usize, word: u32) -> Result<()> {
        let state = self.cpu(cpu)?;
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

    /// Makes counter 0 of a P6 gate the other, if it does not count: set to its enable bit alone it counts
    /// nothing. A function that another program has set there gates as well, and is left alone.
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
        if state.word(0) & ENABLE == 0 {
            self.set_on(cpu, 0, ENABLE)?;
        }
        Ok(())
    }

    /// Returns the function that another program has set, or 0 for a witness of one that counts with Quipu.
    fn function_of_others(&self, status: &Status, counter: usize) -> u32 {
        match self.function(status, counter) {
            0 => 0,
            now if self.control.device().claimed(witness_on(counter)).is_none() => now,
            _ => 0,
        }
    }

    /// Returns the function of a counter, without other bits of the register.
    fn function(&self, status: &Status, counter: usize) -> u32 {
        let mask = self.kind.map_or(u32::MAX, CounterKind::word_mask);
        status.functions[counter] & mask
    }

    fn values(&self, status: &Status, slots: &[usize], raw: &mut [u64]) {
        for (slot, raw) in slots.iter().zip(raw) {
            *raw = match self.slots[*slot] {
                Slot {
                    class: SlotClass::FreeRunning,
                    number: IDLE,
                    ..
                } => status.idle.unwrap_or_default(),
                Slot {
                    class: SlotClass::FreeRunning,
                    ..
                } => status.time_stamp,
                _ => status.counters[*slot],
            };
        }
    }

    /// Returns true if `rdpmc` may read these slots: there is one CPU, and the kernel allows it once a word other than 0 is
    /// set, and before that the instruction kills the process.
    fn may_read_in_user_mode(&self, cpu: u32, slots: &[usize]) -> Result<bool> {
        // Only the CPU that the thread is on can be read by it.
        if !self.reads_in_user_mode || self.looks.is_some() {
            return Ok(false);
        }
        let state = self.cpu(cpu)?;
        let is_set = |slot: &usize| *slot >= self.counters || state.word(*slot) != 0;
        Ok(slots.iter().all(is_set))
    }

    /// Reads in user mode, and returns the time stamp counter then, or `None` if the thread was interrupted
    /// each time.
    fn read_in_user_mode(&self, slots: &[usize], raw: &mut [u64]) -> Option<u64> {
        let device = self.control.device();
        for _ in 0..ATTEMPTS {
            let begin = device.rdtsc();
            for (slot, raw) in slots.iter().zip(&mut *raw) {
                *raw = if *slot < self.counters {
                    device.rdpmc(*slot as u8)
                } else {
                    begin
                };
            }
            let took = device.rdtsc().wrapping_sub(begin);
            if took <= UNINTERRUPTED {
                return Some(begin);
            }
        }
        None
    }

    /// Restores the functions that were found on a CPU, unless another program has changed them.
    fn restore(&self, cpu: u32, found: &[u32; MAX_COUNTERS]) -> Result<()> {
        let state = self.cpu(cpu)?;
        let touched: Vec<usize> = (0..self.counters)
            .filter(|c| state.is_touched(*c))
            .collect();
        if touched.is_empty() {
            return Ok(());
        }
        let status = match self.control.device().driver().scope {
            SetScope::AllCpus => self.control.read()?,
            SetScope::ThisCpu => self.read_on(cpu)?,
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
                lock(&self.unrestored)
                    .retain(|n| (n.cpu, usize::from(n.counter)) != (cpu, counter));
            }
            state.untouch(counter);
        }
        Ok(())
    }

    /// Notes the value of a counter that another process has set and that is about to be set.
    fn note_value(&self, cpu: u32, counter: usize, status: &Status) {
        let function = self.function_of_others(status, counter);
        let value = status.counters[counter];
        if function != 0 && value != 0 {
            let counter = counter as u8;
            lock(&self.lost_values).push(LostValue {
                cpu,
                counter,
                function,
                value,
            });
        }
    }

    fn note(&self, cpu: u32, counter: usize, found: Option<u32>, taken_over: Option<u32>) {
        let counter = counter as u8;
        let mut list = lock(&self.unrestored);
        list.retain(|n| (n.cpu, n.counter) != (cpu, counter));
        list.push(UnrestoredCounter {
            cpu,
            counter,
            found,
            taken_over,
        });
    }
}

impl<D> fmt::Debug for PctrPmu<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PctrPmu")
            .field("kind", &self.kind)
            .field("slots", &self.slots)
            .field("unavailable", &self.unavailable)
            .finish_non_exhaustive()
    }
}

/// Returns the width of a CPU's general counters; 40 bits, as on the first CPUs, if it is not known.
fn general_width(cpu: &CpuModel) -> u8 {
    let general = cpu.counters.iter().find(|b| b.class == SlotClass::General);
    general.map_or(40, |bank| bank.width)
}

/// Refuses CPUs of which some were not found.
fn found(looks: Looks, online: usize) -> Result<Looks> {
    match looks.cpus().len() {
        all if all >= online => Ok(looks),
        few => Err(
            Error::new(ErrorKind::Os, "find the CPUs").with_reason(format!(
                "threads got to {few} of {online} CPUs, and the others cannot be counted"
            )),
        ),
    }
}

fn out_of_reach(cpu: u32) -> Error {
    Error::new(
        ErrorKind::WrongThread,
        format!("read the counters of CPU {cpu}"),
    )
    .with_reason("no thread got there")
}

fn disturbed(cpu: u32, slot: Slot, reason: String) -> Error {
    Error::new(
        ErrorKind::Interference,
        format!("count with {slot} of CPU {cpu}"),
    )
    .with_reason(reason)
}

fn moving(cpu: u32, attempted: &str) -> Error {
    Error::new(ErrorKind::WrongThread, format!("{attempted} on CPU {cpu}"))
        .with_reason("the thread is moved from CPU to CPU all the time")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
