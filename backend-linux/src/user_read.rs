//! Reading the counters of the calling thread without a system call.
//!
//! The kernel maps a page for a counter that says in which register it is and what has to be added
//! (perf_event_open(2), `struct perf_event_mmap_page`); the register is read by RDPMC on x86 and
//! through `PMEVCNTRn_EL0` on 64-bit ARM. [`LinuxGroup`](crate::LinuxGroup) does it by itself
//! wherever it may: [`Group::read`](quipu_hal::Group::read) falls back to read(2) on any other thread
//! than the measured one, in a forked process, and while a member is not on the PMU.
//!
//! In virtual machines, where the page tells no times, they are those of the last system call and
//! the clock since, for as long as the group has not left the PMU; after that a system call tells them again.
//! The first reads of a group are made both ways, and the quicker one is used from then on: a hypervisor
//! may intercept the instruction.
//!
//! It takes a target of the calling thread alone (no process, no CPU, no
//! [inheritance](quipu_hal::Attributes::inherit)), events of the CPU's own PMU, and the permission
//! of the machine: [`available`] says whether that is given and, if not, why. On ARM it is
//! `kernel.perf_user_access`, and the bit that asks for it (bit 1 of `config1`) is set for every
//! event without a `config1` of its own.
//!
//! If the permission is taken away while such a group is open (a 0 written to the PMU's `rdpmc`, or
//! to `kernel.perf_user_access`), the next read ends the program with SIGSEGV or SIGILL, as it ends
//! every program that reads counters in user space;
//! [`LinuxBackend::without_user_reads`](crate::LinuxBackend::without_user_reads) is for machines
//! where that has to be feared, and for groups whose members have to be of one moment.
//!
//! A backend maps no page of a PMU again, one of which has said that it may not be read, and looks at none at opening, one
//! of which has said that it may.
//!
//! [`UserPage`] and [`Registers`] are the protocol itself, over a page and registers of any origin:
//!
//! ```
//! use quipu_linux::user_read::{PageCapabilities, PageFields, Registers, UserPage};
//!
//! struct Recorded;
//!
//! impl Registers for Recorded {
//!     fn counter(&self, _number: u32) -> Option<u64> {
//!         Some(0xffff_ffff_ff00 + 300)
//!     }
//!     fn cycles(&self) -> u64 {
//!         3_000
//!     }
//! }
//!
//! let page = UserPage::recorded(&PageFields {
//!     index: 1,
//!     offset: 256,
//!     time_enabled: 5_000,
//!     time_running: 4_000,
//!     capabilities: PageCapabilities::READABLE,
//!     pmc_width: 48,
//!     time_shift: 1,
//!     time_mult: 1,
//!     time_offset: 0,
//!     time_zero: 0,
//!     time_cycles: 0,
//!     time_mask: 0,
//! });
//! let mut seen = None;
//! let read = page.read_group(&std::iter::empty(), &Recorded, |_, value, times| {
//!     seen = Some((value, times.enabled, times.running));
//! });
//! assert!(read.is_some());
//! assert_eq!(seen, Some((300, 6_500, 5_500)));
//! ```

mod availability;
mod call_times;
mod cost;
mod known_pages;
mod owner;
mod page;
mod registers;

use std::iter::Zip;

use quipu_hal::{Error, ErrorKind, Reading};

pub use availability::available;
pub use page::{PageCapabilities, PageFields, Times, UserPage};
pub use registers::Registers;

pub(crate) use availability::{Obstacle, explain};
use call_times::CallTimes;
pub(crate) use call_times::now;
use cost::Cost;
pub(crate) use known_pages::KnownPages;
use owner::Owner;
use page::OfThePage;
use registers::CpuRegisters;

use crate::kernel_group::Fds;
use crate::sys::CounterPage;

/// The pages of a kernel group, in member order.
#[derive(Debug)]
pub(crate) struct UserCounters {
    pages: Vec<CounterPage>,
    owner: Owner,
    /// The times, where the pages give none.
    call_times: Option<CallTimes>,
    cost: Cost,
    way: Way,
    /// True once the thread they count was found to be allowed to read its time stamps.
    thread_may: bool,
}

/// The pages of counters that may be read in user space, and whether they tell times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) tell_times: bool,
}

/// The way in which the next read is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    UserSpace,
    SystemCall,
    /// Both, to see which is quicker. The first time, [`check_thread`](UserCounters::check_thread) comes before.
    Both,
}

impl UserCounters {
    /// Returns the pages of the calling thread's counters, none so far.
    #[inline]
    pub(crate) fn new() -> Result<Self, Obstacle> {
        availability::on_this_machine()?;
        Ok(Self {
            pages: Vec::new(),
            owner: Owner::this_thread().ok_or(Obstacle::NoMarkOfForks)?,
            call_times: None,
            cost: Cost::new(),
            way: Way::Both,
            thread_may: false,
        })
    }

