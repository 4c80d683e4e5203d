//! One recording in every form that it can have: file or stream, either byte order, compressed or not.

use std::io::{Cursor, Read};

use quipu_perf_data::record::kind;
use quipu_perf_data::stat::{StatConfig, StatCount, StatRecord, StatRound};
use quipu_perf_data::{Error, FileRecords, Reader, Record, RecordedEvent, is_stream};

/// Numbers in the byte order of a machine.
pub(crate) struct Out {
    swapped: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Out {
    pub(crate) fn new(swapped: bool) -> Self {
        let bytes = Vec::new();
        Self { swapped, bytes }
    }

    fn number(&mut self, mut bytes: Vec<u8>) {
        if self.swapped {
            bytes.reverse();
        }
        self.bytes.extend(bytes);
    }

    pub(crate) fn u16(mut self, number: u16) -> Self {
        self.number(number.to_ne_bytes().to_vec());
        self
    }

    pub(crate) fn u32(mut self, number: u32) -> Self {
        self.number(number.to_ne_bytes().to_vec());
        self
    }

    pub(crate) fn u64(mut self, number: u64) -> Self {
        self.number(number.to_ne_bytes().to_vec());
        self
    }

    pub(crate) fn words(self, numbers: &[u64]) -> Self {
        numbers.iter().fold(self, |out, number| out.u64(*number))
    }

    /// Bit-fields of 64 bits in all, by their values and lengths: C begins with the low bits on little-endian machines, and with
    /// the high ones on others.
    pub(crate) fn bits(self, fields: &[(u64, u32)]) -> Self {
        let is_big = self.swapped != cfg!(target_endian = "big");
        let (mut word, mut low) = (0, 0);
        for (value, len) in fields {
            word |= value << if is_big { 64 - low - len } else { low };
            low += len;
        }
        self.u64(word)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }
}

/// `PERF_CONTEXT_USER`.
const USER: u64 = -512_i64 as u64;
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8 | 1 << 10 | 1 << 16;
const TEXT: &[u8] = b"/bin/a\0\0";

pub(crate) fn record(swapped: bool, of: u32, misc: u16, body: &Out) -> Vec<u8> {
    let size = u16::try_from(8 + body.bytes.len()).expect("short");
    let header = Out::new(swapped).u32(of).u16(misc).u16(size);
    header.bytes(&body.bytes).bytes
}

/// tid, time and identifier.
fn with_trailer(out: Out, time: u64) -> Out {
    out.u32(7).u32(8).u64(time).u64(41)
}

pub(crate) fn attr(swapped: bool) -> Vec<u8> {
    Out::new(swapped)
        .u32(1)
        .u32(64)
        .words(&[0, 1000, SAMPLE_TYPE, 0])
        .bits(&[(0, 18), (1, 1), (0, 45)]) // sample_id_all
        .u32(0)
        .u32(0)
        .u64(0)
        .bytes
}

/// A mapping, and samples of several sizes.
fn records(swapped: bool) -> Vec<Vec<u8>> {
    let new = || Out::new(swapped);
    let mapping = new().u32(7).u32(8).words(&[0x1000, 0x2000, 0x3000]);
    let mapping = mapping
        .u32(8)
        .u32(1)
        .words(&[77, 0])
        .u32(5)
        .u32(2)
        .bytes(TEXT);
    let mut all = vec![record(swapped, kind::MMAP2, 2, &with_trailer(mapping, 5))];
    for i in 0..40 {
        let out = new().words(&[41, 0x1100]).u32(7).u32(8).words(&[10 + i, 3]);
        let out = out.words(&[2, USER, 0x1200 + i]);
        let raw = out.u32(12).bytes(&[1; 12]);
        all.push(record(swapped, kind::SAMPLE, 2, &raw));
    }
    all
}

fn data(swapped: bool) -> Vec<u8> {
    records(swapped).concat()
}

fn file(swapped: bool, data: &[u8]) -> Vec<u8> {
    let host = Out::new(swapped).u32(64).bytes(b"hosty").bytes(&[0; 59]);
    file_with(swapped, &attr(swapped), data, &[(3, host.bytes)])
}

/// A file of one event, with features below 192 by their numbers.
pub(crate) fn file_with(
    swapped: bool,
    attr: &[u8],
    data: &[u8],
    features: &[(u32, Vec<u8>)],
) -> Vec<u8> {
    let (attrs, entry, len) = (104, attr.len() as u64 + 16, data.len() as u64);
    let (ids, start) = (attrs + entry, attrs + entry + 8);
    let bits = |of: u32| {
        let numbers = features.iter().map(|(number, _)| number);
        numbers
            .filter(|n| **n / 64 == of)
            .fold(0, |bits, n| bits | 1u64 << (n % 64))
    };
    let header = Out::new(swapped).u64(u64::from_le_bytes(*b"PERFILE2"));
    let header = header.words(&[104, entry, attrs, entry, start, len, 0, 0]);
    let header = header.words(&[bits(0), bits(1), bits(2), 0]).bytes(attr);
    let mut out = header.words(&[ids, 8]).u64(41).bytes(data);
    let mut at = start + len + 16 * features.len() as u64;
    for (_, section) in features {
        out = out.words(&[at, section.len() as u64]);
        at += section.len() as u64;
    }
    features
        .iter()
        .fold(out, |out, (_, section)| out.bytes(section))
        .bytes
}

fn stream(swapped: bool, data: &[u8]) -> Vec<u8> {
    let new = || Out::new(swapped);
    let start = new().u64(u64::from_le_bytes(*b"PERFILE2")).u64(16);
    let event = new().bytes(&attr(swapped)).u64(41);
    let host = new().u64(3).u32(64).bytes(b"hosty").bytes(&[0; 59]);
    let formats = record(swapped, kind::HEADER_TRACING_DATA, 0, &new().u32(8));
    let start = start.bytes(&record(swapped, kind::HEADER_ATTR, 0, &event));
    let start = start.bytes(&record(swapped, kind::HEADER_FEATURE, 0, &host));
    start.bytes(&formats).bytes(b"formats!").bytes(data).bytes
}

/// The data in one zstd frame that does not end, in records of `piece` bytes, as perf writes it, behind `plain` records.
#[cfg(feature = "zstd")]
fn compressed(swapped: bool, piece: usize, with_len: bool, plain: usize) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
    let records = records(swapped);
    for record in &records[plain..] {
        encoder.write_all(record).expect("memory");
        encoder.flush().expect("memory");
    }
    let pieces = encoder.get_ref().chunks(piece).map(|piece| {
        let out = Out::new(swapped);
        match with_len {
            false => record(swapped, kind::COMPRESSED, 0, &out.bytes(piece)),
            true => {
                let out = out.u64(piece.len() as u64).bytes(piece).bytes(&[0; 5]);
                record(swapped, kind::COMPRESSED2, 0, &out)
            }
        }
    });
    let pieces: Vec<_> = pieces.collect();
    [&records[..plain], &pieces].concat().concat()
}

