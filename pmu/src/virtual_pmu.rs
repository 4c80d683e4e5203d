//! The virtual PMU: a [`Backend`] over bare registers.

mod cpu_thread;
mod ending;
mod engine;
mod group;
mod group_state;
mod looks;
mod pace;
mod refusals;
mod request;
mod ring;
mod schedule;
mod scheduled_group;
mod times;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use group::VirtualGroup;

use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, EventMap, Features, Filter, Group, GroupSpec, Result,
    SlotClass, Target, TargetKinds,
};

use self::engine::Engine;
use crate::assign::MAX_SLOTS;
use crate::{Access, Clock, Pmu};

/// Makes the counter registers of any [`Pmu`] look like counters that a kernel virtualises: 64
/// bits wide, in groups that take turns when there are more of them than fit, with time enabled and
/// time running.
///
/// # What it does
///
/// - **Slots.** A group gets slots that its events can use whenever there are any, also by moving
///   other groups' events. A group that fits on no empty PMU is refused when it is opened.
/// - **Turns.** Pinned groups go first and stay; one that does not fit goes into the error state.
///   Then come the others in a ring, up to the first that does not fit; each
///   [interval](Scheduling::interval) the ring turns by one group. An exclusive group counts alone. A group of
///   [free-running](quipu_hal::SlotClass::FreeRunning) counters alone waits for nothing, as software events of
///   Linux do not.
/// - **Widening.** Counters of any width are followed through their wraps, provided they are read
///   once a wrap. Where a background thread may run, it does so in time. Where they went unread for longer
///   than the event's [maximum rate](quipu_hal::EventInfo::max_rate) allows, reading is an error until
///   the group is reset.
/// - **Restoring.** The counters of a CPU are taken when the first group is opened there, and what
///   was in them is put back when the last is dropped.
/// - **Interference.** A span in which another process changed a register is neither counted nor time
///   running, and the next read says so once.
///
/// It counts on CPUs. Tasks, inheritance and enabling on exec need the operating system's scheduler
/// and are refused.
///
/// # Who drives it
///
/// See [`Rotation`]. Reading takes no lock and allocates nothing; only where the reading thread is
/// also the one that rotates, a read now and then does that as well.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use quipu_hal::{Backend, Group, GroupSpec, Hardware, Count, Target};
/// use quipu_pmu::{ManualClock, SimPmu, VirtualPmu};
///
/// let clock = ManualClock::new();
/// let pmu = SimPmu::new(clock.clone());
/// let map = pmu.event_map();
/// let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map))?;
/// let mut group = backend.open(&GroupSpec::new([Hardware::Cycles]), &Target::Cpu(0))?;
/// clock.advance(Duration::from_millis(1));
/// let mut out = group.read_buf();
/// group.read(&mut out)?;
/// assert_eq!(out[0][0].count(), Count::Exact(3_000_000));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub struct VirtualPmu<P: Pmu> {
    engine: Arc<Engine<P>>,
    map: Arc<dyn EventMap>,
    capabilities: Capabilities,
}

/// Settings of the rotation of groups.
///
/// Exhaustive, to be written with `..Scheduling::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduling {
    /// Time a group counts before the ring turns; longer where turning it costs too much
    /// ([`interval_in_force`](VirtualPmu::interval_in_force)). 4 ms by default, as long as a tick of Linux
    /// at 250 Hz.
    pub interval: Duration,
    /// The caller that turns the ring.
    pub rotation: Rotation,
}

impl Default for Scheduling {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(4),
            rotation: Rotation::Automatic,
        }
    }
}

/// The caller that turns the ring of groups and reads narrow counters in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Rotation {
    /// Only [`VirtualPmu::tick`] with a [manual clock](Clock::is_manual); a thread for each CPU in the
    /// background where any thread may drive the PMU; else the measuring thread's reads.
    #[default]
    Automatic,
    /// Every read that comes after the interval, and [`VirtualPmu::tick`].
    Reads,
    /// Only [`VirtualPmu::tick`].
    Manual,
}

/// [`Rotation`] as resolved for a given PMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drive {
    Background,
    Reads,
    Manual,
}

impl<P: Pmu> VirtualPmu<P> {
    /// Returns a backend over `pmu`, with times from `clock` and events from `map`.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the driver describes a PMU
    /// that cannot be: no slot or CPU or more than 64 slots, one of them twice, or a width out of
    /// range.
    pub fn new(pmu: P, clock: impl Clock, map: Arc<dyn EventMap>) -> Result<Self> {
        Self::with_scheduling(pmu, clock, map, Scheduling::default())
    }

