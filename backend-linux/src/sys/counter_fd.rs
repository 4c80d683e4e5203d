//! An open counter: its reads and ioctls (perf_event_open(2), `include/uapi/linux/perf_event.h`).

use std::ffi::{CStr, c_int, c_long};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use libc::Ioctl;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::again::again;
use super::attr::PerfEventAttr;
use super::errno::last_errno;
use super::read_call;

/// `PERF_EVENT_IOC_*`: `_IO('$', n)`, `_IOW('$', n, type)` and `_IOR('$', n, type)` in the kernel's header.
mod request {
    use std::ffi::c_char;

    use nix::{request_code_none, request_code_read, request_code_readwrite, request_code_write};

    use super::{Ioctl, PerfEventAttr, QueryBpf};

    const TYPE: u8 = b'$';
    /// The size of a pointer, which some of the types are.
    const POINTER: usize = size_of::<usize>();

    // Those that take a number, of the size of a `__u32` if of any. The macros of nix are of no use for them: `ioctl_none!`
    // passes nothing, and the kernel reads flags of what happens to be in the register; `ioctl_write_int_bad!` passes an int,
    // of which -1 is no ring's -1.
    pub(super) const ENABLE: Ioctl = request_code_none!(TYPE, 0);
    pub(super) const DISABLE: Ioctl = request_code_none!(TYPE, 1);
    pub(super) const REFRESH: Ioctl = request_code_none!(TYPE, 2);
    pub(super) const SET_OUTPUT: Ioctl = request_code_none!(TYPE, 5);
    pub(super) const SET_BPF: Ioctl = request_code_write!(TYPE, 8, size_of::<u32>());
    pub(super) const PAUSE_OUTPUT: Ioctl = request_code_write!(TYPE, 9, size_of::<u32>());

    // Those that take a pointer.
    pub(super) const PERIOD: Ioctl = request_code_write!(TYPE, 4, size_of::<u64>());
    pub(super) const SET_FILTER: Ioctl = request_code_write!(TYPE, 6, POINTER);
    pub(super) const ID: Ioctl = request_code_read!(TYPE, 7, POINTER);
    pub(super) const QUERY_BPF: Ioctl = request_code_readwrite!(TYPE, 10, POINTER);
    pub(super) const MODIFY_ATTRIBUTES: Ioctl = request_code_write!(TYPE, 11, POINTER);

    nix::ioctl_write_ptr_bad!(set_period, PERIOD, u64);
    nix::ioctl_write_ptr_bad!(set_filter, SET_FILTER, c_char);
    nix::ioctl_read_bad!(id, ID, u64);
    nix::ioctl_readwrite_bad!(query_bpf, QUERY_BPF, QueryBpf);
    nix::ioctl_write_ptr_bad!(modify_attributes, MODIFY_ATTRIBUTES, PerfEventAttr);
}

/// The owner of the signals of a descriptor (`include/uapi/asm-generic/fcntl.h`).
mod owner {
    /// `struct f_owner_ex`.
    #[repr(C)]
    pub(super) struct OwnerEx {
        pub(super) kind: i32,
        pub(super) id: i32,
    }

    /// `F_OWNER_TID`.
    pub(super) const THREAD: i32 = 0;
    /// `F_SETOWN_EX`.
    pub(super) const SET_OWNER: i32 = 15;
    /// `F_SETSIG`.
    pub(super) const SET_SIGNAL: i32 = 10;
}

/// The most BPF programs of one tracepoint (`BPF_TRACE_MAX_PROGS`, `include/linux/trace_events.h`).
const MOST_PROGRAMS: usize = 64;

/// `struct perf_event_query_bpf` with room for all ids.
#[repr(C)]
struct QueryBpf {
    ids_len: u32,
    prog_cnt: u32,
    ids: [u32; MOST_PROGRAMS],
}

/// The descriptor of a counter. Dropping it closes the counter.
#[derive(Debug)]
pub(crate) struct CounterFd {
    fd: OwnedFd,
    /// The flag of [`read_call::read`].
    leaves_returns: bool,
}

