//! Writing a stream.

use std::io::Write;

use crate::Result;
use crate::features::{Features, is_of_streams};
use crate::header::Start;
use crate::record::{HEADER_LEN, kind};
use crate::recorded_event::RecordedEvent;
use crate::synthesized;
use crate::writer::finished_round;

/// Writes a stream, the pipe mode of `perf record -o -` (`tools/perf/Documentation/perf.data-file-format.txt`, "Pipe-mode
/// data"): the description of the recording comes first, and nothing that was written is changed later.
///
/// ```
/// use quipu_perf_data::{EventAttr, Features, Reader, RecordedEvent, StreamWriter, synthesized};
///
/// let mut attr = [0; 64];
/// attr[4..8].copy_from_slice(&64u32.to_ne_bytes()); // perf_event_attr.size
/// let event = RecordedEvent::new(EventAttr::from_bytes(&attr)?, vec![1], "cycles");
/// let mut stream = Vec::new();
/// let mut writer = StreamWriter::new(&mut stream, &[event], &Features::default())?;
/// writer.write(&[&synthesized::comm(7, 7, b"make", 0)])?;
///
/// let mut reader = Reader::from_stream(stream.as_slice())?;
/// assert_eq!(reader.events()[0].name(), Some("cycles"));
/// assert!(reader.stream_records().next_record()?.is_some());
/// # Ok::<_, quipu_perf_data::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamWriter<W> {
    out: W,
    len: u64,
}

/// The size of `struct perf_event_attr` that readers before Linux 6.4 expect, whatever the size that it says.
const ATTR_LEN: usize = 128;

impl<W: Write> StreamWriter<W> {
    /// Begins a stream with the events and the description of the recording. Build ids and the times of samples,
    /// which are known at the end only, are left out of it.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io) when it cannot be written.
    pub fn new(out: W, events: &[RecordedEvent], features: &Features) -> Result<Self> {
        let mut start = Start::of_stream();
        for event in events {
            let len = event.attr().needed_len().max(ATTR_LEN);
            let attr = event.attr().resized(len);
            let ids: Vec<u8> = event.ids().iter().flat_map(|id| id.to_ne_bytes()).collect();
            // A record cannot hold the ids of more counters than 8,000.
            push(&mut start, kind::HEADER_ATTR, &[attr.bytes(), &ids]);
        }
        for (number, section) in features.sections(events) {
            if is_of_streams(number) {
                let number = u64::from(number).to_ne_bytes();
                push(&mut start, kind::HEADER_FEATURE, &[&number, &section]);
            }
        }
        for event in events {
            if let (Some(id), Some(name)) = (event.ids().first(), event.name()) {
                start.extend(synthesized::event_name(*id, name));
            }
        }
        if let Some(formats) = &features.tracing_data {
            // They follow the record, which holds their length.
            let padded = formats.len().next_multiple_of(8);
            let len = u32::try_from(padded).unwrap_or(u32::MAX);
            push(&mut start, kind::HEADER_TRACING_DATA, &[&len.to_ne_bytes()]);
            start.extend_from_slice(formats);
            start.resize(start.len() + padded - formats.len(), 0);
        }
        let mut writer = Self { out, len: 0 };
        writer.write(&[&start])?;
        Ok(writer)
    }

    /// Appends whole records, which may lie in several pieces.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io).
    pub fn write(&mut self, pieces: &[&[u8]]) -> Result<()> {
        for piece in pieces {
            self.out.write_all(piece)?;
            self.len += piece.len() as u64;
        }
        Ok(())
    }

    /// Says that every buffer has been read once, so that readers know which records can still come.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish_round(&mut self) -> Result<()> {
        self.write(&[&finished_round()])?;
        Ok(self.out.flush()?)
    }

    /// Returns the number of bytes written.
    pub fn written(&self) -> u64 {
        self.len
    }
}

/// Appends a record, unless it is longer than a record can be.
fn push(out: &mut Vec<u8>, kind: u32, body: &[&[u8]]) {
    let len = body.iter().map(|piece| piece.len()).sum::<usize>() + HEADER_LEN;
    let padded = match kind {
        // Its size says how many words of data follow.
        kind::HEADER_TRACING_DATA => len,
        _ => len.next_multiple_of(8),
    };
    let Ok(size) = u16::try_from(padded) else {
        return;
    };
    let end = out.len() + padded;
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(&0u16.to_ne_bytes());
    out.extend_from_slice(&size.to_ne_bytes());
    body.iter().for_each(|piece| out.extend_from_slice(piece));
    out.resize(end, 0);
}
