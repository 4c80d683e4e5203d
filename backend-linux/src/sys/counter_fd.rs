//! An open counter: its reads and ioctls (perf_event_open(2), `include/uapi/linux/perf_event.h`).

use std::cell::Cell;
use std::ffi::{CStr, c_long, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use self::request::Pointing;
use super::again::again;
use super::{PerfEventAttr, last_errno, read_call};

/// `PERF_EVENT_IOC_*`. They are `_IO('$', n)` and `_IOR('$', 7, __u64 *)` in the kernel's header.
mod request {
    use std::cell::Cell;
    use std::ffi::{CStr, c_ulong};
    use std::marker::PhantomData;

    use libc::Ioctl;

    use crate::sys::PerfEventAttr;

    /// A request with a pointer to an `A`, which the kernel reads; it writes to a `Cell`.
    pub(super) struct Pointing<A: ?Sized> {
        pub(super) number: Ioctl,
        argument: PhantomData<A>,
    }

    const fn pointing<A: ?Sized>(number: c_ulong) -> Pointing<A> {
        Pointing {
            number: number as Ioctl,
            argument: PhantomData,
        }
    }

    /// `'$'`, the perf_event ioctl type.
    const TYPE: c_ulong = 0x24 << 8;
    /// True if the direction bits are those of the older architectures.
    const OLD_BITS: bool = cfg!(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "sparc64"
    ));
    /// The direction bits of an ioctl that the kernel writes through.
    const READ: c_ulong = if OLD_BITS { 1 << 30 } else { 2 << 30 };
    /// The direction bits of an ioctl that the kernel reads through.
    const WRITE: c_ulong = if OLD_BITS { 2 << 30 } else { 1 << 30 };

    /// The bits for the size of what a pointer points to.
    const fn size<T>() -> c_ulong {
        (size_of::<T>() as c_ulong) << 16
    }

    pub(super) const ENABLE: Ioctl = TYPE as Ioctl;
    pub(super) const DISABLE: Ioctl = (TYPE | 1) as Ioctl;
    pub(super) const REFRESH: Ioctl = (TYPE | 2) as Ioctl;
    pub(super) const PERIOD: Pointing<u64> = pointing(WRITE | size::<u64>() | TYPE | 4);
    pub(super) const SET_OUTPUT: Ioctl = (TYPE | 5) as Ioctl;
    /// The size field is that of a pointer.
    pub(super) const SET_FILTER: Pointing<CStr> = pointing(WRITE | size::<usize>() | TYPE | 6);
    /// The size field is that of a pointer.
    pub(super) const ID: Pointing<Cell<u64>> = pointing(READ | size::<usize>() | TYPE | 7);
    pub(super) const SET_BPF: Ioctl = (WRITE | size::<u32>() | TYPE | 8) as Ioctl;
    pub(super) const PAUSE_OUTPUT: Ioctl = (WRITE | size::<u32>() | TYPE | 9) as Ioctl;
    /// The size field is that of a pointer.
    pub(super) const MODIFY_ATTRIBUTES: Pointing<PerfEventAttr> =
        pointing(WRITE | size::<usize>() | TYPE | 11);
    /// Of any descriptor: whether it sends signals.
    pub(super) const ASYNC: Pointing<i32> = pointing(libc::FIOASYNC as c_ulong);
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
    #[inline(always)]
    pub(crate) fn read(&self, words: &mut [u64]) -> Result<usize, i32> {
        again(|| {
            let returned = self.read_once(read_call::memory(words));
            usize::try_from(returned).map_err(|_| -returned as i32)
        })
    }

    /// Reads the counter or its group into `words` once; true if the kernel filled them.
    #[inline(always)]
    pub(crate) fn fills(&self, words: &mut [u64]) -> bool {
        self.read_once(read_call::memory(words)) == size_of_val(words) as isize
    }

    /// Returns the words that the counter has, if a single call reads all of them.
    #[inline(always)]
    pub(crate) fn words<const N: usize>(&self) -> Option<[u64; N]> {
        let mut words = [MaybeUninit::uninit(); N];
        if self.read_once(&mut words) != size_of_val(&words) as isize {
            return None;
        }
        // SAFETY: the kernel has filled all of them.
        Some(words.map(|word| unsafe { word.assume_init() }))
    }

    #[inline(always)]
    fn read_once(&self, words: &mut [MaybeUninit<u64>]) -> isize {
        read_call::read(self.as_fd(), words, &self.leaves_returns)
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
        let id = Cell::new(0);
        self.ioctl_at(&request::ID, &id)?;
        Ok(id.get())
    }

    /// Starts the counter for this many overflows more, after which the kernel stops it.
    pub(crate) fn refresh(&self, overflows: i32) -> Result<(), i32> {
        self.ioctl_with(request::REFRESH, overflows)
    }

    /// Sets the sampling period, or the frequency of a counter that has one.
    pub(crate) fn set_period(&self, period: u64) -> Result<(), i32> {
        self.ioctl_at(&request::PERIOD, &period)
    }

    /// Counts only where this condition on the tracepoint's fields holds.
    pub(crate) fn set_filter(&self, condition: &CStr) -> Result<(), i32> {
        self.ioctl_at(&request::SET_FILTER, condition)
    }

    /// Runs a BPF program whenever the event occurs.
    pub(crate) fn set_bpf(&self, program: BorrowedFd<'_>) -> Result<(), i32> {
        self.ioctl_with(request::SET_BPF, program.as_raw_fd())
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
        self.ioctl_at(&request::MODIFY_ATTRIBUTES, attr)
    }

    /// Has a signal sent to a thread whenever the counter's ring becomes readable, and when
    /// [`refresh`](Self::refresh) has run out (fcntl(2), `F_SETOWN_EX`, `F_SETSIG`; ioctl(2), `FIOASYNC`).
    pub(crate) fn signal_thread(&self, tid: i32, signal: i32) -> Result<(), i32> {
        let owner = owner::OwnerEx {
            kind: owner::THREAD,
            id: tid,
        };
        // SAFETY: the kernel reads an f_owner_ex through the pointer, which is to a live local; the
        // other command takes a number.
        let set = unsafe {
            libc::fcntl(self.raw(), owner::SET_OWNER, &raw const owner) >= 0
                && libc::fcntl(self.raw(), owner::SET_SIGNAL, signal) >= 0
        };
        if !set {
            return Err(last_errno());
        }
        self.ioctl_at(&request::ASYNC, &1)
    }

    /// Sends signals no longer.
    pub(crate) fn stop_signals(&self) -> Result<(), i32> {
        self.ioctl_at(&request::ASYNC, &0)
    }

    fn ioctl(&self, request: libc::Ioctl) -> Result<(), i32> {
        // No flags, so this counter and not its group.
        self.ioctl_with(request, 0)
    }

    fn ioctl_with(&self, request: libc::Ioctl, argument: impl Into<c_long>) -> Result<(), i32> {
        let argument = argument.into();
        again(|| {
            // SAFETY: these requests take an integer argument and touch no memory of ours.
            let rc = unsafe { libc::ioctl(self.raw(), request, argument) };
            if rc < 0 { Err(last_errno()) } else { Ok(()) }
        })
    }

    /// Makes a request whose argument is a pointer.
    fn ioctl_at<A: ?Sized>(&self, request: &Pointing<A>, argument: &A) -> Result<(), i32> {
        let argument = std::ptr::from_ref(argument).cast::<c_void>();
        again(|| {
            // SAFETY: the kernel reads an `A` through the pointer, or writes one where it is a Cell, by
            // the declaration of the request; the argument is a live one.
            let rc = unsafe { libc::ioctl(self.raw(), request.number, argument) };
            if rc < 0 { Err(last_errno()) } else { Ok(()) }
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
        assert_eq!(request::PERIOD.number, 0x4008_2404);
        assert_eq!(request::SET_OUTPUT, 0x2405);
        assert_eq!(request::ID.number, 0x8008_2407);
        assert_eq!(request::PAUSE_OUTPUT, 0x4004_2409);
        assert_eq!(request::MODIFY_ATTRIBUTES.number, 0x4008_240b);
        assert_eq!(request::SET_FILTER.number, 0x4008_2406);
        assert_eq!(request::SET_BPF, 0x4004_2408);
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
