//! The binary interface of pctr(4): ioctl words and the two layouts of `struct pctrst`.
//!
//! `sys/arch/i386/include/pctr.h` and `sys/arch/amd64/include/pctr.h` of OpenBSD, `sys/sys/ioccom.h`
//! for the words. Both layouts are the same for 32 and 64 bits.

use std::mem::offset_of;

/// The most counters any driver has.
pub const MAX_COUNTERS: usize = 4;

/// The ioctl group of pctr(4).
const GROUP: u32 = b'c' as u32;
/// `PCIOCRD`'s number in the group.
const READ: u32 = 1;
/// `PCIOCS0`'s number in the group; the other counters' follow.
const SET: u32 = 8;

/// The kernel writes the argument (`IOC_OUT`).
const OUT: u32 = 0x4000_0000;
/// The kernel reads the argument (`IOC_IN`).
const IN: u32 = 0x8000_0000;

/// Returns a BSD ioctl word: direction, the argument's size, group and number (`_IOC` of `sys/ioccom.h`).
const fn ioctl_word(direction: u32, size: usize, number: u32) -> u32 {
    direction | ((size as u32 & 0x1fff) << 16) | (GROUP << 8) | number
}

/// Returns the size of the argument that a word declares, in bytes.
pub const fn argument_size(word: u32) -> usize {
    ((word >> 16) & 0x1fff) as usize
}

/// Reads everything, in the current layout (`PCIOCRD`).
pub const PCIOCRD: u32 = ioctl_word(OUT, size_of::<Pctrst>(), READ);
/// Reads everything, in the layout of OpenBSD 2.0 to 4.2 (`PCIOCRD` of that time).
pub const PCIOCRD_1996: u32 = ioctl_word(OUT, size_of::<Pctrst1996>(), READ);
/// Set the function of a counter: `PCIOCS0` to `PCIOCS3`.
pub const PCIOCS: [u32; MAX_COUNTERS] = [
    ioctl_word(IN, size_of::<u32>(), SET),
    ioctl_word(IN, size_of::<u32>(), SET + 1),
    ioctl_word(IN, size_of::<u32>(), SET + 2),
    ioctl_word(IN, size_of::<u32>(), SET + 3),
];

/// `struct pctrst` since October 2007 (OpenBSD 4.3), on i386 and amd64.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pctrst {
    /// The counters' functions.
    pub pctr_fn: [u32; 4],
    /// The time stamp counter.
    pub pctr_tsc: u64,
    /// The counters.
    pub pctr_hwc: [u64; 4],
}

/// `struct pctrst` from August 1996 to October 2007 (OpenBSD 2.0 to 4.2), on i386 only.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pctrst1996 {
    /// The counters' functions.
    pub pctr_fn: [u32; 2],
    /// The time stamp counter.
    pub pctr_tsc: u64,
    /// The counters.
    pub pctr_hwc: [u64; 2],
    /// Passes of the idle loop; it stays 0 where the kernel has APM.
    pub pctr_idl: u64,
}

const _: () = {
    assert!(PCIOCRD == 0x4038_6301);
    assert!(PCIOCRD_1996 == 0x4028_6301);
    assert!(PCIOCS[0] == 0x8004_6308);
    assert!(PCIOCS[1] == 0x8004_6309);
    assert!(PCIOCS[2] == 0x8004_630a);
    assert!(PCIOCS[3] == 0x8004_630b);

    assert!(size_of::<Pctrst>() == 56);
    assert!(offset_of!(Pctrst, pctr_fn) == 0);
    assert!(offset_of!(Pctrst, pctr_tsc) == 16);
    assert!(offset_of!(Pctrst, pctr_hwc) == 24);

    assert!(size_of::<Pctrst1996>() == 40);
    assert!(offset_of!(Pctrst1996, pctr_fn) == 0);
    assert!(offset_of!(Pctrst1996, pctr_tsc) == 8);
    assert!(offset_of!(Pctrst1996, pctr_hwc) == 16);
    assert!(offset_of!(Pctrst1996, pctr_idl) == 32);
};

/// The structure of a kernel's `PCIOCRD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// [`Pctrst`], since 2007.
    Current,
    /// [`Pctrst1996`], of 1996 to 2007.
    Legacy,
}

