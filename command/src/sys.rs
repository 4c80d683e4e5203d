//! The system calls that take an `unsafe` block: nix has no function for them.

use std::mem::MaybeUninit;

use nix::errno::Errno;

/// Calls wait4(2), which reports the resource usage too: returns the raw status and the usage, or `None` if the child
/// is still running.
pub(crate) fn wait4(pid: i32, flags: libc::c_int) -> nix::Result<Option<(i32, libc::rusage)>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live locals, which the kernel fills in.
    let waited = unsafe { libc::wait4(pid, &raw mut status, flags, usage.as_mut_ptr()) };
    if Errno::result(waited)? == 0 {
        return Ok(None);
    }
    // SAFETY: an rusage is integers only, and was zeroed before the kernel filled it in.
    Ok(Some((status, unsafe { usage.assume_init() })))
}

/// Returns true if a child has ended, and leaves it to be waited for (waitid(2)). nix has that for some systems only, and
/// takes a child that a real-time signal ended for an error.
pub(crate) fn has_ended(pid: i32) -> nix::Result<bool> {
    #[allow(
        clippy::unnecessary_fallible_conversions,
        reason = "id_t has 64 bits and a sign on FreeBSD, 32 and none elsewhere"
    )]
    let id = libc::id_t::try_from(pid).map_err(|_| Errno::ECHILD)?;
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable and as large as waitid(2) wants.
    let status = unsafe { libc::waitid(libc::P_PID, id, info.as_mut_ptr(), how) };
    match Errno::result(status) {
        Err(Errno::EINTR) => Ok(false),
        waited => {
            waited?;
            // SAFETY: it consists of integers, of which all zeros, and what the kernel writes, are values; the number is 0
            // if the child is still running.
            Ok(unsafe { info.assume_init() }.si_signo != 0)
        }
    }
}

/// Has the run-time linker bind execvp(3) and what that searches PATH with, which it does at the first call of each in
/// some thousand instructions.
#[cfg(target_os = "freebsd")]
pub(crate) fn bind_execvp() {
    let arguments = [c".".as_ptr(), std::ptr::null()];
    // SAFETY: the strings end in NUL and the list in a null pointer; the directories of PATH are not executed.
    unsafe { libc::execvp(arguments[0], arguments.as_ptr()) };
}

/// Calls pidfd_open(2), which is Linux 5.3's. The descriptor is close-on-exec.
#[cfg(target_os = "linux")]
pub(crate) fn pidfd_open(pid: i32) -> nix::Result<std::os::fd::OwnedFd> {
    use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

    // SAFETY: the arguments are numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = Errno::result(fd)?;
    // SAFETY: the call succeeded, so it is a new descriptor, which fits an int and which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
