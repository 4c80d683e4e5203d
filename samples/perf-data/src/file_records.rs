//! The records of a file or a stream, one after the other.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use crate::byte_order::{ByteOrder, swap_body, swap_header};
use crate::bytes::{u32_at, u64_at};
#[cfg(feature = "zstd")]
use crate::decompression::Decompressor;
use crate::record::{HEADER_LEN, RawRecord, RecordStart, kind, record_len};
use crate::{Error, RecordLayout, RecordedEvent, Result};

/// A record can be 64 KiB long; some of them are read in one go.
const READ_AHEAD: usize = 256 << 10;

/// The records of a file or a stream, one after the other, in this machine's byte order.
///
/// Records of the kernel and of [counts](crate::stat) are brought into it field by field, as far as this crate knows
/// them; others of perf itself ([`FIRST_OF_USER`](kind::FIRST_OF_USER)) stay as they were written, their headers apart.
#[derive(Debug)]
pub struct FileRecords<'a, R: Read> {
    source: Source<BufReader<&'a mut R>>,
    /// Length of the record at the start of what was read ahead, which was lent last.
    lent: usize,
    /// True if no record can be lent as it was read: of the other byte order, or decompressed.
    is_copied: bool,
    /// Records that were read before this began.
    ahead: VecDeque<Vec<u8>>,
    buffer: Vec<u8>,
    foreign: Option<Foreign>,
    cut: Option<Cut>,
    /// Bytes of traces that were passed over.
    traced: u64,
    #[cfg(feature = "zstd")]
    compressed: Option<Decompressor>,
}

/// Place at which a file ends too early.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// It does not say where it should.
    Unfinished { len: u64 },
    /// A part of it should end at `needed`.
    Truncated {
        what: &'static str,
        needed: u64,
        len: u64,
    },
}

impl Cut {
    pub(crate) fn error(self) -> Error {
        match self {
            Self::Unfinished { len } => Error::Unfinished { len },
            Self::Truncated { what, needed, len } => Error::Truncated { what, needed, len },
        }
    }
}

impl<'a, R: Read> FileRecords<'a, R> {
    /// The records of `input` from byte `at` on, up to `end` or to where it ends.
    pub(crate) fn new(
        input: &'a mut R,
        (at, end): (u64, Option<u64>),
        ahead: VecDeque<Vec<u8>>,
        events: &[RecordedEvent],
        order: ByteOrder,
        cut: Option<Cut>,
    ) -> Self {
        Self {
            source: Source {
                input: BufReader::with_capacity(READ_AHEAD, input),
                at,
                end,
                order,
            },
            lent: 0,
            is_copied: order == ByteOrder::Swapped || !ahead.is_empty(),
            ahead,
            buffer: Vec::new(),
            foreign: (order == ByteOrder::Swapped).then(|| Foreign::new(events)),
            cut,
            traced: 0,
            #[cfg(feature = "zstd")]
            compressed: None,
        }
    }

