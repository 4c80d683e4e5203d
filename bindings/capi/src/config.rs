//! The target of an event set, and the options it is opened with.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use quipu::{Attributes, Machine, NativeEvents, Target};
use quipu_hal::Backend;

use crate::boundary::{self, Versioned};
use crate::failure::Failure;
use crate::sim::{self, quipu_sim};

/// Targets: the threads, processes, control groups or CPUs that are measured.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_target {
    /// The calling thread, on whatever CPU it runs.
    QUIPU_THIS_THREAD = 0,
    /// One thread: `id` is its number, as gettid(2) gives it.
    QUIPU_THREAD = 1,
    /// A process with all the threads it has now: `id` is its number. With QUIPU_INHERIT also those it
    /// makes later.
    QUIPU_PROCESS = 2,
    /// The CPU that the calling thread runs on when the set is opened.
    QUIPU_THIS_CPU = 3,
    /// One CPU, everything that runs on it: `id` is its number.
    QUIPU_CPU = 4,
    /// Several CPUs, a part each: `cpus` and `cpu_count`.
    QUIPU_CPUS = 5,
    /// Every CPU that is online, a part each.
    QUIPU_ALL_CPUS = 6,
    /// The tasks of the control group at `cgroup`, on `cpus` (all that are online when `cpu_count` is 0).
    QUIPU_CGROUP = 7,
}

/// Options for opening a set; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_set_flag {
    /// Threads and processes that the target makes later are counted too.
    QUIPU_INHERIT = 1,
    /// Always on the PMU, or in the error state.
    QUIPU_PINNED = 2,
    /// Alone on the PMU while scheduled.
    QUIPU_EXCLUSIVE = 4,
    /// Starts when the target executes a new program (execve(2)).
    QUIPU_ENABLE_ON_EXEC = 8,
    /// Counts user mode only if counting in the kernel is not permitted, and the event says so
    /// (QUIPU_EVENT_USER_ONLY).
    QUIPU_USER_FALLBACK = 16,
    /// Of what QUIPU_INHERIT follows, threads are counted and processes are not.
    QUIPU_INHERIT_THREAD = 32,
    /// Taken off a task that executes a new program (execve(2)).
    QUIPU_REMOVE_ON_EXEC = 64,
    /// Consents to model-specific registers where the event database prefers them for this CPU. They count whole CPUs, and
    /// writing them taints a Linux kernel.
    QUIPU_ALLOW_MSR = 128,
}

