//! Files as a whole: written and read, cut short, and made up by chance.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use proptest::prelude::*;
use quipu_perf_data::record::kind;
use quipu_perf_data::{
    Error, EventAttr, Features, Reader, RecordedEvent, StreamWriter, Writer, synthesized,
};

fn event(ids: &[u64], name: &str) -> RecordedEvent {
    let mut attr = vec![0; 64];
    attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
    let attr = EventAttr::from_bytes(&attr).expect("good");
    RecordedEvent::new(attr, ids.to_vec(), name)
}

fn features() -> Features {
    let mut features = Features::default();
    features.host_name = Some("host".into());
    features.command_line = vec!["quipu".into(), "record".into()];
    features
}

/// A file with two events and three records.
fn file() -> Vec<u8> {
    let events = vec![event(&[1, 2], "a"), event(&[3], "b")];
    let mut writer = Writer::new(Cursor::new(Vec::new()), events).expect("memory");
    let comm = synthesized::comm(1, 1, b"first", 8);
    let fork = synthesized::fork(2, 1, 2, 1, 8);
    writer.write(&[&comm]).expect("memory");
    // A record that lies around the end of a ring.
    writer.write(&[&fork[..11], &fork[11..]]).expect("memory");
    writer.finish_round().expect("memory");
    writer.finish(&features()).expect("memory").into_inner()
}

/// The kinds of the records of a file.
fn kinds(file: &[u8]) -> Result<Vec<u32>, Error> {
    let mut reader = Reader::new(Cursor::new(file))?;
    let mut records = reader.records()?;
    let mut kinds = Vec::new();
    while let Some(record) = records.next_record()? {
        kinds.push(record.kind());
    }
    Ok(kinds)
}

const KINDS: [u32; 3] = [kind::COMM, kind::FORK, kind::FINISHED_ROUND];

#[test]
fn what_was_written_is_read() {
    let file = file();
    assert_eq!(kinds(&file).expect("good"), KINDS);
    let reader = Reader::new(Cursor::new(file)).expect("good");
    assert_eq!(reader.events(), [event(&[1, 2], "a"), event(&[3], "b")]);
    assert_eq!(reader.features(), &features());
}

/// The kinds of the records before an error, and that.
fn kinds_before_error(file: &[u8]) -> (Vec<u32>, Error) {
    let mut kinds = Vec::new();
    let mut read = || {
        let mut reader = Reader::new(Cursor::new(file))?;
        let mut records = reader.records()?;
        while let Some(record) = records.next_record()? {
            kinds.push(record.kind());
        }
        Ok(())
    };
    let error = read().expect_err("it is not whole");
    (kinds, error)
}

#[test]
fn of_every_shorter_file_the_whole_records_are_read_before_the_error() {
    let file = file();
    let word =
        |at: usize| u64::from_ne_bytes(*file[at..].first_chunk().expect("a header")) as usize;
    let (offset, size) = (word(40), word(48));
    let ends: Vec<usize> = [8 + 8 + 8 + 8, 8 + 24 + 8, 8]
        .iter()
        .scan(offset, |end, len| {
            *end += len;
            Some(*end)
        })
        .collect();
    assert_eq!(ends.last(), Some(&(offset + size)));
    for len in 0..file.len() {
        let (kinds, error) = kinds_before_error(&file[..len]);
        let whole = ends.iter().filter(|end| **end <= len).count();
        assert_eq!(kinds, KINDS[..whole], "{len} of {}", file.len());
        let is_cut = matches!(error, Error::Truncated { len: told, .. } if told == len as u64);
        assert!(is_cut || len < offset, "{len}: {error}");
    }
}

/// A disk on which only so much fits.
struct Disk {
    content: Cursor<Vec<u8>>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.content.position() as usize;
        let fits = self.room.saturating_sub(at).min(bytes.len());
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.content.write(&bytes[..fits])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.content.seek(to)
    }
}

impl Read for Disk {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.content.read(out)
    }
}

#[test]
fn a_full_disk_keeps_the_records_that_fitted() {
    let comm = synthesized::comm(1, 1, b"name", 0);
    let (before, batch) = (file().len(), comm.repeat(3));
    for room in before..before + 8 * comm.len() {
        let disk = Disk {
            content: Cursor::default(),
            room,
        };
        let mut writer = Writer::new(disk, vec![event(&[1], "a")]).expect("it fits");
        let start = writer.data_end() as usize;
        let error = loop {
            if let Err(error) = writer.write(&[&batch[..10], &batch[10..70], &batch[70..]]) {
                break error;
            }
        };
        assert!(matches!(error, Error::Io(e) if e.kind() == io::ErrorKind::StorageFull));
        let disk = writer.cut().expect("the header has its place");
        let (kinds, error) = kinds_before_error(disk.content.get_ref());
        // The last one that fits stands for what does not, if there is nothing of that.
        let records = (room - start).saturating_sub(1) / comm.len();
        let whole = match (room - start) % batch.len() {
            0 => (room - start) / comm.len(),
            _ => records,
        };
        assert_eq!(kinds.len(), whole, "{room}");
        assert!(matches!(error, Error::Unfinished { len } if len == room as u64));
    }
}

#[test]
fn a_recorder_that_was_killed_leaves_what_it_wrote() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event(&[1], "a")]).expect("memory");
    writer
        .write(&[&synthesized::comm(1, 1, b"name", 0)])
        .expect("memory");
    // The header was not completed.
    let mut file = writer.cut().expect("memory").into_inner();
    assert_eq!(file[48..56], [0; 8]);
    for features in [0, 0xff] {
        // perf says at once which features it will write.
        file[72] = features;
        for more in [&[][..], &[9, 0, 0, 0]] {
            let file = [&file, more].concat();
            let (kinds, error) = kinds_before_error(&file);
            assert_eq!(kinds, [kind::COMM]);
            let len = file.len() as u64;
            assert!(matches!(error, Error::Unfinished { len: told } if told == len));
        }
    }
}

