//! Reader for untrusted perf.data files.

use std::collections::VecDeque;
use std::io::{Read, Seek, SeekFrom};

use crate::appendix;
use crate::attr::EventAttr;
use crate::build_ids::read_build_ids;
use crate::byte_order::ByteOrder;
use crate::bytes::{u32_at, u64_at};
use crate::event_names;
use crate::features::Features;
use crate::file_records::{Cut, FileRecords, Source};
use crate::header::{self, Header, Section, Start};
use crate::record::{RawRecord, kind};
use crate::recorded_event::RecordedEvent;
use crate::text::until_nul;
use crate::{Error, Result};

/// No section but the data is longer than this; in files that make sense, they are a fraction of it.
const LONGEST_SECTION: u64 = 64 << 20;
/// A record is shorter than this: its length has 16 bits.
const LONGEST_RECORD: u64 = 1 << 16;
/// The list of events in errors.
const EVENTS: &str = "its list of events";
/// The features in errors.
const FEATURES: &str = "its description of the machine";

/// A `perf.data` file or a stream of `perf record -o -`, its header read and checked.
///
/// Reads either byte order; values are in native order.
///
/// ```no_run
/// use quipu_perf_data::{Reader, Record};
///
/// # fn main() -> Result<(), quipu_perf_data::Error> {
/// let mut reader = Reader::new(std::fs::File::open("perf.data")?)?;
/// // In a file of several events, their ids say which a record is of.
/// let layout = reader.events()[0].attr().layout();
/// let mut records = reader.records()?;
/// while let Some(record) = records.next_record()? {
///     if let Record::Sample(sample) = record.decode(&layout)? {
///         println!("{:x?} stands for {:?} events", sample.ip(), sample.period());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    order: ByteOrder,
    data: Data,
    events: Vec<RecordedEvent>,
    features: Features,
    appendix: Option<Vec<u8>>,
    /// Error after the last record that is whole.
    cut: Option<Cut>,
}

/// The place of the records.
#[derive(Debug)]
enum Data {
    /// A section of a file.
    Section(Section),
    /// The rest of a stream from this offset on, after the records that were read to find out that the description of the
    /// recording has ended.
    Stream(u64, VecDeque<Vec<u8>>),
}

impl<R: Read + Seek> Reader<R> {
    /// Reads everything but the records of a file, in which a stream may have been stored. Of one that ends
    /// before its records do, those that are whole can be read; what describes the machine is not there.
    ///
    /// # Errors
    /// Any [`Error`]: the input cannot be read, is no such file, ends before its records begin, or contradicts
    /// itself.
    pub fn new(mut input: R) -> Result<Self> {
        let len = input.seek(SeekFrom::End(0))?;
        input.seek(SeekFrom::Start(0))?;
        let start = read_start(&mut input)?;
        if start.is_stream {
            return Self::after_start(input, start.order);
        }
        let mut bytes = [0; header::LEN - Start::LEN];
        input
            .read_exact(&mut bytes)
            .map_err(|_| Error::NotPerfData)?;
        let mut header = Header::read(bytes, start.order)?;
        let mut sections = Sections {
            input: &mut input,
            len,
            order: start.order,
        };
        let mut cut = sections.cut(&header);
        if cut.is_some() {
            header.data.size = len.saturating_sub(header.data.offset);
            // They come after the data.
            header.features = [0; 4];
        }
        let mut events = sections.read_events(&header)?;
        if start.version == 1 {
            sections.read_types(&header, &mut events)?;
        }
        let mut features = Features::default();
        match sections.read_features(&header, &mut events, &mut features) {
            Err(Error::Truncated { what, needed, len }) => {
                cut = Some(Cut::Truncated { what, needed, len });
            }
            other => other?,
        }
        if events.iter().any(|event| event.name().is_none()) {
            input.seek(SeekFrom::Start(header.data.offset))?;
            let source = Source {
                input: &mut input,
                at: header.data.offset,
                end: Some(header.data.offset.saturating_add(header.data.size)),
                order: start.order,
            };
            event_names::read_first(source, &mut events, &mut features);
            event_names::complete(&mut events, &features);
        }
        let end = header.data.offset.saturating_add(header.data.size);
        let appendix = match cut {
            None => appendix::read(&mut input, (end, len)),
            Some(_) => None,
        };
        // A recorder that could write no more leaves a part of a record, and no features.
        let rest = len.saturating_sub(end);
        let is_part = cut.is_none() && appendix.is_none() && (1..LONGEST_RECORD).contains(&rest);
        if is_part && header.features == [0; 4] {
            cut = Some(Cut::Unfinished { len });
        }
        Ok(Self {
            input,
            order: start.order,
            data: Data::Section(header.data),
            events,
            features,
            appendix,
            cut,
        })
    }

    /// Returns the records of a file, from the first on; those of a stream can be read once only.
    ///
    /// # Errors
    /// [`Io`](Error::Io).
    pub fn records(&mut self) -> Result<FileRecords<'_, R>> {
        if let Data::Section(section) = self.data {
            self.input.seek(SeekFrom::Start(section.offset))?;
        }
        Ok(self.stream_records())
    }
}

