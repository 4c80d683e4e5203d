//! The x86 event select word: `IA32_PERFEVTSELx` and AMD's `PerfEvtSel`.
//!
//! Intel SDM volume 3, "Architectural Performance Monitoring"; AMD APM volume 2, "Performance
//! Monitoring Counters". OpenBSD's P6 function word is the same layout (pctr(4)).

/// An event select word and the extra registers it needs.
///
/// Event and unit mask sit in bits 0-7 and 8-15; AMD extends the event by bits 32-35, Intel's version 6
/// the unit mask by bits 40-47. The flags are the constants of this type; the counter mask sits in
/// bits 24-31.
///
/// Exhaustive: what an event needs besides the word is in further registers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct X86Select {
    /// The select word.
    pub select: u64,
    /// Registers to write besides, such as Intel's off-core response masks.
    pub extra: Vec<ExtraRegister>,
}

/// A model-specific register that an event needs set, besides its select word.
///
/// Exhaustive: it is what one WRMSR takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExtraRegister {
    /// The register's address.
    pub address: u32,
    /// Its value.
    pub value: u64,
}

impl X86Select {
    /// Count in user mode (USR, bit 16).
    pub const USER: u64 = 1 << 16;
    /// Count in kernel mode (OS, bit 17).
    pub const KERNEL: u64 = 1 << 17;
    /// Count rising edges (E, bit 18).
    pub const EDGE: u64 = 1 << 18;
    /// Toggle the performance monitor pin (PC, bit 19).
    pub const PIN: u64 = 1 << 19;
    /// Interrupt on overflow (INT, bit 20).
    pub const INTERRUPT: u64 = 1 << 20;
    /// Count all threads of the core (ANY, bit 21).
    pub const ANY_THREAD: u64 = 1 << 21;
    /// Enable (EN, bit 22); on the P6 that of counter 0 gates both.
    pub const ENABLE: u64 = 1 << 22;
    /// Invert the comparison with the counter mask (INV, bit 23).
    pub const INVERT: u64 = 1 << 23;
    /// Intel: count in transactional regions only (IN_TX, bit 32).
    pub const IN_TRANSACTION: u64 = 1 << 32;
    /// Intel: leave out what aborted transactions counted (IN_TXCP, bit 33).
    pub const IN_TRANSACTION_CHECKPOINTED: u64 = 1 << 33;
    /// Intel, version 6: compare with the counter mask for equality (EQ, bit 36).
    pub const EQUAL: u64 = 1 << 36;
    /// AMD: count in guests only (bit 40).
    pub const GUEST_ONLY: u64 = 1 << 40;
    /// AMD: count on the host only (bit 41).
    pub const HOST_ONLY: u64 = 1 << 41;

    /// A select word for an event (12 bits on AMD, 8 on Intel) and a unit mask, with no flag set.
    pub const fn new(event: u16, unit_mask: u8) -> Self {
        let event = event as u64;
        Self {
            select: (event & 0xff) | ((unit_mask as u64) << 8) | ((event & 0xf00) << 24),
            extra: Vec::new(),
        }
    }

    /// Sets flags.
    #[must_use]
    pub fn with_flags(mut self, flags: u64) -> Self {
        self.select |= flags;
        self
    }

    /// Sets the counter mask (bits 24-31).
    #[must_use]
    pub fn with_counter_mask(mut self, mask: u8) -> Self {
        self.select = (self.select & !(0xff << 24)) | (u64::from(mask) << 24);
        self
    }

    /// Sets the second unit mask (Intel, version 6: bits 40-47).
    #[must_use]
    pub fn with_second_unit_mask(mut self, mask: u8) -> Self {
        self.select = (self.select & !(0xff << 40)) | (u64::from(mask) << 40);
        self
    }

    /// The event number: bits 0-7, and on AMD bits 32-35.
    pub const fn event(&self) -> u16 {
        ((self.select & 0xff) | ((self.select >> 24) & 0xf00)) as u16
    }

    /// The unit mask: bits 8-15.
    pub const fn unit_mask(&self) -> u8 {
        (self.select >> 8) as u8
    }

    /// The counter mask: bits 24-31.
    pub const fn counter_mask(&self) -> u8 {
        (self.select >> 24) as u8
    }
}