    /// Returns the next record; `None` after the last. Compressed records are decompressed.
    ///
    /// # Errors
    /// After the last whole record of a file that was cut: [`Unfinished`](Error::Unfinished) where its recording
    /// was ended before it could say its length, [`Truncated`](Error::Truncated) where it says more than there
    /// is.
    /// [`Malformed`](Error::Malformed) when it is shorter than its header or longer than what is left, or
    /// compressed data are damaged; [`Truncated`](Error::Truncated) when the input ends too early;
    /// [`Unsupported`](Error::Unsupported) when it is compressed and this crate was built without the
    /// feature `zstd`; [`Io`](Error::Io).
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<RawRecord<'_>>> {
        self.source.input.consume(std::mem::take(&mut self.lent));
        if let Some(start) = self.start_of_next() {
            self.lent = start.len;
            self.source.at += start.len as u64;
            return Ok(RawRecord::with_start(start, self.source.input.buffer()));
        }
        Ok(match self.copy_next()? {
            true => RawRecord::at_start(&self.buffer),
            false => None,
        })
    }

    /// Returns the offset of the next record, in bytes from the start of the input.
    pub fn offset(&self) -> u64 {
        self.source.at
    }

    /// Returns the number of bytes of hardware traces (Intel PT, Arm ETM) that were passed over so far.
    pub fn traced(&self) -> u64 {
        self.traced
    }

    /// Returns the header of the next record, if it was read ahead as a whole and needs no more than to be lent.
    #[inline(always)]
    fn start_of_next(&self) -> Option<RecordStart> {
        if self.is_copied {
            return None;
        }
        let buffer = self.source.input.buffer();
        let start = RecordStart::read(buffer)?;
        let is_within = match self.source.end {
            Some(end) => self.source.at.saturating_add(start.len as u64) <= end,
            None => true,
        };
        let is_lent =
            start.len <= buffer.len() && is_within && !is_followed_or_compressed(start.kind);
        is_lent.then_some(start)
    }

    /// Copies the next record into the buffer; false after the last.
    fn copy_next(&mut self) -> Result<bool> {
        loop {
            if self.decompressed()? {
                break;
            }
            let offset = self.source.at;
            if let Some(record) = self.ahead.pop_front() {
                self.is_copied = self.foreign.is_some() || !self.ahead.is_empty();
                self.buffer = record;
            } else {
                match (self.source.read(&mut self.buffer), self.cut.take()) {
                    (Ok(true), cut) => self.cut = cut,
                    (
                        Ok(false)
                        | Err(Error::Malformed {
                            what: NOT_WHOLE, ..
                        }),
                        Some(cut),
                    ) => {
                        return Err(cut.error());
                    }
                    (Ok(false), None) => return Ok(false),
                    (Err(error), _) => return Err(error),
                }
            }
            match RawRecord::at_start(&self.buffer).map(|record| record.kind()) {
                Some(kind::COMPRESSED) => self.decompress(HEADER_LEN, offset)?,
                Some(kind::COMPRESSED2) => self.decompress(HEADER_LEN + 8, offset)?,
                Some(kind::AUXTRACE) => {
                    // Its first word says how long the trace is that follows.
                    let len = u64_at(&self.buffer, HEADER_LEN).unwrap_or(u64::MAX);
                    let len = self.source.order.u64(len);
                    let skipped = self.source.skip(len, "the data ends within a trace");
                    skipped.map_err(|error| self.cut.map_or(error, Cut::error))?;
                    self.traced = self.traced.saturating_add(len);
                    break;
                }
                // simpleperf's record holds what follows perf's.
                Some(kind::HEADER_TRACING_DATA) if self.buffer.len() == HEADER_LEN + 4 => {
                    let len = u32_at(&self.buffer, HEADER_LEN).unwrap_or(u32::MAX);
                    let len = self.source.order.u32(len);
                    self.source
                        .skip(len.into(), "the data ends within formats")?;
                    break;
                }
                _ => break,
            }
        }
        if let Some(foreign) = &self.foreign {
            foreign.swap(&mut self.buffer);
        }
        Ok(true)
    }

    /// Has the record in the buffer decompressed, whose data begin at `start`.
    #[cfg(feature = "zstd")]
    fn decompress(&mut self, start: usize, offset: u64) -> Result<()> {
        let wrong = || Error::malformed("a compressed record", offset);
        let mut data = self.buffer.get(start..).ok_or_else(wrong)?;
        if start > HEADER_LEN {
            let len = u64_at(&self.buffer, HEADER_LEN).ok_or_else(wrong)?;
            let len = usize::try_from(self.source.order.u64(len)).map_err(|_| wrong())?;
            data = data.get(..len).ok_or_else(wrong)?;
        }
        let compressed = match &mut self.compressed {
            Some(compressed) => compressed,
            none => none.insert(Decompressor::new()?),
        };
        self.is_copied = true;
        compressed.push(data);
        Ok(())
    }

    #[cfg(not(feature = "zstd"))]
    fn decompress(&mut self, _: usize, _: u64) -> Result<()> {
        Err(Error::Unsupported("compressed records"))
    }

    /// Puts the next decompressed record into the buffer; false if there is none that is whole.
    #[cfg(feature = "zstd")]
    fn decompressed(&mut self) -> Result<bool> {
        let Some(compressed) = &mut self.compressed else {
            return Ok(false);
        };
        let at = self.source.at;
        loop {
            let output = compressed.output();
            if let Some(header) = output.first_chunk() {
                let len = self.source.record_len(*header);
                let len = len.ok_or_else(|| Error::malformed(TOO_SHORT, at))?;
                if let Some(record) = output.get(..len) {
                    self.buffer.clear();
                    self.buffer.extend_from_slice(record);
                    self.source.swap_header(&mut self.buffer);
                    compressed.give(len);
                    return Ok(true);
                }
            }
            let more = compressed.decompress();
            if !more.map_err(|_| Error::malformed("compressed data", at))? {
                return Ok(false);
            }
        }
    }

    #[cfg(not(feature = "zstd"))]
    fn decompressed(&mut self) -> Result<bool> {
        Ok(false)
    }
}

/// Returns true for records that are followed by data of another form, or are other records.
#[inline]
fn is_followed_or_compressed(of: u32) -> bool {
    of >= kind::FIRST_OF_USER
        && matches!(
            of,
            kind::COMPRESSED | kind::COMPRESSED2 | kind::AUXTRACE | kind::HEADER_TRACING_DATA
        )
}

