//! The transport to a pctr(4) driver, real or simulated.

use std::fmt;

use quipu_hal::Result;

use crate::abi::MAX_COUNTERS;

/// A device that speaks pctr(4)'s ioctls, on the CPU of the calling thread.
///
/// It passes requests on without interpreting them. [`NodeDevice`](crate::NodeDevice) is the
/// real one, [`simulation::SimDevice`](crate::simulation::SimDevice) the simulated one.
///
/// ```
/// use quipu_pctr::abi::{PCIOCRD, Status};
/// use quipu_pctr::simulation::{Era, Processor, SimMachine};
/// use quipu_pctr::{PctrDevice, abi};
///
/// let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
/// let mut bytes = vec![0; abi::argument_size(PCIOCRD)];
/// machine.open().ioctl(PCIOCRD, &mut bytes).expect("a status");
/// let status = Status::from_bytes(abi::Layout::Current, &bytes).expect("as many bytes");
/// assert_eq!(status.functions, [0; 4]);
/// ```
pub trait PctrDevice: Send + Sync + 'static {
    /// Issues an ioctl. `argument` is as long as the word says
    /// ([`abi::argument_size`](crate::abi::argument_size)); one of another length is `EINVAL`.
    ///
    /// # Errors
    /// The driver's errno.
    fn ioctl(&self, word: u32, argument: &mut [u8]) -> Result<(), Errno>;

    /// Returns the CPU that the calling thread is on, by its APIC id.
    ///
    /// # Errors
    /// When the CPU has no CPUID instruction.
    fn cpu(&self) -> Result<u32>;

    /// Returns true if functions can be set, that is, if it is open for writing.
    fn is_writable(&self) -> bool;

    /// Opens the device again, for reading only.
    ///
    /// # Errors
    /// When it cannot be opened again.
    fn reader(&self) -> Result<Self>
    where
        Self: Sized;

    /// Returns the known properties of the driver.
    fn driver(&self) -> Driver;

    /// Returns vendor and family of the CPUs, as CPUID has them; `None` if there is no CPUID. Functions
    /// of another CPU are not set: the driver may know less of this one than it thinks.
    fn identity(&self) -> Option<(String, u16)>;

    /// Returns the number of CPUs that threads run on.
    fn cpus_online(&self) -> usize;

    /// Calls `visit` on one CPU after the other, since only the CPU that a thread is on can be read, until it
    /// returns true. It gives up on a CPU that no thread gets to within some seconds.
    fn visit_cpus(&self, visit: &(dyn Fn() -> bool + Sync));

    /// Claims a counter among the processes that count with Quipu, or the [witness on one](witness_on); the claim ends
    /// with the process at the latest.
    ///
    /// # Errors
    /// [`Claimed`] if another process has it.
    fn claim(&self, counter: u8) -> Result<(), Claimed>;

    /// Gives up a claim.
    fn unclaim(&self, counter: u8);

    /// Returns the claim of another process to a counter, if there is one.
    fn claimed(&self, counter: u8) -> Option<Claimed>;

    /// Reads a counter of this CPU in user mode, by `rdpmc`. It is only called where the kernel has
    /// allowed that; elsewhere the instruction kills the process.
    fn rdpmc(&self, counter: u8) -> u64;

    /// Reads the time stamp counter of this CPU in user mode, by `rdtsc`.
    fn rdtsc(&self) -> u64;
}

/// Returns the number by which a process [claims](PctrDevice::claim) that what is set on a counter is a witness of its own:
/// another process that counts with Quipu may set it.
pub const fn witness_on(counter: usize) -> u8 {
    (MAX_COUNTERS + counter) as u8
}

/// An error number of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(
    /// The number; those pctr(4) uses are the same on OpenBSD and Linux.
    pub i32,
);

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "errno {}", self.0)
    }
}

/// The claim of another process to a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claimed {
    /// The process, if the system reports it.
    pub pid: Option<u32>,
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid} counts with pctr(4)"),
            None => f.write_str("another process counts with pctr(4)"),
        }
    }
}

/// Properties of a driver that it does not report itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Driver {
    /// The machine the kernel is for, which decides how many bits of a counter it shows.
    pub arch: Arch,
    /// The CPUs on which a function is set.
    pub scope: SetScope,
}

impl Driver {
    /// Creates the properties of a driver.
    pub const fn new(arch: Arch, scope: SetScope) -> Self {
        Self { arch, scope }
    }
}

/// The machine a kernel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arch {
    /// 32 bits: counters are cut off to 40 bits (`rdpmc` of `i386/include/pctr.h`).
    I386,
    /// 64 bits: counters are shown in the hardware's width.
    Amd64,
}

impl Arch {
    /// Returns the number of bits that a kernel shows of a counter of this width.
    pub const fn visible_width(self, hardware: u8) -> u8 {
        match self {
            Self::I386 if hardware > 40 => 40,
            _ => hardware,
        }
    }
}

/// The CPUs on which `PCIOCSn` sets a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SetScope {
    /// On the CPU that executes the ioctl: i386, and amd64 before 2019. It is also what is assumed
    /// of a driver that is not known.
    ThisCpu,
    /// On every CPU, and `rdpmc` is allowed on every CPU from then on: amd64 since 2019. Setting the
    /// word that is set already does nothing.
    AllCpus,
}
