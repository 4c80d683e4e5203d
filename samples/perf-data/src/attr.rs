//! The kernel's attributes of an event.

use crate::bytes::{u32_at, u64_at};
use crate::{BranchSampleType, Error, ReadFormat, RecordLayout, Result, SampleType};

/// No kernel takes a shorter attr (`PERF_ATTR_SIZE_VER0`).
const SHORTEST: usize = 64;
/// Longer than any attr will be for a while; the kernel takes a page at most.
const LONGEST: usize = 4096;
/// A `struct perf_event_attr` as it was given to the kernel (`include/uapi/linux/perf_event.h`).
///
/// Attrs grow with the kernel; what an older one does not have reads as 0.
///
/// ```
/// use quipu_perf_data::{EventAttr, SampleType};
///
/// let mut bytes = [0; 64];
/// bytes[4..8].copy_from_slice(&64u32.to_ne_bytes()); // size
/// bytes[16..24].copy_from_slice(&1000u64.to_ne_bytes()); // sample_period
/// bytes[24..32].copy_from_slice(&SampleType::IP.bits().to_ne_bytes()); // sample_type
/// let attr = EventAttr::from_bytes(&bytes)?;
/// assert!(!attr.is_frequency());
/// assert_eq!(attr.layout().period(), Some(1000));
/// # Ok::<_, quipu_perf_data::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventAttr(pub(crate) Box<[u8]>);

