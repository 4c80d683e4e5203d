//! The module and its system call.

use std::ffi::{CStr, c_int};

use nix::errno::Errno;

use super::wire::{Allocate, Attach, CpuInfo, ModuleStat, Operation, ReadWrite};

/// modstat(2) and modfind(2) (`sys/syscall.h`).
const MODSTAT: c_int = 301;
const MODFIND: c_int = 303;
const NAME: &CStr = c"hwpmc";

/// The system call that the module has been given.
#[derive(Debug)]
pub(super) struct Call(c_int);

/// A structure that an operation reads and writes.
///
/// # Safety
/// It consists of integers, and is as large as what the kernel reads and writes for each operation it is used with.
pub(super) unsafe trait Argument {}

// SAFETY: these are `struct pmc_op_*` of `sys/pmc.h`, whose sizes `abi` asserts; an id or version is 32 bits.
unsafe impl Argument for Allocate {}
// SAFETY: as above.
unsafe impl Argument for Attach {}
// SAFETY: as above.
unsafe impl Argument for ReadWrite {}
// SAFETY: as above; it has room for more classes than the kernel writes.
unsafe impl Argument for CpuInfo {}
// SAFETY: as above.
unsafe impl Argument for u32 {}

impl Call {
    /// Finds the module by its name.
    pub(super) fn find() -> Result<Self, Errno> {
        // SAFETY: modfind(2) reads a string that ends in NUL.
        let id = unsafe { libc::syscall(MODFIND, NAME.as_ptr()) };
        let id = Errno::result(id)?;
        let mut stat = ModuleStat {
            version: size_of::<ModuleStat>() as c_int,
            name: [0; 32],
            references: 0,
            id: 0,
            data: 0,
        };
        // SAFETY: modstat(2) writes as many bytes as `version` says, which is the size of the struct of integers.
        let status = unsafe { libc::syscall(MODSTAT, id, &raw mut stat) };
        Errno::result(status)?;
        Ok(Self(stat.data as c_int))
    }

    /// Makes a call. The operation and its argument belong together in the one place that uses each.
    pub(super) fn make<A: Argument>(&self, operation: Operation, argument: &mut A) -> Result<(), Errno> {
        let argument: *mut A = argument;
        // SAFETY: by the promise of `Argument` the kernel reads and writes no more than the structure.
        let status = unsafe { libc::syscall(self.0, operation as c_int, argument) };
        Errno::result(status).map(drop)
    }
}