#[test]
fn a_recording_of_nothing_is_whole() {
    for features in [features(), Features::default()] {
        let writer = Writer::new(Cursor::new(Vec::new()), vec![event(&[1], "a")]).expect("memory");
        let file = writer.finish(&features).expect("memory").into_inner();
        assert_eq!(kinds(&file).expect("good"), []);
    }
}

#[test]
fn attributes_of_different_sizes_become_alike() {
    let attr = |len: u32, used: usize| {
        let mut bytes = vec![0; len as usize];
        bytes[used] = 1;
        bytes[4..8].copy_from_slice(&len.to_ne_bytes());
        RecordedEvent::new(EventAttr::from_bytes(&bytes).expect("good"), vec![], "x")
    };
    let both = vec![attr(64, 8), attr(144, 90)];
    let writer = Writer::new(Cursor::new(Vec::new()), both).expect("memory");
    let file = writer.finish(&features()).expect("memory");
    let reader = Reader::new(file).expect("good");
    let lengths = reader.events().iter().map(|e| e.attr().bytes().len());
    assert_eq!(lengths.collect::<Vec<_>>(), [96, 96]);
    assert_eq!(reader.events()[1].attr().bytes()[90], 1);
}

/// A stream that was written, its events, and the bytes that the writer says there are.
fn stream(events: &[RecordedEvent], features: &Features) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = StreamWriter::new(&mut stream, events, features).expect("memory");
    let comm = synthesized::comm(1, 1, b"first", 8);
    writer.write(&[&comm[..11], &comm[11..]]).expect("memory");
    writer.finish_round().expect("memory");
    let written = writer.written();
    assert_eq!(written, stream.len() as u64);
    stream
}

#[test]
fn a_stream_that_was_written_is_read() {
    let mut features = features();
    features.tracing_data = Some(b"13 characters".to_vec());
    features.sample_time = Some((1, 2));
    let mut long = vec![0; 144];
    long[4..8].copy_from_slice(&144u32.to_ne_bytes());
    long[140] = 1;
    let long = EventAttr::from_bytes(&long).expect("good");
    let events = [event(&[1, 2], "a"), RecordedEvent::new(long, vec![3], "b")];
    let stream = stream(&events, &features);
    let mut reader = Reader::from_stream(&stream[..]).expect("good");
    let read: Vec<_> = reader
        .events()
        .iter()
        .map(|e| (e.name(), e.ids()))
        .collect();
    assert_eq!(read, [(Some("a"), &[1, 2][..]), (Some("b"), &[3])]);
    let lengths = reader.events().iter().map(|e| e.attr().bytes().len());
    assert_eq!(lengths.collect::<Vec<_>>(), [128, 144]);
    // Formats are padded, and times are known at the end only.
    features.tracing_data = Some(b"13 characters\0\0\0".to_vec());
    features.sample_time = None;
    assert_eq!(reader.features(), &features);
    let mut records = reader.stream_records();
    let mut kinds = Vec::new();
    while let Some(record) = records.next_record().expect("good") {
        kinds.push(record.kind());
    }
    let names = [kind::EVENT_UPDATE; 2];
    assert_eq!(
        kinds,
        [&names[..], &[kind::COMM, kind::FINISHED_ROUND]].concat()
    );
}

#[test]
fn a_stream_is_refused_at_the_record_that_makes_no_sense() {
    let stream = stream(&[event(&[1], "a")], &Features::default());
    // Behind the start and the event.
    let at = 16 + 8 + 128 + 8;
    assert!(Reader::from_stream(&stream[..at]).is_ok());
    for of in [kind::HEADER_FEATURE, kind::HEADER_TRACING_DATA] {
        for len in [0u16, 3] {
            let mut bytes = stream[..at].to_vec();
            bytes.extend(of.to_ne_bytes());
            bytes.extend([0, 8 + len].map(u16::to_ne_bytes).concat());
            bytes.extend(vec![0; len.into()]);
            let Err(Error::Malformed { offset, .. }) = Reader::from_stream(&bytes[..]) else {
                panic!("{of} of {len} bytes");
            };
            assert_eq!(offset, at as u64);
        }
    }
    // A description that is left out, and where it is.
    let mut bytes = stream[..at].to_vec();
    bytes.extend(kind::HEADER_FEATURE.to_ne_bytes());
    bytes.extend([0u16, 18].map(u16::to_ne_bytes).concat());
    bytes.extend(3u64.to_ne_bytes());
    bytes.extend([0; 2]);
    let reader = Reader::from_stream(&bytes[..]).expect("the rest is good");
    let left_out = &reader.features().left_out;
    assert_eq!(left_out, &[("HEADER_HOSTNAME", at as u64)]);
    assert!(matches!(
        Reader::from_stream(&stream[..16]),
        Err(Error::Malformed { offset: 16, .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a file says, reading it ends, in an error or not.
    #[test]
    fn any_bytes_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        len in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut file = file();
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if cut {
            file.truncate(len.index(file.len()));
        }
        let _ = kinds(&file);
    }

    /// Sections of any place and size are read within the file or refused.
    #[test]
    fn any_header_is_read_or_refused(word in 2usize..13, value in any::<u64>()) {
        let mut file = file();
        file[8 * word..8 * word + 8].copy_from_slice(&value.to_ne_bytes());
        let _ = kinds(&file);
    }
}