    /// Maps the pages that are lacking of counters of the calling thread, which are looked at unless it is known what pages of their PMU
    /// tell; returns what they do. They must not count yet: the page of one that was read by a call while it counts is
    /// wrong by the width of its register until it is scheduled anew (`x86_perf_event_update`,
    /// `arch/x86/events/core.c`; seen on 6.1).
    pub(crate) fn map(&mut self, fds: &Fds, known: Option<Pages>) -> Result<Pages, Obstacle> {
        let there = self.pages.len();
        let lacking = fds.len() - there;
        match there {
            0 => self.pages = Vec::with_capacity(lacking),
            _ => self.pages.reserve_exact(lacking),
        }
        for fd in fds.iter().skip(there) {
            let page = CounterPage::map(fd).map_err(Obstacle::Mapping)?;
            self.pages.push(page);
        }
        // To look at a page for the first time is a page fault.
        let pages = match known {
            Some(pages) => pages,
            None => self.look()?,
        };
        self.call_times = (!pages.tell_times).then(CallTimes::new);
        self.cost = Cost::new();
        self.way = Way::Both;
        Ok(pages)
    }

    /// Looks at the pages, in the process that mapped them.
    fn look(&self) -> Result<Pages, Obstacle> {
        let mut tell_times = true;
        for page in here(&self.pages, &self.owner) {
            let capabilities = page.capabilities();
            availability::of_page(capabilities)?;
            tell_times &= capabilities.contains(PageCapabilities::USER_TIME);
        }
        Ok(Pages { tell_times })
    }

    /// Returns true on the thread they count. Asks the first time if that may read its time stamps: most that are opened
    /// and closed again are never read.
    pub(crate) fn check_thread(&mut self) -> Result<bool, Obstacle> {
        if !self.owner.is_this_thread() {
            return Ok(false);
        }
        if !self.thread_may {
            availability::on_this_thread()?;
            self.thread_may = true;
        }
        Ok(true)
    }

    /// Returns what was known of the pages when they were mapped.
    pub(crate) fn pages(&self) -> Pages {
        Pages {
            tell_times: self.call_times.is_none(),
        }
    }

    /// Returns the way in which the next read is made.
    #[inline(always)]
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// Notes what a read cost that began at `start` of the [clock](now), in user space until `called` and by a system call
    /// from then on.
    pub(crate) fn timed(&mut self, start: u64, called: u64) {
        let ended = now();
        self.cost
            .add(called.saturating_sub(start), ended.saturating_sub(called));
        if self.cost.is_known() {
            self.way = match self.cost.favours_user_space() {
                true => Way::UserSpace,
                false => Way::SystemCall,
            };
        }
    }

    /// Returns the reason why reads are made by system calls although pages are mapped.
    pub(crate) fn obstacle(&self) -> Option<Error> {
        let thread = match self.thread_may || !self.owner.is_this_thread() {
            true => Ok(()),
            false => availability::on_this_thread(),
        };
        if let Err(obstacle) = thread.and_then(|()| self.look()) {
            return Some(explain(obstacle));
        }
        if self.way() != Way::SystemCall {
            return None;
        }
        let (user_space, system_call) = self.cost.each();
        let error = Error::new(ErrorKind::UnsupportedFeature, availability::ATTEMPTED);
        Some(error.with_reason(format!(
            "it takes {user_space} ns, and a system call {system_call} ns: a hypervisor may intercept it"
        )))
    }

    /// Returns the state of the leader's page, for [`told`](Self::told): `None` on another thread, and where
    /// pages have times.
    #[inline(always)]
    pub(crate) fn state(&self) -> Option<u32> {
        if self.call_times.is_none() || !self.owner.is_this_thread() {
            return None;
        }
        Some(here(&self.pages, &self.owner).next()?.state())
    }

    /// Takes the times that a system call told, which was made in this [`state`](Self::state).
    #[inline(always)]
    pub(crate) fn told(&mut self, before: Option<u32>, out: &mut [Reading]) {
        let Some(times) = &mut self.call_times else {
            return;
        };
        if let Some(leader) = here(&self.pages, &self.owner).next() {
            times.told(leader, before, now, out);
        }
    }

    /// Returns itself if the pages tell times.
    #[inline(always)]
    pub(crate) fn with_times(&self) -> Option<&Self> {
        self.call_times.is_none().then_some(self)
    }

    /// Reads the only member, if the calling thread is the one it counts and it stays on the PMU. Its page must tell times.
    #[inline(always)]
    pub(crate) fn read_counter(&self) -> Option<(u64, Times)> {
        if self.pages.len() != 1 {
            return None;
        }
        let (mut pages, registers) = own(&self.pages, &self.owner)?;
        pages.next()?.read_at_once(&registers)
    }

