//! `struct perf_event_attr` as the kernel lays it out (`include/uapi/linux/perf_event.h`).

use std::mem::offset_of;

use bitflags::bitflags;
use quipu_perf_data::ReadFormat;

/// `PERF_TYPE_*`: the kinds of event the kernel numbers itself
/// (`enum perf_type_id`, `include/uapi/linux/perf_event.h`).
pub(crate) mod event_type {
    pub(crate) const HARDWARE: u32 = 0;
    pub(crate) const SOFTWARE: u32 = 1;
    pub(crate) const TRACEPOINT: u32 = 2;
    pub(crate) const HW_CACHE: u32 = 3;
    pub(crate) const RAW: u32 = 4;
    pub(crate) const BREAKPOINT: u32 = 5;
}

/// `struct perf_event_attr`, in the layout of `PERF_ATTR_SIZE_VER9` (144 bytes, with `config4`).
///
/// Unions appear under the name that counting uses; `sample_period` is also the frequency, and
/// `wakeup_events` the watermark. The default is all zeros with the size set.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PerfEventAttr {
    pub(crate) type_: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: ReadFormat,
    pub(crate) flags: AttrFlags,
    pub(crate) wakeup_events: u32,
    pub(crate) bp_type: u32,
    /// Also `bp_addr`.
    pub(crate) config1: u64,
    /// Also `bp_len`.
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clockid: i32,
    pub(crate) sample_regs_intr: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) sample_max_stack: u16,
    pub(crate) reserved_2: u16,
    pub(crate) aux_sample_size: u32,
    pub(crate) aux_action: u32,
    pub(crate) sig_data: u64,
    pub(crate) config3: u64,
    pub(crate) config4: u64,
}

const _: () = assert!(size_of::<PerfEventAttr>() == PerfEventAttr::SIZE as usize);
const _: () = assert!(offset_of!(PerfEventAttr, flags) == 40);
const _: () = assert!(offset_of!(PerfEventAttr, config1) == 56);

/// The fields by offset: what a kernel that is too old for one of them does not know.
const FIELDS: [(usize, &str); 23] = [
    (offset_of!(PerfEventAttr, type_), "type"),
    (offset_of!(PerfEventAttr, size), "size"),
    (offset_of!(PerfEventAttr, config), "config"),
    (offset_of!(PerfEventAttr, sample_period), "sample_period"),
    (offset_of!(PerfEventAttr, sample_type), "sample_type"),
    (offset_of!(PerfEventAttr, read_format), "read_format"),
    (offset_of!(PerfEventAttr, flags), "flags"),
    (offset_of!(PerfEventAttr, wakeup_events), "wakeup_events"),
    (offset_of!(PerfEventAttr, bp_type), "bp_type"),
    (offset_of!(PerfEventAttr, config1), "config1"),
    (offset_of!(PerfEventAttr, config2), "config2"),
    (
        offset_of!(PerfEventAttr, branch_sample_type),
        "branch_sample_type",
    ),
    (
        offset_of!(PerfEventAttr, sample_regs_user),
        "sample_regs_user",
    ),
    (
        offset_of!(PerfEventAttr, sample_stack_user),
        "sample_stack_user",
    ),
    (offset_of!(PerfEventAttr, clockid), "clockid"),
    (
        offset_of!(PerfEventAttr, sample_regs_intr),
        "sample_regs_intr",
    ),
    (offset_of!(PerfEventAttr, aux_watermark), "aux_watermark"),
    (
        offset_of!(PerfEventAttr, sample_max_stack),
        "sample_max_stack",
    ),
    (
        offset_of!(PerfEventAttr, aux_sample_size),
        "aux_sample_size",
    ),
    (offset_of!(PerfEventAttr, aux_action), "aux_action"),
    (offset_of!(PerfEventAttr, sig_data), "sig_data"),
    (offset_of!(PerfEventAttr, config3), "config3"),
    (offset_of!(PerfEventAttr, config4), "config4"),
];

/// Bit `n` of the bit-fields after `read_format`: C numbers them from the other end on big-endian
/// machines.
const fn bit(n: u32) -> u64 {
    if cfg!(target_endian = "big") {
        1 << (63 - n)
    } else {
        1 << n
    }
}

