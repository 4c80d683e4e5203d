//! Counters that sample a target, and their samples.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use quipu_hal::{EventInfo, Result, Woken};

use super::log::{Log, Look};
use super::record::{Program, Record};
use crate::backend::os_error;
use crate::driver::{Driver, State};
use crate::group::Counters;

/// The time after which the driver is asked again what it has: it writes by itself only what fills a buffer.
const INTERVAL: Duration = Duration::from_millis(50);

/// Samples being taken with a [`HwpmcBackend`](crate::HwpmcBackend). Dropping it closes everything.
///
/// The driver has one log for each process, so that one sampler can be open at a time.
pub struct HwpmcSampler<D: Driver> {
    // The log is closed before the counters are given back: the driver forgets that this process had one when the last
    // counter of a process without a log goes.
    pub(super) log: Log<D>,
    pub(super) counters: Counters<D>,
    pub(super) infos: Box<[EventInfo]>,
    pub(super) selects: Box<[Option<u32>]>,
    /// The period of each event. The counters of each part of the target are those of all events.
    pub(super) periods: Box<[u64]>,
    pub(super) wake_after: usize,
    /// The processes that are sampled; `None` samples CPUs.
    pub(super) processes: Option<Vec<Process>>,
    pub(super) with_children: bool,
    /// Room for a call chain.
    pub(super) addresses: Vec<u64>,
}

/// A process that is sampled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// When it was started, once it was looked at.
    pub(super) started: Option<(i64, i64)>,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The position of the event in the [spec](super::SamplerSpec::events).
    pub event: usize,
    /// The number of events it stands for.
    pub period: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The CPU.
    pub cpu: u32,
    /// True if the kernel was interrupted; the call chain is the kernel's then.
    pub in_kernel: bool,
    /// When it was taken, in nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// The address of the instruction, then those to which the calls around it return, the innermost first, if call chains
    /// were asked for.
    pub addresses: &'a [u64],
}