/// Error of a record that goes on behind the data.
const NOT_WHOLE: &str = "the data ends within a record";
/// Error of a record whose size is less than that of its header, or more than any has.
const TOO_SHORT: &str = "a record that is shorter than its header, or too long";
/// No record is longer than this; those of the kernel are 64 KiB at most.
const LONGEST: usize = 64 << 20;

/// An input that consists of records.
#[derive(Debug)]
pub(crate) struct Source<R> {
    pub(crate) input: R,
    /// Bytes from the start of the input.
    pub(crate) at: u64,
    /// The offset at which the records end; `None` when that is the end of the input.
    pub(crate) end: Option<u64>,
    pub(crate) order: ByteOrder,
}

impl<R: Read> Source<R> {
    /// Reads the next record into a buffer, its header in this machine's byte order; false if there is
    /// none any more.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        let offset = self.at;
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(offset));
        if left == 0 {
            return Ok(false);
        }
        if left < HEADER_LEN as u64 {
            return Err(Error::malformed(NOT_WHOLE, offset));
        }
        buffer.clear();
        let header = self.input.by_ref().take(HEADER_LEN as u64);
        let read = { header }.read_to_end(buffer)?;
        if read == 0 && self.end.is_none() {
            return Ok(false);
        }
        let Some(header) = buffer.first_chunk() else {
            return Err(self.truncated(offset + HEADER_LEN as u64));
        };
        let len = self.record_len(*header);
        let len = len.ok_or_else(|| Error::malformed(TOO_SHORT, offset))?;
        if len as u64 > left {
            return Err(Error::malformed(NOT_WHOLE, offset));
        }
        buffer.resize(len, 0);
        match self.input.read_exact(&mut buffer[HEADER_LEN..]) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                return Err(self.truncated(offset + len as u64));
            }
            Err(e) => return Err(e.into()),
        }
        self.swap_header(buffer);
        self.at += len as u64;
        Ok(true)
    }

    /// The length of the record with this header, if it is that long at least.
    fn record_len(&self, header: [u8; HEADER_LEN]) -> Option<usize> {
        let [a, b, c, d, misc @ .., low, high] = header;
        let kind = self.order.u32(u32::from_ne_bytes([a, b, c, d]));
        let [misc, size] = [misc, [low, high]].map(|half| self.order.u16(u16::from_ne_bytes(half)));
        let len = record_len(kind, misc, size);
        (HEADER_LEN..=LONGEST).contains(&len).then_some(len)
    }

    fn swap_header(&self, record: &mut [u8]) {
        if let (ByteOrder::Swapped, Some(header)) = (self.order, record.first_chunk_mut()) {
            swap_header(header);
        }
    }

    /// Passes over bytes that follow a record.
    fn skip(&mut self, len: u64, what: &'static str) -> Result<()> {
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.at));
        if len > left {
            return Err(Error::malformed(what, self.at));
        }
        let skipped = io::copy(&mut self.input.by_ref().take(len), &mut io::sink())?;
        if skipped < len {
            return Err(self.truncated(self.at.saturating_add(len)));
        }
        self.at += len;
        Ok(())
    }

    fn truncated(&self, needed: u64) -> Error {
        Error::Truncated {
            what: "its data",
            needed: self.end.unwrap_or(needed),
            len: self.at,
        }
    }
}

/// Layouts of the events, by which the fields of their records are swapped.
#[derive(Debug)]
struct Foreign {
    layouts: Vec<RecordLayout>,
    /// Layouts by the ids of counters, where there are several.
    by_id: HashMap<u64, usize>,
}

impl Foreign {
    fn new(events: &[RecordedEvent]) -> Self {
        let layouts: Vec<_> = events.iter().map(|event| event.attr().layout()).collect();
        let mut by_id = HashMap::new();
        if layouts.iter().any(|layout| *layout != layouts[0]) {
            for (i, event) in events.iter().enumerate() {
                by_id.extend(event.ids().iter().map(|id| (*id, i)));
            }
        }
        Self { layouts, by_id }
    }

    fn swap(&self, record: &mut [u8]) {
        let Some(read) = RawRecord::at_start(record) else {
            return;
        };
        let (of, misc) = (read.kind(), read.misc().0);
        // Events of several layouts have their ids in a place that does not depend on the layout.
        let id = read.identifier().filter(|_| !self.by_id.is_empty());
        let event = id.and_then(|id| self.by_id.get(&id.swap_bytes()));
        let layout = self.layouts.get(event.copied().unwrap_or(0));
        if let (Some(layout), Some(body)) = (layout, record.get_mut(HEADER_LEN..)) {
            swap_body(of, misc, body, layout);
        }
    }
}