impl Layout {
    /// Returns the word that reads it.
    pub const fn read_word(self) -> u32 {
        match self {
            Self::Current => PCIOCRD,
            Self::Legacy => PCIOCRD_1996,
        }
    }
}

/// The result of `PCIOCRD`, in either layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// The counters' functions; 0 for counters there are not.
    pub functions: [u32; MAX_COUNTERS],
    /// The time stamp counter; 0 where there is none.
    pub time_stamp: u64,
    /// The counters; 0 for those there are not.
    pub counters: [u64; MAX_COUNTERS],
    /// Passes of the idle loop, where the layout has them.
    pub idle: Option<u64>,
}

impl Status {
    /// Decodes the bytes that the kernel wrote; returns `None` if the layout has another size.
    pub fn from_bytes(layout: Layout, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != argument_size(layout.read_word()) {
            return None;
        }
        let mut status = Self::default();
        let (functions, time_stamp, counters, number) = match layout {
            Layout::Current => (
                offset_of!(Pctrst, pctr_fn),
                offset_of!(Pctrst, pctr_tsc),
                offset_of!(Pctrst, pctr_hwc),
                4,
            ),
            Layout::Legacy => (
                offset_of!(Pctrst1996, pctr_fn),
                offset_of!(Pctrst1996, pctr_tsc),
                offset_of!(Pctrst1996, pctr_hwc),
                2,
            ),
        };
        for i in 0..number {
            status.functions[i] = u32_at(bytes, functions + 4 * i)?;
            status.counters[i] = u64_at(bytes, counters + 8 * i)?;
        }
        status.time_stamp = u64_at(bytes, time_stamp)?;
        if layout == Layout::Legacy {
            status.idle = Some(u64_at(bytes, offset_of!(Pctrst1996, pctr_idl))?);
        }
        Some(status)
    }

    /// Returns the bytes that a kernel would write.
    pub fn to_bytes(&self, layout: Layout) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(argument_size(layout.read_word()));
        let number = match layout {
            Layout::Current => 4,
            Layout::Legacy => 2,
        };
        for function in &self.functions[..number] {
            bytes.extend(function.to_le_bytes());
        }
        bytes.extend(self.time_stamp.to_le_bytes());
        for counter in &self.counters[..number] {
            bytes.extend(counter.to_le_bytes());
        }
        if layout == Layout::Legacy {
            bytes.extend(self.idle.unwrap_or(0).to_le_bytes());
        }
        bytes
    }
}

/// Returns a little-endian number; the interface exists on x86 only.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_layout_is_read_from_its_offsets() {
        let bytes: Vec<u8> = (0..56).collect();
        let status = Status::from_bytes(Layout::Current, &bytes).unwrap();
        assert_eq!(status.functions[0], 0x0302_0100);
        assert_eq!(status.functions[3], 0x0f0e_0d0c);
        assert_eq!(status.time_stamp, 0x1716_1514_1312_1110);
        assert_eq!(status.counters[0], 0x1f1e_1d1c_1b1a_1918);
        assert_eq!(status.counters[3], 0x3736_3534_3332_3130);
        assert_eq!(status.idle, None);
        assert_eq!(status.to_bytes(Layout::Current), bytes);
    }

    #[test]
    fn the_old_layout_has_two_counters_and_the_idle_count() {
        let bytes: Vec<u8> = (0..40).collect();
        let status = Status::from_bytes(Layout::Legacy, &bytes).unwrap();
        assert_eq!(status.functions, [0x0302_0100, 0x0706_0504, 0, 0]);
        assert_eq!(status.time_stamp, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(status.counters[1], 0x1f1e_1d1c_1b1a_1918);
        assert_eq!(status.counters[2..], [0, 0]);
        assert_eq!(status.idle, Some(0x2726_2524_2322_2120));
        assert_eq!(status.to_bytes(Layout::Legacy), bytes);
    }

    #[test]
    fn other_lengths_are_no_status() {
        for length in (0..64).filter(|l| *l != 56) {
            assert_eq!(Status::from_bytes(Layout::Current, &vec![0; length]), None);
        }
        assert_eq!(Status::from_bytes(Layout::Legacy, &[0; 56]), None);
    }
}
