//! The bare system calls, and the bare loop over mapped pages: what everything else is measured against.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

/// `struct perf_event_attr` up to `config2` (`PERF_ATTR_SIZE_VER1`).
#[repr(C)]
#[derive(Default)]
struct Attr {
    type_: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
}

const TIMES: u64 = 1 | 2;
const ID_AND_GROUP: u64 = 4 | 8;
const DISABLED: u64 = 1;
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
const ENABLE: libc::Ioctl = 0x2400;
const GET_ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;
const CLOSE_ON_EXEC: u64 = 8;

/// Events by the kernel's numbers: type, and configurations.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Software,
    Hardware,
}

impl Kind {
    fn numbers(self) -> (u32, [u64; 5]) {
        match self {
            // task-clock, page-faults, context-switches, cpu-migrations, minor-faults
            Self::Software => (1, [1, 2, 3, 4, 5]),
            // instructions, cycles, branches, branch-misses, cache-references
            Self::Hardware => (0, [1, 0, 4, 5, 2]),
        }
    }
}

/// Counters of this thread in user mode, in one group.
pub(crate) struct Raw(Vec<OwnedFd>);

impl Raw {
    /// Opens so many events, not counting, and asks for the ids of a group, as whoever tells its members apart has to.
    pub(crate) fn open(kind: Kind, events: usize) -> Result<Self> {
        let (type_, numbers) = kind.numbers();
        let mut fds: Vec<OwnedFd> = Vec::with_capacity(events);
        for config in &numbers[..events] {
            let attr = Attr {
                type_,
                size: size_of::<Attr>() as u32,
                config: *config,
                read_format: TIMES | if events > 1 { ID_AND_GROUP } else { 0 },
                flags: USER_ONLY | if fds.is_empty() { DISABLED } else { 0 },
                ..Attr::default()
            };
            let leader = fds.first().map_or(-1, AsRawFd::as_raw_fd);
            // SAFETY: the attr is live and as long as its size says.
            let fd = unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    &raw const attr,
                    0,
                    -1,
                    leader,
                    CLOSE_ON_EXEC,
                )
            };
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            // SAFETY: the call succeeded, so the descriptor is new and has no other owner.
            fds.push(unsafe { OwnedFd::from_raw_fd(fd as i32) });
            if events > 1 {
                let mut id = 0u64;
                // SAFETY: the request writes one u64, which is live.
                unsafe { libc::ioctl(fd as i32, GET_ID, &raw mut id) };
            }
        }
        Ok(Self(fds))
    }

    /// Starts the group.
    pub(crate) fn enable(&self) {
        // SAFETY: the request takes an integer and touches no memory of ours.
        unsafe { libc::ioctl(self.0[0].as_raw_fd(), ENABLE, 0) };
    }

    /// Reads the group by one system call.
    #[inline]
    pub(crate) fn read(&self) -> [u64; 13] {
        let mut words = [0u64; 13];
        let fd = self.0[0].as_raw_fd();
        // SAFETY: the buffer is live and as long as is said.
        let n = unsafe { libc::read(fd, words.as_mut_ptr().cast(), size_of_val(&words)) };
        assert!(n > 0, "a read failed");
        words
    }

    /// Maps the page of each counter.
    pub(crate) fn map(&self) -> Result<Pages> {
        let mut pages = Pages(Vec::with_capacity(self.0.len()));
        for fd in &self.0 {
            // SAFETY: a new mapping, of memory that is nowhere else.
            let page = unsafe {
                libc::mmap(
                    ptr::null_mut(),
                    4096,
                    libc::PROT_READ,
                    libc::MAP_SHARED,
                    fd.as_raw_fd(),
                    0,
                )
            };
            if page == libc::MAP_FAILED {
                return Err(Error::last_os_error());
            }
            pages.0.extend(NonNull::new(page.cast()));
        }
        Ok(pages)
    }
}

/// The first page of each counter, as `struct perf_event_mmap_page` begins.
pub(crate) struct Pages(Vec<NonNull<Page>>);

#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only the loop of x86-64 is written here")
)]
#[repr(C)]
struct Page {
    version: u32,
    compat_version: u32,
    lock: u32,
    index: u32,
    offset: i64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    pmc_width: u16,
    time_shift: u16,
    time_mult: u32,
    time_offset: u64,
}

impl Drop for Pages {
    fn drop(&mut self) {
        for page in &self.0 {
            // SAFETY: it was mapped with this length, and is not used any more.
            unsafe { libc::munmap(page.as_ptr().cast(), 4096) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Pages {
    /// Reads all counters, with the times of the first, by the loop of `include/uapi/linux/perf_event.h`.
    ///
    /// Returns None if a counter is not on the PMU now, or may not be read.
    #[inline]
    pub(crate) fn read(&self) -> Option<([u64; 5], u64, u64)> {
        use std::arch::x86_64::_rdtsc;
        use std::ptr::read_volatile;
        use std::sync::atomic::{Ordering, compiler_fence};

        const MAY_READ: u64 = 1 << 2;
        const HAS_TIMES: u64 = 1 << 3;
        let mut values = [0; 5];
        let mut times = (0, 0);
        for (i, page) in self.0.iter().enumerate() {
            macro_rules! field {
                ($name:ident) => {
                    // SAFETY: the page is mapped, and longer than these fields.
                    unsafe { read_volatile(&raw const (*page.as_ptr()).$name) }
                };
            }
            loop {
                let lock = field!(lock);
                compiler_fence(Ordering::SeqCst);
                let capabilities = field!(capabilities);
                if i == 0 {
                    times = (field!(time_enabled), field!(time_running));
                    if capabilities & HAS_TIMES != 0 {
                        // SAFETY: the instruction reads a register.
                        let cycles = unsafe { _rdtsc() };
                        let (shift, mult) = (field!(time_shift), u64::from(field!(time_mult)));
                        let rest = cycles & ((1 << shift) - 1);
                        let since = field!(time_offset)
                            .wrapping_add((cycles >> shift).wrapping_mul(mult))
                            .wrapping_add(rest.wrapping_mul(mult) >> shift);
                        times.0 = times.0.wrapping_add(since);
                        times.1 = times.1.wrapping_add(since);
                    }
                }
                let index = field!(index);
                if capabilities & MAY_READ == 0 || index == 0 {
                    return None;
                }
                let unused = 64 - u32::from(field!(pmc_width));
                let (low, high): (u32, u32);
                // SAFETY: the kernel lets this process read the counter, says the page.
                unsafe {
                    std::arch::asm!("rdpmc", in("ecx") index - 1, out("eax") low, out("edx") high,
                        options(nomem, nostack, preserves_flags));
                }
                let bits = (u64::from(high) << 32 | u64::from(low)) << unused;
                values[i] = (field!(offset) + (bits.cast_signed() >> unused)).cast_unsigned();
                compiler_fence(Ordering::SeqCst);
                if field!(lock) == lock {
                    break;
                }
            }
        }
        Some((values, times.0, times.1))
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Pages {
    /// Returns None: the loop is written here for x86-64 alone.
    pub(crate) fn read(&self) -> Option<([u64; 5], u64, u64)> {
        None
    }
}
