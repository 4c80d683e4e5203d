//! The simulated machine: CPUs, what happens on them, and the driver's state.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quipu_hal::{CounterBank, CpuIdentity, CpuModel, Scheme, SlotClass};
use quipu_pmu::ManualClock;

use super::SimDevice;
use super::cpu::SimCpu;
use super::era::{Era, Processor};
use crate::abi::MAX_COUNTERS;
use crate::function::CounterKind;

/// Cycles of the simulated CPUs in a nanosecond.
const CYCLES_PER_NS: u64 = 2;

/// The time stamp counter when a device is opened: the machine has run for half a millisecond.
const BOOTED: u64 = 1_000_000;

/// The privilege level at which an event occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// In user mode.
    User,
    /// In the kernel.
    Kernel,
}

/// A machine with a pctr(4) driver. It is a handle: clones are the same machine.
///
/// All threads of this process run on one of its CPUs, until they are [moved](Self::move_to). The CPUs
/// have the APIC ids 0, 2, 4 and so on, as on a machine with hyper-threading turned off.
///
/// ```
/// use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
/// use quipu_pctr::Control;
///
/// let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
/// let control = Control::new(machine.open())?;
/// control.set(0, 0x0041_00c0)?;
/// machine.occur(0xc0, 0, Level::User, 1000);
/// assert_eq!(control.read()?.counters[0], 1000);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Clone)]
pub struct SimMachine {
    pub(super) era: Era,
    pub(super) processor: Processor,
    clock: ManualClock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) cpus: Vec<SimCpu>,
    /// The CPU that threads run on.
    pub(super) current: usize,
    /// The words set last, as the driver of 2019 remembers them.
    pub(super) driver: [u32; MAX_COUNTERS],
    /// Calls of ioctl so far.
    pub(super) calls: u64,
    /// The call that fails, and how.
    pub(super) fault: Option<(u64, i32)>,
    /// Moves to come: at a look at the CPU number, to a CPU.
    pub(super) moves: Vec<(u64, usize)>,
    /// The call before which threads are moved, and to which CPU.
    pub(super) move_in_call: Option<(u64, usize)>,
    /// Looks at the CPU number so far.
    pub(super) looks: u64,
    /// Sweeps over all CPUs so far.
    pub(super) sweeps: u64,
    /// True while CPUs take the interrupt of a set only when a thread gets there.
    pub(super) holds_interrupts: bool,
    /// The CPU that no thread gets to.
    pub(super) out_of_reach: Option<usize>,
    /// The process that claims each counter, and then the witness on each.
    pub(super) claims: [Option<u32>; 2 * MAX_COUNTERS],
    /// The number of looks at claims after which one ends, and which that is.
    pub(super) claim_ends: Option<(u32, usize)>,
    /// Those that this process claims, a bit each.
    pub(super) own_claims: u32,
    /// True once `rdpmc` was used where it is not allowed.
    pub(super) faulted: bool,
    /// True once the driver has written a register that the CPU does not have.
    pub(super) crashed: bool,
    /// Counters read by `rdpmc` so far.
    pub(super) user_reads: u64,
    /// The cycles that interruptions take which are still to come, one after each `rdpmc`.
    pub(super) interruptions: Vec<u64>,
    /// Every function that was set through the device, with its counter.
    pub(super) log: Vec<(u8, u32)>,
    steady: Vec<Steady>,
    occurred: Vec<(u8, Level, u64)>,
    pub(super) elapsed: u64,
}

/// An event that occurs all the time.
#[derive(Debug, Clone, Copy)]
struct Steady {
    event: u8,
    level: Level,
    per_microsecond: u64,
}

impl SimMachine {
    /// Returns a machine with a kernel of an era on so many CPUs, at least one.
    pub fn new(era: Era, processor: Processor, cpus: usize) -> Self {
        // i386 and amd64 up to 2016 allow rdpmc at attach, on the CPU that boots.
        let mut registers = vec![SimCpu::default(); cpus.max(1)];
        registers[0].user_rdpmc = era != Era::Amd64Of2019 && processor != Processor::P5;
        if processor.has_time_stamp() {
            for cpu in &mut registers {
                cpu.time_stamp = BOOTED;
            }
        }
        Self {
            era,
            processor,
            clock: ManualClock::new(),
            state: Arc::new(Mutex::new(State {
                cpus: registers,
                current: 0,
                driver: [0; MAX_COUNTERS],
                calls: 0,
                fault: None,
                moves: Vec::new(),
                move_in_call: None,
                looks: 0,
                sweeps: 0,
                holds_interrupts: false,
                out_of_reach: None,
                claims: [None; 2 * MAX_COUNTERS],
                claim_ends: None,
                own_claims: 0,
                faulted: false,
                crashed: false,
                user_reads: 0,
                interruptions: Vec::new(),
                log: Vec::new(),
                steady: Vec::new(),
                occurred: Vec::new(),
                elapsed: 0,
            })),
        }
    }

    /// Opens its device for reading and writing.
    pub fn open(&self) -> SimDevice {
        SimDevice::new(self.clone(), true, true)
    }