    /// Returns a backend with another interval or another way to rotate.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_scheduling(
        pmu: P,
        clock: impl Clock,
        map: Arc<dyn EventMap>,
        scheduling: Scheduling,
    ) -> Result<Self> {
        check(&pmu)?;
        let any_thread = pmu.access() == Access::AnyThread;
        let drive = match scheduling.rotation {
            Rotation::Automatic if clock.is_manual() => Drive::Manual,
            Rotation::Automatic if any_thread => Drive::Background,
            Rotation::Automatic | Rotation::Reads => Drive::Reads,
            Rotation::Manual => Drive::Manual,
        };
        Ok(Self {
            capabilities: capabilities(&pmu),
            engine: Arc::new(Engine::new(
                pmu,
                Box::new(clock),
                scheduling.interval,
                drive,
            )),
            map,
        })
    }

    /// Opens a group of counters on a target, as [`Backend::open`] does, with its own type.
    ///
    /// # Errors
    /// As [`Backend::open`].
    pub fn open_group(&self, spec: &GroupSpec, target: &Target) -> Result<VirtualGroup<P>> {
        let core = &self.engine.core;
        let cpus = request::cpus(core, target)?;
        request::check_attributes(spec)?;
        let (infos, members) = request::members(&core.pmu, &*self.map, spec)?;
        VirtualGroup::open(&self.engine, infos, &members, &cpus, &spec.attributes)
    }

    /// Gives the next groups their turn on every CPU, and reads counters that may wrap soon,
    /// whether the interval has passed or not.
    ///
    /// # Errors
    /// [`WrongThread`](ErrorKind::WrongThread) when the PMU is driven by another thread.
    pub fn tick(&self) -> Result<()> {
        self.engine.core.check_ticker()?;
        self.engine.core.tick();
        Ok(())
    }

    /// Returns the time a group really counts before the ring turns: the [interval](Scheduling::interval)
    /// that was asked for, or as much more as keeps a thread in the background from taking more than a hundredth
    /// of a CPU for turning, or, where a turn were longer than 250 ms for that, a tenth; the longest of all CPUs.
    pub fn interval_in_force(&self) -> Duration {
        let core = &self.engine.core;
        let intervals = (0..core.schedules()).map(|cpu| core.interval(cpu));
        Duration::from_nanos(intervals.max().unwrap_or(0))
    }

    /// Returns the driver.
    pub fn pmu(&self) -> &P {
        &self.engine.core.pmu
    }
}

impl<P: Pmu> fmt::Debug for VirtualPmu<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualPmu")
            .field("name", &self.pmu().name())
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

impl<P: Pmu> Backend for VirtualPmu<P> {
    fn name(&self) -> &'static str {
        self.pmu().name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(self.open_group(spec, target)?))
    }

    fn restore_failures(&self) -> Vec<Error> {
        self.pmu().restore_failures()
    }

    fn give_back(&self) {
        self.engine.give_back();
    }
}

fn capabilities<P: Pmu>(pmu: &P) -> Capabilities {
    let mut features =
        Features::PINNED | Features::EXCLUSIVE | Features::MULTIPLEXING | Features::HARDWARE_EVENTS;
    let mut targets = TargetKinds::CURRENT_CPU;
    if pmu.access() == Access::AnyThread {
        features |= Features::ANY_THREAD;
        targets |= TargetKinds::CPU | TargetKinds::ALL_CPUS;
    }
    let mut capabilities = Capabilities::none();
    capabilities.targets = targets;
    capabilities.features = features;
    capabilities.filters = Filter::LEVELS;
    capabilities.simultaneity = pmu.simultaneity();
    let counters = pmu.slots().iter();
    let counters = counters.filter(|slot| slot.class != SlotClass::FreeRunning);
    capabilities.slots = Some(counters.count());
    capabilities
}

/// Refuses a driver whose description is inconsistent.
fn check<P: Pmu>(pmu: &P) -> Result<()> {
    let wrong = |reason: String| {
        let attempted = format!("make a virtual PMU over the driver {}", pmu.name());
        Err(Error::new(ErrorKind::InvalidConfiguration, attempted).with_reason(reason))
    };
    let (slots, cpus) = (pmu.slots(), pmu.cpus());
    if slots.is_empty() || slots.len() > MAX_SLOTS {
        return wrong(format!(
            "it has {} slots, not 1 to {MAX_SLOTS}",
            slots.len()
        ));
    }
    for (i, slot) in slots.iter().enumerate() {
        if !(1..=64).contains(&slot.width) {
            return wrong(format!("{slot} is {} bits wide", slot.width));
        }
        let same = |other: &&crate::Slot| (other.class, other.number) == (slot.class, slot.number);
        if slots[..i].iter().any(|other| same(&other)) {
            return wrong(format!("{slot} is listed twice"));
        }
    }
    if cpus.is_empty() {
        return wrong("it has no CPU".into());
    }
    for (i, cpu) in cpus.iter().enumerate() {
        if cpus[..i].contains(cpu) {
            return wrong(format!("CPU {cpu} is listed twice"));
        }
    }
    Ok(())
}