/// Everything that is read, with the numbers that matter.
fn read<R: Read>(events: &[RecordedEvent], mut records: FileRecords<'_, R>) -> Vec<[u64; 5]> {
    let layout = events[0].attr().layout();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().expect("good") {
        all.push(match record.decode(&layout).expect("of the layout") {
            Record::Mapping(mapping) => {
                assert_eq!((mapping.path, mapping.thread.tid), (&TEXT[..6], 8));
                let time = record.sample_id(&layout).and_then(|id| id.time);
                [
                    mapping.address,
                    mapping.len,
                    mapping.file_offset,
                    0,
                    time.expect("there"),
                ]
            }
            Record::Sample(sample) => {
                assert_eq!(sample.raw(), Some(&[1; 12][..]));
                assert_eq!(sample.thread().map(|thread| thread.pid), Some(7));
                let frame = sample.callchain().and_then(|chain| chain.frames().next());
                let frame = frame.expect("a frame").address;
                let [ip, period] = [sample.ip(), sample.period()].map(|n| n.expect("there"));
                [
                    ip,
                    period,
                    frame,
                    sample.id().unwrap_or(0),
                    sample.time().expect("there"),
                ]
            }
            other => panic!("{other:?}"),
        });
    }
    all
}

fn expected() -> Vec<[u64; 5]> {
    let sample = |i: u64| [0x1100, 3, 0x1200 + i, 41, 10 + i];
    [[0x1000, 0x2000, 0x3000, 0, 5]]
        .into_iter()
        .chain((0..40).map(sample))
        .collect()
}

