//! The error number of a system call.

/// Returns the error number of the system call that just failed on this thread. nix's `Errno` makes 0 of those without a name, such as
/// the 524 (`ENOTSUPP`) of some drivers.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}