impl<R: Read> Reader<R> {
    /// Reads everything but the records of a stream, as `perf record -o -` writes it, from an input that
    /// cannot seek. It is read no farther than to the end of the first record after that.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Unsupported`](Error::Unsupported) when it has the form of a file.
    pub fn from_stream(mut input: R) -> Result<Self> {
        let start = read_start(&mut input)?;
        if !start.is_stream {
            return Err(Error::Unsupported("the form of a file, not of a stream"));
        }
        Self::after_start(input, start.order)
    }

    fn after_start(input: R, order: ByteOrder) -> Result<Self> {
        let mut source = Source {
            input,
            at: Start::LEN as u64,
            end: None,
            order,
        };
        let (mut events, mut features) = (Vec::new(), Features::default());
        let (mut room, mut record, mut ahead) = (LONGEST_SECTION, Vec::new(), VecDeque::new());
        // The names of events, which may come before the events.
        let mut names = Vec::new();
        while source.read(&mut record)? {
            let wrong = |what| Error::malformed(what, source.at - record.len() as u64);
            room = room
                .checked_sub(record.len() as u64)
                .ok_or_else(|| wrong(FEATURES))?;
            let read = RawRecord::at_start(&record).ok_or_else(|| wrong(FEATURES))?;
            let body = read.body();
            match read.kind() {
                kind::HEADER_ATTR => events.push(event_of(body, order)?),
                kind::HEADER_FEATURE => {
                    let number = u64_at(body, 0).ok_or_else(|| wrong(FEATURES))?;
                    if let Ok(number) = u32::try_from(order.u64(number)) {
                        let at = source.at - record.len() as u64;
                        match Features::has_names(number) {
                            true => names.push((number, at, body[8..].to_owned())),
                            false => features.take(number, (at, &body[8..]), &mut events, order),
                        }
                    }
                }
                kind::EVENT_UPDATE | kind::THREAD_MAP | kind::CPU_MAP => {
                    ahead.push_back(std::mem::take(&mut record));
                }
                kind::STAT_CONFIG => {
                    // In a file it is a feature.
                    features.has_counts = true;
                    ahead.push_back(std::mem::take(&mut record));
                }
                kind::HEADER_BUILD_ID => {
                    // Its header is in this machine's order already, and nothing else is a number.
                    let build_ids = read_build_ids(&record, ByteOrder::Native)?;
                    features.build_ids.extend(build_ids);
                }
                kind::HEADER_TRACING_DATA if body.len() > 4 => {
                    features.tracing_data = event_names::formats_in(body, order);
                }
                kind::HEADER_TRACING_DATA => {
                    let len = u32_at(body, 0).ok_or_else(|| wrong(FEATURES))?;
                    let len = u64::from(order.u32(len));
                    room = room.checked_sub(len).ok_or_else(|| wrong(FEATURES))?;
                    let mut formats = Vec::new();
                    source.input.by_ref().take(len).read_to_end(&mut formats)?;
                    source.at += formats.len() as u64;
                    features.tracing_data = Some(formats);
                }
                // The first record of the recording itself.
                0..kind::FIRST_OF_USER
                | kind::FINISHED_ROUND
                | kind::AUXTRACE
                | kind::COMPRESSED
                | kind::COMPRESSED2
                | kind::STAT
                | kind::STAT_ROUND => {
                    ahead.push_back(std::mem::take(&mut record));
                    break;
                }
                _ => {}
            }
        }
        if events.is_empty() {
            return Err(Error::malformed(EVENTS, Start::LEN as u64));
        }
        for (number, at, section) in names {
            features.take(number, (at, &section), &mut events, order);
        }
        for record in &ahead {
            event_names::take(record, &mut events, order);
        }
        event_names::complete(&mut events, &features);
        Ok(Self {
            data: Data::Stream(source.at, ahead),
            input: source.input,
            order,
            events,
            features,
            appendix: None,
            cut: None,
        })
    }

    /// Returns the events that were recorded.
    pub fn events(&self) -> &[RecordedEvent] {
        &self.events
    }

    /// Returns the description of the machine and the recording.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns what was [appended](crate::append) to a file.
    pub fn appendix(&self) -> Option<&[u8]> {
        self.appendix.as_deref()
    }

    /// Returns the records of a [stream](Self::from_stream), which can be read once only.
    pub fn stream_records(&mut self) -> FileRecords<'_, R> {
        let (range, ahead) = match &mut self.data {
            Data::Section(Section { offset, size }) => {
                ((*offset, Some(*offset + *size)), VecDeque::new())
            }
            Data::Stream(at, ahead) => ((*at, None), std::mem::take(ahead)),
        };
        let input = &mut self.input;
        FileRecords::new(input, range, ahead, &self.events, self.order, self.cut)
    }
}

/// Returns true if an input that begins with these 16 bytes is a [stream](Reader::from_stream), false if it
/// is a file.
///
/// # Errors
/// [`NotPerfData`](Error::NotPerfData) or [`Malformed`](Error::Malformed) when it is neither.
pub fn is_stream(start: &[u8]) -> Result<bool> {
    Ok(Start::read(start)?.is_stream)
}

