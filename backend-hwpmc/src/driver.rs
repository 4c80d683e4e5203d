//! The calls that reach hwpmc(4) and processes, behind a trait, so that a simulated system can take their place.

use std::os::fd::BorrowedFd;

use nix::errno::Errno;

use crate::abi::Class;

/// A counter that the driver has given, by its id, which is opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PmcId(
    /// The id.
    pub u32,
);

/// A request for a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The class that is to count it.
    pub class: Class,
    /// The event select word; of [`SOFTWARE`](Class::SOFTWARE) the number of the event.
    pub select: u32,
    /// `PMC_CAP_*`.
    pub capabilities: u32,
    /// The CPU to count on; `None` counts processes.
    pub cpu: Option<u32>,
    /// True if children of the process are counted too.
    pub descendants: bool,
    /// The samples that it takes; `None` counts.
    pub sampling: Option<Sampling>,
}

/// The samples that a counter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One is taken every so many events.
    pub period: u64,
    /// True if they have call chains.
    pub call_chains: bool,
}

/// A counter of a CPU, as the driver lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its class.
    pub class: Class,
    /// The use that it is in.
    pub held: Held,
}

/// The use that a counter is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// None.
    Free,
    /// It counts processes, for owners that the driver does not report.
    ForProcesses,
    /// It counts this CPU for a process, or another CPU.
    ForCpus {
        /// The id of the process, if it counts this CPU.
        owner: Option<i32>,
    },
}

/// A class of counters that a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassOfCounters {
    /// The class.
    pub class: Class,
    /// The number of its counters.
    pub counters: u32,
    /// The bits of each.
    pub width: u32,
}

/// The CPUs of a machine as the driver knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The driver's number of the kind of CPU (`enum pmc_cputype`).
    pub cpu_type: u32,
    /// The number of CPUs.
    pub cpus: u32,
    /// The classes.
    pub classes: Vec<ClassOfCounters>,
    /// True if CPUID reports AMD's six counters (`PerfCtrExtCore`).
    pub has_amd_extended_counters: bool,
}

/// The state of a process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On a CPU, or waiting for one.
    Running,
    /// Waiting for something else, or stopped.
    Asleep,
    /// Ended, and not waited for.
    Ended,
}

/// A process or one thread of it, as `sysctl kern.proc` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its state.
    pub state: State,
    /// The number of times that it gave up a CPU: of a process, those of threads that have ended too.
    pub switches: u64,
    /// Nanoseconds on CPUs up to the last time that it gave one up.
    pub cpu_time: u64,
    /// Those of children of the process that it has waited for.
    pub children_time: u64,
    /// When the process was started: another process of the same id differs.
    pub started: (i64, i64),
    /// The real user, and true if a program has changed that: the driver may have taken its counters off then.
    pub owner: (u32, bool),
}

