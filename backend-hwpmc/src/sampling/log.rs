//! The log of this process: a pipe that the driver writes into, and what came out of it.

use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quipu_hal::{Error, ErrorKind, Result};

use super::record::{Logged, Record};
use crate::backend::os_error;
use crate::driver::Driver;

/// The time in which the driver has to write what it was asked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A log that is open.
pub(super) struct Log<D: Driver> {
    driver: Arc<D>,
    pipe: PipeReader,
    /// The bytes that were read and not taken, of which the first are whole records.
    bytes: Vec<u8>,
    whole: usize,
    /// The number of samples among these.
    samples: usize,
    /// The children of which records were read.
    children: Vec<i32>,
    clock: Clock,
    /// The marks that were set, and the last one that was read.
    set: u32,
    read: u32,
    /// The number of records that say that others were lost.
    notices: u64,
    /// The losses of all logs when this one was opened.
    lost_before: u32,
}

/// The clock of a log, in nanoseconds of the clock that goes on.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    begun: u64,
    first: u64,
    frequency: u64,
}

impl Clock {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        const SECOND: u128 = 1_000_000_000;
        let passed = u128::from(ticks.saturating_sub(self.first)) * SECOND;
        let passed = passed.checked_div(self.frequency.into()).unwrap_or(0);
        self.begun
            .saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

/// The end of a look into the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The time is over, or enough is there.
    Done,
    /// A signal was caught.
    Interrupted,
}

impl<D: Driver> Log<D> {
    /// Opens the log of this process.
    pub(super) fn open(driver: Arc<D>) -> Result<Self> {
        let attempted = "open the driver's log";
        let busy = |errno, reason: &str| {
            Error::new(ErrorKind::Busy, attempted)
                .with_errno(errno as i32)
                .with_reason(reason)
        };
        let failed = |errno| {
            match errno {
            Errno::EBUSY => busy(
                errno,
                "the driver has one log for each process, and another sampler of this one has it",
            ),
            Errno::ENOMEM => busy(
                errno,
                "the driver opens one again when this process has no counter open, or it has no buffers left",
            )
            .with_hint("close what this process counts with hwpmc(4) before the next sampler"),
            errno => os_error(attempted, errno),
        }
        };
        let (pipe, end) = std::io::pipe()
            .map_err(|error| Error::new(ErrorKind::Os, attempted).with_io_error(&error))?;
        let lost_before = driver.lost().map_err(failed)?;
        let begun = driver.wall_time().map_err(failed)?;
        driver.open_log(end.as_fd()).map_err(failed)?;
        Ok(Self {
            driver,
            pipe,
            bytes: Vec::new(),
            whole: 0,
            samples: 0,
            children: Vec::new(),
            clock: Clock {
                begun,
                ..Clock::default()
            },
            set: 0,
            read: 0,
            notices: 0,
            lost_before,
        })
    }

