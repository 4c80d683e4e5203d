//! Reading counters by their mapped pages and registers, on the thread that they count.

use quipu_hal::{Error, ErrorKind};

use super::call_times::{CallTimes, now};
use super::cost::{Cost, Way};
use super::fds::Fds;
use super::obstacle::{self, ATTEMPTED, Obstacle, explain};
use super::owner::Owner;
use crate::sys::CounterPage;
use crate::user_page::registers::CpuRegisters;
use crate::user_page::{PageCapabilities, Times, UserPage};

/// The pages of a kernel group, in member order.
#[derive(Debug)]
pub(crate) struct UserCounters {
    pages: Vec<CounterPage>,
    owner: Owner,
    /// The times, where the pages give none.
    call_times: Option<CallTimes>,
    cost: Cost,
    /// True once the thread they count was found to be allowed to read its time stamps.
    thread_may: bool,
}

/// The pages of counters that may be read in user space, and whether they have times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) have_times: bool,
}

impl UserCounters {
    /// Returns the pages of the calling thread's counters, none so far.
    pub(crate) fn new() -> Result<Self, Obstacle> {
        obstacle::on_this_machine()?;
        Ok(Self {
            pages: Vec::new(),
            owner: Owner::this_thread().ok_or(Obstacle::NoMarkOfForks)?,
            call_times: None,
            cost: Cost::new(),
            thread_may: false,
        })
    }

    /// Maps the pages that are lacking of counters of the calling thread, which are looked at unless it is known what
    /// pages of their PMU have; returns that. They must not count yet: the page of one that was read by a call while it
    /// counts is wrong by the width of its register until it is scheduled again (`x86_perf_event_update`,
    /// `arch/x86/events/core.c`; seen on 6.1).
    pub(crate) fn map(&mut self, fds: &Fds, known: Option<Pages>) -> Result<Pages, Obstacle> {
        for fd in fds.iter().skip(self.pages.len()) {
            let page = CounterPage::map(fd).map_err(Obstacle::Mapping)?;
            self.pages.push(page);
        }
        // To look at a page for the first time is a page fault.
        let pages = match known {
            Some(pages) => pages,
            None => self.look()?,
        };
        self.call_times = (!pages.have_times).then(CallTimes::new);
        self.cost = Cost::new();
        Ok(pages)
    }

    /// Looks at the pages, in the process that mapped them.
    fn look(&self) -> Result<Pages, Obstacle> {
        let mut have_times = true;
        for page in here(&self.pages, &self.owner) {
            let capabilities = page.capabilities();
            obstacle::of_page(capabilities)?;
            have_times &= capabilities.contains(PageCapabilities::USER_TIME);
        }
        Ok(Pages { have_times })
    }

    /// Returns true on the thread they count. Asks the first time if that may read its time stamps: most that are opened
    /// and closed again are never read.
    pub(super) fn check_thread(&mut self) -> Result<bool, Obstacle> {
        if !self.owner.is_this_thread() {
            return Ok(false);
        }
        if !self.thread_may {
            obstacle::on_this_thread()?;
            self.thread_may = true;
        }
        Ok(true)
    }

    /// Returns the way in which the next read is made. Before the first one, [`check_thread`](Self::check_thread) has to
    /// be called.
    pub(super) fn way(&self) -> Way {
        self.cost.way()
    }

    /// Notes what a read cost that began at `start` of the [clock](now), in user space until `called` and by a system call
    /// from then on.
    pub(super) fn timed(&mut self, start: u64, called: u64) {
        let ended = now();
        self.cost
            .add(called.saturating_sub(start), ended.saturating_sub(called));
    }