/// The calls of hwpmc(4), and what is asked of the system about processes.
///
/// Ids are of this process alone: another that uses them, as a fork of this one, is refused.
pub trait Driver: Send + Sync + 'static {
    /// Returns the version of the module: `PMC_VERSION`.
    ///
    /// # Errors
    /// The errno of the call.
    fn version(&self) -> Result<u32, Errno>;

    /// Returns the CPUs and counters (`PMC_OP_GETCPUINFO`).
    ///
    /// # Errors
    /// The errno of the call.
    fn machine(&self) -> Result<Machine, Errno>;

    /// Returns the counters of a CPU (`PMC_OP_GETPMCINFO`).
    ///
    /// # Errors
    /// `EOVERFLOW` if there are more than is known of any CPU; else the errno of the call.
    fn rows(&self, cpu: u32) -> Result<Vec<Row>, Errno>;

    /// Returns the events of the class [`SOFTWARE`](Class::SOFTWARE), each with its number (`PMC_OP_GETDYNEVENTINFO`).
    ///
    /// # Errors
    /// The errno of the call.
    fn software_events(&self) -> Result<Vec<(String, u32)>, Errno>;

    /// Takes a counter (`PMC_OP_PMCALLOCATE`).
    ///
    /// # Errors
    /// `EINVAL` if no counter of the class that is free counts it, `EPERM` if the user must not count CPUs; else the errno of
    /// the call.
    fn allocate(&self, request: &Request) -> Result<PmcId, Errno>;

    /// Attaches a counter to a process (`PMC_OP_PMCATTACH`).
    ///
    /// # Errors
    /// `ESRCH` if there is no such process, `EPERM` if it is another user's; else the errno of the call.
    fn attach(&self, id: PmcId, pid: i32) -> Result<(), Errno>;

    /// Sets what a counter that was not started has counted (`PMC_OP_PMCRW`).
    ///
    /// # Errors
    /// The errno of the call.
    fn set(&self, id: PmcId, value: u64) -> Result<(), Errno>;

    /// Starts a counter (`PMC_OP_PMCSTART`).
    ///
    /// # Errors
    /// The errno of the call.
    fn start(&self, id: PmcId) -> Result<(), Errno>;

    /// Reads a counter (`PMC_OP_PMCRW`). One that counts this process is read by a thread that started it, or has
    /// [switched](Self::switch) since: FreeBSD 12 and 13 stop if its CPU has not loaded the counter.
    ///
    /// # Errors
    /// The errno of the call.
    fn read(&self, id: PmcId) -> Result<u64, Errno>;

    /// Has the calling thread give up its CPU and get one again.
    ///
    /// # Errors
    /// The errno of the call.
    fn switch(&self) -> Result<(), Errno>;

    /// Stops a counter (`PMC_OP_PMCSTOP`).
    ///
    /// # Errors
    /// The errno of the call.
    fn stop(&self, id: PmcId) -> Result<(), Errno>;

    /// Has the log of this process written to a descriptor (`PMC_OP_CONFIGURELOG`), until it is [closed](Self::close_log).
    ///
    /// # Errors
    /// `EBUSY` if it has one, `ENOMEM` if one was closed and counters are open since; else the errno of the call.
    fn open_log(&self, to: BorrowedFd<'_>) -> Result<(), Errno>;

    /// Closes the log of this process, and stops the counters that sample (`PMC_OP_CONFIGURELOG`).
    ///
    /// # Errors
    /// `EINVAL` if there is none.
    fn close_log(&self) -> Result<(), Errno>;

    /// Has what is logged up to now written (`PMC_OP_FLUSHLOG`). It comes later, in the order of such calls.
    ///
    /// # Errors
    /// `EINVAL` if there is no log; else the errno of the call.
    fn flush_log(&self) -> Result<(), Errno>;

    /// Logs a number (`PMC_OP_WRITELOG`).
    ///
    /// # Errors
    /// `ENOMEM` if all buffers wait to be written; else the errno of the call.
    fn mark_log(&self, mark: u32) -> Result<(), Errno>;

    /// Returns the number of interrupts and records for which there was no room since the module was loaded, of everyone
    /// (`PMC_OP_GETDRIVERSTATS`). It wraps.
    ///
    /// # Errors
    /// The errno of the call.
    fn lost(&self) -> Result<u32, Errno>;

    /// Gives a counter back (`PMC_OP_PMCRELEASE`).
    ///
    /// # Errors
    /// The errno of the call.
    fn release(&self, id: PmcId) -> Result<(), Errno>;

    /// Returns a process.
    ///
    /// # Errors
    /// `ESRCH` if there is none.
    fn process(&self, pid: i32) -> Result<Task, Errno>;

    /// Calls a function for each thread of a process, with its id.
    ///
    /// # Errors
    /// `ESRCH` if there is no such process, `ENOMEM` if it has more threads than are looked at.
    fn threads(&self, pid: i32, each: &mut dyn FnMut(i32, &Task)) -> Result<(), Errno>;

    /// Returns the id of the calling thread.
    fn own_thread(&self) -> i32;

    /// Watches for forks of a process from now on.
    ///
    /// # Errors
    /// The errno of the call.
    fn watch_forks(&self, pid: i32) -> Result<Box<dyn Forks>, Errno>;

    /// Returns the CPU that the calling thread is on.
    ///
    /// # Errors
    /// The errno of the call.
    fn current_cpu(&self) -> Result<u32, Errno>;

    /// Returns the id of this process.
    fn own_pid(&self) -> i32;

    /// Returns nanoseconds that this process has been on CPUs until now.
    ///
    /// # Errors
    /// The errno of the call.
    fn own_cpu_time(&self) -> Result<u64, Errno>;

    /// Returns nanoseconds of a clock that goes on.
    ///
    /// # Errors
    /// The errno of the call.
    fn wall_time(&self) -> Result<u64, Errno>;
}

/// A watch for forks of a process.
pub trait Forks: Send {
    /// Returns true if it has forked since the watch began.
    fn has_forked(&mut self) -> bool;
}