    /// Returns the descriptor that the log comes out of.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Returns the number of samples that were read and not taken.
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Takes the children of which records were read.
    pub(super) fn take_children(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.children)
    }

    /// Returns the number of samples that the driver has lost since it was opened, of all that were sampled by anyone.
    pub(super) fn lost(&self) -> u64 {
        let now = self.driver.lost().unwrap_or(self.lost_before);
        u64::from(now.wrapping_sub(self.lost_before)).max(self.notices)
    }

    /// Has the driver write what it has, and reads what comes until there are so many samples or the time is over.
    pub(super) fn look(&mut self, enough: usize, time: Duration) -> Result<Look> {
        self.flush()?;
        let begun = Instant::now();
        while self.samples < enough {
            let left = time.saturating_sub(begun.elapsed());
            if self.read_for(left)? == Look::Interrupted {
                return Ok(Look::Interrupted);
            }
            if left.is_zero() {
                break;
            }
        }
        Ok(Look::Done)
    }

    /// Reads all that was logged up to now.
    pub(super) fn catch_up(&mut self) -> Result<()> {
        let begun = Instant::now();
        // The driver's buffers are written in the order in which they were handed over: the mark is behind all that was
        // logged before it.
        self.flush()?;
        self.set = self.set.wrapping_add(1);
        loop {
            match self.driver.mark_log(self.set) {
                Ok(()) => break,
                // All buffers wait to be written.
                Err(Errno::ENOMEM) if begun.elapsed() < PATIENCE => {
                    self.read_for(Duration::from_millis(1))?;
                }
                Err(errno) => return Err(os_error("mark the driver's log", errno)),
            }
        }
        self.flush()?;
        while self.read != self.set {
            if begun.elapsed() > PATIENCE {
                return Err(Error::new(ErrorKind::Os, "read the driver's log")
                    .with_reason("the driver does not write what it was asked for"));
            }
            self.read_for(Duration::from_millis(20))?;
        }
        Ok(())
    }

    /// Calls a function with each record that was read, in the order of their times, and its time; they are gone then. The driver
    /// writes those of one CPU after those of another.
    pub(super) fn take(&mut self, mut each: impl FnMut(&Record<'_>, u64)) {
        let mut records = Vec::new();
        let mut at = 0;
        let logged_at = |at: usize| Logged::at_start(&self.bytes[at..self.whole]).ok()?;
        while let Some(logged) = logged_at(at) {
            records.push((logged.ticks, at));
            at += logged.len;
        }
        records.sort_by_key(|(ticks, _)| *ticks);
        for logged in records.into_iter().filter_map(|(_, at)| logged_at(at)) {
            each(&logged.record, self.clock.nanoseconds(logged.ticks));
        }
        self.bytes.drain(..self.whole);
        (self.whole, self.samples) = (0, 0);
    }

    fn flush(&self) -> Result<()> {
        let flushed = self.driver.flush_log();
        flushed.map_err(|errno| os_error("flush the driver's log", errno))
    }

    /// Reads what is in the pipe, once something is there or the time is over.
    fn read_for(&mut self, time: Duration) -> Result<Look> {
        /// As many bytes as a pipe has.
        const PIECE: usize = 64 << 10;
        // A time of less than a millisecond is one.
        let millis = u16::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
        let mut ready = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::from(millis)) {
            Ok(0) => return Ok(Look::Done),
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Look::Interrupted),
            Err(errno) => return Err(os_error("wait for the driver's log", errno)),
        }
        let len = self.bytes.len();
        self.bytes.resize(len + PIECE, 0);
        let read = self.pipe.read(&mut self.bytes[len..]);
        self.bytes.truncate(len + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(Error::new(ErrorKind::Os, "read the driver's log")
                .with_reason("the driver has ended it")),
            Ok(_) => self.note(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(Look::Interrupted),
            Err(error) => {
                Err(Error::new(ErrorKind::Os, "read the driver's log").with_io_error(&error))
            }
        }
    }

    /// Takes note of the records that have become whole.
    fn note(&mut self) -> Result<Look> {
        loop {
            match Logged::at_start(&self.bytes[self.whole..]) {
                Ok(Some(logged)) => {
                    match logged.record {
                        Record::Begin { frequency } => {
                            self.clock.first = logged.ticks;
                            self.clock.frequency = frequency;
                        }
                        Record::Sample(_) => self.samples += 1,
                        Record::Fork { child, .. } => self.children.push(child),
                        Record::Mark(mark) => self.read = mark,
                        Record::Lost => self.notices += 1,
                        _ => {}
                    }
                    self.whole += logged.len;
                }
                Ok(None) => return Ok(Look::Done),
                Err(_) => {
                    // Where the next one begins is not known.
                    self.bytes.clear();
                    (self.whole, self.samples) = (0, 0);
                    return Err(Error::new(ErrorKind::Os, "read the driver's log")
                        .with_reason("it has something that is no record of the driver's"));
                }
            }
        }
    }
}

impl<D: Driver> Drop for Log<D> {
    fn drop(&mut self) {
        // At the end of this process the driver does so anyway.
        let _ = self.driver.close_log();
    }
}
