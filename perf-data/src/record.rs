//! Records: what the data of a file consists of.

use crate::bytes::{u16_at, u32_at};

/// The kinds of record: `PERF_RECORD_*` of the kernel below 64 (`include/uapi/linux/perf_event.h`),
/// of perf from there on (`tools/lib/perf/include/perf/event.h`). Only those that this crate or its
/// users handle by themselves have a name here.
pub mod kind {
    /// Executable memory was mapped; the form without inode.
    pub const MMAP: u32 = 1;
    /// Records were lost.
    pub const LOST: u32 = 2;
    /// A thread has a name.
    pub const COMM: u32 = 3;
    /// A thread has ended.
    pub const EXIT: u32 = 4;
    /// A thread was made.
    pub const FORK: u32 = 7;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// Executable memory was mapped.
    pub const MMAP2: u32 = 10;
    /// Samples were lost.
    pub const LOST_SAMPLES: u32 = 13;
    /// The first kind that perf itself writes.
    pub const FIRST_OF_PERF: u32 = 64;
    /// Every buffer has been read once since the last such record.
    pub const FINISHED_ROUND: u32 = 68;
    /// A piece of a trace; the trace itself follows the record.
    pub const AUXTRACE: u32 = 71;
    /// Records, compressed.
    pub const COMPRESSED: u32 = 81;
    /// The same with a length of its own.
    pub const COMPRESSED2: u32 = 83;
}

/// Bits of a record's `misc` field.
pub mod misc {
    /// The bits that say which privilege level a record is about (`PERF_RECORD_MISC_CPUMODE_MASK`).
    pub const CPU_MODE: u16 = 7;
    /// Of the kernel.
    pub const KERNEL: u16 = 1;
    /// Of user mode.
    pub const USER: u16 = 2;
    /// Of a [`COMM`](super::kind::COMM): the thread executed a program.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// Of an [`MMAP2`](super::kind::MMAP2): a build id is in the place of device and inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
}

/// How long a record's header is (`struct perf_event_header`).
pub(crate) const HEADER_LEN: usize = 8;

/// One record, header included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    bytes: &'a [u8],
    offset: u64,
}

impl<'a> Record<'a> {
    /// The record at the start of some bytes; `None` when it is not whole, or shorter than its
    /// header.
    pub fn first_of(bytes: &'a [u8]) -> Option<Self> {
        Self::at_offset(bytes, 0)
    }

    pub(crate) fn at_offset(bytes: &'a [u8], offset: u64) -> Option<Self> {
        let size = usize::from(u16_at(bytes, 6)?);
        let bytes = bytes.get(..size).filter(|_| size >= HEADER_LEN)?;
        Some(Self { bytes, offset })
    }

    /// All of its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What follows its header.
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Its kind; see [`kind`].
    pub fn kind(&self) -> u32 {
        u32_at(self.bytes, 0).unwrap_or(0)
    }

    /// Its flags; see [`misc`].
    pub fn misc(&self) -> u16 {
        u16_at(self.bytes, 4).unwrap_or(0)
    }

    /// Where it is in its file, in bytes from the start; 0 if it comes from none.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_as_long_as_it_says() {
        let mut bytes = vec![0u8; 24];
        bytes[0] = 9;
        bytes[4] = 2;
        bytes[6] = 16;
        let record = Record::first_of(&bytes).expect("whole");
        assert_eq!((record.kind(), record.misc()), (9, 2));
        assert_eq!((record.bytes().len(), record.body().len()), (16, 8));
        assert_eq!(Record::first_of(&bytes[..15]), None);
        bytes[6] = 7;
        assert_eq!(Record::first_of(&bytes), None);
        bytes[6] = 8;
        assert_eq!(Record::first_of(&bytes).expect("whole").body(), []);
    }
}
