//! System calls that refer to no counter.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::sched::sched_getcpu;
use nix::sys::prctl::{task_perf_events_disable, task_perf_events_enable};
use nix::unistd::{SysconfVar, sysconf};

use super::errno::last_errno;

/// Returns the CPU that the calling thread runs on.
pub(crate) fn current_cpu() -> u32 {
    // The kernel numbers CPUs with an unsigned int. Where the call is forbidden, it is a number that it refuses.
    sched_getcpu().map_or(u32::MAX, |cpu| cpu as u32)
}

/// Returns the size of a page of memory.
pub(crate) fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
            let size = size.and_then(|size| usize::try_from(size).ok());
            let size = size.expect("Linux has a page size");
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        known => known,
    }
}

/// Starts or stops every counter that the calling thread has created (prctl(2), `PR_TASK_PERF_EVENTS_ENABLE`).
pub(crate) fn set_own_counters(count: bool) -> Result<(), i32> {
    let done = match count {
        true => task_perf_events_enable(),
        false => task_perf_events_disable(),
    };
    done.map_err(|_| last_errno())
}

/// Returns true if this thread may read the CPU's cycle counter: `PR_SET_TSC` of prctl(2) takes it away.
/// Architectures without that setting always allow it.
pub(crate) fn has_time_stamps() -> bool {
    let mut setting: libc::c_int = 0;
    // SAFETY: the kernel writes an int to the address, which is that of a local.
    let done = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut setting) };
    done != 0 || setting != libc::PR_TSC_SIGSEGV
}

/// Fills room with the next entries of a directory (`struct linux_dirent64`, getdents64(2)); returns the number of bytes. The
/// functions of the C library and of the standard library allocate.
pub(crate) fn directory_entries(dir: &File, room: &mut [u8]) -> nix::Result<usize> {
    let (fd, start, length) = (dir.as_raw_fd(), room.as_mut_ptr(), room.len());
    // SAFETY: the kernel writes as many bytes as `room` has at most; any are valid.
    let filled = unsafe { libc::syscall(libc::SYS_getdents64, fd, start, length) };
    // It is not above the length.
    Errno::result(filled).map(|filled| filled as usize)
}

/// Fills room with the target of a link in a directory (readlinkat(2)); returns the number of bytes. nix's function allocates.
pub(crate) fn link_target(dir: &File, name: &CStr, room: &mut [u8]) -> nix::Result<usize> {
    let (fd, start, length) = (dir.as_raw_fd(), room.as_mut_ptr().cast(), room.len());
    // SAFETY: the name ends with a NUL; the kernel writes as many bytes as `room` has at most; any are valid.
    let filled = unsafe { libc::readlinkat(fd, name.as_ptr(), start, length) };
    // It is not above the length.
    Errno::result(filled).map(|filled| filled as usize)
}
