//! The only way of this crate to write a register.

use quipu_hal::{Error, ErrorKind, Result};

use crate::MsrBus;
use crate::allow_list::{AllowList, Sharing, Writable};

/// A write that restores the bits of a mask in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestoreStep {
    pub(crate) address: u32,
    pub(crate) mask: u64,
    pub(crate) value: u64,
}

/// A bus that writes only what an [`AllowList`] has.
#[derive(Debug)]
pub(crate) struct Guard<B> {
    bus: B,
    list: AllowList,
}

impl<B: MsrBus> Guard<B> {
    pub(crate) fn new(bus: B, list: AllowList) -> Self {
        Self { bus, list }
    }

    pub(crate) fn bus(&self) -> &B {
        &self.bus
    }

    pub(crate) fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        self.bus.read(cpu, address)
    }

    /// Writes all of a register that is one counter's own.
    pub(crate) fn put(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        let writable = self.writable(cpu, address, Sharing::Own)?;
        refuse(cpu, address, value & !writable.bits)?;
        self.bus.write(cpu, address, value)
    }

    /// Writes the bits of a mask in a register that several counters share, and returns its previous
    /// value.
    pub(crate) fn merge(&self, cpu: u32, address: u32, mask: u64, value: u64) -> Result<u64> {
        let writable = self.writable(cpu, address, Sharing::Shared)?;
        refuse(cpu, address, value & mask & !writable.bits)?;
        self.merge_found(cpu, writable, mask, value)
    }

    /// Merges a value whose bits may also be those that are only restored.
    fn merge_found(&self, cpu: u32, writable: Writable, mask: u64, value: u64) -> Result<u64> {
        let address = writable.address;
        refuse(cpu, address, mask & !(writable.bits | writable.kept))?;
        let before = self.bus.read(cpu, address)?;
        let after = before & !mask | value & mask;
        if after != before {
            self.bus.write(cpu, address, after)?;
        }
        Ok(before)
    }

    /// Performs a restoring write.
    pub(crate) fn apply(&self, cpu: u32, step: RestoreStep) -> Result<()> {
        match self.list.get(step.address) {
            Some(writable) if writable.sharing == Sharing::Shared => self
                .merge_found(cpu, writable, step.mask, step.value)
                .map(drop),
            _ => {
                self.check_found(cpu, step.address, step.value)?;
                self.bus.write(cpu, step.address, step.value)
            }
        }
    }

    /// Checks that a saved value can be restored.
    pub(crate) fn check_found(&self, cpu: u32, address: u32, found: u64) -> Result<()> {
        let writable = self.writable(cpu, address, Sharing::Own)?;
        refuse(cpu, address, found & !(writable.bits | writable.kept))
    }

    fn writable(&self, cpu: u32, address: u32, sharing: Sharing) -> Result<Writable> {
        let found = self.list.get(address).filter(|w| w.sharing == sharing);
        found.ok_or_else(|| {
            not_allowed(cpu, address).with_reason("the register is not on the allow-list")
        })
    }
}

fn refuse(cpu: u32, address: u32, excess: u64) -> Result<()> {
    if excess == 0 {
        return Ok(());
    }
    Err(not_allowed(cpu, address)
        .with_reason(format!("the allow-list does not have its bits {excess:#x}")))
}

fn not_allowed(cpu: u32, address: u32) -> Error {
    Error::new(
        ErrorKind::InvalidConfiguration,
        format!("write register {address:#x} of CPU {cpu}"),
    )
}
