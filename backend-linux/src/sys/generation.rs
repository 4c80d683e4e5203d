//! The generation of an inode: a file system gives the number of an inode again, and its generation once.

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd;

use nix::request_code_read;

/// `FS_IOC_GETVERSION` (`include/uapi/linux/fs.h`), which says `long` and means an `int` (ioctl_getversion in file systems).
const GET_VERSION: libc::Ioctl = request_code_read!(b'v', 1, size_of::<std::ffi::c_long>());

/// Returns the generation of the inode of a file, as the kernel records it with a mapping (`ino_generation` of
/// `PERF_RECORD_MMAP2`); `None` where the file system has none.
///
/// ```
/// let file = std::fs::File::open("/proc/version")?;
/// assert_eq!(quipu_linux::inode_generation(&file), None);
/// # Ok::<_, std::io::Error>(())
/// ```
pub fn inode_generation(file: &File) -> Option<u64> {
    // Room for a long, should a file system write one.
    let mut generation: [c_int; 2] = [0; 2];
    // SAFETY: the descriptor is open as long as the file is borrowed, and the kernel writes no more than a long to the pointer,
    // which has room for one.
    let outcome = unsafe { libc::ioctl(file.as_raw_fd(), GET_VERSION, generation.as_mut_ptr()) };
    (outcome == 0).then(|| u64::from(generation[0].cast_unsigned()))
}
