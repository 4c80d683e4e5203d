//! The module and its system call.

use std::ffi::{CStr, c_int};

use nix::errno::Errno;

use super::wire::{ModuleStat, Operation};

/// modstat(2) and modfind(2) (`sys/syscall.h`).
const MODSTAT: c_int = 301;
const MODFIND: c_int = 303;
const NAME: &CStr = c"hwpmc";

/// A struct in which the kernel describes a module, or a file of it, by its number: integers and arrays, the size first.
pub(super) trait Stat {
    /// The system call that fills it.
    const CALL: c_int;
    /// Its size, and zeros.
    const EMPTY: Self;
}

impl Stat for ModuleStat {
    const CALL: c_int = MODSTAT;
    const EMPTY: Self = Self {
        version: size_of::<Self>() as c_int,
        name: [0; 32],
        references: 0,
        id: 0,
        data: 0,
    };
}

/// Returns what the kernel says of a module or file.
pub(super) fn stat<S: Stat>(id: c_int) -> Result<S, Errno> {
    // The kernel overwrites the size, too: each call needs a new one.
    let mut stat = S::EMPTY;
    // SAFETY: the call writes as many bytes as the struct's first field says, which is its size; any integers are valid in it.
    let status = unsafe { libc::syscall(S::CALL, id, &raw mut stat) };
    Errno::result(status).map(|_| stat)
}

/// The system call that the module has been given.
#[derive(Debug)]
pub(super) struct Call(c_int);

impl Call {
    /// Finds the module by its name.
    pub(super) fn find() -> Result<Self, Errno> {
        // SAFETY: modfind(2) reads a string that ends in NUL.
        let id = unsafe { libc::syscall(MODFIND, NAME.as_ptr()) };
        let id = Errno::result(id)?;
        let found: ModuleStat = stat(id)?;
        Ok(Self(found.data as c_int))
    }

    /// Makes a call.
    pub(super) fn make<O: Operation>(&self, operation: &mut O) -> Result<(), Errno> {
        let argument: *mut O = operation;
        // SAFETY: the kernel reads and writes the structure of the operation of this number, which is live and as large.
        let status = unsafe { libc::syscall(self.0, O::NUMBER, argument) };
        Errno::result(status).map(drop)
    }
}
