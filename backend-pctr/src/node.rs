//! The real device: a node opened with open(2) and driven with ioctl(2).

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use quipu_hal::{Error, ErrorKind, Result};

use crate::abi;
use crate::device::{Arch, Driver, Errno, PctrDevice, SetScope};
use crate::instructions;

/// Where OpenBSD has the device.
pub const DEFAULT_PATH: &str = "/dev/pctr";

/// A device node, on OpenBSD [`/dev/pctr`](DEFAULT_PATH).
pub struct NodeDevice {
    node: OwnedFd,
    path: PathBuf,
    writable: bool,
    driver: Driver,
}

impl NodeDevice {
    /// Opens a node for reading and writing, or for reading only where writing is not permitted.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when there is no such node or no driver behind it,
    /// [`NoPermission`](ErrorKind::NoPermission) when it cannot even be read.
    pub fn open(path: &Path) -> Result<Self> {
        match Self::open_as(path, libc::O_RDWR) {
            Err(e) if e.kind() == ErrorKind::NoPermission => Self::open_read_only(path),
            opened => opened,
        }
    }

    /// Opens a node for reading only: functions can then not be set.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_as(path, libc::O_RDONLY)
    }

    /// The path it was opened under.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_as(path: &Path, mode: libc::c_int) -> Result<Self> {
        let attempted = || format!("open {}", path.display());
        let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
            return Err(Error::new(ErrorKind::InvalidConfiguration, attempted())
                .with_reason("the path contains a zero byte"));
        };
        // SAFETY: `name` is a string that ends with a zero byte and lives through the call.
        let fd = unsafe { libc::open(name.as_ptr(), mode | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(open_error(attempted(), last_errno()));
        }
        Ok(Self {
            // SAFETY: open(2) has just given this descriptor to nobody else.
            node: unsafe { OwnedFd::from_raw_fd(fd) },
            path: path.to_owned(),
            writable: mode != libc::O_RDONLY,
            driver: this_driver(),
        })
    }
}

impl fmt::Debug for NodeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeDevice")
            .field("path", &self.path)
            .field("writable", &self.writable)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

impl PctrDevice for NodeDevice {
    fn ioctl(&self, word: u32, argument: &mut [u8]) -> Result<(), Errno> {
        if argument.len() != abi::argument_size(word) {
            return Err(Errno(libc::EINVAL));
        }
        // The request is unsigned on the BSDs and on glibc, and signed on musl: the bits are the same.
        #[allow(
            clippy::cast_lossless,
            reason = "the type differs from system to system"
        )]
        let request = word as _;
        // SAFETY: a BSD ioctl word declares the size of its argument, and `argument` has just that
        // many bytes, which the kernel may read and write.
        let status = unsafe { libc::ioctl(self.node.as_raw_fd(), request, argument.as_mut_ptr()) };
        if status < 0 {
            return Err(last_errno());
        }
        Ok(())
    }

    fn cpu(&self) -> Result<u32> {
        instructions::apic_id()
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn reader(&self) -> Result<Self> {
        Self::open_read_only(&self.path)
    }

    fn driver(&self) -> Driver {
        self.driver
    }

    fn rdpmc(&self, counter: u8) -> u64 {
        instructions::rdpmc(counter)
    }

    fn rdtsc(&self) -> u64 {
        instructions::rdtsc()
    }
}