fn check(bytes: &[u8], form: &str) {
    let mut reader = Reader::new(Cursor::new(bytes)).expect(form);
    let events = reader.events().to_vec();
    assert_eq!(
        reader.features().host_name.as_deref(),
        Some("hosty"),
        "{form}"
    );
    assert_eq!(events[0].ids(), [41], "{form}");
    assert_eq!(events[0].attr().period_or_frequency(), 1000, "{form}");
    let all = read(&events, reader.records().expect("seeks"));
    assert_eq!(all, expected(), "{form}");
    if is_stream(bytes).expect("good") {
        let mut reader = Reader::from_stream(bytes).expect(form);
        assert_eq!(
            reader.features().tracing_data.as_deref(),
            Some(&b"formats!"[..])
        );
        assert_eq!(read(&events, reader.stream_records()), expected(), "{form}");
    } else {
        let refused = Reader::from_stream(bytes);
        assert!(matches!(refused, Err(Error::Unsupported(_))), "{form}");
    }
}

#[test]
fn every_form_is_read_alike() {
    for swapped in [false, true] {
        let data = data(swapped);
        check(&file(swapped, &data), &format!("file, swapped: {swapped}"));
        check(
            &stream(swapped, &data),
            &format!("stream, swapped: {swapped}"),
        );
    }
}

#[test]
#[cfg(feature = "zstd")]
fn compressed_records_are_read_alike() {
    for (swapped, with_len, plain) in [
        (false, false, 0),
        (false, true, 0),
        (false, false, 1),
        (false, true, 20),
        (true, true, 0),
        (true, true, 1),
    ] {
        for piece in [1, 7, 100, 60000] {
            let data = compressed(swapped, piece, with_len, plain);
            let form = format!("swapped: {swapped}, with length: {with_len}, {piece} bytes each");
            check(&file(swapped, &data), &form);
            check(&stream(swapped, &data), &form);
        }
    }
}

/// Reads what comes between the description of a stream and the first count.
#[test]
fn counts_of_streams_have_all_that_was_told_of_them() {
    for swapped in [false, true] {
        let new = || Out::new(swapped);
        let records = [
            (
                kind::EVENT_UPDATE,
                new().words(&[0, 41]).bytes(b"msec\0\0\0\0"),
            ),
            (
                kind::EVENT_UPDATE,
                new().words(&[2, 41]).bytes(b"clock\0\0\0"),
            ),
            (
                kind::THREAD_MAP,
                new().words(&[1, 12]).bytes(b"sleep").bytes(&[0; 11]),
            ),
            (kind::CPU_MAP, new().u16(0).u16(1).u16(u16::MAX).u16(0)),
            (kind::STAT_CONFIG, new().words(&[3, 0, 1, 1, 0, 2, 1])),
            (
                kind::STAT,
                new().u64(41).u32(u32::MAX).u32(0).words(&[5, 7, 6]),
            ),
            (kind::STAT_ROUND, new().words(&[1, 9])),
        ];
        let data: Vec<u8> = records
            .iter()
            .flat_map(|(of, body)| record(swapped, *of, 0, body))
            .collect();
        let bytes = stream(swapped, &data);
        let mut reader = Reader::from_stream(bytes.as_slice()).expect("good");
        assert!(reader.features().has_counts);
        assert_eq!(reader.events()[0].name(), Some("clock"));
        let mut records = reader.stream_records();
        let mut all = Vec::new();
        while let Some(record) = records.next_record().expect("good") {
            all.extend(StatRecord::decode(&record).expect("good"));
        }
        let count = StatCount {
            id: 41,
            value: 5,
            enabled: 7,
            running: 6,
            ..StatCount::default()
        };
        let round = StatRound {
            is_final: true,
            time: 9,
        };
        let expected = [
            StatRecord::Unit(41, "msec".into()),
            StatRecord::Threads(vec![(12, "sleep".into())]),
            StatRecord::Cpus(vec![None]),
            StatRecord::Config(StatConfig::new(1, 0)),
            StatRecord::Count(count),
            StatRecord::Round(round),
        ];
        assert_eq!(all, expected, "swapped: {swapped}");
    }
}