bitflags! {
    /// The bit-fields of `perf_event_attr`, by the kernel's names.
    #[repr(transparent)]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct AttrFlags: u64 {
        const DISABLED = bit(0);
        const INHERIT = bit(1);
        const PINNED = bit(2);
        const EXCLUSIVE = bit(3);
        const EXCLUDE_USER = bit(4);
        const EXCLUDE_KERNEL = bit(5);
        const EXCLUDE_HV = bit(6);
        const EXCLUDE_IDLE = bit(7);
        const MMAP = bit(8);
        const COMM = bit(9);
        const FREQ = bit(10);
        const INHERIT_STAT = bit(11);
        const ENABLE_ON_EXEC = bit(12);
        const TASK = bit(13);
        const WATERMARK = bit(14);
        /// The low bit of the two-bit `precise_ip`.
        const PRECISE_LOW = bit(if cfg!(target_endian = "big") { 16 } else { 15 });
        /// The high bit of the two-bit `precise_ip`.
        const PRECISE_HIGH = bit(if cfg!(target_endian = "big") { 15 } else { 16 });
        const MMAP_DATA = bit(17);
        const SAMPLE_ID_ALL = bit(18);
        const EXCLUDE_HOST = bit(19);
        const EXCLUDE_GUEST = bit(20);
        const EXCLUDE_CALLCHAIN_KERNEL = bit(21);
        const EXCLUDE_CALLCHAIN_USER = bit(22);
        const MMAP2 = bit(23);
        const COMM_EXEC = bit(24);
        const USE_CLOCKID = bit(25);
        const CONTEXT_SWITCH = bit(26);
        const WRITE_BACKWARD = bit(27);
        const NAMESPACES = bit(28);
        const KSYMBOL = bit(29);
        const BPF_EVENT = bit(30);
        const AUX_OUTPUT = bit(31);
        const CGROUP = bit(32);
        const TEXT_POKE = bit(33);
        const BUILD_ID = bit(34);
        const INHERIT_THREAD = bit(35);
        const REMOVE_ON_EXEC = bit(36);
        const SIGTRAP = bit(37);
        const DEFER_CALLCHAIN = bit(38);
        const DEFER_OUTPUT = bit(39);
    }
}

impl AttrFlags {
    /// Everything that keeps an event from counting somewhere.
    pub(crate) const EXCLUSIONS: Self = Self::EXCLUDE_USER
        .union(Self::EXCLUDE_KERNEL)
        .union(Self::EXCLUDE_HV)
        .union(Self::EXCLUDE_IDLE)
        .union(Self::EXCLUDE_HOST)
        .union(Self::EXCLUDE_GUEST);

    /// `precise_ip`, 0 to 3.
    pub(crate) fn precise_ip(level: u8) -> Self {
        let mut flags = Self::empty();
        flags.set(Self::PRECISE_LOW, level & 1 != 0);
        flags.set(Self::PRECISE_HIGH, level & 2 != 0);
        flags
    }
}

impl PerfEventAttr {
    /// `PERF_ATTR_SIZE_VER9`.
    pub(crate) const SIZE: u32 = 144;

    /// `PERF_ATTR_SIZE_VER0`: no kernel takes less.
    pub(crate) const MIN_SIZE: u32 = 64;

