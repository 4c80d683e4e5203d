//! The system call perf_event_open(2), with the ladder of attr sizes for older kernels.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::again::again;
use super::attr::PerfEventAttr;
use super::counter_fd::CounterFd;
use super::errno::last_errno;

/// `PERF_FLAG_PID_CGROUP`: the pid argument is a file descriptor of a cgroup directory.
const PERF_FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;
/// `PERF_FLAG_FD_CLOEXEC`: the counter does not leak into executed programs.
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// The target of a counter: the `pid`, `cpu` and cgroup flag of perf_event_open(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attach {
    /// A thread (0 for the calling one), -1 for every task of a CPU, or a cgroup's descriptor.
    pub(crate) pid: i32,
    /// A CPU, or -1 for any.
    pub(crate) cpu: i32,
    /// True if `pid` is the descriptor of a cgroup directory.
    pub(crate) cgroup: bool,
}

impl Attach {
    /// One thread on any CPU; 0 is the calling one.
    pub(crate) const fn thread(tid: i32) -> Self {
        Self {
            pid: tid,
            cpu: -1,
            cgroup: false,
        }
    }

    /// Everything that runs on one CPU. A number the kernel cannot have becomes one it refuses.
    pub(crate) fn cpu(cpu: u32) -> Self {
        Self {
            pid: -1,
            cpu: cpu.try_into().unwrap_or(i32::MAX),
            cgroup: false,
        }
    }
}

/// The reason why the kernel opened no counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFailure {
    /// Its errno.
    Errno(i32),
    /// The counter was opened, but the kernel did not give its id (`PERF_EVENT_IOC_ID`), for this errno.
    NoId(i32),
    /// Its `perf_event_attr` ends before a field that is needed.
    AttrTooNew {
        /// The field, by the kernel's name.
        field: &'static str,
    },
}

impl OpenFailure {
    /// Returns the errno: for an attr that is too new, that of the size.
    pub(crate) fn errno(self) -> i32 {
        match self {
            Self::Errno(errno) | Self::NoId(errno) => errno,
            Self::AttrTooNew { .. } => libc::E2BIG,
        }
    }
}

/// The attr size to offer: the full one, until a kernel has named a smaller one.
static ATTR_SIZE: AtomicU32 = AtomicU32::new(PerfEventAttr::SIZE);

/// The size of the attr that this kernel takes, as far as is known: that of the last one it took.
pub(crate) fn attr_size() -> u32 {
    ATTR_SIZE.load(Ordering::Relaxed)
}

/// Opens a counter, close-on-exec always; in the group of `leader` if there is one.
pub(crate) fn perf_event_open(
    attr: &PerfEventAttr,
    attach: Attach,
    leader: Option<&CounterFd>,
) -> Result<CounterFd, OpenFailure> {
    let mut flags = PERF_FLAG_FD_CLOEXEC;
    if attach.cgroup {
        flags |= PERF_FLAG_PID_CGROUP;
    }
    let group_fd = leader.map_or(-1, CounterFd::raw);
    with_accepted_size(attr, &ATTR_SIZE, |attr| {
        again(|| call(attr, attach.pid, attach.cpu, group_fd, flags))
    })
    .map(CounterFd::new)
}

/// Calls `open` with the attr, and again with the size that the kernel named if it was too large
/// and what is beyond it is zero. Remembers that size.
///
/// Linux itself takes larger attrs as long as the excess is zero (`perf_copy_attr`,
/// `kernel/events/core.c`), but not everything that answers this call is Linux itself.
fn with_accepted_size<T>(
    attr: &PerfEventAttr,
    known_size: &AtomicU32,
    mut open: impl FnMut(&mut PerfEventAttr) -> Result<T, i32>,
) -> Result<T, OpenFailure> {
    let mut attr = *attr;
    let offered = known_size.load(Ordering::Relaxed);
    if let Some(field) = attr.first_field_beyond(offered) {
        return Err(OpenFailure::AttrTooNew { field });
    }
    attr.size = offered;
    match open(&mut attr) {
        Err(libc::E2BIG) => {}
        other => return other.map_err(OpenFailure::Errno),
    }
    let named = std::mem::replace(&mut attr.size, 0);
    if !(PerfEventAttr::MIN_SIZE..offered).contains(&named) {
        return Err(OpenFailure::Errno(libc::E2BIG));
    }
    if let Some(field) = attr.first_field_beyond(named) {
        return Err(OpenFailure::AttrTooNew { field });
    }
    attr.size = named;
    let opened = open(&mut attr).map_err(OpenFailure::Errno)?;
    known_size.store(named, Ordering::Relaxed);
    Ok(opened)
}

/// The bare system call; the C library has no wrapper for it.
fn call(
    attr: &mut PerfEventAttr,
    pid: i32,
    cpu: i32,
    group_fd: RawFd,
    flags: libc::c_ulong,
) -> Result<OwnedFd, i32> {
    // SAFETY: `attr` is a live, exclusively borrowed perf_event_attr of at least `attr.size` bytes
    // (`with_accepted_size` never raises the size); the kernel reads it, and writes its size field at most.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_mut(attr),
            pid,
            cpu,
            group_fd,
            flags,
        )
    };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the call succeeded, so `fd` is a new descriptor (which fits an int) that nothing owns
    // else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that knows `size` bytes and refuses anything larger, whatever it contains.
    fn strict(size: u32) -> impl FnMut(&mut PerfEventAttr) -> Result<u32, i32> {
        move |attr| {
            if attr.size > size {
                attr.size = size;
                return Err(libc::E2BIG);
            }
            Ok(attr.size)
        }
    }

    #[test]
    fn an_older_kernels_size_is_used_and_remembered() {
        let known = AtomicU32::new(PerfEventAttr::SIZE);
        let attr = PerfEventAttr::default();
        assert_eq!(with_accepted_size(&attr, &known, strict(112)), Ok(112));
        assert_eq!(known.load(Ordering::Relaxed), 112);
        let mut calls = 0;
        let mut kernel = strict(112);
        let again = with_accepted_size(&attr, &known, |attr| {
            calls += 1;
            kernel(attr)
        });
        assert_eq!((again, calls), (Ok(112), 1));
    }

    #[test]
    fn a_field_the_kernel_does_not_know_is_named_not_dropped() {
        let attr = PerfEventAttr {
            config3: 7,
            ..Default::default()
        };
        let too_new = Err(OpenFailure::AttrTooNew { field: "config3" });
        let known = AtomicU32::new(PerfEventAttr::SIZE);
        assert_eq!(with_accepted_size(&attr, &known, strict(128)), too_new);
        known.store(128, Ordering::Relaxed);
        assert_eq!(with_accepted_size(&attr, &known, |_| Ok(0)), too_new);
    }

    #[test]
    fn a_size_that_makes_no_sense_is_not_tried() {
        for nonsense in [0, 63, PerfEventAttr::SIZE, u32::MAX] {
            let known = AtomicU32::new(PerfEventAttr::SIZE);
            let mut calls = 0;
            let result: Result<(), _> =
                with_accepted_size(&PerfEventAttr::default(), &known, |attr| {
                    calls += 1;
                    attr.size = nonsense;
                    Err(libc::E2BIG)
                });
            assert_eq!(result, Err(OpenFailure::Errno(libc::E2BIG)));
            assert_eq!(calls, 1);
        }
    }
}