/// The target and options of an event set. Set `size` first (QUIPU_INIT); everything zero is the calling
/// thread, counted by the backends of this machine.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_config {
    /// sizeof (quipu_config).
    pub size: usize,
    /// A quipu_target.
    pub target: u32,
    /// Sum of quipu_set_flag.
    pub flags: u32,
    /// The thread, process or CPU.
    pub id: c_int,
    /// The number of CPUs at `cpus`.
    pub cpu_count: u32,
    /// The CPUs of QUIPU_CPUS and QUIPU_CGROUP.
    pub cpus: *const u32,
    /// The directory of QUIPU_CGROUP: absolute, or relative to where the cgroup file system is mounted.
    pub cgroup: *const c_char,
    /// The backends to use, by name, with commas between them, those that are preferred first ("linux,posix"); null
    /// for those of this machine.
    pub backends: *const c_char,
    /// A file of events (TOML) on top of those of this system and user, or null. Unlike $QUIPU_EVENTS, programs with
    /// more rights than their users (set-user-ID) read it too.
    pub events_file: *const c_char,
    /// The CPU of the event database whose events are used, by its id, or null for that of this machine. To be
    /// counted with, it has to take the same bits as this machine's.
    pub cpu_model: *const c_char,
    /// The simulated PMU to count on instead of this machine's, or null.
    pub sim: *mut quipu_sim,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_config {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

const ATTEMPTED: &str = "create an event set";

/// A configuration in the facade's terms.
pub(crate) struct Config {
    pub(crate) target: Target,
    pub(crate) attributes: Attributes,
    pub(crate) user_mode_fallback: bool,
    /// The machine with events or consent of its own, if there are such.
    pub(crate) machine: Option<Arc<Machine>>,
    pub(crate) backends: Option<Vec<Arc<dyn Backend>>>,
    /// True if that is a simulated PMU.
    pub(crate) is_simulated: bool,
}

impl Config {
    /// Reads a caller's configuration; null is the default one.
    ///
    /// # Safety
    /// `config` is null or points to a configuration whose pointers are null or good.
    pub(crate) unsafe fn read(config: *const quipu_config) -> Result<Self, Failure> {
        let config = match config.is_null() {
            true => boundary::zeroed(),
            // SAFETY: the caller's promise.
            false => unsafe { boundary::read_versioned(config, "config") }?,
        };
        // SAFETY: the caller's promise.
        let machine = unsafe { machine(&config) }?;
        Ok(Self {
            // SAFETY: the caller's promise.
            target: unsafe { target(&config) }?,
            attributes: attributes(config.flags)?,
            user_mode_fallback: config.flags & quipu_set_flag::QUIPU_USER_FALLBACK as u32 != 0,
            // SAFETY: the caller's promise.
            backends: unsafe { backends(&config, machine.as_deref()) }?,
            machine,
            is_simulated: !config.sim.is_null(),
        })
    }

    /// Returns the native events that names are looked up in.
    pub(crate) fn native_events(&self) -> &NativeEvents {
        match &self.machine {
            Some(machine) => machine.native_events(),
            None => NativeEvents::this(),
        }
    }
}

/// # Safety
/// As [`Config::read`].
unsafe fn target(config: &quipu_config) -> Result<Target, Failure> {
    // SAFETY: the caller's promise.
    let cpus = || unsafe { boundary::array(config.cpus, config.cpu_count as usize, "config.cpus") };
    let target = match config.target {
        0 => Target::CurrentThread,
        1 => Target::Thread(config.id),
        2 => Target::Process(config.id),
        3 => Target::CurrentCpu,
        4 => match u32::try_from(config.id) {
            Ok(cpu) => Target::Cpu(cpu),
            Err(_) => return Err(Failure::invalid(ATTEMPTED, "no CPU has a negative number")),
        },
        5 => Target::Cpus(cpus()?.to_vec()),
        6 => Target::AllCpus,
        7 => Target::Cgroup {
            // SAFETY: the caller's promise.
            path: unsafe { boundary::path(config.cgroup, "config.cgroup") }?.into(),
            cpus: cpus()?.to_vec(),
        },
        other => {
            let reason = format!("there is no target {other}");
            return Err(Failure::invalid(ATTEMPTED, reason));
        }
    };
    Ok(target)
}

fn attributes(flags: u32) -> Result<Attributes, Failure> {
    const KNOWN: u32 = (quipu_set_flag::QUIPU_ALLOW_MSR as u32) * 2 - 1;
    if flags & !KNOWN != 0 {
        let reason = format!("there are no flags {:#x}", flags & !KNOWN);
        return Err(Failure::invalid(ATTEMPTED, reason));
    }
    let has = |flag: quipu_set_flag| flags & flag as u32 != 0;
    Ok(Attributes::default()
        .with_inherit(has(quipu_set_flag::QUIPU_INHERIT))
        .with_inherit_thread(has(quipu_set_flag::QUIPU_INHERIT_THREAD))
        .with_pinned(has(quipu_set_flag::QUIPU_PINNED))
        .with_exclusive(has(quipu_set_flag::QUIPU_EXCLUSIVE))
        .with_enable_on_exec(has(quipu_set_flag::QUIPU_ENABLE_ON_EXEC))
        .with_remove_on_exec(has(quipu_set_flag::QUIPU_REMOVE_ON_EXEC)))
}

/// Returns the machine with the events that a configuration asks for, or on which it allows registers; `None` for this
/// machine as it is.
///
/// # Safety
/// As [`Config::read`].
unsafe fn machine(config: &quipu_config) -> Result<Option<Arc<Machine>>, Failure> {
    // SAFETY: the caller's promise.
    let cpu = unsafe { boundary::optional_text(config.cpu_model, "config.cpu_model") }?;
    let allows_registers = config.flags & quipu_set_flag::QUIPU_ALLOW_MSR as u32 != 0;
    if cpu.is_none() && config.events_file.is_null() && !allows_registers {
        return Ok(None);
    }
    if !config.sim.is_null() {
        return Err(Failure::invalid(
            ATTEMPTED,
            "a simulated PMU has events of its own and no registers: no file, CPU or QUIPU_ALLOW_MSR goes with it",
        ));
    }
    let mut native = NativeEvents::new();
    if let Some(cpu) = cpu {
        native = native.for_cpu(cpu);
    }
    if !config.events_file.is_null() {
        // SAFETY: the caller's promise.
        native =
            native.with_file(unsafe { boundary::path(config.events_file, "config.events_file") }?);
    }
    if cpu.is_some() || !config.events_file.is_null() {
        // What is wrong with either is found out now.
        native.tables()?;
    }
    let machine = Machine::with_native_events(Arc::new(native));
    Ok(Some(Arc::new(match allows_registers {
        true => machine.allow_registers(),
        false => machine,
    })))
}

/// Returns the backends that a configuration names, if it does.
///
/// # Safety
/// As [`Config::read`].
unsafe fn backends(
    config: &quipu_config,
    machine: Option<&Machine>,
) -> Result<Option<Vec<Arc<dyn Backend>>>, Failure> {
    // SAFETY: the caller's promise.
    let names = unsafe { boundary::optional_text(config.backends, "config.backends") }?;
    match (names, config.sim.is_null()) {
        (None, true) => Ok(None),
        (None, false) => Ok(Some(vec![sim::backend(config.sim)?])),
        (Some(names), true) => {
            let machine = machine.unwrap_or_else(|| Machine::this());
            let named = |name: &str| machine.named(name.trim());
            let backends: Result<_, _> = names.split(',').map(named).collect();
            Ok(Some(backends?))
        }
        (Some(_), false) => Err(Failure::invalid(
            ATTEMPTED,
            "both backends of this machine and a simulated PMU are named",
        )),
    }
}