    /// The first field that is not zero and lies beyond `size` bytes.
    pub(crate) fn first_field_beyond(&self, size: u32) -> Option<&'static str> {
        if size >= Self::SIZE {
            return None;
        }
        let first = self.words().iter().enumerate().find_map(|(i, word)| {
            let offset = i * size_of::<u32>();
            (offset >= size as usize && *word != 0).then_some(offset)
        })?;
        FIELDS
            .iter()
            .rev()
            .find(|(offset, _)| *offset <= first)
            .map(|(_, name)| *name)
    }

    /// As many bytes of it as its size says, in memory order.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let words = self.words().iter();
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(self.size as usize);
        bytes
    }

    /// The structure as 32-bit words, in memory order.
    fn words(&self) -> &[u32; Self::SIZE as usize / size_of::<u32>()] {
        // SAFETY: the structure is repr(C) of integers without padding (the asserts above fix its
        // size to the sum of its fields), is 8-byte aligned, and outlives the borrow.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl Default for PerfEventAttr {
    fn default() -> Self {
        Self {
            type_: 0,
            size: Self::SIZE,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: ReadFormat::empty(),
            flags: AttrFlags::empty(),
            wakeup_events: 0,
            bp_type: 0,
            config1: 0,
            config2: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_stack_user: 0,
            clockid: 0,
            sample_regs_intr: 0,
            aux_watermark: 0,
            sample_max_stack: 0,
            reserved_2: 0,
            aux_sample_size: 0,
            aux_action: 0,
            sig_data: 0,
            config3: 0,
            config4: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte of an attr in which every field is set to something else, checked against the
    /// offsets of the kernel's header.
    #[test]
    #[cfg(target_endian = "little")]
    fn attr_bytes_are_the_kernels() {
        let attr = PerfEventAttr {
            type_: 0x0101_0101,
            size: 0x0202_0202,
            config: 0x0303_0303_0303_0303,
            sample_period: 0x0404_0404_0404_0404,
            sample_type: 0x0505_0505_0505_0505,
            read_format: ReadFormat::from_bits_retain(0x0606_0606_0606_0606),
            flags: AttrFlags::from_bits_retain(0x0707_0707_0707_0707),
            wakeup_events: 0x0808_0808,
            bp_type: 0x0909_0909,
            config1: 0x0a0a_0a0a_0a0a_0a0a,
            config2: 0x0b0b_0b0b_0b0b_0b0b,
            branch_sample_type: 0x0c0c_0c0c_0c0c_0c0c,
            sample_regs_user: 0x0d0d_0d0d_0d0d_0d0d,
            sample_stack_user: 0x0e0e_0e0e,
            clockid: 0x0f0f_0f0f,
            sample_regs_intr: 0x1010_1010_1010_1010,
            aux_watermark: 0x1111_1111,
            sample_max_stack: 0x1212,
            reserved_2: 0x1313,
            aux_sample_size: 0x1414_1414,
            aux_action: 0x1515_1515,
            sig_data: 0x1616_1616_1616_1616,
            config3: 0x1717_1717_1717_1717,
            config4: 0x1818_1818_1818_1818,
        };
        // Length of each field in the header, in order.
        let lengths = [
            4, 4, 8, 8, 8, 8, 8, 4, 4, 8, 8, 8, 8, 4, 4, 8, 4, 2, 2, 4, 4, 8, 8, 8,
        ];
        let golden: Vec<u8> = lengths
            .iter()
            .zip(1u8..)
            .flat_map(|(len, value)| std::iter::repeat_n(value, *len))
            .collect();
        let bytes: Vec<u8> = attr.words().iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes, golden);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn flag_bits_are_the_kernels() {
        let names = "DISABLED INHERIT PINNED EXCLUSIVE EXCLUDE_USER EXCLUDE_KERNEL EXCLUDE_HV \
                     EXCLUDE_IDLE MMAP COMM FREQ INHERIT_STAT ENABLE_ON_EXEC TASK WATERMARK PRECISE_LOW \
                     PRECISE_HIGH MMAP_DATA SAMPLE_ID_ALL EXCLUDE_HOST EXCLUDE_GUEST \
                     EXCLUDE_CALLCHAIN_KERNEL EXCLUDE_CALLCHAIN_USER MMAP2 COMM_EXEC USE_CLOCKID \
                     CONTEXT_SWITCH WRITE_BACKWARD NAMESPACES KSYMBOL BPF_EVENT AUX_OUTPUT CGROUP \
                     TEXT_POKE BUILD_ID INHERIT_THREAD REMOVE_ON_EXEC SIGTRAP DEFER_CALLCHAIN \
                     DEFER_OUTPUT";
        let in_order = names.split_whitespace().enumerate();
        for (i, name) in in_order {
            let flag = AttrFlags::from_name(name).expect(name);
            assert_eq!(flag.bits(), 1 << i, "{name}");
        }
        assert_eq!(AttrFlags::all().bits(), (1 << 40) - 1);
        assert_eq!(AttrFlags::precise_ip(2).bits(), 2 << 15);
    }

    #[test]
    fn the_field_a_kernel_is_too_old_for_is_named() {
        let attr = PerfEventAttr {
            config3: 1,
            ..Default::default()
        };
        assert_eq!(attr.first_field_beyond(128), Some("config3"));
        assert_eq!(attr.first_field_beyond(136), None);
        let attr = PerfEventAttr {
            sample_max_stack: 1,
            sig_data: 1,
            ..Default::default()
        };
        assert_eq!(attr.first_field_beyond(64), Some("sample_max_stack"));
        assert_eq!(attr.first_field_beyond(120), Some("sig_data"));
        assert_eq!(PerfEventAttr::default().first_field_beyond(64), None);
    }
}