fn last_errno() -> Errno {
    Errno(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn open_error(attempted: String, Errno(errno): Errno) -> Error {
    let (kind, reason) = match errno {
        libc::ENOENT | libc::ENOTDIR => (ErrorKind::NoSuchDevice, Some("there is no such node")),
        libc::ENXIO | libc::ENODEV => (
            ErrorKind::NoSuchDevice,
            Some("the kernel has no driver for this node"),
        ),
        libc::EACCES | libc::EPERM => (ErrorKind::NoPermission, None),
        _ => (ErrorKind::Os, None),
    };
    let error = Error::new(kind, attempted).with_errno(errno);
    match reason {
        Some(reason) => error.with_reason(reason),
        None => error,
    }
}

/// What can be known of the driver of the running kernel.
fn this_driver() -> Driver {
    Driver {
        arch: if cfg!(target_arch = "x86_64") {
            Arch::Amd64
        } else {
            Arch::I386
        },
        scope: set_scope(),
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(target_os = "openbsd", target_arch = "x86_64"))] {
        /// Functions are set on every CPU since revision 1.9 of amd64's pctr.c, of 25 March 2019: in
        /// every kernel that calls itself 6.6 (October 2019), in 6.5 not in each of its snapshots.
        fn set_scope() -> SetScope {
            match kernel_release() {
                Some(release) if release >= (6, 6) => SetScope::AllCpus,
                _ => SetScope::ThisCpu,
            }
        }

        /// The kernel's release, `kern.osrelease` of sysctl(2).
        fn kernel_release() -> Option<(u32, u32)> {
            let name = [libc::CTL_KERN, libc::KERN_OSRELEASE];
            let mut text = [0u8; 64];
            let mut length = text.len();
            // SAFETY: the name has two parts, and the kernel writes at most `length` bytes to `text`
            // and says in `length` how many it wrote; nothing is set.
            let status = unsafe {
                libc::sysctl(
                    name.as_ptr(),
                    2,
                    text.as_mut_ptr().cast(),
                    &raw mut length,
                    std::ptr::null_mut(),
                    0,
                )
            };
            if status != 0 {
                return None;
            }
            let text = text[..length.min(text.len())].split(|byte| *byte == 0).next()?;
            parse_release(std::str::from_utf8(text).ok()?)
        }
    } else {
        /// i386 sets one CPU, and so is assumed of a driver that is not known.
        fn set_scope() -> SetScope {
            SetScope::ThisCpu
        }
    }
}

#[cfg(any(test, all(target_os = "openbsd", target_arch = "x86_64")))]
fn parse_release(text: &str) -> Option<(u32, u32)> {
    let digits = |part: &str| -> Option<u32> {
        let end = part.find(|c: char| !c.is_ascii_digit());
        part[..end.unwrap_or(part.len())].parse().ok()
    };
    let (major, rest) = text.split_once('.')?;
    Some((digits(major)?, digits(rest)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{Layout, PCIOCS};

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(parse_release("7.6"), Some((7, 6)));
        assert_eq!(parse_release("6.10-stable"), Some((6, 10)));
        assert!(parse_release("6.10") > parse_release("6.7"));
        assert!(parse_release("10.0") > parse_release("6.7"));
        for nonsense in ["", "7", "x.y", ".", "7.", "-1.2"] {
            assert_eq!(parse_release(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn what_is_no_device_is_refused_with_its_errno() {
        let missing = NodeDevice::open(Path::new("/nonexistent/pctr")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NoSuchDevice);
        assert_eq!(missing.errno(), Some(libc::ENOENT));
        let zero = NodeDevice::open(Path::new("a\0b")).unwrap_err();
        assert_eq!(zero.kind(), ErrorKind::InvalidConfiguration);

        let null = NodeDevice::open(Path::new("/dev/null")).unwrap();
        assert!(null.is_writable());
        let word = Layout::Current.read_word();
        assert_eq!(null.ioctl(word, &mut [0; 56]), Err(Errno(libc::ENOTTY)));
        // A buffer of another size never reaches the kernel.
        assert_eq!(null.ioctl(word, &mut [0; 55]), Err(Errno(libc::EINVAL)));
        assert_eq!(null.ioctl(PCIOCS[0], &mut []), Err(Errno(libc::EINVAL)));
        let null = NodeDevice::open_read_only(Path::new("/dev/null")).unwrap();
        assert!(!null.is_writable());
    }
}