    /// Opens its device for reading only.
    pub fn open_read_only(&self) -> SimDevice {
        SimDevice::new(self.clone(), true, false)
    }

    /// Returns the kernel's era.
    pub fn era(&self) -> Era {
        self.era
    }

    /// Returns the CPUs' kind.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    /// Returns its time, which [`pass`](Self::pass) moves.
    pub fn clock(&self) -> ManualClock {
        self.clock.clone()
    }

    /// Returns the model of its CPUs, as far as their counters go; `None` where the driver knows no
    /// counters.
    pub fn cpu_model(&self) -> Option<CpuModel> {
        let number = self.era.counters(self.processor);
        let (vendor, family, model) = self.processor.identity()?;
        let scheme = match self.processor.kind()? {
            CounterKind::P5 => Scheme::P5,
            CounterKind::P6 => Scheme::P6,
            CounterKind::Core => Scheme::IntelArchitectural,
            CounterKind::Amd if family < 0x10 => Scheme::AmdK7,
            CounterKind::Amd => Scheme::Amd10h,
        };
        (number > 0).then(|| {
            CpuModel::new(
                CpuIdentity::X86 {
                    vendor: vendor.to_owned(),
                    family,
                    model,
                    stepping: 0,
                },
                scheme,
                vec![CounterBank {
                    class: SlotClass::General,
                    number: number as u8,
                    width: self.processor.width(),
                }],
            )
        })
    }

    /// Makes an event occur so many times on a CPU, by its position, as [`occur`](Self::occur) does on that of the
    /// threads.
    pub fn occur_on(&self, cpu: usize, event: u8, unit_mask: u8, level: Level, times: u64) {
        let mut state = self.lock();
        state.cpus[cpu].occur(self.processor, event, unit_mask, level, times);
        state.note(event, level, times);
    }

    /// Makes an event occur so many times, once a cycle, on the CPU that threads run on. `unit_mask` says
    /// which of an event's cases it is; 0 is every case.
    pub fn occur(&self, event: u8, unit_mask: u8, level: Level, times: u64) {
        let current = self.lock().current;
        self.occur_on(current, event, unit_mask, level, times);
    }

    /// Lets an event occur at a steady rate on every CPU while time [passes](Self::pass).
    pub fn steady(&self, event: u8, level: Level, per_microsecond: u64) {
        self.lock().steady.push(Steady {
            event,
            level,
            per_microsecond,
        });
    }

    /// Lets time pass: time stamp counters run, and steady events occur.
    pub fn pass(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut state = self.lock();
        let before = state.elapsed;
        state.elapsed = before.saturating_add(ns);
        let after = state.elapsed;
        for steady in state.steady.clone() {
            let until = |ns: u64| u128::from(ns) * u128::from(steady.per_microsecond) / 1_000;
            let times = (until(after) - until(before)) as u64;
            for cpu in &mut state.cpus {
                cpu.occur(self.processor, steady.event, 0, steady.level, times);
            }
            state.note(steady.event, steady.level, times);
        }
        if self.processor.has_time_stamp() {
            for cpu in &mut state.cpus {
                cpu.time_stamp = cpu.time_stamp.wrapping_add(ns.wrapping_mul(CYCLES_PER_NS));
            }
        }
        self.clock.advance(time);
    }

    /// Returns the number of times that an event has occurred on the machine at a level.
    pub fn occurred(&self, event: u8, level: Level) -> u64 {
        let state = self.lock();
        let found = state.occurred.iter().find(|o| (o.0, o.1) == (event, level));
        found.map_or(0, |(_, _, times)| *times)
    }

    /// Moves the threads to another CPU, by its position.
    pub fn move_to(&self, cpu: usize) {
        let mut state = self.lock();
        state.current = cpu % state.cpus.len();
        let current = state.current;
        state.take_interrupt(current, false);
    }

    /// Moves the threads to another CPU after so many more looks at the CPU's number.
    pub fn move_later(&self, looks: u64, cpu: usize) {
        let mut state = self.lock();
        let at = state.looks + looks;
        let cpu = cpu % state.cpus.len();
        state.moves.push((at, cpu));
    }

    /// Moves the threads to another CPU in the ioctl after so many more, before the driver looks at it.
    pub fn move_in_call(&self, calls: u64, cpu: usize) {
        let mut state = self.lock();
        let cpu = cpu % state.cpus.len();
        state.move_in_call = Some((state.calls + calls + 1, cpu));
    }

    /// Keeps all threads off a CPU, by its position, or off none.
    pub fn keep_off(&self, cpu: Option<usize>) {
        self.lock().out_of_reach = cpu;
    }

    /// Has the CPUs take the interrupt of a set when a thread gets there, or when this ends, and not at once.
    pub fn hold_interrupts(&self, held: bool) {
        let mut state = self.lock();
        state.holds_interrupts = held;
        for cpu in 0..state.cpus.len() {
            state.take_interrupt(cpu, held);
        }
    }

    /// Returns the number of times that all CPUs were visited.
    pub fn sweeps(&self) -> u64 {
        self.lock().sweeps
    }

