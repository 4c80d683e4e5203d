//! Records: what the kernel writes into a ring buffer, and what `perf.data` files hold.
//!
//! Decoding needs the bytes and the [`RecordLayout`] of the counter, nothing else, and no operating
//! system. It copies nothing, allocates nothing, and takes any bytes: what does not fit is an error.
//!
//! ```
//! use quipu_perf_data::record::{Record, Records};
//! use quipu_perf_data::{RecordLayout, SampleType};
//!
//! // PERF_RECORD_SAMPLE of 16 bytes, of which 8 are the instruction pointer.
//! let mut bytes = Vec::new();
//! bytes.extend(9u32.to_ne_bytes());
//! bytes.extend([2u16, 16].iter().flat_map(|n| n.to_ne_bytes()));
//! bytes.extend(0x1234u64.to_ne_bytes());
//!
//! let layout = RecordLayout::new(SampleType::IP);
//! for record in Records::new(&bytes) {
//!     if let Record::Sample(sample) = record?.decode(&layout)? {
//!         assert_eq!(sample.ip(), Some(0x1234));
//!     }
//! }
//! # Ok::<(), quipu_hal::Error>(())
//! ```

use quipu_hal::{Error, ErrorKind, Result};

use crate::bytes::{Cursor, Malformed, u64_at};
use crate::sample::{Callchain, ReadValues, Sample, SampleId};
use crate::{RecordLayout, SampleType};

mod aux_area;
mod context;
mod kernel_text;
mod loss;
mod mapping;
mod task;

pub use crate::record_header::{CpuMode, Misc, ThreadId};
pub use aux_area::{Aux, AuxFlags, AuxOutputHwId, ItraceStart};
pub use context::{Cgroup, Namespace, NamespaceKind, Namespaces, Switch, SwitchDirection};
pub use kernel_text::{BpfChange, BpfEvent, Ksymbol, KsymbolKind, TextPoke};
pub use loss::{Lost, LostSamples, Throttle};
pub use mapping::{FileIdentity, Mapping};
pub use task::{Comm, Task};

/// `struct perf_event_header`: type, misc, size.
pub(crate) const HEADER_LEN: usize = 8;

/// `PERF_RECORD_*` (`enum perf_event_type`, `include/uapi/linux/perf_event.h`).
pub mod kind {
    /// A mapping of executable memory.
    pub const MMAP: u32 = 1;
    /// Records were lost.
    pub const LOST: u32 = 2;
    /// A thread was named.
    pub const COMM: u32 = 3;
    /// A thread ended.
    pub const EXIT: u32 = 4;
    /// Sampling was throttled.
    pub const THROTTLE: u32 = 5;
    /// Sampling goes on.
    pub const UNTHROTTLE: u32 = 6;
    /// A thread was started.
    pub const FORK: u32 = 7;
    /// The value of an inherited counter.
    pub const READ: u32 = 8;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// A mapping with the identity of its file.
    pub const MMAP2: u32 = 10;
    /// New data in the AUX area.
    pub const AUX: u32 = 11;
    /// An instruction trace started.
    pub const ITRACE_START: u32 = 12;
    /// Samples were lost in the hardware's own buffer.
    pub const LOST_SAMPLES: u32 = 13;
    /// A context switch of the counted thread.
    pub const SWITCH: u32 = 14;
    /// A context switch on the counted CPU.
    pub const SWITCH_CPU_WIDE: u32 = 15;
    /// The namespaces of a thread.
    pub const NAMESPACES: u32 = 16;
    /// A symbol of the kernel came or went.
    pub const KSYMBOL: u32 = 17;
    /// A BPF program came or went.
    pub const BPF_EVENT: u32 = 18;
    /// A control group was made.
    pub const CGROUP: u32 = 19;
    /// The kernel changed its own text.
    pub const TEXT_POKE: u32 = 20;
    /// The hardware's id of what is in the AUX area.
    pub const AUX_OUTPUT_HW_ID: u32 = 21;
    /// The user's part of an earlier call chain (Linux 6.19).
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// Types from here up are not the kernel's but `perf`'s own
    /// (`tools/lib/perf/include/perf/event.h`), and have no trailer.
    pub const FIRST_OF_USER: u32 = 64;
    /// Types from here up are simpleperf's own, whose sizes have 32 bits.
    pub const FIRST_OF_SIMPLEPERF: u32 = 1 << 15;
    /// The attributes of an event, in a stream.
    pub const HEADER_ATTR: u32 = 64;
    /// The formats of tracepoints, in a stream; they follow the record.
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// A build id, in a stream.
    pub const HEADER_BUILD_ID: u32 = 67;
    /// Every buffer has been read once since the last such record.
    pub const FINISHED_ROUND: u32 = 68;
    /// A piece of a trace; the trace itself follows the record.
    pub const AUXTRACE: u32 = 71;
    /// The threads that were counted.
    pub const THREAD_MAP: u32 = 73;
    /// The CPUs that were counted.
    pub const CPU_MAP: u32 = 74;
    /// The way it was counted.
    pub const STAT_CONFIG: u32 = 75;
    /// The count of a counter.
    pub const STAT: u32 = 76;
    /// Every counter has been written once.
    pub const STAT_ROUND: u32 = 77;
    /// More about an event: its name, its unit.
    pub const EVENT_UPDATE: u32 = 78;
    /// A feature of the recording, in a stream.
    pub const HEADER_FEATURE: u32 = 80;
    /// Records, compressed.
    pub const COMPRESSED: u32 = 81;
    /// Records, compressed, with a length of their own.
    pub const COMPRESSED2: u32 = 83;
}

