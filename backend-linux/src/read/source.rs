//! The source of a kernel group's values and times: its pages where they are quicker, else read(2).

use std::sync::Arc;

use quipu_hal::Error;

use super::call::{CallReader, ReadFailure};
use super::call_times::now;
use super::cost::Way;
use super::fds::Fds;
use super::obstacle::{Obstacle, explain};
use super::pages::{Pages, UserCounters};
use super::plan::ReadPlan;
use super::reader::Reader;
use crate::sys::CounterFd;
use crate::user_page::Times;

/// The open counters of a kernel group, and the two ways to read them.
#[derive(Debug)]
pub(crate) struct Source {
    call: CallReader,
    /// The mapped pages of the counters, or why they cannot be read without a system call.
    pages: Result<UserCounters, Obstacle>,
}

impl Source {
    /// Returns a source of counters that were opened with the format of the plan.
    ///
    /// # Errors
    /// The errno with which the kernel refused to give a counter's id.
    pub(crate) fn new(plan: ReadPlan, fds: Fds) -> Result<Self, i32> {
        Ok(Self::of(CallReader::new(plan, fds)?))
    }

    fn of(call: CallReader) -> Self {
        Self {
            call,
            pages: Err(Obstacle::SwitchedOff),
        }
    }

    /// Returns a source that reads members of these ids.
    #[cfg(test)]
    pub(crate) fn with_ids(plan: ReadPlan, fds: Fds, ids: &[u64]) -> Self {
        let ids = match plan {
            ReadPlan::Snapshot => ids.to_vec(),
            ReadPlan::Single | ReadPlan::OneByOne => Vec::new(),
        };
        Self::of(CallReader::with_ids(plan, fds, ids))
    }

    /// Adds counters that were opened under the leader, which reads all of them; their pages are mapped if those of the
    /// others are and they have `registers`.
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing is added then.
    pub(crate) fn extend(&mut self, more: Vec<CounterFd>, registers: bool) -> Result<(), i32> {
        self.call.extend(more)?;
        if let Ok(pages) = &mut self.pages {
            let mapped = match registers {
                true => pages.map(self.call.fds(), None),
                false => Err(Obstacle::NoRegister),
            };
            if let Err(obstacle) = mapped {
                self.pages = Err(obstacle);
            }
        }
        Ok(())
    }

    /// Maps the pages of the counters, which are those of the calling thread alone, and reads them from now on whenever
    /// that is possible and quicker. Returns what the pages have, which may be `known`.
    ///
    /// # Errors
    /// The reason why that is not possible, for which system calls are made.
    pub(crate) fn map_pages(&mut self, known: Option<Pages>) -> Result<Pages, Obstacle> {
        let mapped = UserCounters::new()
            .and_then(|mut pages| Ok((pages.map(self.call.fds(), known)?, pages)));
        let (shown, pages) = mapped.inspect_err(|obstacle| self.pages = Err(*obstacle))?;
        self.pages = Ok(pages);
        Ok(shown)
    }

    /// Makes system calls from now on, for this reason.
    pub(crate) fn refuse_pages(&mut self, obstacle: Obstacle) {
        self.pages = Err(obstacle);
    }

    /// Returns the way in which read(2) gives the members.
    pub(crate) fn plan(&self) -> ReadPlan {
        self.call.plan()
    }

    /// Returns the descriptors of the counters.
    pub(crate) fn fds(&self) -> &Fds {
        self.call.fds()
    }

    /// Returns true if pages are mapped.
    pub(crate) fn has_pages(&self) -> bool {
        self.pages.is_ok()
    }

    /// Returns a reader of the counters for any thread.
    pub(crate) fn reader(&self) -> Reader {
        let pages = self.pages.as_ref().ok().and_then(UserCounters::shared);
        Reader::new(Arc::clone(self.call.opened()), pages)
    }

    /// Returns the reason why system calls are made, if they always are.
    pub(crate) fn obstacle(&self) -> Option<Error> {
        match &self.pages {
            Ok(pages) => pages.obstacle(),
            Err(obstacle) => Some(explain(*obstacle)),
        }
    }

    /// Reads every member in the quicker way. `found` takes each by its position, with its value and times; of those that
    /// it takes more than once, the last are right.
    pub(crate) fn read(
        &mut self,
        mut found: impl FnMut(usize, u64, Times),
    ) -> Result<(), ReadFailure> {
        if let Ok(pages) = &mut self.pages {
            match pages.way() {
                Way::UserSpace if pages.read(&mut found) => return Ok(()),
                Way::UserSpace | Way::SystemCall => {}
                Way::Both => return self.read_both_ways(found),
            }
        }
        self.read_by_system_call(found)
    }

    /// Reads every member by read(2).
    pub(crate) fn read_by_system_call(
        &mut self,
        found: impl FnMut(usize, u64, Times),
    ) -> Result<(), ReadFailure> {
        let before = self.pages.as_ref().ok().and_then(UserCounters::state);
        let pages = &mut self.pages;
        let adjusted = |times| match pages {
            Ok(pages) => pages.noted(before, times),
            Err(_) => times,
        };
        self.call.read(adjusted, found)
    }

    /// Reads every member without a system call; false if that is not possible at this moment on this thread.
    pub(crate) fn read_pages(&mut self, found: impl FnMut(usize, u64, Times)) -> bool {
        self.may_read_here() && self.pages.as_mut().is_ok_and(|pages| pages.read(found))
    }

    /// Reads every member in both ways, and notes what each has cost.
    fn read_both_ways(
        &mut self,
        mut found: impl FnMut(usize, u64, Times),
    ) -> Result<(), ReadFailure> {
        // A thread that may not read its time stamps asks no clock either.
        let start = self.may_read_here().then(now);
        let in_user_space = start.is_some() && self.read_pages(&mut found);
        let called = in_user_space.then(now);
        self.read_by_system_call(found)?;
        if let (Ok(pages), Some(start), Some(called)) = (&mut self.pages, start, called) {
            pages.timed(start, called);
        }
        Ok(())
    }

    /// Returns true if pages are mapped and the calling thread is the one that they count. Notes if that may not read its
    /// time stamps, before it does so for the first time.
    pub(crate) fn may_read_here(&mut self) -> bool {
        let Ok(pages) = &mut self.pages else {
            return false;
        };
        let checked = pages.check_thread();
        if let Err(obstacle) = checked {
            self.pages = Err(obstacle);
        }
        checked == Ok(true)
    }
}
