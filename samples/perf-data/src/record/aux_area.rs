//! The AUX area: `PERF_RECORD_AUX`, `_ITRACE_START` and `_AUX_OUTPUT_HW_ID`.

use bitflags::bitflags;

use super::ThreadId;
use crate::bytes::{Cursor, Malformed};

/// There is new data in the AUX area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aux {
    /// Start: bytes written since the area was mapped.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Flags that mark missing or partial data.
    pub flags: AuxFlags,
}

bitflags! {
    /// `PERF_AUX_FLAG_*`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct AuxFlags: u64 {
        /// It was cut off because the area was full.
        const TRUNCATED = 1;
        /// The area is written over and over.
        const OVERWRITE = 1 << 1;
        /// It has gaps.
        const PARTIAL = 1 << 2;
        /// A sample collided with another one.
        const COLLISION = 1 << 3;
        /// The format, as the PMU numbers it.
        const FORMAT = 0xff00;
    }
}

impl Aux {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        const FIELD: &str = "AUX data";
        Ok(Self {
            offset: cursor.u64(FIELD)?,
            len: cursor.u64(FIELD)?,
            flags: AuxFlags::from_bits_retain(cursor.u64(FIELD)?),
        })
    }
}

/// An instruction trace started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItraceStart {
    /// The traced thread.
    pub thread: ThreadId,
}

impl ItraceStart {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            thread: ThreadId::decode(&mut cursor)?,
        })
    }
}

/// By which id the hardware marks, in the AUX area, what belongs to the counter of the trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuxOutputHwId {
    /// The id; what it means depends on the architecture.
    pub hw_id: u64,
}

impl AuxOutputHwId {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            hw_id: cursor.u64("hardware id")?,
        })
    }
}
