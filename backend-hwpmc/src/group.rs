//! An open group: counters on a process, or one set of them on each of some CPUs.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use nix::errno::Errno;
use quipu_hal::{Error, ErrorKind, EventInfo, Group, Part, ReadBuf, Reading, Result, Simultaneity};

use crate::backend::WIDTH;
use crate::driver::{Driver, PmcId};
use crate::watch::Watch;

/// The bits that all counters have.
const MASK: u64 = (1 << WIDTH) - 1;

/// Nanoseconds in which a counter does not count half of what it can, at 32 in each.
const HALF: u64 = 1 << (WIDTH - 1 - 5);

/// Counters that are given back when this is dropped.
pub(crate) struct Counters<D: Driver> {
    driver: Arc<D>,
    ids: Vec<PmcId>,
}

impl<D: Driver> Counters<D> {
    pub(crate) fn new(driver: Arc<D>) -> Self {
        Self {
            driver,
            ids: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, id: PmcId) {
        self.ids.push(id);
    }

    pub(crate) fn driver(&self) -> &D {
        &self.driver
    }

    pub(crate) fn ids(&self) -> &[PmcId] {
        &self.ids
    }
}

impl<D: Driver> Drop for Counters<D> {
    fn drop(&mut self) {
        for id in &self.ids {
            // In a fork of this process they are not there, and the driver takes them back at its end anyway.
            let _ = self.driver.release(*id);
        }
    }
}

/// The subject of a group.
pub(crate) enum Subject {
    /// A process.
    Process(Watch),
    /// The calling thread, while the others of this process sleep.
    Thread(Watch),
    /// CPUs.
    Cpus,
}

/// A group of a [`HwpmcBackend`](crate::HwpmcBackend).
///
/// Its counters run from opening to closing; enabling, disabling and resetting it takes differences of what they say.
pub struct HwpmcGroup<D: Driver> {
    counters: Counters<D>,
    subject: Subject,
    infos: Box<[EventInfo]>,
    parts: Arc<[Part]>,
    /// The counts of the time it was enabled since the last reset.
    sums: Box<[Reading]>,
    /// The time up to which the sums go, if it is enabled.
    since: Option<u64>,
    /// The values of the counters up to which the sums go.
    upto: Box<[u64]>,
    /// The values of the latest read.
    latest: Box<[u64]>,
    /// True if the sums are lower bounds, whatever comes.
    at_least: bool,
    /// The thread that read it last, on whose CPU the counters are loaded if they count this process.
    reader: ThreadId,
}

impl<D: Driver> HwpmcGroup<D> {
    /// Makes a group of counters that run: those of all members in the first part, then those in the next.
    pub(crate) fn new(
        counters: Counters<D>,
        subject: Subject,
        infos: Vec<EventInfo>,
        parts: Vec<Part>,
    ) -> Self {
        let values = counters.ids.len();
        Self {
            counters,
            subject,
            infos: infos.into(),
            parts: parts.into(),
            sums: vec![Reading::default(); values].into(),
            since: None,
            upto: vec![0; values].into(),
            latest: vec![0; values].into(),
            at_least: false,
            // Starting counters of this process has switched the calling thread.
            reader: thread::current().id(),
        }
    }

    /// Reads all counters into `latest`, and returns the time and whether they have counted all up to it.
    fn read_counters(&mut self) -> Result<(u64, bool)> {
        if matches!(self.subject, Subject::Thread(_)) && self.reader != thread::current().id() {
            return Err(
                Error::new(ErrorKind::WrongThread, "read the counters of a thread")
                    .with_reason("they count the thread that opened them"),
            );
        }
        let driver = &*self.counters.driver;
        let (ids, latest) = (&self.counters.ids, &mut self.latest);
        let (reader, this) = (&mut self.reader, thread::current().id());
        let mut read = |is_own: bool| -> Result<(), Errno> {
            if is_own && *reader != this {
                driver.switch()?;
                *reader = this;
            }
            for (id, value) in ids.iter().zip(latest.iter_mut()) {
                *value = driver.read(*id)?;
            }
            Ok(())
        };
        let outcome = match &mut self.subject {
            Subject::Process(watch) | Subject::Thread(watch) => watch
                .moment(driver, read)
                .map(|moment| (moment.cpu_time, moment.is_whole)),
            Subject::Cpus => read(false).and_then(|()| Ok((driver.wall_time()?, true))),
        };
        let read = outcome.map_err(|errno| {
            let error = Error::new(ErrorKind::Os, "read counters").with_errno(errno as i32);
            match errno {
                Errno::EINVAL | Errno::ESRCH => error
                    .with_reason("the driver has no such counters of this process; a fork has none of its parent's"),
                _ => error,
            }
        })?;
        if let Subject::Thread(watch) = &self.subject
            && watch.others_ran()
        {
            return Err(
                Error::new(ErrorKind::UnsupportedFeature, "read the counters of a thread")
                    .with_reason(
                        "hwpmc(4) counts processes, and other threads of this one have run since it was opened",
                    )
                    .with_hint("count the process"),
            );
        }
        Ok(read)
    }

    /// Adds to the sums what was counted since they were last brought up to date, and returns true if that is all.
    fn update(&mut self) -> Result<bool> {
        let Some(since) = self.since else {
            return Ok(true);
        };
        let (now, is_whole) = self.read_counters()?;
        let time = now.saturating_sub(since);
        // The counters may have wrapped meanwhile.
        self.at_least |= time >= HALF;
        for ((sum, upto), latest) in self.sums.iter_mut().zip(&mut self.upto).zip(&self.latest) {
            let more = latest.wrapping_sub(*upto) & MASK;
            // The CPU of one thread of this process may not know yet what those of others have counted.
            if more > MASK / 2 {
                self.at_least = true;
            } else {
                sum.value += more;
                *upto = *latest;
            }
            for total in [
                &mut sum.time_enabled,
                &mut sum.time_running,
                &mut sum.raw_time_enabled,
                &mut sum.raw_time_running,
            ] {
                *total += time;
            }
            sum.at_least = self.at_least || !is_whole;
        }
        self.since = Some(now);
        Ok(is_whole)
    }
}

impl<D: Driver> Group for HwpmcGroup<D> {
    fn members(&self) -> &[EventInfo] {
        &self.infos
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        match self.infos.len() {
            1 => Simultaneity::Atomic,
            _ => Simultaneity::Sequential,
        }
    }

    fn read_buf(&self) -> ReadBuf {
        ReadBuf::new(self.infos.len(), Arc::clone(&self.parts))
    }

    fn enable(&mut self) -> Result<()> {
        if self.since.is_none() {
            let (now, is_whole) = self.read_counters()?;
            self.upto.copy_from_slice(&self.latest);
            self.since = Some(now);
            self.at_least |= !is_whole;
        }
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        self.at_least |= !self.update()?;
        self.since = None;
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.at_least = !self.update()?;
        for sum in &mut self.sums {
            *sum = Reading::default().with_raw_times(sum.raw_time_enabled, sum.raw_time_running);
        }
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(self.infos.len(), &self.parts)?;
        self.update()?;
        let members = self.infos.len();
        for (part, sums) in self.sums.chunks_exact(members).enumerate() {
            out[part].copy_from_slice(sums);
        }
        Ok(())
    }
}
