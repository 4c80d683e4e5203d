//! Reading a file that nobody vouches for.

use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};

use crate::attr::{EventAttr, RecordedEvent};
use crate::bytes::u64_at;
use crate::features::Features;
use crate::header::{self, Header, Section};
use crate::record::{HEADER_LEN, Record, kind};
use crate::{Error, Result};

/// No section but the data is longer than this; in files that make sense, they are a fraction of it.
const LONGEST_SECTION: u64 = 64 << 20;
/// A record can be 64 KiB long; some of them are read at once.
const READ_AHEAD: usize = 256 << 10;

/// A file, its header read and checked.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    len: u64,
    header: Header,
    events: Vec<RecordedEvent>,
    features: Features,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads everything but the records.
    ///
    /// # Errors
    /// Any [`Error`]: the input cannot be read, is no such file, is truncated, or contradicts itself.
    pub fn new(mut input: R) -> Result<Self> {
        let len = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::with_capacity(header::LEN);
        (&mut input)
            .take(header::LEN as u64)
            .read_to_end(&mut bytes)?;
        let mut header = Header::read(&bytes)?;
        if header.data.size == 0 && header.features == [0; 4] {
            // Whoever wrote it was ended before it could say how much there is.
            header.data.size = len.saturating_sub(header.data.offset);
        }
        header.data.checked_end("its data", len)?;
        let mut reader = Self {
            input,
            len,
            header,
            events: Vec::new(),
            features: Features::default(),
        };
        reader.read_events()?;
        reader.read_features()?;
        Ok(reader)
    }

    /// The events that were recorded.
    pub fn events(&self) -> &[RecordedEvent] {
        &self.events
    }

    /// What it tells of the machine and the recording.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// How many bytes of records there are.
    pub fn data_len(&self) -> u64 {
        self.header.data.size
    }

    /// The records, from the first on.
    ///
    /// # Errors
    /// [`Io`](Error::Io).
    pub fn records(&mut self) -> Result<Records<'_, R>> {
        let Section { offset, size } = self.header.data;
        self.input.seek(SeekFrom::Start(offset))?;
        Ok(Records {
            input: BufReader::with_capacity(READ_AHEAD, &mut self.input),
            at: offset,
            end: offset + size,
            buffer: Vec::new(),
        })
    }

    fn section(&mut self, section: Section, what: &'static str) -> Result<Vec<u8>> {
        section.checked_end(what, self.len)?;
        if section.size > LONGEST_SECTION {
            return Err(Error::malformed(what, section.offset));
        }
        self.input.seek(SeekFrom::Start(section.offset))?;
        let mut bytes = vec![0; section.size as usize];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_events(&mut self) -> Result<()> {
        const WHAT: &str = "its list of events";
        let attrs = self.header.attrs;
        let bytes = self.section(attrs, WHAT)?;
        let wrong = || Error::malformed(WHAT, attrs.offset);
        let size = usize::try_from(self.header.attr_size).map_err(|_| wrong())?;
        let attr_len = size.checked_sub(Section::LEN).ok_or_else(wrong)?;
        if attrs.size == 0 || !bytes.len().is_multiple_of(size) {
            return Err(wrong());
        }
        let mut room = LONGEST_SECTION;
        for entry in bytes.chunks_exact(size) {
            let attr = EventAttr::from_bytes(&entry[..attr_len])?;
            let ids = Section::read(entry, attr_len).ok_or_else(wrong)?;
            // Many events may point to the same ids: all of them together are what is limited.
            room = room.checked_sub(ids.size).ok_or_else(wrong)?;
            let ids = self.section(ids, "the ids of its counters")?;
            let ids = (0..ids.len() / 8).filter_map(|i| u64_at(&ids, 8 * i));
            let event = RecordedEvent::nameless(attr, ids.collect());
            self.events.push(event);
        }
        Ok(())
    }

    fn read_features(&mut self) -> Result<()> {
        const WHAT: &str = "what it tells of the machine";
        let numbers: Vec<u32> = self.header.feature_numbers().collect();
        let Section { offset, size } = self.header.data;
        let table = Section {
            offset: offset + size,
            size: (Section::LEN * numbers.len()) as u64,
        };
        let table = self.section(table, WHAT)?;
        for (i, number) in numbers.into_iter().enumerate() {
            let section = Section::read(&table, Section::LEN * i)
                .ok_or_else(|| Error::malformed(WHAT, offset + size))?;
            let bytes = self.section(section, WHAT)?;
            self.features.take(number, &bytes, &mut self.events)?;
        }
        Ok(())
    }
}

/// The records of a file, one after the other.
#[derive(Debug)]
pub struct Records<'a, R> {
    input: BufReader<&'a mut R>,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
}

impl<R: Read + Seek> Records<'_, R> {
    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// [`Malformed`](Error::Malformed) when it is shorter than its header or longer than what is left;
    /// [`Unsupported`](Error::Unsupported) when it is compressed; [`Io`](Error::Io).
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let left = self.end - self.at;
        if left == 0 {
            return Ok(None);
        }
        let offset = self.at;
        let wrong = |what| Error::malformed(what, offset);
        if left < HEADER_LEN as u64 {
            return Err(wrong("the data ends within a record"));
        }
        self.buffer.resize(HEADER_LEN, 0);
        self.fill(0)?;
        let size = u16::from_ne_bytes([self.buffer[6], self.buffer[7]]);
        if usize::from(size) < HEADER_LEN {
            return Err(wrong("a record that is shorter than its header"));
        }
        if u64::from(size) > left {
            return Err(wrong("the data ends within a record"));
        }
        self.buffer.resize(size.into(), 0);
        self.fill(HEADER_LEN)?;
        self.at += u64::from(size);
        let record = Record::at_offset(&self.buffer, offset);
        let record = record.ok_or_else(|| wrong("a record that is not whole"))?;
        match record.kind() {
            kind::COMPRESSED | kind::COMPRESSED2 => {
                return Err(Error::Unsupported("compressed records"));
            }
            kind::AUXTRACE => {
                // Its first word says how long the trace is that follows.
                let len = u64_at(record.body(), 0).unwrap_or(u64::MAX);
                let skipped = i64::try_from(len)
                    .ok()
                    .filter(|_| len <= self.end - self.at);
                let skipped = skipped.ok_or_else(|| wrong("the data ends within a trace"))?;
                self.input.seek_relative(skipped)?;
                self.at += len;
            }
            _ => {}
        }
        Ok(Some(record))
    }

    fn fill(&mut self, from: usize) -> Result<()> {
        match self.input.read_exact(&mut self.buffer[from..]) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Err(Error::Truncated {
                what: "its data",
                needed: self.end,
                len: self.at,
            }),
            Err(e) => Err(e.into()),
        }
    }
}