    /// Returns the reason why reads are made by system calls although pages are mapped.
    pub(super) fn obstacle(&self) -> Option<Error> {
        let thread = match self.thread_may || !self.owner.is_this_thread() {
            true => Ok(()),
            false => obstacle::on_this_thread(),
        };
        if let Err(obstacle) = thread.and_then(|()| self.look()) {
            return Some(explain(obstacle));
        }
        if self.way() != Way::SystemCall {
            return None;
        }
        let (user_space, system_call) = self.cost.each();
        let error = Error::new(ErrorKind::UnsupportedFeature, ATTEMPTED);
        Some(error.with_reason(format!(
            "it takes {user_space} ns, and a system call {system_call} ns: a hypervisor may intercept it"
        )))
    }

    /// Returns the pages for readers: `None` where they have no times or are slower than system calls, and unless the calling
    /// thread is the one they count and may read its time stamps.
    pub(super) fn shared(&self) -> Option<SharedPages> {
        let usable = self.call_times.is_none() && self.way() != Way::SystemCall;
        let here = self.owner.is_this_thread() && obstacle::on_this_thread().is_ok();
        (usable && here).then(|| SharedPages {
            pages: self.pages.clone(),
            owner: self.owner,
        })
    }

    /// Returns the state of the leader's page, for [`noted`](Self::noted): `None` on another thread, and where
    /// pages have times.
    pub(super) fn state(&self) -> Option<u32> {
        if self.call_times.is_none() || !self.owner.is_this_thread() {
            return None;
        }
        Some(here(&self.pages, &self.owner).next()?.state())
    }

    /// Takes the times of a system call, which was made in this [`state`](Self::state), and returns those to give out.
    pub(super) fn noted(&mut self, before: Option<u32>, times: Times) -> Times {
        let leader = here(&self.pages, &self.owner).next();
        match (&mut self.call_times, leader) {
            (Some(call_times), Some(leader)) => call_times.noted(leader, before, now, times),
            _ => times,
        }
    }

    /// Reads every member, if the calling thread is the one they count and all are on the PMU. `found` takes each by its
    /// position, with its value and times.
    pub(super) fn read(&mut self, found: impl FnMut(usize, u64, Times)) -> bool {
        let Some((mut pages, registers)) = own(&self.pages, &self.owner) else {
            return false;
        };
        let Some(leader) = pages.next() else {
            return false;
        };
        let read = match &mut self.call_times {
            None => leader.read_group(&pages, &registers, found),
            Some(call_times) => call_times.read(leader, &pages, &registers, now, found),
        };
        read.is_some()
    }
}

/// The pages of a kernel group as its readers have them. They have times, so that a read leaves nothing to remember.
#[derive(Debug)]
pub(super) struct SharedPages {
    pages: Vec<CounterPage>,
    owner: Owner,
}

impl SharedPages {
    /// Reads every member, if the calling thread is the one they count and all are on the PMU.
    pub(super) fn read(&self, found: impl FnMut(usize, u64, Times)) -> bool {
        let Some((mut pages, registers)) = own(&self.pages, &self.owner) else {
            return false;
        };
        let leader = pages.next();
        leader.is_some_and(|leader| leader.read_group(&pages, &registers, found).is_some())
    }
}

/// Returns the pages of the calling thread's own counters, and the registers that they name; `None` on other threads.
fn own<'a>(
    pages: &'a [CounterPage],
    owner: &Owner,
) -> Option<(impl Iterator<Item = &'a UserPage> + Clone, CpuRegisters)> {
    if !owner.is_this_thread() {
        return None;
    }
    // SAFETY: the pages are those of counters of the calling thread, whose capabilities are heeded where times are
    // read, and which `map` has looked at, or others of their PMU.
    let registers = unsafe { CpuRegisters::new() };
    // SAFETY: the owner is a thread of the process that mapped them.
    let pages = pages.iter().map(|page| unsafe { page.get() });
    Some((pages, registers))
}

/// Returns the pages of counters in the process that mapped them, and none in others.
fn here<'a>(pages: &'a [CounterPage], owner: &Owner) -> impl Iterator<Item = &'a UserPage> {
    let mapped = match owner.is_this_process() {
        true => pages,
        false => &[],
    };
    // SAFETY: this process mapped them.
    mapped.iter().map(|page| unsafe { page.get() })
}