impl CounterFd {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            leaves_returns: read_call::leaves_returns(),
        }
    }

    /// The descriptor, still owned by this counter.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Another descriptor of the same counter.
    pub(crate) fn duplicate(&self) -> Result<Self, i32> {
        let clone = self.fd.try_clone();
        let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EMFILE);
        clone.map(Self::new).map_err(errno)
    }

    /// Reads the counter or its group into `words`; the number of bytes the kernel wrote.
    pub(crate) fn read(&self, words: &mut [u64]) -> Result<usize, i32> {
        again(|| {
            let returned = read_call::read(self.as_fd(), words, self.leaves_returns);
            usize::try_from(returned).map_err(|_| -returned as i32)
        })
    }

    /// Starts the counter; if it leads a group, every member that is not stopped goes onto the PMU
    /// with it.
    pub(crate) fn enable(&self) -> Result<(), i32> {
        self.ioctl(request::ENABLE)
    }

    /// Stops the counter; if it leads a group, the whole group leaves the PMU with it.
    pub(crate) fn disable(&self) -> Result<(), i32> {
        self.ioctl(request::DISABLE)
    }

    /// The id by which a group read names this counter.
    pub(crate) fn id(&self) -> Result<u64, i32> {
        let mut id = 0;
        self.ioctl_at(request::id, &raw mut id)?;
        Ok(id)
    }

    /// Starts the counter for this many overflows more, after which the kernel stops it.
    pub(crate) fn refresh(&self, overflows: i32) -> Result<(), i32> {
        self.ioctl_with(request::REFRESH, overflows)
    }

    /// Sets the sampling period, or the frequency of a counter that has one.
    pub(crate) fn set_period(&self, period: u64) -> Result<(), i32> {
        self.ioctl_at(request::set_period, &raw const period)
    }

    /// Counts only where this condition on the tracepoint's fields holds.
    pub(crate) fn set_filter(&self, condition: &CStr) -> Result<(), i32> {
        self.ioctl_at(request::set_filter, condition.as_ptr())
    }

    /// Runs a BPF program whenever the event occurs.
    pub(crate) fn set_bpf(&self, program: BorrowedFd<'_>) -> Result<(), i32> {
        self.ioctl_with(request::SET_BPF, program.as_raw_fd())
    }

    /// Returns the ids of the BPF programs that run whenever the tracepoint is reached.
    pub(crate) fn query_bpf(&self) -> Result<Vec<u32>, i32> {
        let mut query = QueryBpf {
            ids_len: MOST_PROGRAMS as u32,
            prog_cnt: 0,
            ids: [0; MOST_PROGRAMS],
        };
        self.ioctl_at(request::query_bpf, &raw mut query)?;
        let ids = query.ids.iter().take(query.prog_cnt as usize);
        Ok(ids.copied().collect())
    }

    /// Sends this counter's records to the ring of another one, or to none.
    pub(crate) fn set_output(&self, ring: Option<&Self>) -> Result<(), i32> {
        self.ioctl_with(request::SET_OUTPUT, ring.map_or(-1, Self::raw))
    }

    /// Stops the ring from taking records, or lets it.
    pub(crate) fn pause_output(&self, pause: bool) -> Result<(), i32> {
        self.ioctl_with(request::PAUSE_OUTPUT, pause)
    }

    /// Replaces what a breakpoint watches.
    pub(crate) fn modify_attributes(&self, attr: &PerfEventAttr) -> Result<(), i32> {
        // The kernel reads as much as the attr says.
        assert!(attr.size <= PerfEventAttr::SIZE);
        self.ioctl_at(request::modify_attributes, std::ptr::from_ref(attr))
    }

    /// Has a signal sent to a thread whenever the counter's ring becomes readable, and when
    /// [`refresh`](Self::refresh) has run out (fcntl(2), `F_SETOWN_EX`, `F_SETSIG`, `O_ASYNC`).
    pub(crate) fn signal_thread(&self, tid: i32, signal: i32) -> Result<(), i32> {
        let owner = owner::OwnerEx {
            kind: owner::THREAD,
            id: tid,
        };
        // SAFETY: the kernel reads an f_owner_ex through the pointer, which is to a live local.
        let owned = unsafe { libc::fcntl(self.raw(), owner::SET_OWNER, &raw const owner) };
        if owned < 0 {
            return Err(last_errno());
        }
        // SAFETY: the command takes a number.
        let set = unsafe { libc::fcntl(self.raw(), owner::SET_SIGNAL, signal) };
        if set < 0 {
            return Err(last_errno());
        }
        self.set_status(OFlag::O_ASYNC)
    }

    /// Sends signals no longer.
    pub(crate) fn stop_signals(&self) -> Result<(), i32> {
        self.set_status(OFlag::empty())
    }

    /// Sets the flags of the open file (`F_SETFL`), of which a counter has no others.
    fn set_status(&self, flags: OFlag) -> Result<(), i32> {
        again(|| {
            let set = fcntl(self, FcntlArg::F_SETFL(flags));
            set.map(drop).map_err(|_| last_errno())
        })
    }

    fn ioctl(&self, request: Ioctl) -> Result<(), i32> {
        // No flags, so this counter and not its group.
        self.ioctl_with(request, 0)
    }

    fn ioctl_with(&self, request: Ioctl, argument: impl Into<c_long>) -> Result<(), i32> {
        let argument = argument.into();
        again(|| {
            // SAFETY: these requests take an integer argument and touch no memory of ours.
            let rc = unsafe { libc::ioctl(self.raw(), request, argument) };
            if rc < 0 { Err(last_errno()) } else { Ok(()) }
        })
    }

    /// Makes a request whose argument is a pointer that the kernel reads from or writes to.
    fn ioctl_at<P: Copy>(
        &self,
        request: unsafe fn(RawFd, P) -> nix::Result<c_int>,
        argument: P,
    ) -> Result<(), i32> {
        again(|| {
            // SAFETY: the request declares what it reads or writes, and every caller has its argument from a live reference
            // to that.
            let done = unsafe { request(self.raw(), argument) };
            done.map(drop).map_err(|_| last_errno())
        })
    }
}