    /// Reads `count` members as [`read`](Self::read) does, if they are all, and their pages do not change meanwhile. These must
    /// tell times.
    #[inline(always)]
    pub(crate) fn read_at_once<P, T: Copy>(
        &self,
        count: usize,
        places: impl Iterator<Item = P>,
        made: impl Fn(Times) -> T,
        found: impl FnMut(P, u64, T),
    ) -> bool {
        if self.pages.len() != count {
            return false;
        }
        let Some(group) = members(&self.pages, &self.owner, places) else {
            return false;
        };
        let times = &mut OfThePage(&group.registers);
        let read = (group.leader).try_group(
            (times, made),
            group.own,
            group.others,
            &group.registers,
            found,
        );
        read == Some(true)
    }

    /// Reads the value of the only member, if its page allows it at once and the calling thread is the one it counts. What
    /// the page has of times must be `as_wanted`, and so must what `found` is told.
    #[inline(always)]
    pub(crate) fn read_value(
        &self,
        as_wanted: impl FnOnce(Times) -> bool,
        mut found: impl FnMut(u64) -> bool,
    ) -> bool {
        if self.pages.len() != 1 {
            return false;
        }
        let Some((mut pages, registers)) = own(&self.pages, &self.owner) else {
            return false;
        };
        let Some(page) = pages.next() else {
            return false;
        };
        let others = std::iter::empty();
        page.read_values(as_wanted, (), others, &registers, |(), value| found(value))
    }

    /// Reads the value of every member, each with a place, if the calling thread is the one they count, all are on the PMU
    /// and their pages do not change meanwhile. What the leader's page has of times must be `as_wanted`, and so must what
    /// `found` is told; those times are as of the last change of the page.
    #[inline(always)]
    pub(crate) fn read_values<P>(
        &self,
        as_wanted: impl FnOnce(Times) -> bool,
        places: impl Iterator<Item = P>,
        found: impl FnMut(P, u64) -> bool,
    ) -> bool {
        let Some(group) = members(&self.pages, &self.owner, places) else {
            return false;
        };
        (group.leader).read_values(as_wanted, group.own, group.others, &group.registers, found)
    }

    /// Reads every member, if the calling thread is the one they count and all are on the PMU. Each has a place among
    /// `places`; `found` is told that, the value, and what `made` makes of the times once.
    #[inline(always)]
    pub(crate) fn read<P: Copy, T: Copy>(
        &mut self,
        places: impl Iterator<Item = P> + Clone,
        made: impl Fn(Times) -> T,
        found: impl FnMut(P, u64, T),
    ) -> bool {
        if self.call_times.is_some() {
            return self.read_since_call(places, made, found);
        }
        let Some(group) = members(&self.pages, &self.owner, places) else {
            return false;
        };
        let times = (&mut OfThePage(&group.registers), made);
        let read = (group.leader).read_group_with(
            times,
            group.own,
            &group.others,
            &group.registers,
            found,
        );
        read.is_some()
    }

    /// Reads every member as [`read`](Self::read) does, where pages give no times.
    #[inline(always)]
    pub(crate) fn read_since_call<P: Copy, T: Copy>(
        &mut self,
        places: impl Iterator<Item = P> + Clone,
        made: impl Fn(Times) -> T,
        found: impl FnMut(P, u64, T),
    ) -> bool {
        let Some(times) = &mut self.call_times else {
            return false;
        };
        let Some(group) = members(&self.pages, &self.owner, places) else {
            return false;
        };
        let leader = (group.leader, group.own);
        let read = times.read(leader, &group.others, &group.registers, (now, made), found);
        read.is_some()
    }
}

/// Returns the pages of the calling thread's own counters, and the registers that they name; `None` on other threads.
#[inline(always)]
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

/// The members of a group of the calling thread: the leader's page and its place, and those of the others.
struct Members<'a, P, O> {
    leader: &'a UserPage,
    own: P,
    others: O,
    registers: CpuRegisters,
}

/// Returns the members that these pages are of, each with a place; `None` on other threads than the one they count.
#[inline(always)]
fn members<'a, I: Iterator>(
    pages: &'a [CounterPage],
    owner: &Owner,
    places: I,
) -> Option<Members<'a, I::Item, Zip<impl Iterator<Item = &'a UserPage> + Clone, I>>> {
    let (pages, registers) = own(pages, owner)?;
    let mut others = pages.zip(places);
    let (leader, own) = others.next()?;
    Some(Members {
        leader,
        own,
        others,
        registers,
    })
}

/// Returns the pages of counters in the process that mapped them, and none in others.
#[inline(always)]
fn here<'a>(pages: &'a [CounterPage], owner: &Owner) -> impl Iterator<Item = &'a UserPage> {
    let mapped = match owner.is_this_process() {
        true => pages,
        false => &[],
    };
    // SAFETY: this process mapped them.
    mapped.iter().map(|page| unsafe { page.get() })
}
