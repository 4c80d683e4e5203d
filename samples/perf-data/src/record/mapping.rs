//! Memory that was mapped: `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2`.

use super::{Misc, ThreadId};
use crate::bytes::{Cursor, Malformed};

/// A piece of memory that a process mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mapping<'a> {
    /// Thread that mapped it; the kernel's own text has the process -1.
    pub thread: ThreadId,
    /// Start address.
    pub address: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset of its start in the file, in bytes.
    pub file_offset: u64,
    /// Identity of the file (`PERF_RECORD_MMAP2`).
    pub file: Option<FileIdentity<'a>>,
    /// `PROT_*` of mmap(2) (`PERF_RECORD_MMAP2`).
    pub protection: Option<u32>,
    /// `MAP_*` of mmap(2) (`PERF_RECORD_MMAP2`).
    pub flags: Option<u32>,
    /// The path of the file, or what it is instead: `[vdso]`, `//anon`, `[kernel.kallsyms]_text`.
    pub path: &'a [u8],
    /// True if it is data: not executable.
    pub is_data: bool,
}

/// Identity of a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileIdentity<'a> {
    /// Its place in a file system.
    Inode {
        /// The major number of the device.
        major: u32,
        /// The minor number of the device.
        minor: u32,
        /// The number of the inode.
        inode: u64,
        /// The generation of the inode.
        generation: u64,
    },
    /// The build id that its linker gave it (`PERF_RECORD_MISC_MMAP_BUILD_ID`).
    BuildId(&'a [u8]),
}

const FIELD: &str = "mapping";

impl<'a> Mapping<'a> {
    pub(crate) fn decode(mut cursor: Cursor<'a>, misc: Misc) -> Result<Self, Malformed> {
        let mapping = Self::decode_range(&mut cursor, misc)?;
        Ok(Self {
            path: cursor.text(),
            ..mapping
        })
    }

    pub(crate) fn decode_with_file(mut cursor: Cursor<'a>, misc: Misc) -> Result<Self, Malformed> {
        let mapping = Self::decode_range(&mut cursor, misc)?;
        let file = match misc.bit_14() {
            true => {
                let [size, _, _, _, id @ ..] = cursor.bytes(24, FIELD)? else {
                    return Err(Malformed(FIELD));
                };
                FileIdentity::BuildId(id.get(..usize::from(*size)).unwrap_or(id))
            }
            false => FileIdentity::Inode {
                major: cursor.u32(FIELD)?,
                minor: cursor.u32(FIELD)?,
                inode: cursor.u64(FIELD)?,
                generation: cursor.u64(FIELD)?,
            },
        };
        Ok(Self {
            file: Some(file),
            protection: Some(cursor.u32(FIELD)?),
            flags: Some(cursor.u32(FIELD)?),
            path: cursor.text(),
            ..mapping
        })
    }

    /// Decodes the fields that both records start with.
    fn decode_range(cursor: &mut Cursor<'a>, misc: Misc) -> Result<Self, Malformed> {
        Ok(Self {
            thread: ThreadId::decode(cursor)?,
            address: cursor.u64(FIELD)?,
            len: cursor.u64(FIELD)?,
            file_offset: cursor.u64(FIELD)?,
            file: None,
            protection: None,
            flags: None,
            path: &[],
            is_data: misc.bit_13(),
        })
    }
}
