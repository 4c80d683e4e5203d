//! Typed calls over a device: detect its layout, read everything, set a function.

use quipu_hal::{CpuIdentity, CpuModel, Error, ErrorKind, Result};

use crate::abi::{self, Layout, MAX_COUNTERS, PCIOCS, Status};
use crate::device::{Errno, PctrDevice};

/// The remedy if a device may not be written.
pub(crate) const TO_WRITE: &str =
    "run it as a user who may write the device; on OpenBSD that is root";

/// A device whose layout is known.
#[derive(Debug)]
pub struct Control<D> {
    device: D,
    layout: Layout,
}

/// The counters that a driver reports.
///
/// Exhaustive: there are counters or there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// So many counters.
    Counters(u8),
    /// The driver supports none of this CPU.
    NoCounters,
}

impl<D: PctrDevice> Control<D> {
    /// Detects the layout of a device, by reading: the driver answers a word that it does not know with
    /// `EINVAL`, and does nothing.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when it speaks neither; else the driver's refusal.
    pub fn new(device: D) -> Result<Self> {
        for layout in [Layout::Current, Layout::Legacy] {
            match read_status(&device, layout) {
                Ok(_) => return Ok(Self { device, layout }),
                Err(Errno(libc::EINVAL | libc::ENOTTY)) => {}
                Err(errno) => return Err(call_error("read the counters", errno)),
            }
        }
        Err(Error::new(ErrorKind::NoSuchDevice, "read the counters")
            .with_reason("the device does not speak the protocol of pctr(4)"))
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the layout of the device.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Finds out the number of counters.
    ///
    /// Asked by a descriptor that is open for reading only, this sets nothing: the driver looks at
    /// the CPU and the counter's number first and then refuses with `EPERM`. By one open for
    /// writing it would set functions, and is refused.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the device is open for
    /// writing; else an errno that pctr(4) does not give.
    pub fn discover(&self) -> Result<Discovery> {
        let attempted = "find out how many counters there are";
        if self.device.is_writable() {
            return Err(Error::new(ErrorKind::InvalidConfiguration, attempted)
                .with_reason("asked by a descriptor that may write, this would set functions"));
        }
        for (counter, word) in PCIOCS.into_iter().enumerate() {
            match self.device.ioctl(word, &mut 0u32.to_le_bytes()) {
                Err(Errno(libc::EPERM)) => {}
                // The drivers of 1996 said EINVAL where later ones say ENODEV.
                Err(Errno(libc::EINVAL | libc::ENODEV)) if counter == 0 => {
                    return Ok(Discovery::NoCounters);
                }
                Err(Errno(libc::EINVAL)) => return Ok(Discovery::Counters(counter as u8)),
                Err(errno) => return Err(call_error(attempted, errno)),
                Ok(()) => {
                    return Err(Error::new(ErrorKind::NoSuchDevice, attempted).with_reason(
                        "the driver lets a reader set functions, so it is not pctr(4)",
                    ));
                }
            }
        }
        Ok(Discovery::Counters(MAX_COUNTERS as u8))
    }

    /// Reads everything on the CPU of the calling thread (`PCIOCRD`).
    ///
    /// # Errors
    /// The driver's refusal.
    pub fn read(&self) -> Result<Status> {
        read_status(&self.device, self.layout)
            .map_err(|errno| call_error("read the counters", errno))
    }

    /// Returns true if functions of a CPU model may be set here: if the device's CPU is known and of
    /// another vendor or family, the driver may write registers that it does not have.
    pub fn is_of(&self, cpu: &CpuModel) -> bool {
        match (&cpu.identity, self.device.identity()) {
            (CpuIdentity::X86 { vendor, family, .. }, Some(own)) => {
                (vendor.as_str(), *family) == (own.0.as_str(), own.1)
            }
            _ => true,
        }
    }

    /// Stops a counter, also one that the driver takes for stopped: since 2019 it remembers what it has
    /// set, and does not look at what firmware has left in a register.
    ///
    /// # Errors
    /// As [`set`](Self::set) and [`read`](Self::read).
    pub fn stop(&self, counter: u8) -> Result<()> {
        /// An event that is not enabled, so that it counts nothing.
        const NOTHING: u32 = 1;
        self.set(counter, 0)?;
        if self.read()?.functions[usize::from(counter)] != 0 {
            self.set(counter, NOTHING)?;
            self.set(counter, 0)?;
        }
        Ok(())
    }

    /// Sets the function of a counter, which starts it from zero (`PCIOCSn`); 0 stops it, unless the
    /// driver takes it for [stopped](Self::stop). The word is not checked; see
    /// [`function::check`](crate::function::check).
    ///
    /// # Errors
    /// [`NoPermission`](ErrorKind::NoPermission) when the device is not open for writing; else the
    /// driver's refusal.
    pub fn set(&self, counter: u8, word: u32) -> Result<()> {
        let attempted = || format!("set counter {counter} to {word:#x}");
        let Some(&request) = PCIOCS.get(usize::from(counter)) else {
            return Err(Error::new(ErrorKind::InvalidConfiguration, attempted())
                .with_reason("pctr(4) numbers counters from 0 to 3"));
        };
        self.device
            .ioctl(request, &mut word.to_le_bytes())
            .map_err(|errno| set_error(attempted(), errno))
    }
}

fn read_status<D: PctrDevice>(device: &D, layout: Layout) -> Result<Status, Errno> {
    let word = layout.read_word();
    let mut buffer = [0; abi::argument_size(abi::PCIOCRD)];
    let argument = &mut buffer[..abi::argument_size(word)];
    device.ioctl(word, argument)?;
    Status::from_bytes(layout, argument).ok_or(Errno(libc::EINVAL))
}

fn set_error(attempted: String, errno: Errno) -> Error {
    match errno.0 {
        libc::EPERM => Error::new(ErrorKind::NoPermission, attempted)
            .with_errno(errno.0)
            .with_reason("the device is open for reading only")
            .with_hint(TO_WRITE),
        libc::EINVAL => Error::new(ErrorKind::InvalidConfiguration, attempted)
            .with_errno(errno.0)
            .with_reason("the driver has no such counter, or refuses the function"),
        libc::ENODEV => Error::new(ErrorKind::UnsupportedEvent, attempted)
            .with_errno(errno.0)
            .with_reason("the driver knows no counters on this CPU"),
        _ => call_error(attempted, errno),
    }
}

/// Returns the error for an errno of the device.
pub(crate) fn call_error(attempted: impl Into<String>, Errno(errno): Errno) -> Error {
    let kind = match errno {
        libc::ENOENT | libc::ENOTDIR | libc::ENXIO | libc::ENODEV | libc::ENOTTY => {
            ErrorKind::NoSuchDevice
        }
        libc::EPERM | libc::EACCES => ErrorKind::NoPermission,
        _ => ErrorKind::Os,
    };
    Error::new(kind, attempted).with_errno(errno)
}
