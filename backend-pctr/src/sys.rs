//! The system calls that take an `unsafe` block: nix has no function for them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;

use crate::abi;

/// Calls ioctl(2) with a word of the driver's and its argument.
///
/// # Errors
/// The errno; `EINVAL` if the argument does not have the size that the word declares.
pub(crate) fn ioctl(node: &File, word: u32, argument: &mut [u8]) -> Result<(), Errno> {
    if argument.len() != abi::argument_size(word) {
        return Err(Errno::EINVAL);
    }
    // The request is unsigned on the BSDs and on glibc, and signed on musl: the bits are the same.
    #[allow(
        clippy::cast_lossless,
        reason = "the type differs from system to system"
    )]
    let request = word as _;
    // SAFETY: a BSD ioctl word declares the size of its argument, and `argument` has just that many bytes,
    // which the kernel may read and write.
    let status = unsafe { libc::ioctl(node.as_raw_fd(), request, argument.as_mut_ptr()) };
    Errno::result(status).map(drop)
}

/// A kind of lock of fcntl(2): its constants are ints on some systems, and the field is a short.
pub(crate) type LockKind = libc::c_short;
pub(crate) const READ_LOCK: LockKind = libc::F_RDLCK as _;
pub(crate) const WRITE_LOCK: LockKind = libc::F_WRLCK as _;
pub(crate) const UNLOCKED: LockKind = libc::F_UNLCK as _;

/// Returns a lock of one byte of a file, for fcntl(2).
pub(crate) fn byte_lock(byte: u8, kind: LockKind) -> libc::flock {
    // SAFETY: its fields are numbers, so all zeros are a value of it.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte.into();
    lock.l_len = 1;
    lock
}

/// Returns the nice value of this process (getpriority(2)).
///
/// # Errors
/// The system's refusal.
pub(crate) fn nice_value() -> io::Result<i32> {
    // -1 is a nice value too.
    Errno::clear();
    // SAFETY: the arguments are numbers; 0 is the calling process.
    let value = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    match Errno::last_raw() {
        0 => Ok(value),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Sets the nice value of this process (setpriority(2)).
///
/// # Errors
/// The system's refusal.
pub(crate) fn set_nice_value(value: i32) -> io::Result<()> {
    // SAFETY: the arguments are numbers; 0 is the calling process.
    let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) };
    Errno::result(status)?;
    Ok(())
}
