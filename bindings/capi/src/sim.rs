//! The simulated PMU: counters of plain memory, for tests of tools that count.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use quipu_hal::{Backend, SlotSet};
use quipu_pmu::{ManualClock, Rate, Script, SimEvent, SimModel, SimPmu, Slot, VirtualPmu};

use crate::boundary::{self, Versioned, guarded, share};
use crate::failure::Failure;
use crate::handle::HandleTable;
use crate::quipu_status;

/// A simulated PMU: its events happen by a script and its clock stands still until it is advanced, so
/// what a counter must show is known exactly. A handle, not an address; any threads may use it.
pub struct quipu_sim {
    _opaque: (),
}

static SIMS: HandleTable<Sim> = HandleTable::new(3, "simulated PMU");

type Simulated = VirtualPmu<SimPmu>;

struct Sim {
    backend: Arc<Simulated>,
    clock: ManualClock,
    events: Vec<SimEvent>,
}

/// A steady rate for a time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_sim_phase {
    /// The duration in nanoseconds. After the last phase comes the first again.
    pub duration: u64,
    /// Events a microsecond in user mode.
    pub user: u64,
    /// Events a microsecond in kernel mode.
    pub kernel: u64,
}

/// An event of a simulated PMU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_sim_event {
    /// Its native name.
    pub name: *const c_char,
    /// The generalized event that it is too ("cycles"), or null.
    pub also: *const c_char,
    /// The counters that can count it, a bit each; 0 is all.
    pub counters: u64,
    /// When it happens, besides quipu_sim_happen().
    pub phases: *const quipu_sim_phase,
    /// The number of phases; without any it happens only when a program causes it.
    pub phase_count: usize,
}

/// A simulated PMU to be made. Set `size` first (QUIPU_INIT); what is zero is as the PMU of
/// docs/c-api.md has it: two CPUs with four counters of 48 bits, and thirteen events.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_sim_config {
    /// sizeof (quipu_sim_config).
    pub size: usize,
    /// The number of CPUs, which are numbered from 0.
    pub cpus: u32,
    /// The number of counters of each CPU, 64 at most.
    pub counters: u32,
    /// The width of a counter in bits, 64 at most.
    pub width: u32,
    /// The number of events at `events`.
    pub event_count: u32,
    /// Its events, numbered from 1.
    pub events: *const quipu_sim_event,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_sim_config {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

const ATTEMPTED: &str = "make a simulated PMU";
const MOST_CPUS: u32 = 4096;

/// The backend that a set on this simulated PMU counts with.
pub(crate) fn backend(sim: *mut quipu_sim) -> Result<Arc<dyn Backend>, Failure> {
    let backend = share(&SIMS, sim)?.backend.clone();
    Ok(backend)
}

/// # Safety
/// `config` holds pointers that are null or good.
unsafe fn model(config: &quipu_sim_config) -> Result<SimModel, Failure> {
    let mut model = SimModel::default();
    if config.cpus > MOST_CPUS || config.counters > 64 || config.width > 64 {
        let reason = format!("it has {MOST_CPUS} CPUs, 64 counters and 64 bits at most");
        return Err(Failure::invalid(ATTEMPTED, reason));
    }
    if config.cpus != 0 {
        model.cpus = (0..config.cpus).collect();
    }
    let default = |value: u32, default: u32| if value == 0 { default } else { value } as u8;
    let (counters, width) = (default(config.counters, 4), default(config.width, 48));
    model.slots = (0..counters).map(|i| Slot::general(i, width)).collect();
    if config.event_count != 0 {
        // SAFETY: the caller's promise.
        let events = unsafe {
            boundary::array(config.events, config.event_count as usize, "config.events")
        }?;
        let numbered = (1..).zip(events);
        model.events = numbered
            // SAFETY: the caller's promise.
            .map(|(number, event)| unsafe { sim_event(number, event) })
            .collect::<Result<_, _>>()?;
    }
    Ok(model)
}

/// # Safety
/// As [`model`].
unsafe fn sim_event(number: u32, event: &quipu_sim_event) -> Result<SimEvent, Failure> {
    // SAFETY: the caller's promise.
    let name = unsafe { boundary::text(event.name, "event.name") }?;
    // SAFETY: the caller's promise.
    let also = unsafe { boundary::optional_text(event.also, "event.also") }?;
    // SAFETY: the caller's promise.
    let phases = unsafe { boundary::array(event.phases, event.phase_count, "event.phases") }?;
    let script = Script::phases(phases.iter().map(|phase| {
        let rate = Rate::new(phase.user, phase.kernel);
        (Duration::from_nanos(phase.duration), rate)
    }));
    let mut simulated = SimEvent::new(number, name, script);
    if event.counters != 0 {
        simulated = simulated.on_slots(SlotSet::general(event.counters));
    }
    if let Some(also) = also {
        simulated = simulated.also(quipu_text::parse_event(also)?);
    }
    Ok(simulated)
}

/// Makes a simulated PMU; a null `config` is the ready-made one. Name it in quipu_config to count on
/// it, on CPU targets: `sim.target = QUIPU_CPU`. quipu_sim_close() closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sim_create(
    config: *const quipu_sim_config,
    out: *mut *mut quipu_sim,
) -> quipu_status {
    guarded(|| {
        let model = match config.is_null() {
            true => SimModel::default(),
            // SAFETY: the caller's promise.
            false => unsafe { model(&boundary::read_versioned(config, "config")?) }?,
        };
        let events = model.events.clone();
        let clock = ManualClock::new();
        let pmu = SimPmu::with_model(model, clock.clone());
        let map = Arc::new(pmu.event_map());
        let backend = Arc::new(VirtualPmu::new(pmu, clock.clone(), map)?);
        // SAFETY: the caller's promise.
        unsafe {
            boundary::export(
                &SIMS,
                Sim {
                    backend,
                    clock,
                    events,
                },
                out,
            )
        }
    })
}

