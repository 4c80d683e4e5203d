//! The simulated PMU: registers of plain memory that count a scripted workload.

mod driver;
mod event;
mod fault;
mod register;
mod script;
mod select;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use event::SimEvent;
pub use fault::SimOperation;
pub use register::SimRegister;
pub use script::{Rate, Script};
pub use select::SimSelect;

use quipu_hal::{CounterBank, CpuModel, Error, ErrorKind, EventMap, Filter, Result, SlotClass};

use self::fault::Faults;
use self::register::Register;
use crate::sequence::Sequence;
use crate::{Access, Clock, ManualClock, Slot, TableMap};

/// Description of a [`SimPmu`].
///
/// Exhaustive, to be written with `..SimModel::default()`.
#[derive(Debug, Clone)]
pub struct SimModel {
    /// The counters of each CPU. A free-running one counts the first event that can be on it, in every mode.
    pub slots: Vec<Slot>,
    /// The numbers of the CPUs.
    pub cpus: Vec<u32>,
    /// The threads that may drive it.
    pub access: Access,
    /// Its events.
    pub events: Vec<SimEvent>,
    /// The longest time between two looks at its counters ([`Pmu::look_interval`](crate::Pmu::look_interval)).
    pub look_interval: Option<Duration>,
}

impl Default for SimModel {
    /// Four general counters of 48 bits on CPUs 0 and 1, driven by any thread, with the [ready-made events](SimEvent::ready_made).
    fn default() -> Self {
        Self {
            slots: (0..4).map(|number| Slot::general(number, 48)).collect(),
            cpus: vec![0, 1],
            access: Access::AnyThread,
            events: SimEvent::ready_made(),
            look_interval: None,
        }
    }
}

/// A [`Pmu`](crate::Pmu) of plain memory, for testing tools that count: its events happen by a script, so what
/// a counter must show is known exactly.
///
/// It is a handle: clones are the same PMU, so a test keeps one and gives the other to a
/// [`VirtualPmu`](crate::VirtualPmu). It counts by a clock that it shares with the virtual PMU; with
/// a [`ManualClock`] every value and time is exact and repeatable, with a
/// [`MonotonicClock`](crate::MonotonicClock) it runs by itself.
///
/// ```
/// use std::time::Duration;
/// use quipu_hal::Encoding;
/// use quipu_pmu::{ManualClock, Pmu, SimPmu};
///
/// let clock = ManualClock::new();
/// let pmu = SimPmu::new(clock.clone());
/// let mut raw = [0];
/// pmu.acquire(0)?;
/// pmu.program(0, 2, &Encoding::Simulated(1))?;
/// pmu.start(0, &[2], &mut raw)?;
/// clock.advance(Duration::from_micros(10));
/// pmu.read(0, &[2], &mut raw)?;
/// assert_eq!(raw[0], pmu.truth(1, 0));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Clone)]
pub struct SimPmu {
    machine: Arc<Machine>,
}

struct Machine {
    model: SimModel,
    clock: Arc<dyn Clock>,
    cpus: Box<[Cpu]>,
    current: AtomicU32,
    faults: Faults,
}

struct Cpu {
    number: u32,
    /// Changes whenever a register does.
    sequence: Sequence,
    registers: Box<[Register]>,
    /// The slots that were programmed since they were acquired, a bit each.
    programmed: AtomicU64,
    /// Number of times each event was made to happen, in user and kernel mode.
    happened: Box<[[AtomicU64; 2]]>,
    /// Contents of the registers when they were acquired; `None` while they are not. Locked to change
    /// registers.
    found: Mutex<Option<Vec<SimRegister>>>,
}

impl SimPmu {
    /// Returns a PMU of the default [model](SimModel), counting by a manual clock.
    pub fn new(clock: ManualClock) -> Self {
        Self::with_model(SimModel::default(), clock)
    }

    /// Returns a PMU of a model, counting by any clock.
    pub fn with_model(model: SimModel, clock: impl Clock) -> Self {
        let cpu = |&number: &u32| Cpu {
            number,
            sequence: Sequence::default(),
            registers: model
                .slots
                .iter()
                .map(|&slot| model.register(slot))
                .collect(),
            programmed: AtomicU64::new(0),
            happened: model.events.iter().map(|_| Default::default()).collect(),
            found: Mutex::default(),
        };
        Self {
            machine: Arc::new(Machine {
                cpus: model.cpus.iter().map(cpu).collect(),
                current: AtomicU32::new(model.cpus.first().copied().unwrap_or_default()),
                clock: Arc::new(clock),
                faults: Faults::default(),
                model,
            }),
        }
    }

