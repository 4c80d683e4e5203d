//! Reading the counters of the calling thread without a system call.
//!
//! The kernel maps a page for a counter that says in which register it is and what has to be added
//! (perf_event_open(2), `struct perf_event_mmap_page`); the register is read by RDPMC on x86 and
//! through `PMEVCNTRn_EL0` on 64-bit ARM. [`LinuxGroup`](crate::LinuxGroup) does it by itself
//! wherever it may: [`Group::read`](quipu_hal::Group::read) falls back to read(2) on any other thread
//! than the measured one, in a forked process, and while a member is not on the PMU.
//!
//! In virtual machines, where the page has no times, they are those of the last system call and
//! the clock since, for as long as the group has not left the PMU; after that a system call returns them again.
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

use quipu_hal::{Error, ErrorKind, Hardware, Result};

use crate::events::EventBits;
use crate::read::{ATTEMPTED, Fds, UserCounters, explain, on_this_thread};
use crate::sys::{Attach, OpenFailure, perf_event_open};

pub use crate::user_page::registers::Registers;
pub use crate::user_page::{PageCapabilities, PageFields, Times, UserPage};

/// Checks, by opening a counter of cycles, that a thread can read its own counters without a system
/// call.
///
/// # Errors
/// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) with the reason why not, and what can be
/// done about it where something can; the error of opening the counter where there is no PMU or no
/// permission.
pub fn available() -> Result<()> {
    let bits = EventBits::hardware(Hardware::Cycles).readable_in_user_space(false);
    let counter =
        perf_event_open(&bits.idle_attr(), Attach::thread(0), None).map_err(|failure| {
            let (kind, errno, reason) = match failure {
                OpenFailure::Errno(errno @ (libc::EACCES | libc::EPERM)) => {
                    (ErrorKind::NoPermission, Some(errno), None)
                }
                OpenFailure::Errno(
                    errno @ (libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL),
                ) => (
                    ErrorKind::UnsupportedFeature,
                    Some(errno),
                    Some("the kernel counts no cycles of the CPU"),
                ),
                OpenFailure::Errno(errno) | OpenFailure::NoId(errno) => {
                    (ErrorKind::Os, Some(errno), None)
                }
                OpenFailure::AttrTooNew { .. } => (
                    ErrorKind::UnsupportedFeature,
                    None,
                    Some("the kernel is too old"),
                ),
            };
            let mut error = Error::new(kind, ATTEMPTED);
            if let Some(errno) = errno {
                error = error.with_errno(errno);
            }
            match reason {
                Some(reason) => error.with_reason(reason),
                None => error,
            }
        })?;
    on_this_thread()
        .and_then(|()| UserCounters::new()?.map(&Fds::new(counter, Vec::new()), None))
        .map(|_| ())
        .map_err(explain)
}
