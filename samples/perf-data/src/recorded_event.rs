//! The events of a file: their attributes, the ids of their counters, their names.

use crate::byte_order::{ByteOrder, swap_attr};
use crate::bytes::u32_at;
use crate::{EventAttr, Result};

/// The sizes that attrs have had (`PERF_ATTR_SIZE_VER0` to `VER9`).
const PUBLISHED: [usize; 10] = [64, 72, 80, 96, 104, 112, 120, 128, 136, 144];

/// An event that was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    attr: EventAttr,
    ids: Vec<u64>,
    name: Option<String>,
}

impl RecordedEvent {
    /// Returns an event with the kernel's ids of its counters (`PERF_EVENT_IOC_ID`) and its name.
    pub fn new(attr: EventAttr, ids: Vec<u64>, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::nameless(attr, ids)
        }
    }

    pub(crate) fn nameless(attr: EventAttr, ids: Vec<u64>) -> Self {
        Self {
            attr,
            ids,
            name: None,
        }
    }

    /// Sets the length of the attributes.
    pub(crate) fn resized(mut self, len: usize) -> Self {
        self.attr = self.attr.resized(len);
        self
    }

    pub(crate) fn set_name(&mut self, name: String) {
        self.name = Some(name);
    }

    /// Returns its attributes.
    pub fn attr(&self) -> &EventAttr {
        &self.attr
    }

    /// Returns the ids of its counters: one for each CPU or thread it was opened on.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Returns its name, where the file has it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl EventAttr {
    /// Reads an attr of a file that was written in `order`.
    pub(crate) fn read(bytes: &[u8], order: ByteOrder) -> Result<Self> {
        match order {
            ByteOrder::Native => Self::from_bytes(bytes),
            ByteOrder::Swapped => {
                let mut bytes = bytes.to_vec();
                swap_attr(&mut bytes);
                Self::from_bytes(&bytes)
            }
        }
    }

    /// The shortest published size that holds all of it that is not zero: readers refuse what is longer
    /// than they know, even where it says nothing.
    pub(crate) fn needed_len(&self) -> usize {
        let used = self
            .0
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let published = PUBLISHED.into_iter().find(|size| *size >= used);
        published.unwrap_or(self.0.len())
    }

    /// Returns the attr with another length, which is at least the [needed](Self::needed_len) one.
    pub(crate) fn resized(&self, len: usize) -> Self {
        let mut bytes = self.0.to_vec();
        bytes.resize(len, 0);
        // Longer than any kernel's are refused when they are read.
        bytes[4..8].copy_from_slice(&(len as u32).to_ne_bytes());
        Self(bytes.into())
    }

    /// `config1` to `config3`, of which the first two are the address and length of a breakpoint.
    pub(crate) fn more_config(&self) -> [u64; 3] {
        [56, 64, 128].map(|offset| self.u64(offset))
    }

    /// `bp_type`: the accesses that a breakpoint counts.
    pub(crate) fn breakpoint_type(&self) -> u32 {
        u32_at(&self.0, 52).unwrap_or(0)
    }

    /// Returns true if user mode is left out (`exclude_user`).
    pub(crate) fn excludes_user(&self) -> bool {
        self.flag(4)
    }

    /// Returns true if the kernel is left out (`exclude_kernel`).
    pub(crate) fn excludes_kernel(&self) -> bool {
        self.flag(5)
    }

    /// `precise_ip`, of two bits.
    pub(crate) fn precise_ip(&self) -> u8 {
        // C numbers bit-fields from the other end on big-endian machines, and the bits in them do not turn.
        let (low, high) = if cfg!(target_endian = "big") {
            (16, 15)
        } else {
            (15, 16)
        };
        u8::from(self.flag(low)) | u8::from(self.flag(high)) << 1
    }

    /// Returns true if the host is left out (`exclude_host`).
    pub(crate) fn excludes_host(&self) -> bool {
        self.flag(19)
    }

    /// Returns true if guests are left out (`exclude_guest`).
    pub(crate) fn excludes_guest(&self) -> bool {
        self.flag(20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attrs_are_as_short_as_they_can_be() {
        let mut long = vec![0; 144];
        long[4..8].copy_from_slice(&144u32.to_ne_bytes());
        assert_eq!(EventAttr::from_bytes(&long).expect("good").needed_len(), 64);
        long[96] = 1;
        let attr = EventAttr::from_bytes(&long).expect("good");
        assert_eq!(attr.needed_len(), 104);
        let short = attr.resized(104);
        assert_eq!(EventAttr::from_bytes(short.bytes()).expect("good"), short);
        assert_eq!(short.interrupt_registers(), 1);
        assert_eq!(short.resized(144), attr);
    }
}