    /// Returns a map of its events, for the virtual PMU.
    pub fn event_map(&self) -> TableMap {
        let model = &self.machine.model;
        let mut banks: Vec<CounterBank> = Vec::new();
        for slot in &model.slots {
            let same = |b: &&mut CounterBank| (b.class, b.width) == (slot.class, slot.width);
            match banks.iter_mut().find(same) {
                Some(bank) => bank.number += 1,
                None => banks.push(CounterBank {
                    class: slot.class,
                    number: 1,
                    width: slot.width,
                }),
            }
        }
        let map = TableMap::new();
        let map_cpu = CpuModel::new(map.cpu().identity.clone(), map.cpu().scheme, banks);
        let enter = |map: TableMap, event: &SimEvent| {
            let map = map.event(event.number, event.info(), event.slots);
            event.events.iter().cloned().fold(map, TableMap::also)
        };
        model.events.iter().fold(map.for_cpu(map_cpu), enter)
    }

    /// Returns the number of times an event has happened on a CPU since the clock's origin, in user and
    /// kernel mode: the value a perfect counter would show. 0 for what there is not; a gauge's level for a gauge.
    pub fn truth(&self, event: u32, cpu: u32) -> u64 {
        self.truth_at(event, cpu, Filter::default(), self.machine.clock.now())
    }

    /// Returns the [true count](Self::truth) under a filter at a time of the clock; what was made to
    /// [happen](Self::happen) so far is in it.
    pub fn truth_at(&self, event: u32, cpu: u32, filter: Filter, time: u64) -> u64 {
        let select = SimSelect::new(event).filtered(filter);
        let (Ok(cpu), Some(event)) = (self.machine.cpu(cpu), self.machine.event(event)) else {
            return 0;
        };
        self.machine.value(cpu, event, select, time)
    }

    /// Makes an event happen on a CPU now, so often in user mode and in kernel mode, besides its
    /// script. Does nothing where there is no such CPU or event, and to gauges.
    ///
    /// ```
    /// use quipu_hal::Filter;
    /// use quipu_pmu::{ManualClock, SimPmu};
    ///
    /// let pmu = SimPmu::new(ManualClock::new());
    /// pmu.happen(11, 0, 0, 40);
    /// assert_eq!((pmu.truth(11, 0), pmu.truth(11, 1)), (40, 0));
    /// assert_eq!(pmu.truth_at(11, 0, Filter::USER, 0), 0);
    /// ```
    pub fn happen(&self, event: u32, cpu: u32, user: u64, kernel: u64) {
        let machine = &self.machine;
        if let (Ok(cpu), Some(event)) = (machine.cpu(cpu), machine.event(event)) {
            let _one_at_a_time = cpu.lock();
            machine.change(cpu, |_| {
                for (level, times) in cpu.happened[event].iter().zip([user, kernel]) {
                    level.fetch_add(times, Ordering::Relaxed);
                }
            });
        }
    }

    /// Returns the contents of a register, as any process on the machine could read it; `None` where
    /// there is none.
    pub fn register(&self, cpu: u32, slot: usize) -> Option<SimRegister> {
        let machine = &self.machine;
        let cpu = machine.cpu(cpu).ok()?;
        let register = cpu.registers.get(slot)?;
        Some(machine.snapshot(cpu, |now| SimRegister {
            select: register.select(),
            counting: register.is_counting(),
            raw: machine.raw(cpu, slot, now),
        }))
    }

    /// Returns the contents of all registers of a CPU.
    pub fn registers(&self, cpu: u32) -> Vec<SimRegister> {
        let slots = 0..self.machine.model.slots.len();
        slots.filter_map(|slot| self.register(cpu, slot)).collect()
    }

    /// Writes a register without the driver, as another tool would. Does
    /// nothing where there is no such register, and to a free-running one.
    pub fn overwrite(&self, cpu: u32, slot: usize, content: SimRegister) {
        let machine = &self.machine;
        if let Ok(cpu) = machine.cpu(cpu)
            && slot < cpu.registers.len()
            && !machine.is_free_running(slot)
        {
            let _one_at_a_time = cpu.lock();
            machine.change(cpu, |now| machine.write(cpu, slot, content, now));
        }
    }

    /// Lets the calling threads run on another CPU.
    pub fn set_current_cpu(&self, cpu: u32) {
        self.machine.current.store(cpu, Ordering::SeqCst);
    }

    /// Makes the `nth` call from now of an operation (1 is the next) fail once with an errno.
    pub fn fail(&self, operation: SimOperation, nth: u64, errno: i32) {
        self.machine.faults.add(Some(operation), nth, errno);
    }

    /// Makes the `nth` call from now of any operation fail once with an errno.
    pub fn fail_any(&self, nth: u64, errno: i32) {
        self.machine.faults.add(None, nth, errno);
    }

    /// Forgets the failures that were asked for and have not come yet.
    pub fn forget_failures(&self) {
        self.machine.faults.forget();
    }