/// A record as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'a> {
    kind: u32,
    misc: Misc,
    bytes: &'a [u8],
}

/// A decoded record.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Record<'a> {
    /// Memory was mapped: `PERF_RECORD_MMAP` and `PERF_RECORD_MMAP2`.
    Mapping(Mapping<'a>),
    /// Records were lost because the ring was full.
    Lost(Lost),
    /// A thread was named.
    Comm(Comm<'a>),
    /// A thread or process ended.
    Exit(Task),
    /// Sampling was throttled.
    Throttle(Throttle),
    /// Sampling goes on.
    Unthrottle(Throttle),
    /// A thread or process was started.
    Fork(Task),
    /// An inherited counter ended, with this value.
    Read(ThreadId, ReadValues<'a>),
    /// A sample.
    Sample(Sample<'a>),
    /// New data in the AUX area.
    Aux(Aux),
    /// An instruction trace started.
    ItraceStart(ItraceStart),
    /// Samples were lost before they reached the ring.
    LostSamples(LostSamples),
    /// A context switch: `PERF_RECORD_SWITCH` and `PERF_RECORD_SWITCH_CPU_WIDE`.
    Switch(Switch),
    /// The namespaces of a thread.
    Namespaces(Namespaces<'a>),
    /// A symbol of the kernel came or went.
    Ksymbol(Ksymbol<'a>),
    /// A BPF program came or went.
    BpfEvent(BpfEvent),
    /// A control group was made.
    Cgroup(Cgroup<'a>),
    /// The kernel changed its own text.
    TextPoke(TextPoke<'a>),
    /// The hardware's id of what is in the AUX area.
    AuxOutputHwId(AuxOutputHwId),
    /// The user's part of an earlier call chain.
    CallchainDeferred(CallchainDeferred<'a>),
    /// A record of another type.
    Unknown(RawRecord<'a>),
}

/// The part of a call chain in user mode that was taken later, on the way back to it
/// (`PERF_RECORD_CALLCHAIN_DEFERRED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallchainDeferred<'a> {
    /// That of the samples it belongs to ([`Callchain::deferred`](Callchain::deferred)).
    pub cookie: u64,
    /// The frames.
    pub callchain: Callchain<'a>,
}

/// The header of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordStart {
    pub(crate) kind: u32,
    misc: Misc,
    /// Bytes of the record, of which there are as many as the header has at least.
    pub(crate) len: usize,
}

impl RecordStart {
    /// Reads the header at the start of `bytes`; `None` when there is none.
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk()?;
        let (kind, rest) = header.split_first_chunk()?;
        let (misc, rest) = rest.split_first_chunk()?;
        let (kind, misc) = (u32::from_ne_bytes(*kind), u16::from_ne_bytes(*misc));
        let len = record_len(kind, misc, u16::from_ne_bytes(*rest.first_chunk()?));
        (len >= HEADER_LEN).then_some(Self {
            kind,
            misc: Misc(misc),
            len,
        })
    }
}

/// Returns the length of a record in bytes. simpleperf's own records have the upper half of theirs in `misc`
/// (`RecordHeader`, `record.h` of simpleperf).
#[inline]
pub(crate) fn record_len(kind: u32, misc: u16, size: u16) -> usize {
    let high = if kind < kind::FIRST_OF_SIMPLEPERF {
        0
    } else {
        misc
    };
    usize::from(high) << 16 | usize::from(size)
}

impl<'a> RawRecord<'a> {
    /// Returns the record at the start of `bytes`; `None` when there is none or not all of it.
    #[inline]
    pub fn at_start(bytes: &'a [u8]) -> Option<Self> {
        Self::with_start(RecordStart::read(bytes)?, bytes)
    }

    /// Returns the record with this header at the start of `bytes`; `None` when not all of it is there.
    #[inline(always)]
    pub(crate) fn with_start(start: RecordStart, bytes: &'a [u8]) -> Option<Self> {
        Some(Self {
            kind: start.kind,
            misc: start.misc,
            bytes: bytes.get(..start.len)?,
        })
    }

    /// Returns its type, one of [`kind`].
    #[inline]
    pub fn kind(&self) -> u32 {
        self.kind
    }

    /// Returns the `misc` field of its header.
    pub fn misc(&self) -> Misc {
        self.misc
    }

    /// All of it, the header included: what a `perf.data` file stores.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns its bytes after the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.bytes.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Returns the id of the counter it comes from, if the counters were opened with
    /// [`IDENTIFIER`](crate::SampleType::IDENTIFIER) and `sample_id_all`. It can be found without knowing
    /// the layout, and identifies it in a stream of several events.
    pub fn identifier(&self) -> Option<u64> {
        match self.kind {
            kind::SAMPLE => u64_at(self.body(), 0),
            kind::FIRST_OF_USER.. => None,
            _ => u64_at(self.body(), self.body().len().checked_sub(8)?),
        }
    }

    /// Returns the trailer of a record that is no sample, with its thread and time
    /// (`sample_id_all`). `None` where there is none.
    #[inline]
    pub fn sample_id(&self, layout: &RecordLayout) -> Option<SampleId> {
        if layout.trailer == 0 || self.kind == kind::SAMPLE || self.kind >= kind::FIRST_OF_USER {
            return None;
        }
        let body = self.body();
        let start = body.len().checked_sub(layout.trailer.into())?;
        Some(SampleId::decode(body.get(start..)?, layout))
    }

    /// Returns when it was written, in nanoseconds of the counter's clock: the field of a sample or of the trailer, without
    /// decoding the rest. `None` where it has none.
    #[inline]
    pub fn time(&self, layout: &RecordLayout) -> Option<u64> {
        if self.kind != kind::SAMPLE {
            return self.sample_id(layout)?.time;
        }
        if !layout.has(SampleType::TIME) {
            return None;
        }
        u64_at(self.body(), layout.fixed.time.into())
    }

    /// Decodes it if it is a sample; `None` if it is not.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    #[inline(always)]
    pub fn decode_sample(&self, layout: &'a RecordLayout) -> Result<Option<Sample<'a>>> {
        if self.kind != kind::SAMPLE {
            return Ok(None);
        }
        match Sample::decode(self.misc, self.body(), layout) {
            Ok(sample) => Ok(Some(sample)),
            Err(malformed) => Err(self.error(malformed)),
        }
    }

    /// Decodes it.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when a field does not fit into it:
    /// the bytes are damaged, or of another layout.
    #[inline]
    pub fn decode(&self, layout: &'a RecordLayout) -> Result<Record<'a>> {
        if let Some(sample) = self.decode_sample(layout)? {
            return Ok(Record::Sample(sample));
        }
        self.decode_other(layout)
            .map_err(|malformed| self.error(malformed))
    }

    fn decode_other(&self, layout: &'a RecordLayout) -> Result<Record<'a>, Malformed> {
        let len = match self.kind {
            kind::FIRST_OF_USER.. => Some(self.body().len()),
            _ => self.body().len().checked_sub(layout.trailer.into()),
        };
        let body = len.and_then(|len| self.body().get(..len));
        let mut cursor = Cursor::new(body.ok_or(Malformed("trailer"))?);
        Ok(match self.kind {
            kind::MMAP => Record::Mapping(Mapping::decode(cursor, self.misc)?),
            kind::MMAP2 => Record::Mapping(Mapping::decode_with_file(cursor, self.misc)?),
            kind::LOST => Record::Lost(Lost::decode(cursor)?),
            kind::COMM => Record::Comm(Comm::decode(cursor, self.misc)?),
            kind::EXIT => Record::Exit(Task::decode(cursor)?),
            kind::FORK => Record::Fork(Task::decode(cursor)?),
            kind::THROTTLE => Record::Throttle(Throttle::decode(cursor)?),
            kind::UNTHROTTLE => Record::Unthrottle(Throttle::decode(cursor)?),
            kind::READ => {
                let thread = ThreadId::decode(&mut cursor)?;
                Record::Read(
                    thread,
                    ReadValues::decode(&mut cursor, layout.read_format())?,
                )
            }
            kind::AUX => Record::Aux(Aux::decode(cursor)?),
            kind::ITRACE_START => Record::ItraceStart(ItraceStart::decode(cursor)?),
            kind::LOST_SAMPLES => Record::LostSamples(LostSamples::decode(cursor)?),
            kind::SWITCH => Record::Switch(Switch::of_thread(self.misc)),
            kind::SWITCH_CPU_WIDE => Record::Switch(Switch::decode(cursor, self.misc)?),
            kind::NAMESPACES => Record::Namespaces(Namespaces::decode(cursor)?),
            kind::KSYMBOL => Record::Ksymbol(Ksymbol::decode(cursor)?),
            kind::BPF_EVENT => Record::BpfEvent(BpfEvent::decode(cursor)?),
            kind::CGROUP => Record::Cgroup(Cgroup::decode(cursor)?),
            kind::TEXT_POKE => Record::TextPoke(TextPoke::decode(cursor)?),
            kind::AUX_OUTPUT_HW_ID => Record::AuxOutputHwId(AuxOutputHwId::decode(cursor)?),
            kind::CALLCHAIN_DEFERRED => {
                const FIELD: &str = "call chain";
                let cookie = cursor.u64(FIELD)?;
                let count = cursor.u64(FIELD)?;
                Record::CallchainDeferred(CallchainDeferred {
                    cookie,
                    callchain: Callchain(cursor.words(count, FIELD)?),
                })
            }
            _ => Record::Unknown(*self),
        })
    }

    #[cold]
    fn error(self, Malformed(field): Malformed) -> Error {
        Error::new(
            ErrorKind::InvalidConfiguration,
            format!("decode a record of type {}", self.kind),
        )
        .with_reason(format!(
            "its {} bytes end before its {field} does",
            self.bytes.len()
        ))
    }
}

/// The records in a piece of memory, one after the other. It ends after the first error, because
/// where the next record starts is not known then.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Returns the records in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the bytes that come after the records seen so far.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RawRecord<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match RawRecord::at_start(self.rest) {
            Some(record) => {
                self.rest = self.rest.get(record.bytes.len()..).unwrap_or_default();
                Some(Ok(record))
            }
            None => {
                let left = std::mem::take(&mut self.rest).len();
                Some(Err(no_record(left)))
            }
        }
    }
}

/// Returns the error for `left` bytes that hold no whole record.
#[cold]
pub fn no_record(left: usize) -> Error {
    Error::new(ErrorKind::InvalidConfiguration, "find the next record")
        .with_reason(format!("{left} bytes are left, and no record fits them"))
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
        let record = RawRecord::at_start(&bytes).expect("whole");
        assert_eq!((record.kind(), record.misc()), (9, Misc(2)));
        assert_eq!((record.bytes().len(), record.body().len()), (16, 8));
        assert_eq!(RawRecord::at_start(&bytes[..15]), None);
        bytes[6] = 7;
        assert_eq!(RawRecord::at_start(&bytes), None);
        bytes[6] = 8;
        assert_eq!(RawRecord::at_start(&bytes).expect("whole").body(), []);
    }
}
