//! The way to the registers: one register of one CPU at a time.

#[cfg(any(target_os = "freebsd", target_os = "dragonfly", test))]
mod cpuctl;
mod cpuid;
mod elsewhere;
mod files;
mod linux;
pub(crate) mod refusal;

pub use elsewhere::NoMsr;
pub use linux::LinuxMsr;

use quipu_hal::Result;

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
/// An access takes place on the CPU it names, whichever CPU the caller is on. A bus does as it is
/// told; what may be written is for [`MsrPmu`](crate::MsrPmu) to know, which writes only what its
/// allow-list has.
///
/// Refusals mean the same on every bus: [`UnsupportedFeature`](quipu_hal::ErrorKind::UnsupportedFeature)
/// where the CPU refused the register or the value, [`NoPermission`](quipu_hal::ErrorKind::NoPermission)
/// where the system did, [`NoSuchTarget`](quipu_hal::ErrorKind::NoSuchTarget) where there is no such
/// CPU, [`NoSuchDevice`](quipu_hal::ErrorKind::NoSuchDevice) where there is no driver.
pub trait MsrBus: Send + Sync + 'static {
    /// The CPUs whose registers can be reached, in ascending order.
    fn cpus(&self) -> &[u32];

    /// The CPU the calling thread is on.
    ///
    /// # Errors
    /// When the system does not say.
    fn current_cpu(&self) -> Result<u32>;

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

    /// The CPUID leaf (eax, ebx, ecx, edx); zeros where there is none.
    ///
    /// # Errors
    /// Where the CPU is not an x86.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]>;

    /// Makes a CPU execute something in kernel mode, for a counter to count.
    ///
    /// # Errors
    /// As the trait says.
    fn exercise(&self, cpu: u32) -> Result<()> {
        // Each read is an interrupt on that CPU.
        (0..64).try_for_each(|_| self.read(cpu, address::TIME_STAMP).map(drop))
    }

    /// Who probably enabled a counter that was found enabled, and what to do about it.
    fn suspect(&self) -> Suspect {
        Suspect {
            who: "another program that writes counter registers".into(),
            remedy: "end that program".into(),
        }
    }

    /// Something that is the same until the machine starts anew. Nothing where the directory of the
    /// [journal](crate::Options::journal) is emptied at every start anyway.
    fn boot(&self) -> Option<String> {
        None
    }
}

/// Who probably has a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// In words that complete "probably ...".
    pub who: String,
    /// What a person can do about it.
    pub remedy: String,
}
