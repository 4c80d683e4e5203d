//! Breakpoint events: accesses to an address, counted by the debug registers.

/// A hardware breakpoint used as an event.
///
/// It counts accesses of a kind to `len` bytes from `address`, exactly. Lengths that the hardware
/// takes are 1, 2, 4 and 8 on x86 and 1 to 8 on arm64; an executed breakpoint wants the length of
/// a pointer on x86 and 4 on arm64 (perf_event_open(2), `bp_len`).
///
/// Exhaustive: a debug register holds nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Breakpoint {
    /// The virtual address.
    pub address: u64,
    /// Number of bytes from there, 1 to 8.
    pub len: u8,
    /// The kind of access that is counted.
    pub access: BreakpointAccess,
}

/// The accesses that a breakpoint counts.
///
/// Exhaustive: the debug registers have no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakpointAccess {
    /// Reads. x86 has no such breakpoint and refuses it; ask for [`ReadWrite`](Self::ReadWrite).
    Read,
    /// Writes.
    Write,
    /// Reads and writes.
    ReadWrite,
    /// Execution of the instruction at the address.
    Execute,
}

impl Breakpoint {
    /// The length that an executed breakpoint needs on the machine this was compiled for.
    pub const EXECUTE_LEN: u8 = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        size_of::<usize>() as u8
    } else {
        4
    };

    /// Counts executions of the instruction at `address`.
    pub const fn execute(address: u64) -> Self {
        Self {
            address,
            len: Self::EXECUTE_LEN,
            access: BreakpointAccess::Execute,
        }
    }
}

impl BreakpointAccess {
    /// All four kinds.
    pub const ALL: &[Self] = &[Self::Read, Self::Write, Self::ReadWrite, Self::Execute];

    /// The letters used in the text form: `r`, `w`, `rw`, `x`.
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Write => "w",
            Self::ReadWrite => "rw",
            Self::Execute => "x",
        }
    }
}
