//! The bare system calls: what everything else is measured against.

use std::hint::black_box;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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

/// Counters of this thread, in one group.
pub(crate) struct Raw(Vec<OwnedFd>);

impl Raw {
    /// Opens software events of this thread by number, the first leading, not counting.
    pub(crate) fn open(events: &[u64]) -> Self {
        let mut fds: Vec<OwnedFd> = Vec::with_capacity(events.len());
        for &config in events {
            let group = if events.len() > 1 { ID_AND_GROUP } else { 0 };
            let flags = if fds.is_empty() { DISABLED } else { 0 };
            let leader = fds.first().map_or(-1, AsRawFd::as_raw_fd);
            fds.push(Self::open_one(config, group, flags, 0, leader));
        }
        Self(fds)
    }

    /// Opens a software event by number on each thread, not counting.
    pub(crate) fn attach(config: u64, threads: impl Iterator<Item = i32>) -> Self {
        let open = |thread| Self::open_one(config, 0, DISABLED, thread, -1);
        Self(threads.map(open).collect())
    }

    /// Opens a software event by number, user mode only.
    fn open_one(config: u64, format: u64, flags: u64, thread: i32, leader: i32) -> OwnedFd {
        let attr = Attr {
            type_: 1,
            size: size_of::<Attr>() as u32,
            config,
            read_format: TIMES | format,
            flags: USER_ONLY | flags,
            ..Attr::default()
        };
        // SAFETY: the attr is live and as long as its size says.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attr,
                thread,
                -1,
                leader,
                8,
            )
        };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the call succeeded, so the descriptor is new and nobody else's.
        unsafe { OwnedFd::from_raw_fd(fd as i32) }
    }

    /// Starts the group.
    pub(crate) fn enable(&self) {
        // SAFETY: the request takes an integer and touches no memory of ours.
        unsafe { libc::ioctl(self.0[0].as_raw_fd(), ENABLE, 0) };
    }

    /// Reads the group.
    #[inline]
    pub(crate) fn read(&self) {
        let mut words = [0u64; 13];
        // SAFETY: the buffer is live and as long as is said.
        let n = unsafe {
            libc::read(
                self.0[0].as_raw_fd(),
                words.as_mut_ptr().cast(),
                size_of_val(&words),
            )
        };
        assert!(n > 0);
        black_box(&words);
    }
}
