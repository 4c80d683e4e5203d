//! An open counter: its reads and ioctls (perf_event_open(2), `include/uapi/linux/perf_event.h`).

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::last_errno;

/// `PERF_EVENT_IOC_*`. They are `_IO('$', n)` and `_IOR('$', 7, __u64 *)` in the kernel's header.
mod request {
    use std::ffi::c_ulong;

    use libc::Ioctl;

    /// `'$'`, the perf_event ioctl type.
    const TYPE: c_ulong = 0x24 << 8;
    /// The direction bits of an ioctl that the kernel writes through; they differ by architecture.
    const READ: c_ulong = if cfg!(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "sparc64"
    )) {
        1 << 30
    } else {
        2 << 30
    };

    pub(super) const ENABLE: Ioctl = TYPE as Ioctl;
    pub(super) const DISABLE: Ioctl = (TYPE | 1) as Ioctl;
    /// The size field is that of a pointer.
    pub(super) const ID: Ioctl = (READ | (size_of::<usize>() as c_ulong) << 16 | TYPE | 7) as Ioctl;
}

/// The descriptor of a counter. Dropping it closes the counter.
#[derive(Debug)]
pub(crate) struct CounterFd(OwnedFd);

impl CounterFd {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The descriptor, still owned by this counter.
    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Another descriptor of the same counter.
    #[cfg(test)]
    pub(crate) fn duplicate(&self) -> Self {
        Self(self.0.try_clone().expect("a free descriptor"))
    }

    /// Reads the counter or its group into `words`; the number of bytes the kernel wrote.
    #[inline(always)]
    pub(crate) fn read(&self, words: &mut [u64]) -> Result<usize, i32> {
        // SAFETY: `words` is writable for its whole length, and any bytes are valid u64s.
        let n = unsafe { libc::read(self.raw(), words.as_mut_ptr().cast(), size_of_val(words)) };
        usize::try_from(n).map_err(|_| last_errno())
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
        let mut id = 0u64;
        // SAFETY: the kernel writes one u64 through the pointer, which is to a live local.
        let rc = unsafe { libc::ioctl(self.raw(), request::ID, &raw mut id) };
        if rc < 0 { Err(last_errno()) } else { Ok(id) }
    }

    fn ioctl(&self, request: libc::Ioctl) -> Result<(), i32> {
        // SAFETY: these requests take an integer argument (flags: none, so this counter and not its
        // group) and touch no memory of ours.
        let rc = unsafe { libc::ioctl(self.raw(), request, 0) };
        if rc < 0 { Err(last_errno()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    fn requests_are_the_kernels_numbers() {
        assert_eq!(request::ENABLE, 0x2400);
        assert_eq!(request::DISABLE, 0x2401);
        assert_eq!(request::ID, 0x8008_2407);
    }

    /// The ioctls of something that is no counter fail, and say so.
    #[test]
    fn ioctl_error_propagates() {
        let null = std::fs::File::open("/dev/null").expect("every Linux has it");
        let fd = CounterFd::new(null.into());
        assert_eq!(fd.enable(), Err(libc::ENOTTY));
        assert_eq!(fd.disable(), Err(libc::ENOTTY));
        assert_eq!(fd.id(), Err(libc::ENOTTY));
    }
}
