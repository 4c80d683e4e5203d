//! Reading the counters of the calling thread without a system call.
//!
//! The kernel maps a page for a counter that says in which register it is and what has to be added
//! (perf_event_open(2), `struct perf_event_mmap_page`); the register is read by RDPMC on x86 and
//! through `PMEVCNTRn_EL0` on 64-bit ARM. [`LinuxGroup`](crate::LinuxGroup) does it by itself
//! wherever it may: [`Group::read`](quipu_hal::Group::read) falls back to read(2) on any other thread
//! than the measured one, in a forked process, and while a member is not on the PMU.
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
mod owner;
mod page;
mod registers;

pub use availability::available;
pub use page::{PageCapabilities, PageFields, Times, UserPage};
pub use registers::Registers;

use availability::Obstacle;
use owner::Owner;
use registers::CpuRegisters;

use crate::sys::{CounterFd, CounterPage};

/// The pages of a kernel group, in member order.
#[derive(Debug)]
pub(crate) struct UserCounters {
    pages: Vec<CounterPage>,
    owner: Owner,
}

impl UserCounters {
    /// Maps the pages of counters of the calling thread.
    pub(crate) fn map(counters: &[CounterFd]) -> Result<Self, Obstacle> {
        availability::on_this_machine()?;
        let owner = Owner::this_thread().ok_or(Obstacle::NoMarkOfForks)?;
        // Whole from the first page on, so that those mapped so far go when one is refused.
        let mut mapped = Self {
            pages: Vec::with_capacity(counters.len()),
            owner,
        };
        for counter in counters {
            let page = CounterPage::map(counter).map_err(Obstacle::Mapping)?;
            mapped.pages.push(page);
        }
        for page in &mapped.pages {
            // SAFETY: this process has just mapped it.
            availability::of_page(unsafe { page.get() }.capabilities())?;
        }
        Ok(mapped)
    }

    /// Reads every member, if the calling thread is the one they count and all are on the PMU.
    #[inline(always)]
    pub(crate) fn read(&self, found: impl FnMut(usize, u64, Times)) -> bool {
        if !self.owner.is_this_thread() {
            return false;
        }
        // SAFETY: the owner is a thread of the process that mapped them.
        let mut pages = self.pages.iter().map(|page| unsafe { page.get() });
        let Some(leader) = pages.next() else {
            return false;
        };
        // SAFETY: the pages are those of counters of the calling thread, whose capabilities
        // `read_group` heeds.
        let registers = unsafe { CpuRegisters::new() };
        leader.read_group(&pages, &registers, found).is_some()
    }
}

impl Drop for UserCounters {
    fn drop(&mut self) {
        if !self.owner.is_this_process() {
            // A forked process does not have them, and may have something else in their place.
            self.pages.drain(..).for_each(std::mem::forget);
        }
    }
}