/// Every form, cut anywhere and with every byte changed, is read or refused without a panic.
#[test]
fn damaged_forms_are_survived() {
    let forms = [
        file(true, &data(true)[..300]),
        stream(false, &data(false)[..300]),
        stream(true, &data(true)[..300]),
        #[cfg(feature = "zstd")]
        stream(false, &compressed(false, 200, true, 0)),
    ];
    let drain = |bytes: &[u8]| {
        if let Ok(mut reader) = Reader::new(Cursor::new(bytes)) {
            let layout = reader.events()[0].attr().layout();
            let mut records = reader.records().expect("seeks");
            while let Ok(Some(record)) = records.next_record() {
                let _ = record.decode(&layout);
            }
        }
    };
    for mut form in forms {
        for len in 0..form.len() {
            drain(&form[..len]);
        }
        for at in 0..form.len() {
            form[at] ^= 0xff;
            drain(&form);
            form[at] ^= 0xff;
        }
    }
}

/// perf until 3.5 began files with other letters, and had the names of events in a section of their own.
#[test]
fn files_of_the_first_version_are_read() {
    for swapped in [false, true] {
        let mut file = file(swapped, &data(swapped));
        let names = file.len() as u64;
        let name = Out::new(swapped).u64(0).bytes(b"cpu-clock").bytes(&[0; 55]);
        file.extend(name.bytes);
        file[..8].copy_from_slice(b"PERFFILE");
        let section = Out::new(swapped).words(&[names, 72]);
        file[56..72].copy_from_slice(&section.bytes);
        assert!(!is_stream(&file).expect("a file"));
        let mut reader = Reader::new(Cursor::new(&file[..])).expect("good");
        assert_eq!(reader.events()[0].name(), Some("cpu-clock"));
        // Of another event, and without a name.
        for (at, byte) in [(names as usize, 9), (names as usize + 8, 0)] {
            let mut other = file.clone();
            other[at] = byte;
            let reader = Reader::new(Cursor::new(&other[..])).expect("good");
            assert_eq!(reader.events()[0].name(), None);
        }
        let events = reader.events().to_vec();
        assert_eq!(read(&events, reader.records().expect("seeks")), expected());
    }
}

#[test]
fn a_section_that_makes_no_sense_is_left_out_and_named() {
    let whole = file(false, &data(false));
    let (table, section) = (whole.len() - 68 - 16, whole.len() as u64 - 68);
    for len in [0u64, 3, 40] {
        let mut file = whole.clone();
        file[table + 8..table + 16].copy_from_slice(&len.to_ne_bytes());
        let mut reader = Reader::new(Cursor::new(&file[..])).expect("good");
        assert_eq!(reader.features().left_out, [("HEADER_HOSTNAME", section)]);
        assert_eq!(reader.features().host_name, None);
        let events = reader.events().to_vec();
        assert_eq!(read(&events, reader.records().expect("seeks")), expected());
    }
}

