//! The numbers of hwpmc(4) that requests are made of (`sys/pmc.h`).

/// The major versions of the module whose structures these are: 9 of FreeBSD 12 and 13, 10 of FreeBSD 14 and 15.
pub(crate) const MAJORS: [u32; 2] = [9, 10];

/// Classes of counters (`enum pmc_class`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Class(
    /// The number.
    pub u32,
);

impl Class {
    /// The counters of AMD from the K8 on.
    pub const AMD: Self = Self(2);
    /// Intel's fixed-function counters.
    pub const INTEL_FIXED: Self = Self(6);
    /// Intel's programmable counters.
    pub const INTEL: Self = Self(7);
    /// Counters of what the kernel reports, such as page faults.
    pub const SOFTWARE: Self = Self(15);
}

/// `PMC_CPU_INTEL_*` begin here; what is below is AMD's (`enum pmc_cputype`).
pub(crate) const FIRST_INTEL: u32 = 0x80;
/// `PMC_CPU_*` of other architectures begin here.
pub(crate) const FIRST_OTHER: u32 = 0x200;
/// `PMC_CPU_GENERIC`: a CPU whose counters the driver does not use.
pub(crate) const WITHOUT_COUNTERS: u32 = 0x400;

/// The counters of a core of AMD's (`AMD_CORE_NPMCS`).
pub(crate) const AMD_CORE_COUNTERS: usize = 6;

/// Capabilities (`PMC_CAP_*`).
pub(crate) const CAP_INTERRUPT: u32 = 1;
pub(crate) const CAP_USER: u32 = 1 << 1;
pub(crate) const CAP_SYSTEM: u32 = 1 << 2;
pub(crate) const CAP_EDGE: u32 = 1 << 3;
pub(crate) const CAP_THRESHOLD: u32 = 1 << 4;
pub(crate) const CAP_READ: u32 = 1 << 5;
pub(crate) const CAP_INVERT: u32 = 1 << 7;
pub(crate) const CAP_QUALIFIER: u32 = 1 << 8;
