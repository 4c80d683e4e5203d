//! The real device: a node opened with open(2) and driven with ioctl(2).

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use quipu_hal::{Error, ErrorKind, Result};

use crate::control::call_error;
use crate::device::{Arch, Claimed, Driver, Errno, PctrDevice, SetScope};
use crate::hazard::{OPEN_ANYWAY, hazard};
use crate::instructions;
use crate::locks::Locks;
use crate::{sweep, sys};

/// The path of the device on OpenBSD.
pub const DEFAULT_PATH: &str = "/dev/pctr";

/// A device node, on OpenBSD [`/dev/pctr`](DEFAULT_PATH).
pub struct NodeDevice {
    node: File,
    path: PathBuf,
    writable: bool,
    driver: Driver,
}

impl NodeDevice {
    /// Opens a node for reading and writing, or for reading only where writing is not permitted.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when there is no such node or no driver behind it, or when
    /// reading it may stop the kernel on this CPU ([`OPEN_ANYWAY`](crate::OPEN_ANYWAY)),
    /// [`NoPermission`](ErrorKind::NoPermission) when it cannot even be read.
    pub fn open(path: &Path) -> Result<Self> {
        match Self::open_as(path, true) {
            Err(e) if e.kind() == ErrorKind::NoPermission => Self::open_read_only(path),
            opened => opened,
        }
    }

    /// Opens a node for reading only: functions can then not be set.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: &Path) -> Result<Self> {
        Self::open_as(path, false)
    }

    /// Returns the path that it was opened under.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_as(path: &Path, writable: bool) -> Result<Self> {
        refuse_hazard()?;
        let opened = OpenOptions::new().read(true).write(writable).open(path);
        let node = opened.map_err(|e| open_error(format!("open {}", path.display()), &e))?;
        Ok(Self {
            node,
            path: path.to_owned(),
            writable,
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
        sys::ioctl(&self.node, word, argument).map_err(|errno| Errno(errno as i32))
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

    fn identity(&self) -> Option<(String, u16)> {
        instructions::cpu_facts().map(|cpu| (cpu.vendor, cpu.family))
    }

    fn cpus_online(&self) -> usize {
        cpus_online()
    }

    fn visit_cpus(&self, visit: &(dyn Fn() -> bool + Sync)) {
        sweep::visit_cpus(cpus_online(), || Locks::of(&self.node).take_turn(), visit);
    }

    fn claim(&self, counter: u8) -> Result<(), Claimed> {
        Locks::of(&self.node).take(counter)
    }

    fn unclaim(&self, counter: u8) {
        Locks::of(&self.node).release(counter);
    }

    fn claimed(&self, counter: u8) -> Option<Claimed> {
        Locks::of(&self.node).owner(counter)
    }

    fn rdpmc(&self, counter: u8) -> u64 {
        instructions::rdpmc(counter)
    }

    fn rdtsc(&self) -> u64 {
        instructions::rdtsc()
    }
}

/// Returns the number of CPUs that threads run on; 1 if the system does not report it.
pub(crate) fn cpus_online() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(crate) fn open_error(attempted: String, e: &io::Error) -> Error {
    let Some(errno) = e.raw_os_error() else {
        // The one argument that the standard library does not pass on.
        return Error::new(ErrorKind::InvalidConfiguration, attempted)
            .with_reason("the path contains a zero byte");
    };
    let error = call_error(attempted, Errno(errno));
    match errno {
        libc::ENOENT | libc::ENOTDIR => error.with_reason("there is no such node"),
        libc::ENXIO | libc::ENODEV => error.with_reason("the kernel has no driver for this node"),
        libc::EACCES | libc::EPERM => error
            .with_reason("this user may not read the node")
            .with_hint("run it as a user who may; on OpenBSD its mode is 0644"),
        _ => error,
    }
}

/// Refuses a device that must not be opened on this CPU ([`hazard`]). Elsewhere than on OpenBSD there is no such
/// driver.
pub(crate) fn refuse_hazard() -> Result<()> {
    let cpu = instructions::cpu_facts().filter(|_| cfg!(target_os = "openbsd"));
    let forced = quipu_environment::variable(OPEN_ANYWAY);
    match cpu.and_then(|cpu| hazard(&cpu, forced.as_deref())) {
        Some(refusal) => Err(refusal),
        None => Ok(()),
    }
}

/// Returns the driver of the running kernel, as far as it is known.
pub(crate) fn this_driver() -> Driver {
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
            let system = nix::sys::utsname::uname().ok();
            let release = system.and_then(|system| parse_release(system.release().to_str()?));
            match release {
                Some(release) if release >= (6, 6) => SetScope::AllCpus,
                _ => SetScope::ThisCpu,
            }
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
        let denied = io::Error::from_raw_os_error(libc::EACCES);
        let denied = open_error("open /dev/pctr".to_owned(), &denied);
        assert_eq!(denied.kind(), ErrorKind::NoPermission);
        assert!(denied.to_string().contains("may not read") && denied.hint().is_some());
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
