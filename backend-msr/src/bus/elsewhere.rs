//! Systems without a way to the registers.

use quipu_hal::{Error, ErrorKind, Result};

use super::MsrBus;

/// The bus of a system that has none: opening it says so.
#[derive(Debug)]
pub enum NoMsr {}

impl NoMsr {
    /// Refuses.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice), always.
    pub fn open() -> Result<Self> {
        Err(not_here())
    }
}

impl MsrBus for NoMsr {
    fn cpus(&self) -> &[u32] {
        match *self {}
    }

    fn current_cpu(&self) -> Result<u32> {
        match *self {}
    }

    fn read(&self, _cpu: u32, _address: u32) -> Result<u64> {
        match *self {}
    }

    fn write(&self, _cpu: u32, _address: u32, _value: u64) -> Result<()> {
        match *self {}
    }

    fn cpuid(&self, _leaf: u32, _subleaf: u32) -> Result<[u32; 4]> {
        match *self {}
    }
}

pub(super) fn not_here() -> Error {
    Error::new(ErrorKind::NoSuchDevice, "reach model-specific registers").with_reason(
        "only x86 CPUs have them, and only Linux, FreeBSD and DragonFly BSD have a driver for them",
    )
}