    /// Makes another process claim a counter or the [witness on one](crate::witness_on), or none.
    pub fn claim_for(&self, counter: usize, pid: Option<u32>) {
        self.lock().claims[counter] = pid;
    }

    /// Makes another process give up its claim to a counter after so many looks at claims.
    pub fn end_claim_after(&self, looks: u32, counter: usize) {
        self.lock().claim_ends = Some((looks, counter));
    }

    /// Returns the counters that this process claims, and then the witnesses on them, a bit each.
    pub fn own_claims(&self) -> u32 {
        self.lock().own_claims
    }

    /// Makes the ioctl after so many more that succeed fail once with an errno. A fault that is
    /// still to come is replaced.
    pub fn fail_after(&self, calls: u64, errno: i32) {
        let mut state = self.lock();
        state.fault = Some((state.calls + calls + 1, errno));
    }

    /// Takes back a fault that has not come yet, and says whether there was one.
    pub fn withdraw_fault(&self) -> bool {
        self.lock().fault.take().is_some()
    }

    /// Returns the number of ioctls so far.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Returns the functions that counters were set to through the device, in order: each counter and its word.
    pub fn log(&self) -> Vec<(u8, u32)> {
        self.lock().log.clone()
    }

    /// Interrupts the thread after each of the next `times` reads by `rdpmc`, for so many cycles. What
    /// runs meanwhile makes every counter that is set count one a cycle.
    pub fn interrupt_reads(&self, times: usize, cycles: u64) {
        self.lock().interruptions = vec![cycles; times];
    }

    /// Returns the number of counters read by `rdpmc`.
    pub fn user_reads(&self) -> u64 {
        self.lock().user_reads
    }

    /// Returns true if `rdpmc` was used in user mode where the kernel does not allow it, which would have
    /// killed a real process.
    pub fn was_killed(&self) -> bool {
        self.lock().faulted
    }

    /// Returns true if the driver has written a register that the CPU does not have, which would have ended a
    /// real kernel.
    pub fn has_crashed(&self) -> bool {
        self.lock().crashed
    }

    /// Returns the functions that the counters of a CPU are set to, by its position.
    pub fn functions(&self, cpu: usize) -> [u32; MAX_COUNTERS] {
        self.lock().cpus[cpu].select
    }

    /// Sets a function on a CPU as another process would, which zeroes the counter, also when it is the
    /// same function.
    pub fn overwrite(&self, cpu: usize, counter: usize, word: u32) {
        let mut state = self.lock();
        state.cpus[cpu].set(counter, word);
        state.driver[counter] = word;
    }

    /// Leaves a function in a CPU's register, which the driver knows nothing of, as firmware does.
    pub fn leave(&self, cpu: usize, counter: usize, word: u32) {
        self.lock().cpus[cpu].select[counter] = word;
    }

    /// Suspends the machine and resumes it: registers and time stamp counters begin at 0. Since 2019 the
    /// driver sets the functions again.
    pub fn suspend(&self) {
        let mut state = self.lock();
        let again = match self.era {
            Era::Amd64Of2019 => state.driver,
            _ => [0; MAX_COUNTERS],
        };
        for cpu in &mut state.cpus {
            cpu.select = again;
            cpu.counter = [0; MAX_COUNTERS];
            cpu.time_stamp = 0;
        }
    }

    /// Puts a value into a counter of every CPU, to have it wrap soon.
    pub fn preset(&self, counter: usize, value: u64) {
        let mask = u64::MAX >> (64 - self.processor.width());
        for cpu in &mut self.lock().cpus {
            cpu.counter[counter] = value & mask;
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Something else runs for so many cycles.
    /// Sets what differs from the words set last, on a CPU that was sent an interrupt for it and does not hold it.
    fn take_interrupt(&mut self, cpu: usize, held: bool) {
        let (driver, cpu) = (self.driver, &mut self.cpus[cpu]);
        if !cpu.is_interrupted || held {
            return;
        }
        cpu.is_interrupted = false;
        for (counter, word) in driver.into_iter().enumerate() {
            if cpu.select[counter] != word {
                cpu.set(counter, word);
            }
        }
    }

    pub(super) fn interrupt(&mut self, cycles: u64) {
        let cpu = &mut self.cpus[self.current];
        cpu.time_stamp = cpu.time_stamp.wrapping_add(cycles);
        for (counter, select) in cpu.counter.iter_mut().zip(cpu.select) {
            if select != 0 {
                *counter = counter.wrapping_add(cycles);
            }
        }
    }

    fn note(&mut self, event: u8, level: Level, times: u64) {
        match self
            .occurred
            .iter_mut()
            .find(|o| (o.0, o.1) == (event, level))
        {
            Some((_, _, sum)) => *sum = sum.wrapping_add(times),
            None => self.occurred.push((event, level, times)),
        }
    }
}

impl fmt::Debug for SimMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimMachine")
            .field("era", &self.era)
            .field("processor", &self.processor)
            .finish_non_exhaustive()
    }
}
