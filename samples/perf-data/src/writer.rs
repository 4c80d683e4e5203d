//! Writing a file.

use std::io::{Seek, SeekFrom, Write};

use crate::Result;
use crate::features::Features;
use crate::header::{self, Header, Section};
use crate::record::{HEADER_LEN, RawRecord, kind};
use crate::recorded_event::RecordedEvent;

/// Writes a file: first the events, then records, then the features that describe the recording.
///
/// Until [`finish`](Self::finish) the header says that the file has no data, as that of perf does
/// while it records; [`Reader`](crate::Reader) reads such a file as far as it goes.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    header: Header,
    events: Vec<RecordedEvent>,
}

impl<W: Write + Seek> Writer<W> {
    /// Begins a file at the start of `out`. The attributes of all events get the same size, the shortest
    /// that holds what they say.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io) when it cannot be written.
    pub fn new(mut out: W, events: Vec<RecordedEvent>) -> Result<Self> {
        let lengths = events.iter().map(|event| event.attr().needed_len());
        let attr_len = lengths.max().unwrap_or_default();
        let events: Vec<_> = events
            .into_iter()
            .map(|event| event.resized(attr_len))
            .collect();
        let mut bytes = vec![0; header::LEN];
        let mut entries = Vec::new();
        for event in &events {
            entries.extend_from_slice(event.attr().bytes());
            let ids = Section {
                offset: bytes.len() as u64,
                size: 8 * event.ids().len() as u64,
            };
            ids.write(&mut entries);
            for id in event.ids() {
                bytes.extend_from_slice(&id.to_ne_bytes());
            }
        }
        let attrs = Section {
            offset: bytes.len() as u64,
            size: entries.len() as u64,
        };
        bytes.extend_from_slice(&entries);
        let header = Header {
            event_types: Section::default(),
            attr_size: (attr_len + Section::LEN) as u64,
            attrs,
            data: Section {
                offset: bytes.len() as u64,
                size: 0,
            },
            features: [0; 4],
        };
        bytes[..header::LEN].copy_from_slice(&header.to_bytes());
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&bytes)?;
        Ok(Self {
            out,
            header,
            events,
        })
    }

    /// Appends whole records, which may lie in several pieces.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io). The records that were written whole are part of the file then; nothing more must be
    /// written, and [`cut`](Self::cut) says where they end.
    pub fn write(&mut self, pieces: &[&[u8]]) -> Result<()> {
        for piece in pieces {
            if let Err(error) = self.out.write_all(piece) {
                let end = self.out.seek(SeekFrom::End(0)).unwrap_or(0);
                let written = end.saturating_sub(self.data_end());
                self.header.data.size += whole_records(pieces, written);
                return Err(error.into());
            }
        }
        self.header.data.size += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Says that every buffer has been read once, so that readers know which records can still come.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish_round(&mut self) -> Result<()> {
        self.write(&[&finished_round()])
    }

    /// Returns the events.
    pub fn events(&self) -> &[RecordedEvent] {
        &self.events
    }

    /// Returns the bytes of records.
    pub fn data_len(&self) -> u64 {
        self.header.data.size
    }

    /// Returns the offset at which the records end.
    pub fn data_end(&self) -> u64 {
        self.header.data.offset + self.header.data.size
    }

    /// Writes the features and completes the header.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io). The file is complete without its features then, if so much could be written.
    pub fn finish(mut self, features: &Features) -> Result<W> {
        // First without them: whatever goes wrong from here on, the records can be read.
        self.write_header()?;
        let sections = features.sections(&self.events);
        let mut at = self.data_end() + (Section::LEN * sections.len()) as u64;
        let mut bytes = Vec::new();
        for (number, section) in &sections {
            let size = section.len() as u64;
            Section { offset: at, size }.write(&mut bytes);
            at += size;
            self.header.features[(number / 64) as usize] |= 1 << (number % 64);
        }
        for (_, section) in &sections {
            bytes.extend_from_slice(section);
        }
        self.out.seek(SeekFrom::Start(self.data_end()))?;
        self.out.write_all(&bytes)?;
        self.write_header()?;
        Ok(self.out)
    }

    /// Ends a file on which no more can be written: the header says how many records are whole. What was written of the next
    /// stays behind them, by which [`Reader`](crate::Reader) knows that the recording was not finished. Where there is
    /// nothing of it, the header goes on to say that there are no data, which it knows likewise.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io) when not even that can be written.
    pub fn cut(mut self) -> Result<W> {
        if self.out.seek(SeekFrom::End(0))? > self.data_end() {
            self.write_header()?;
        }
        Ok(self.out)
    }

    fn write_header(&mut self) -> Result<()> {
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.header.to_bytes())?;
        self.out.flush()?;
        Ok(())
    }
}

/// Returns the length of the records at the start of these pieces that are within `written` bytes, and behind which there
/// is something of another.
fn whole_records(pieces: &[&[u8]], written: u64) -> u64 {
    let bytes = pieces.concat();
    let fitted = &bytes[..bytes.len().min(written as usize)];
    let mut end = 0;
    while let Some(record) = RawRecord::at_start(&fitted[end..]) {
        let next = end + record.bytes().len();
        if next == end || next >= fitted.len() {
            break;
        }
        end = next;
    }
    end as u64
}

/// The record that says that every buffer has been read once.
pub(crate) fn finished_round() -> [u8; HEADER_LEN] {
    let mut record = [0; HEADER_LEN];
    record[..4].copy_from_slice(&kind::FINISHED_ROUND.to_ne_bytes());
    record[6..].copy_from_slice(&(HEADER_LEN as u16).to_ne_bytes());
    record
}