/// A record of the driver's log. Paths and names are the bytes that the kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogRecord<'a> {
    /// A sample.
    Sample(Sample<'a>),
    /// A process that is sampled has made another, which is sampled too.
    Fork {
        /// The process.
        parent: i32,
        /// The other.
        child: i32,
    },
    /// A process has executed a program.
    Exec {
        /// The process.
        pid: i32,
        /// The program.
        program: Program<'a>,
    },
    /// A process has mapped a file that can be executed.
    Map {
        /// The process; -1 is the kernel, which has loaded a module.
        pid: i32,
        /// The first address.
        start: u64,
        /// The file.
        path: &'a [u8],
    },
    /// A process has ended. There may be several such records of it.
    Exit {
        /// The process.
        pid: i32,
    },
    /// A process has a name.
    Process {
        /// The process.
        pid: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// A thread has a name.
    Thread {
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
    },
}

impl<D: Driver> HwpmcSampler<D> {
    /// Returns the events.
    pub fn events(&self) -> &[EventInfo] {
        &self.infos
    }

    /// Returns the word of each event in the select register of a counter (Intel SDM, `IA32_PERFEVTSELx`; AMD APM,
    /// `PerfEvtSel`), without privilege levels; None of an event of the kernel's own.
    pub fn selects(&self) -> &[Option<u32>] {
        &self.selects
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn enable(&mut self) -> Result<()> {
        self.each_counter("start sampling", D::start)
    }

    /// Stops sampling.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn disable(&mut self) -> Result<()> {
        // What was sampled up to now is handed over first: the driver drops samples of a counter that it has stopped.
        self.log.catch_up()?;
        self.each_counter("stop sampling", D::stop)
    }

    fn each_counter(
        &self,
        attempted: &str,
        call: impl Fn(&D, crate::PmcId) -> Result<(), Errno>,
    ) -> Result<()> {
        for &id in self.counters.ids() {
            match call(self.counters.driver(), id) {
                // The process has ended.
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(errno) => return Err(os_error(attempted, errno)),
            }
        }
        Ok(())
    }

    /// Calls `each` with the samples taken since the last time, in the order of their times.
    ///
    /// # Errors
    /// If the driver's log cannot be read; the samples taken so far are given up then.
    pub fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) -> Result<()> {
        self.drain_log(|_, record| {
            if let LogRecord::Sample(sample) = record {
                each(sample);
            }
        })
    }

    /// Calls `each` with the time of each record of the log since the last time, and the record, as [`drain`](Self::drain) does
    /// with samples.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub fn drain_log(&mut self, mut each: impl FnMut(u64, &LogRecord<'_>)) -> Result<()> {
        self.log.catch_up()?;
        let ids = self.counters.ids();
        let (periods, addresses) = (&self.periods, &mut self.addresses);
        self.log.take(|record, time| {
            let record = match *record {
                Record::Sample(raw) => {
                    let Some(counter) = ids.iter().position(|id| id.0 == raw.counter) else {
                        return;
                    };
                    addresses.clear();
                    addresses.extend(raw.addresses());
                    let event = counter % periods.len();
                    LogRecord::Sample(Sample {
                        event,
                        period: periods[event],
                        pid: raw.pid,
                        tid: raw.tid,
                        cpu: raw.cpu,
                        in_kernel: raw.in_kernel,
                        time,
                        addresses,
                    })
                }
                Record::Fork { parent, child } => LogRecord::Fork { parent, child },
                Record::Exec { pid, program } => LogRecord::Exec { pid, program },
                Record::Map { pid, start, path } => LogRecord::Map { pid, start, path },
                Record::Exit { pid } => LogRecord::Exit { pid },
                Record::Process { pid, name } => LogRecord::Process { pid, name },
                Record::Thread { pid, tid, name } => LogRecord::Thread { pid, tid, name },
                Record::Begin { .. } | Record::Mark(_) | Record::Lost | Record::Other => return,
            };
            each(time, &record);
        });
        Ok(())
    }

    /// Waits until there are as many samples as it was [asked for](super::SamplerSpec::wake_after), but not longer than
    /// `timeout`. The driver is asked for them every 50 ms.
    ///
    /// # Errors
    /// As [`drain`](Self::drain).
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Woken> {
        let begun = Instant::now();
        loop {
            let left = timeout.map_or(INTERVAL, |timeout| timeout.saturating_sub(begun.elapsed()));
            let look = self.log.look(self.wake_after, left.min(INTERVAL))?;
            if self.log.samples() >= self.wake_after {
                return Ok(Woken::Data);
            }
            if look == Look::Interrupted {
                return Ok(Woken::Interrupted);
            }
            if self.has_ended() {
                self.log.catch_up()?;
                // Children that it had made are known by now.
                if self.has_ended() {
                    return Ok(Woken::Ended);
                }
            }
            if left <= INTERVAL && timeout.is_some() {
                return Ok(Woken::TimedOut);
            }
        }
    }

    /// Returns the descriptor that the driver's log comes out of. It is readable when the driver has filled a buffer of 256 KB,
    /// or was asked for what it has by [`wait`](Self::wait).
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.log.descriptor()
    }

    /// Returns the number of interrupts and records for which the driver had no room since it was opened, of everyone who
    /// sampled meanwhile. After such an interrupt a counter stands still for up to a clock tick: more samples may be missing.
    pub fn lost(&self) -> u64 {
        self.log.lost()
    }

    /// Returns true if every process that is sampled has ended.
    fn has_ended(&mut self) -> bool {
        let children = self.log.take_children();
        let Some(processes) = &mut self.processes else {
            return false;
        };
        if self.with_children {
            processes.extend(
                children
                    .into_iter()
                    .map(|pid| Process { pid, started: None }),
            );
        }
        let driver = self.counters.driver();
        processes.retain_mut(|process| match driver.process(process.pid) {
            Ok(task) => {
                task.state != State::Ended
                    && *process.started.get_or_insert(task.started) == task.started
            }
            Err(errno) => errno != Errno::ESRCH,
        });
        processes.is_empty()
    }
}

impl<D: Driver> fmt::Debug for HwpmcSampler<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HwpmcSampler")
            .field("events", &self.infos)
            .field("periods", &self.periods)
            .finish_non_exhaustive()
    }
}
