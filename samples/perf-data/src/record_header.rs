//! Headers of records: thread, process and mode of the CPU.

use crate::bytes::{Cursor, Malformed};

/// A thread and the process it belongs to, as numbered in the PID namespace of whoever opened the
/// counter; -1 where that cannot see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
}

impl ThreadId {
    #[inline(always)]
    pub(crate) fn from_pair((pid, tid): (u32, u32)) -> Self {
        Self {
            pid: pid.cast_signed(),
            tid: tid.cast_signed(),
        }
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let pid = cursor.i32("process")?;
        let tid = cursor.i32("thread")?;
        Ok(Self { pid, tid })
    }
}

/// The `misc` field of a record's header (perf_event_open(2), `PERF_RECORD_MISC_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Misc(pub u16);

/// The mode that the CPU was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuMode {
    /// Unknown (`PERF_RECORD_MISC_CPUMODE_UNKNOWN`).
    Unknown,
    /// In the kernel.
    Kernel,
    /// In user mode.
    User,
    /// In the hypervisor.
    Hypervisor,
    /// In the kernel of a guest.
    GuestKernel,
    /// In user mode of a guest.
    GuestUser,
}

impl Misc {
    /// The mode of the CPU: the kernel (`PERF_RECORD_MISC_KERNEL`).
    pub const KERNEL: Self = Self(1);
    /// The mode of the CPU: user mode (`PERF_RECORD_MISC_USER`).
    pub const USER: Self = Self(2);

    /// Bits 13 and 14, which mean something else in each type of record.
    pub(crate) const BIT_13: u16 = 1 << 13;
    pub(crate) const BIT_14: u16 = 1 << 14;

    /// Returns the mode of the CPU (`PERF_RECORD_MISC_CPUMODE_MASK`).
    pub fn cpu_mode(self) -> CpuMode {
        match self.0 & 7 {
            1 => CpuMode::Kernel,
            2 => CpuMode::User,
            3 => CpuMode::Hypervisor,
            4 => CpuMode::GuestKernel,
            5 => CpuMode::GuestUser,
            _ => CpuMode::Unknown,
        }
    }

    /// In a sample: the instruction pointer is that of the instruction that caused it
    /// (`PERF_RECORD_MISC_EXACT_IP`).
    pub fn is_exact_ip(self) -> bool {
        self.0 & Self::BIT_14 != 0
    }

    pub(crate) fn bit_13(self) -> bool {
        self.0 & Self::BIT_13 != 0
    }

    pub(crate) fn bit_14(self) -> bool {
        self.0 & Self::BIT_14 != 0
    }
}
