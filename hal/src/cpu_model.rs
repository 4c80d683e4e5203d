//! Which CPU this is, as far as its counters are concerned.

/// A CPU: how it identifies itself, and what counters it has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CpuModel {
    /// Identity of the CPU.
    pub identity: CpuIdentity,
    /// The core type on a hybrid CPU, in the words of its vendor: `core`, `atom`.
    pub core_type: Option<String>,
    /// The scheme its events are encoded in.
    pub scheme: Scheme,
    /// The counters of one CPU.
    pub counters: Vec<CounterBank>,
}

impl CpuModel {
    /// Returns a CPU that is not hybrid.
    pub const fn new(identity: CpuIdentity, scheme: Scheme, counters: Vec<CounterBank>) -> Self {
        Self {
            identity,
            core_type: None,
            scheme,
            counters,
        }
    }

    /// Sets the core type of a hybrid CPU.
    #[must_use]
    pub fn with_core_type(mut self, core_type: Option<String>) -> Self {
        self.core_type = core_type;
        self
    }
}

/// Identity of a CPU, as it reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuIdentity {
    /// By CPUID leaf 0 and 1, with the extended family and model added in.
    X86 {
        /// The vendor string: `GenuineIntel`, `AuthenticAMD`.
        vendor: String,
        /// Family.
        family: u16,
        /// Model.
        model: u16,
        /// Stepping.
        stepping: u8,
    },
    /// By the ARM main id register.
    Arm {
        /// `MIDR_EL1`.
        midr: u64,
    },
    /// By other means: those of further architectures, or of an event map outside of this workspace.
    Other {
        /// The means: `riscv`, `hw.cpufamily`.
        scheme: &'static str,
        /// The identification itself, as text: `0x489-0x8000000000000007-0x0`.
        id: String,
    },
}

/// The scheme in which a CPU's events are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// Pentium: two 9-bit functions in one CESR.
    P5,
    /// Pentium Pro to Pentium III and their like: two select words, one enable.
    P6,
    /// Intel architectural performance monitoring, version 1 and later.
    IntelArchitectural,
    /// AMD K7 and K8: four counters, 8-bit events.
    AmdK7,
    /// AMD family 10h and later: 12-bit events.
    Amd10h,
    /// ARMv8 PMUv3.
    Armv8,
    /// The `config` word of `perf_event_attr` (perf_event_open(2), type `PERF_TYPE_RAW`): what Linux's driver of the
    /// PMU takes, on architectures whose counters Linux alone reaches.
    Perf,
    /// The simulated PMU.
    Simulated,
    /// A scheme that this crate does not know, by the name that [`Encoding::Other`](crate::Encoding::Other)
    /// has for it.
    Other(&'static str),
}

/// Counters of one class.
///
/// Exhaustive: CPUID reports these of each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterBank {
    /// Their class.
    pub class: SlotClass,
    /// Their number; they are numbered from 0.
    pub number: u8,
    /// Their width in bits.
    pub width: u8,
}

/// Class of a physical counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SlotClass {
    /// Any event, subject to the event's own constraints.
    General,
    /// One event each.
    Fixed,
    /// A counter that always counts, and always the same: the time stamp counter. Any number of events can be on it.
    FreeRunning,
}
