//! The module and its system call.

use std::ffi::{CStr, c_int};

use nix::errno::Errno;

use super::wire::{ModuleStat, Operation};

/// modstat(2) and modfind(2) (`sys/syscall.h`).
const MODSTAT: c_int = 301;
const MODFIND: c_int = 303;
const NAME: &CStr = c"hwpmc";

/// The system call that the module has been given.
#[derive(Debug)]
pub(super) struct Call(c_int);

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

    /// Makes a call.
    pub(super) fn make<O: Operation>(&self, operation: &mut O) -> Result<(), Errno> {
        let argument: *mut O = operation;
        // SAFETY: the kernel reads and writes the structure of the operation of this number, which is live and as large.
        let status = unsafe { libc::syscall(self.0, O::NUMBER, argument) };
        Errno::result(status).map(drop)
    }
}