impl AsFd for CounterFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read does not wait for what never comes.
    #[test]
    fn a_read_that_cannot_go_on_now_ends() {
        let (near, _far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        near.set_nonblocking(true).expect("any socket can");
        let fd = CounterFd::new(near.into());
        assert_eq!(fd.read(&mut [0; 3]), Err(libc::EAGAIN));
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    fn requests_are_the_kernels_numbers() {
        assert_eq!(request::ENABLE, 0x2400);
        assert_eq!(request::DISABLE, 0x2401);
        assert_eq!(request::REFRESH, 0x2402);
        assert_eq!(request::PERIOD, 0x4008_2404);
        assert_eq!(request::SET_OUTPUT, 0x2405);
        assert_eq!(request::ID, 0x8008_2407);
        assert_eq!(request::PAUSE_OUTPUT, 0x4004_2409);
        assert_eq!(request::MODIFY_ATTRIBUTES, 0x4008_240b);
        assert_eq!(request::SET_FILTER, 0x4008_2406);
        assert_eq!(request::SET_BPF, 0x4004_2408);
        assert_eq!(request::QUERY_BPF, 0xc008_240a);
    }

    /// The ioctls of something that is no counter fail, and say so.
    #[test]
    fn ioctl_error_propagates() {
        let null = std::fs::File::open("/dev/null").expect("every Linux has it");
        let fd = CounterFd::new(null.into());
        assert_eq!(fd.enable(), Err(libc::ENOTTY));
        assert_eq!(fd.disable(), Err(libc::ENOTTY));
        assert_eq!(fd.id(), Err(libc::ENOTTY));
        assert_eq!(fd.refresh(1), Err(libc::ENOTTY));
        assert_eq!(fd.set_period(1), Err(libc::ENOTTY));
        assert_eq!(fd.set_output(None), Err(libc::ENOTTY));
        assert_eq!(fd.pause_output(true), Err(libc::ENOTTY));
        let attr = PerfEventAttr::default();
        assert_eq!(fd.modify_attributes(&attr), Err(libc::ENOTTY));
    }
}