/// Lets the time of a simulated PMU pass, in nanoseconds: its events happen by their scripts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sim_advance(sim: *mut quipu_sim, nanoseconds: u64) -> quipu_status {
    with_sim(sim, |sim| {
        sim.clock.advance(Duration::from_nanos(nanoseconds));
        Ok(())
    })
}

/// Gives the next groups their turn on the counters of every CPU, as the timer of a kernel does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sim_tick(sim: *mut quipu_sim) -> quipu_status {
    with_sim(sim, |sim| Ok(sim.backend.tick()?))
}

/// Makes an event happen on a CPU now, so often in user mode and in kernel mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sim_happen(
    sim: *mut quipu_sim,
    event: *const c_char,
    cpu: u32,
    user: u64,
    kernel: u64,
) -> quipu_status {
    with_sim(sim, |sim| {
        // SAFETY: the caller's promise.
        let number = unsafe { sim.number(event, cpu) }?;
        sim.backend.pmu().happen(number, cpu, user, kernel);
        Ok(())
    })
}

/// Says how often an event has happened on a CPU so far, in user and kernel mode: what a perfect
/// counter shows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sim_truth(
    sim: *mut quipu_sim,
    event: *const c_char,
    cpu: u32,
    out: *mut u64,
) -> quipu_status {
    with_sim(sim, |sim| {
        // SAFETY: the caller's promise.
        let number = unsafe { sim.number(event, cpu) }?;
        // SAFETY: the caller's promise.
        unsafe { boundary::write(out, sim.backend.pmu().truth(number, cpu), "out") }
    })
}

/// Closes a simulated PMU. Sets that count on it go on; programs can no longer cause events of it. A null
/// `sim` is nothing to close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sim_close(sim: *mut quipu_sim) -> quipu_status {
    boundary::close(&SIMS, sim)
}

fn with_sim(sim: *mut quipu_sim, call: impl FnOnce(&Sim) -> Result<(), Failure>) -> quipu_status {
    guarded(|| call(&*share(&SIMS, sim)?))
}

impl Sim {
    /// The number of an event that is asked for on a CPU.
    ///
    /// # Safety
    /// `name` is null or a text.
    unsafe fn number(&self, name: *const c_char, cpu: u32) -> Result<u32, Failure> {
        use quipu_pmu::Pmu;

        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name, "event") }?;
        let attempted = format!("find {name} on CPU {cpu}");
        if !self.backend.pmu().cpus().contains(&cpu) {
            let reason = "the simulated machine has no such CPU";
            return Err(Failure::invalid(&attempted, reason));
        }
        let event = self.events.iter().find(|event| event.name == name);
        event
            .map(|event| event.number)
            .ok_or_else(|| Failure::invalid(&attempted, "the simulated PMU has no such event"))
    }
}
