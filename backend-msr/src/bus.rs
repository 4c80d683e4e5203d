//! Access to the registers: one register of one CPU at a time.

#[cfg(any(target_os = "freebsd", target_os = "dragonfly", test))]
mod cpuctl;
mod elsewhere;
pub(crate) mod errors;
mod files;
mod linux;

pub use elsewhere::NoMsr;
pub use linux::LinuxMsr;

use quipu_hal::{Error, ErrorKind, Result};

use crate::address;

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        /// The bus of the system this is built for.
        pub type SystemMsr = LinuxMsr;
    } else if #[cfg(any(target_os = "freebsd", target_os = "dragonfly"))] {
        pub use cpuctl::Cpuctl;
        /// The bus of the system this is built for.
        pub type SystemMsr = Cpuctl;
    } else {
        /// The bus of the system this is built for: it has none.
        pub type SystemMsr = NoMsr;
    }
}

/// Reads and writes model-specific registers.
///
/// An access takes place on the CPU it names, whichever CPU the caller is on. A bus checks
/// nothing: [`MsrPmu`](crate::MsrPmu) writes only the registers and bits of its allow-list.
///
/// Refusals mean the same on every bus: [`UnsupportedFeature`](quipu_hal::ErrorKind::UnsupportedFeature)
/// where the CPU refused the register or the value, [`NoPermission`](quipu_hal::ErrorKind::NoPermission)
/// where the system did, [`NoSuchTarget`](quipu_hal::ErrorKind::NoSuchTarget) where there is no such
/// CPU, [`NoSuchDevice`](quipu_hal::ErrorKind::NoSuchDevice) where there is no driver.
///
/// ```
/// use quipu_msr::MsrBus;
/// use quipu_msr::sim::{Generation, SimulatedMsrs};
///
/// /// Returns the time stamp counter of every CPU.
/// fn time_stamps(bus: &impl MsrBus) -> quipu_hal::Result<Vec<u64>> {
///     bus.cpus().iter().map(|&cpu| bus.read(cpu, 0x10)).collect()
/// }
///
/// let times = time_stamps(&SimulatedMsrs::new(Generation::P6, 2))?;
/// assert_eq!(times.len(), 2);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub trait MsrBus: Send + Sync + 'static {
    /// Returns the CPUs whose registers can be accessed, in ascending order.
    fn cpus(&self) -> &[u32];

    /// Returns the CPU that the calling thread is on.
    ///
    /// # Errors
    /// When the system does not report it.
    fn current_cpu(&self) -> Result<u32>;

    /// Keeps the calling thread on a CPU and returns true, where an access from another CPU waits until that one
    /// is free for the thread. By default it does nothing and returns false.
    fn pin(&self, cpu: u32) -> bool {
        let _ = cpu;
        false
    }

    /// Reads a register. It allocates nothing unless it fails.
    ///
    /// # Errors
    /// As the trait says.
    fn read(&self, cpu: u32, address: u32) -> Result<u64>;

    /// Writes a register.
    ///
    /// # Errors
    /// As the trait says.
    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()>;

    /// Returns a CPUID leaf (eax, ebx, ecx, edx); zeros if there is none.
    ///
    /// # Errors
    /// When the CPU is not an x86.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]>;

    /// Makes a CPU execute kernel code, for a counter to count.
    ///
    /// # Errors
    /// As the trait says.
    fn exercise(&self, cpu: u32) -> Result<()> {
        // Each read is an interrupt on that CPU.
        (0..64).try_for_each(|_| self.read(cpu, address::TIME_STAMP).map(drop))
    }

    /// Returns the likely owner of a counter that was found enabled, and the remedy.
    fn likely_owner(&self) -> LikelyOwner {
        LikelyOwner::new(
            "another program that writes counter registers",
            "end that program",
        )
    }

    /// Returns an id that changes with every boot, or `None` if the directory of the
    /// [journal](crate::Options::journal) is emptied at every boot anyway.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// The program that probably uses a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LikelyOwner {
    /// Its name, to complete "probably by ...".
    pub name: String,
    /// A way to free the counter, for the user.
    pub remedy: String,
}

impl LikelyOwner {
    /// Creates an owner of a name, and a way to free its counters.
    pub fn new(name: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            remedy: remedy.into(),
        }
    }
}

cfg_if::cfg_if! {
    if #[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))] {
        /// Returns the CPU that the calling thread is on.
        fn current_cpu() -> Result<u32> {
            // CPU numbers have fewer than 32 bits.
            nix::sched::sched_getcpu().map(|cpu| cpu as u32).map_err(|errno| {
                Error::new(ErrorKind::Os, "find out which CPU this thread is on")
                    .with_io_error(&errno.into())
            })
        }
    } else {
        /// Refuses: this system does not report it.
        fn current_cpu() -> Result<u32> {
            let attempted = "find out which CPU this thread is on";
            Err(Error::new(ErrorKind::UnsupportedFeature, attempted))
        }
    }
}

/// Returns a leaf of the CPU that the calling thread is on; zeros beyond the highest leaf.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn cpuid(leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
    use raw_cpuid::native_cpuid::cpuid_count;

    if leaf > cpuid_count(leaf & 0x8000_0000, 0).eax {
        return Ok([0; 4]);
    }
    let found = cpuid_count(leaf, subleaf);
    Ok([found.eax, found.ebx, found.ecx, found.edx])
}

/// Refuses: other CPUs have no such instruction, and no model-specific registers.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn cpuid(_leaf: u32, _subleaf: u32) -> Result<[u32; 4]> {
    Err(elsewhere::not_here())
}