fn read_start(input: &mut impl Read) -> Result<Start> {
    let mut start = Vec::with_capacity(Start::LEN);
    input.take(Start::LEN as u64).read_to_end(&mut start)?;
    Start::read(&start)
}

/// The event of a record of a stream: its attributes and the ids of its counters.
fn event_of(body: &[u8], order: ByteOrder) -> Result<RecordedEvent> {
    let attr = EventAttr::read(body, order)?;
    let ids = body.get(attr.bytes().len()..).unwrap_or_default();
    let ids = ids.as_chunks().0.iter();
    let ids = ids.map(|id| order.u64(u64::from_ne_bytes(*id))).collect();
    Ok(RecordedEvent::nameless(attr, ids))
}

/// The sections of a file beside its data.
struct Sections<'a, R> {
    input: &'a mut R,
    len: u64,
    order: ByteOrder,
}

impl<R: Read + Seek> Sections<'_, R> {
    /// Returns where the file ends, if that is before its records do.
    fn cut(&mut self, header: &Header) -> Option<Cut> {
        let (Section { offset, size }, len) = (header.data, self.len);
        let needed = offset.saturating_add(size);
        if needed > len {
            let what = "its data";
            return Some(Cut::Truncated { what, needed, len });
        }
        if size > 0 || offset == len {
            return None;
        }
        // Recorders write the length last. Where there are no records, the sections of features follow,
        // of which the first comes right after their table.
        let table = Section::LEN * header.feature_numbers().count();
        let is_table = table > 0 && {
            let first = Section {
                offset,
                size: Section::LEN as u64,
            };
            let first = self.section(first, FEATURES).ok();
            let first = first.and_then(|bytes| self.described(&bytes, 0));
            first.is_some_and(|first| first.offset == offset + table as u64)
        };
        (!is_table).then_some(Cut::Unfinished { len })
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

    fn described(&self, bytes: &[u8], at: usize) -> Option<Section> {
        let section = Section::read(bytes, at)?;
        Some(Section {
            offset: self.order.u64(section.offset),
            size: self.order.u64(section.size),
        })
    }

    fn read_events(&mut self, header: &Header) -> Result<Vec<RecordedEvent>> {
        let attrs = header.attrs;
        let bytes = self.section(attrs, EVENTS)?;
        let wrong = || Error::malformed(EVENTS, attrs.offset);
        let size = usize::try_from(header.attr_size).map_err(|_| wrong())?;
        let attr_len = size.checked_sub(Section::LEN).ok_or_else(wrong)?;
        if attrs.size == 0 || !bytes.len().is_multiple_of(size) {
            return Err(wrong());
        }
        let mut room = LONGEST_SECTION;
        let mut events = Vec::new();
        for entry in bytes.chunks_exact(size) {
            let attr = EventAttr::read(&entry[..attr_len], self.order)?;
            let ids = self.described(entry, attr_len).ok_or_else(wrong)?;
            // Many events may point to the same ids: all of them together are what is limited.
            room = room.checked_sub(ids.size).ok_or_else(wrong)?;
            let mut ids = self.section(ids, "the ids of its counters")?;
            self.order.words(&mut ids);
            let ids = (0..ids.len() / 8).filter_map(|i| u64_at(&ids, 8 * i));
            events.push(RecordedEvent::nameless(attr, ids.collect()));
        }
        Ok(events)
    }

    /// Reads the names of the types of events, which the first version has in a section of their own
    /// (`struct perf_trace_event_type` of Linux 3.5).
    fn read_types(&mut self, header: &Header, events: &mut [RecordedEvent]) -> Result<()> {
        const NAME_LEN: usize = 64;
        let bytes = self.section(header.event_types, EVENTS)?;
        for entry in bytes.chunks_exact(8 + NAME_LEN) {
            let (config, name) = entry.split_at(8);
            let config = u64_at(config, 0).map(|config| self.order.u64(config));
            let name = String::from_utf8_lossy(until_nul(name)).into_owned();
            let is_meant = |event: &&mut RecordedEvent| {
                Some(event.attr().config()) == config && event.name().is_none()
            };
            if !name.is_empty() {
                events
                    .iter_mut()
                    .filter(is_meant)
                    .for_each(|event| event.set_name(name.clone()));
            }
        }
        Ok(())
    }

    fn read_features(
        &mut self,
        header: &Header,
        events: &mut [RecordedEvent],
        features: &mut Features,
    ) -> Result<()> {
        let numbers: Vec<u32> = header.feature_numbers().collect();
        let Section { offset, size } = header.data;
        let table = Section {
            offset: offset + size,
            size: (Section::LEN * numbers.len()) as u64,
        };
        let table = self.section(table, FEATURES)?;
        for (i, number) in numbers.into_iter().enumerate() {
            let section = self
                .described(&table, Section::LEN * i)
                .ok_or_else(|| Error::malformed(FEATURES, offset + size))?;
            match self.section(section, FEATURES) {
                Ok(bytes) => {
                    features.take(number, (section.offset, &bytes), events, self.order);
                }
                Err(Error::Malformed { .. }) => features.leave_out(number, section.offset),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
