//! The system calls that take an `unsafe` block: nix has no function for them, or none that fits.

use std::fs::File;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

/// Takes the lock of a file that no other process has (flock(2), `LOCK_EX | LOCK_NB`). It ends when the last descriptor of
/// the open file is closed: nix's `Flock` would end it when a forked process drops its copy.
pub(crate) fn try_lock(file: &File) -> Result<(), Errno> {
    // SAFETY: the arguments are numbers, and the descriptor is open as long as `file` is borrowed.
    let status = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    Errno::result(status).map(drop)
}

/// Gives the calling thread the lowest of the real-time priorities (rtprio_thread(2)), above those of any thread that
/// shares its CPU's time. Without the privilege it stays what it is, and waits longer at times.
#[cfg(target_os = "freebsd")]
pub(crate) fn preempt_others() {
    let mut lowest = libc::rtprio {
        type_: libc::RTP_PRIO_REALTIME,
        prio: libc::RTP_PRIO_MAX,
    };
    // SAFETY: 0 is the calling thread; the struct is read for as long as the call takes.
    let _ = unsafe { libc::rtprio_thread(libc::RTP_SET, 0, &raw mut lowest) };
}

/// Returns an integer of the kernel's (sysctl(3)). The program sysctl(8) would be a child process, whose times and page
/// faults are those of this process's children.
#[cfg(any(target_os = "freebsd", target_os = "dragonfly"))]
pub(crate) fn setting(name: &std::ffi::CStr) -> Option<i32> {
    let (mut value, mut size) = (0_i32, size_of::<i32>());
    let room = (&raw mut value).cast();
    // SAFETY: the name ends with a NUL, and no more than `size` bytes are written to `value`; no new value is given.
    let status =
        unsafe { libc::sysctlbyname(name.as_ptr(), room, &raw mut size, std::ptr::null(), 0) };
    (status == 0 && size == size_of::<i32>()).then_some(value)
}