impl EventAttr {
    /// Reads an attr; its field `size` says how many of the bytes belong to it.
    ///
    /// # Errors
    /// [`Malformed`](Error::Malformed) when there are fewer, or they are too few or too many for any
    /// kernel.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::malformed("the size of an event's attributes", 4);
        let size = match u32_at(bytes, 4).ok_or_else(wrong)? {
            // `PERF_ATTR_SIZE_VER0` was once written as 0.
            0 => SHORTEST,
            size => size as usize,
        };
        if !(SHORTEST..=LONGEST).contains(&size) {
            return Err(wrong());
        }
        Ok(Self(bytes.get(..size).ok_or_else(wrong)?.into()))
    }

    /// Returns the layout of the event's records.
    pub fn layout(&self) -> RecordLayout {
        RecordLayout::new(SampleType::from_bits_truncate(self.sample_type()))
            .with_read_format(ReadFormat::from_bits_truncate(self.read_format()))
            .with_branches(BranchSampleType::from_bits_truncate(
                self.branch_sample_type(),
            ))
            .with_registers(self.user_registers(), self.interrupt_registers())
            .with_sample_id_all(self.sample_id_all())
            .with_period((!self.is_frequency()).then(|| self.period_or_frequency()))
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn u64(&self, offset: usize) -> u64 {
        u64_at(&self.0, offset).unwrap_or(0)
    }

    pub(crate) fn flag(&self, bit: u32) -> bool {
        // C numbers bit-fields from the other end on big-endian machines.
        let flags = match cfg!(target_endian = "big") {
            true => self.u64(40).reverse_bits(),
            false => self.u64(40),
        };
        flags >> bit & 1 != 0
    }

    /// `type`: `PERF_TYPE_*`, or the number of a PMU.
    pub fn event_type(&self) -> u32 {
        u32_at(&self.0, 0).unwrap_or(0)
    }

    /// `config`.
    pub fn config(&self) -> u64 {
        self.u64(8)
    }

    /// `sample_period`, or `sample_freq` in samples per second if [`is_frequency`](Self::is_frequency).
    pub fn period_or_frequency(&self) -> u64 {
        self.u64(16)
    }

    /// `sample_type`: which fields samples have.
    pub fn sample_type(&self) -> u64 {
        self.u64(24)
    }

    /// `read_format`: the layout of values that were read.
    pub fn read_format(&self) -> u64 {
        self.u64(32)
    }

    /// Returns true if the event never occurs, and is opened for records other than samples
    /// (`PERF_COUNT_SW_DUMMY`).
    pub fn is_dummy(&self) -> bool {
        const SOFTWARE: u32 = 1;
        const DUMMY: u64 = 9;
        self.event_type() == SOFTWARE && self.config() == DUMMY
    }

    /// Returns true if threads that are made inherit the event (`inherit`).
    pub fn is_inherited(&self) -> bool {
        self.flag(1)
    }

    /// Returns true if the frames of user mode come in records of their own (`defer_callchain`, Linux 6.19).
    pub fn defers_callchains(&self) -> bool {
        self.flag(38)
    }

    /// Returns true if the kernel adjusted the period to reach a frequency (`freq`).
    pub fn is_frequency(&self) -> bool {
        self.flag(10)
    }

    /// Returns true if counting began when a program was executed (`enable_on_exec`).
    pub fn is_enabled_by_exec(&self) -> bool {
        self.flag(12)
    }

    /// Returns true if records other than samples have a trailer (`sample_id_all`).
    pub fn sample_id_all(&self) -> bool {
        self.flag(18)
    }

    /// `branch_sample_type`: what is recorded of branches.
    pub fn branch_sample_type(&self) -> u64 {
        self.u64(72)
    }

    /// `sample_regs_user`: which registers of user mode samples have.
    pub fn user_registers(&self) -> u64 {
        self.u64(80)
    }

    /// `sample_regs_intr`: which registers at the interrupt samples have.
    pub fn interrupt_registers(&self) -> u64 {
        self.u64(96)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize, size: u32) -> Vec<u8> {
        let mut bytes = vec![0; len];
        bytes[4..8].copy_from_slice(&size.to_ne_bytes());
        bytes
    }

    #[test]
    fn attrs_of_every_length_are_taken_as_far_as_they_go() {
        let mut long = bytes(200, 144);
        long[24..32].copy_from_slice(&7u64.to_ne_bytes());
        long[96..104].copy_from_slice(&9u64.to_ne_bytes());
        let attr = EventAttr::from_bytes(&long).expect("good");
        assert_eq!(attr.bytes().len(), 144);
        assert_eq!((attr.sample_type(), attr.interrupt_registers()), (7, 9));
        let old = EventAttr::from_bytes(&bytes(64, 0)).expect("good");
        assert_eq!((old.bytes().len(), old.interrupt_registers()), (64, 0));
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for (len, size) in [(200, 63), (200, 4097), (63, 64), (100, 112), (5, 0)] {
            let mut bytes = bytes(200, size);
            bytes.truncate(len);
            assert!(EventAttr::from_bytes(&bytes).is_err(), "{len} {size}");
        }
    }

    /// The bit-fields of `struct perf_event_attr` in `include/uapi/linux/perf_event.h`.
    #[test]
    fn flags_are_the_kernels() {
        for bit in 0..64 {
            let mut bytes = bytes(64, 64);
            let flags = match cfg!(target_endian = "big") {
                true => 1u64 << (63 - bit),
                false => 1 << bit,
            };
            bytes[40..48].copy_from_slice(&flags.to_ne_bytes());
            let attr = EventAttr::from_bytes(&bytes).expect("good");
            for (own, flag) in [
                (1, attr.is_inherited()),
                (4, attr.excludes_user()),
                (5, attr.excludes_kernel()),
                (10, attr.is_frequency()),
                (12, attr.is_enabled_by_exec()),
                (18, attr.sample_id_all()),
                (19, attr.excludes_host()),
                (20, attr.excludes_guest()),
                (38, attr.defers_callchains()),
            ] {
                assert_eq!(flag, own == bit, "{own} {bit}");
            }
            let is_precise = matches!(bit, 15 | 16);
            assert_eq!(attr.precise_ip() != 0, is_precise, "{bit}");
        }
    }

    #[test]
    fn a_dummy_is_an_event_of_software() {
        for (event_type, config, expected) in [(1u32, 9u64, true), (1, 8, false), (0, 9, false)] {
            let mut bytes = bytes(64, 64);
            bytes[..4].copy_from_slice(&event_type.to_ne_bytes());
            bytes[8..16].copy_from_slice(&config.to_ne_bytes());
            let attr = EventAttr::from_bytes(&bytes).expect("good");
            assert_eq!(attr.is_dummy(), expected, "{event_type} {config}");
        }
    }
}
