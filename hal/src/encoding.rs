//! Encodings: the bits a backend programs for an event on a given CPU.
//!
//! Each type knows the layout of its scheme. A database makes encodings, a backend consumes them, and
//! neither knows the other.

mod perf;
mod x86;

pub use perf::PerfConfig;
pub use x86::{ExtraRegister, X86Select};

/// The bits for one event in the scheme of the counter that shall count it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// An x86 event select word (P6 and later Intel, K7 and later AMD), with extra registers.
    X86(X86Select),
    /// A 9-bit function of the Pentium's CESR.
    P5(P5Function),
    /// An Intel fixed-function counter.
    Fixed(FixedCounter),
    /// An ARMv8 PMU event type.
    Armv8(Armv8Event),
    /// A perf_event type and its config words.
    Perf(PerfConfig),
    /// The time stamp counter, which needs no bits.
    TimeStamp,
    /// An event number of the simulated PMU.
    Simulated(u64),
    /// Words of a scheme that this crate does not know, for an event map and a backend outside of it.
    Other {
        /// The name of the scheme, which both use; that of the interface is a good one: `kpc`.
        scheme: &'static str,
        /// The words, zero where the scheme has fewer.
        words: [u64; 4],
    },
}

// pctr(4) of OpenBSD/i386, "Pentium counters"; Intel SDM volume 3, "Performance Monitoring
// (Pentium Processors)".

/// One counter's function: the event in bits 0-5, where it counts, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct P5Function(
    /// The nine bits.
    pub u16,
);

impl P5Function {
    /// Count in kernel mode, rings 0 to 2 (K).
    pub const KERNEL: u16 = 0x40;
    /// Count in user mode, ring 3 (U).
    pub const USER: u16 = 0x80;
    /// Count clocks while the condition holds, instead of events (C).
    pub const CLOCKS: u16 = 0x100;

    /// A function of an event (6 bits) with no flag set.
    pub const fn new(event: u8) -> Self {
        Self((event & 0x3f) as u16)
    }

    /// Sets flags.
    #[must_use]
    pub const fn with_flags(self, flags: u16) -> Self {
        Self(self.0 | (flags & 0x1c0))
    }

    /// The event number.
    pub const fn event(self) -> u8 {
        (self.0 & 0x3f) as u8
    }

    /// The CESR for the functions of counter 0 (low half) and counter 1 (high half).
    pub const fn cesr(counter0: Self, counter1: Self) -> u32 {
        counter0.0 as u32 | ((counter1.0 as u32) << 16)
    }
}

// Intel SDM volume 3, "Fixed-function Performance Counters" (`IA32_FIXED_CTR_CTRL`).

/// A fixed-function counter: it counts one event only, so its index is the event.
///
/// Exhaustive: it is the bits of one counter in one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FixedCounter {
    /// Which counter: 0 instructions retired, 1 core cycles, 2 reference cycles, 3 top-down slots.
    pub index: u8,
    /// Its control bits: [`KERNEL`](Self::KERNEL), [`USER`](Self::USER) and so on.
    pub control: u8,
}

impl FixedCounter {
    /// Count in ring 0 (bit 0).
    pub const KERNEL: u8 = 1;
    /// Count in rings 1 to 3 (bit 1).
    pub const USER: u8 = 1 << 1;
    /// Count all threads of the core (bit 2).
    pub const ANY_THREAD: u8 = 1 << 2;
    /// Interrupt on overflow (bit 3).
    pub const INTERRUPT: u8 = 1 << 3;

    /// The control bits where this counter has them in `IA32_FIXED_CTR_CTRL`.
    pub const fn control_bits(self) -> u64 {
        ((self.control & 0xf) as u64) << (4 * (self.index & 0xf))
    }
}

// Arm Architecture Reference Manual (DDI 0487), `PMEVTYPER<n>_EL0`; Linux `include/linux/perf/arm_pmuv3.h`.

/// An event type register: the event in bits 0-15, and where it is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Armv8Event(
    /// The register's bits.
    pub u32,
);

impl Armv8Event {
    /// Do not count at EL1 (P, bit 31).
    pub const EXCLUDE_EL1: u32 = 1 << 31;
    /// Do not count at EL0 (U, bit 30).
    pub const EXCLUDE_EL0: u32 = 1 << 30;
    /// Count at EL2 (NSH, bit 27).
    pub const INCLUDE_EL2: u32 = 1 << 27;

    /// An event with no filter set.
    pub const fn new(event: u16) -> Self {
        Self(event as u32)
    }

    /// Sets filter bits.
    #[must_use]
    pub const fn with_flags(self, flags: u32) -> Self {
        Self(self.0 | (flags & 0xff00_0000))
    }

    /// The event number.
    pub const fn event(self) -> u16 {
        self.0 as u16
    }
}