    /// Returns the number of calls of an operation.
    pub fn calls(&self, operation: SimOperation) -> u64 {
        self.machine.faults.calls(operation)
    }
}

impl SimModel {
    /// Returns a register of a slot as the machine starts with it.
    fn register(&self, slot: Slot) -> Register {
        let register = Register::default();
        let can_be_there = |event: &&SimEvent| event.slots.contains(slot.class, slot.number);
        let event = self.events.iter().find(can_be_there);
        if let Some(event) = event.filter(|_| slot.class == SlotClass::FreeRunning) {
            let position = self.events.iter().position(|e| e.number == event.number);
            register.set_event(SimSelect::new(event.number).bits(), position);
            register.set_counting(true);
            register.note();
        }
        register
    }
}

impl fmt::Debug for SimPmu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimPmu")
            .field("model", &self.machine.model)
            .finish_non_exhaustive()
    }
}

impl Cpu {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<SimRegister>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine {
    fn cpu(&self, number: u32) -> Result<&Cpu> {
        // Most machines have the CPUs 0, 1, 2 and so on, so that a number is the position.
        let position = usize::try_from(number).unwrap_or(usize::MAX);
        let there = self.cpus.get(position).filter(|cpu| cpu.number == number);
        let cpu = there.or_else(|| self.cpus.iter().find(|cpu| cpu.number == number));
        cpu.ok_or_else(|| {
            Error::new(ErrorKind::NoSuchTarget, format!("reach CPU {number}"))
                .with_reason("the simulated machine has no such CPU")
        })
    }

    /// The position of an event among the model's.
    fn event(&self, number: u32) -> Option<usize> {
        self.model.events.iter().position(|e| e.number == number)
    }

    /// Looks at registers of a CPU as they all are at one moment.
    fn snapshot<T>(&self, cpu: &Cpu, mut look: impl FnMut(u64) -> T) -> T {
        loop {
            let since = cpu.sequence.begin();
            let seen = look(self.clock.now());
            if cpu.sequence.unchanged(since) {
                return seen;
            }
        }
    }

    /// Changes registers of a CPU at one moment; the CPU is locked.
    fn change<T>(&self, cpu: &Cpu, change: impl FnOnce(u64) -> T) -> T {
        cpu.sequence.write(|| change(self.clock.now()))
    }

    /// Returns the total of a register's event, as the register is programmed.
    fn total(&self, cpu: &Cpu, register: &Register, now: u64) -> u64 {
        let select = SimSelect::from_bits(register.select());
        let event = register.event();
        event.map_or(0, |event| self.value(cpu, event, select, now))
    }

    /// Returns the total of an event (by position) on a CPU: its script, and what was made to happen.
    fn value(&self, cpu: &Cpu, event: usize, select: SimSelect, now: u64) -> u64 {
        let scripted = &self.model.events[event];
        let mut value = scripted.value(cpu.number, select, now);
        if !scripted.is_gauge() {
            let levels = [select.user, select.kernel];
            for (times, counted) in cpu.happened[event].iter().zip(levels) {
                if counted {
                    value = value.wrapping_add(times.load(Ordering::Relaxed));
                }
            }
        }
        value
    }

    /// The counter of a slot.
    fn raw(&self, cpu: &Cpu, slot: usize, now: u64) -> u64 {
        let register = &cpu.registers[slot];
        let mut raw = register.value();
        if register.is_counting() {
            raw = raw.wrapping_add(self.total(cpu, register, now));
        }
        raw & self.model.slots[slot].mask()
    }

    /// Returns true for a slot that cannot be set.
    fn is_free_running(&self, slot: usize) -> bool {
        self.model.slots[slot].class == SlotClass::FreeRunning
    }

    fn stop(&self, cpu: &Cpu, slot: usize, now: u64) {
        let raw = self.raw(cpu, slot, now);
        cpu.registers[slot].set_counting(false);
        cpu.registers[slot].set_value(raw);
    }

    /// Starts a register that stands still.
    fn start(&self, cpu: &Cpu, slot: usize, now: u64) {
        let register = &cpu.registers[slot];
        let total = self.total(cpu, register, now);
        let gauge = register
            .event()
            .is_some_and(|i| self.model.events[i].is_gauge());
        let value = register.value().wrapping_sub(total);
        register.set_value(if gauge { 0 } else { value });
        register.set_counting(true);
    }

    fn write(&self, cpu: &Cpu, slot: usize, content: SimRegister, now: u64) {
        let register = &cpu.registers[slot];
        let event = self.event(SimSelect::from_bits(content.select).event);
        register.set_counting(false);
        register.set_event(content.select, event);
        register.set_value(content.raw & self.model.slots[slot].mask());
        if content.counting {
            self.start(cpu, slot, now);
        }
    }
}
