//! Records of loss: `PERF_RECORD_LOST`, `_LOST_SAMPLES`, `_THROTTLE` and `_UNTHROTTLE`.

use crate::bytes::{Cursor, Malformed};

/// Records that were lost because the ring was full. It stands where they are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The id of the counter that noticed.
    pub id: u64,
    /// Number of records of any type.
    pub records: u64,
}

impl Lost {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: cursor.u64("counter id")?,
            records: cursor.u64("number of records")?,
        })
    }
}

/// Samples that were lost before they reached the ring: in the hardware's own buffer, or by a BPF
/// program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostSamples {
    /// Number of samples.
    pub samples: u64,
}

impl LostSamples {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            samples: cursor.u64("number of samples")?,
        })
    }
}

/// The kernel stopped a counter that interrupted too often, or let it go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Throttle {
    /// When, in nanoseconds of the counter's clock.
    pub time: u64,
    /// The id of the counter.
    pub id: u64,
    /// The id of the counter itself: another where it was inherited.
    pub stream_id: u64,
}

impl Throttle {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            time: cursor.u64("time")?,
            id: cursor.u64("counter id")?,
            stream_id: cursor.u64("stream id")?,
        })
    }
}