/// Hardware traces (Intel PT, Arm ETM) and formats follow their records, and are passed over.
#[test]
fn data_that_follow_records_are_no_records() {
    for swapped in [false, true] {
        let all = records(swapped);
        // The longer one is more than what is read ahead.
        let trace = |len: u64| {
            let body = Out::new(swapped)
                .words(&[len, 0, 7])
                .u32(0)
                .u32(8)
                .u32(3)
                .u32(0);
            [
                record(swapped, kind::AUXTRACE, 0, &body),
                vec![0xff; len as usize],
            ]
            .concat()
        };
        let formats = record(
            swapped,
            kind::HEADER_TRACING_DATA,
            0,
            &Out::new(swapped).u32(13),
        );
        let formats = [&formats[..], &[0xff; 13]].concat();
        let data = [
            &all[..9],
            &[trace(301)],
            &all[9..10],
            &[formats],
            &[trace(1 << 20)],
            &all[10..],
        ];
        let data = data.map(<[Vec<u8>]>::concat).concat();
        for bytes in [file(swapped, &data), stream(swapped, &data)] {
            let mut reader = Reader::new(Cursor::new(&bytes[..])).expect("good");
            let mut records = reader.records().expect("seeks");
            let mut kinds = Vec::new();
            while let Some(record) = records.next_record().expect("good") {
                kinds.push(record.kind());
            }
            let samples = |n| vec![kind::SAMPLE; n];
            let expected = [
                vec![kind::MMAP2],
                samples(8),
                vec![kind::AUXTRACE],
                samples(1),
                vec![kind::HEADER_TRACING_DATA, kind::AUXTRACE],
                samples(31),
            ];
            assert_eq!(kinds, expected.concat(), "swapped: {swapped}");
            assert_eq!(records.traced(), 301 + (1 << 20));
        }
        // Traces that end with the data, or too early.
        let data = [all.concat(), trace(30)].concat();
        for cut in 0..30 {
            let bytes = file(swapped, &data[..data.len() - cut]);
            let mut reader = Reader::new(Cursor::new(&bytes[..])).expect("good");
            let mut records = reader.records().expect("seeks");
            let whole = (0..=all.len()).all(|_| matches!(records.next_record(), Ok(Some(_))));
            assert_eq!(whole, cut == 0, "{cut} bytes are missing");
        }
    }
}

/// simpleperf has formats within their record, and sizes of 32 bits.
#[test]
fn records_of_simpleperf_are_passed_over() {
    for swapped in [false, true] {
        let new = || Out::new(swapped);
        let formats = new().u32(8).bytes(b"formats!").bytes(&[0; 12]);
        let formats = record(swapped, kind::HEADER_TRACING_DATA, 0, &formats);
        let long = new().u32(kind::FIRST_OF_SIMPLEPERF + 2).u16(1).u16(16);
        let long = long.bytes(&vec![7; (1 << 16) + 8]).bytes;
        let data = [&formats[..], &long, &data(swapped)].concat();
        let file = file(swapped, &data);
        let mut reader = Reader::new(Cursor::new(&file[..])).expect("good");
        let events = reader.events().to_vec();
        let mut records = reader.records().expect("seeks");
        for kind in [kind::HEADER_TRACING_DATA, kind::FIRST_OF_SIMPLEPERF + 2] {
            let record = records.next_record().expect("good").expect("a record");
            assert_eq!(record.kind(), kind);
        }
        assert_eq!(read(&events, records), expected());
        let mut stream = stream(swapped, &data);
        // Without perf's own formats, which are behind their record.
        let at = stream
            .windows(8)
            .position(|bytes| bytes == b"formats!")
            .expect("there");
        stream.drain(at - 12..at + 8);
        let reader = Reader::from_stream(&stream[..]).expect("good");
        assert_eq!(
            reader.features().tracing_data.as_deref(),
            Some(&b"formats!"[..])
        );
    }
}

/// Data that are many times as long as their piece come out in several steps.
#[test]
#[cfg(feature = "zstd")]
fn records_that_are_alike_are_decompressed_in_steps() {
    let data = data(false).repeat(200);
    let piece = zstd::encode_all(&data[..], 1).expect("memory");
    let compressed = record(false, kind::COMPRESSED, 0, &Out::new(false).bytes(&piece));
    for frames in [1, 2] {
        let file = file(false, &compressed.repeat(frames));
        let mut reader = Reader::new(Cursor::new(&file[..])).expect("good");
        let events = reader.events().to_vec();
        let all = read(&events, reader.records().expect("seeks"));
        assert_eq!(all, expected().repeat(200 * frames));
    }
}

#[test]
#[cfg(feature = "zstd")]
fn damaged_compressed_data_are_an_error() {
    let mut data = compressed(false, 60000, false, 0);
    // The magic number of the frame.
    data[8] ^= 0xff;
    let file = file(false, &data);
    let mut reader = Reader::new(Cursor::new(&file[..])).expect("good");
    let mut records = reader.records().expect("seeks");
    let e = loop {
        match records.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing was damaged"),
            Err(e) => break e,
        }
    };
    assert!(matches!(e, Error::Malformed { .. }), "{e}");
    let shown = format!("{records:?}");
    assert!(shown.contains("Decompressor { compressed: "), "{shown}");
}
