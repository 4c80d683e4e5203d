//! Names of events that are not where the events are.

use std::collections::BTreeMap;
use std::io::Cursor;

use quipu_perf_data::record::kind;
use quipu_perf_data::{Reader, RecordedEvent, TracingData};

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn ids(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

fn record(of: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("short");
    let halves = [0, size].map(u16::to_ne_bytes).concat();
    [of.to_ne_bytes().to_vec(), halves, body.to_vec()].concat()
}

/// The attributes of an event.
fn attr(event_type: u32, config: u64) -> Vec<u8> {
    let mut attr = [ids(&[event_type, 64]), words(&[config, 1, 1])].concat();
    attr.resize(64, 0);
    attr
}

/// `HEADER_ATTR` of an event with an id.
fn event(event_type: u32, config: u64, id: u64) -> Vec<u8> {
    record(
        kind::HEADER_ATTR,
        &[attr(event_type, config), words(&[id])].concat(),
    )
}

/// `HEADER_EVENT_DESC` with the name of an event.
fn description(event_type: u32, config: u64, id: u64, name: &str) -> Vec<u8> {
    let mut text = ids(&[64]);
    text.extend(name.as_bytes());
    text.resize(68, 0);
    let start = [words(&[12]), ids(&[1, 64]), attr(event_type, config)];
    let rest = [ids(&[1]), text, words(&[id])];
    record(
        kind::HEADER_FEATURE,
        &[start.concat(), rest.concat()].concat(),
    )
}

/// `EVENT_UPDATE` with the name of an event.
fn update(id: u64, name: &[u8; 8]) -> Vec<u8> {
    record(kind::EVENT_UPDATE, &[&words(&[2, id]), &name[..]].concat())
}

fn formats() -> Vec<u8> {
    let mut data = TracingData::default();
    let format = "name: main\nID: 1329\nformat:\n\tfield:u16 common_type;\toffset:0;\tsize:2;\tsigned:0;\n\nprint fmt: \"\"\n";
    data.formats = BTreeMap::from([("probe".to_owned(), vec![format.as_bytes().to_vec()])]);
    data.to_bytes()
}

fn names(events: &[RecordedEvent]) -> Vec<Option<&str>> {
    events.iter().map(RecordedEvent::name).collect()
}

/// The start of a stream, and a sample that ends it.
fn stream(records: &[Vec<u8>]) -> Vec<u8> {
    let start = words(&[u64::from_ne_bytes(*b"PERFILE2"), 16]);
    [start, records.concat(), record(kind::SAMPLE, &words(&[1]))].concat()
}

#[test]
fn names_may_come_before_the_events_of_a_stream() {
    let stream = stream(&[
        update(8, b"updated\0"),
        description(6, 0x300_e601, 7, "intel_pt//"),
        event(6, 0x300_e601, 7),
        event(6, 5, 8),
        event(6, 5, 9),
    ]);
    let reader = Reader::from_stream(&stream[..]).expect("a stream");
    let expected = [Some("intel_pt//"), Some("updated"), None];
    assert_eq!(names(reader.events()), expected);
}

#[test]
fn tracepoints_are_named_by_their_formats() {
    let formats = formats();
    let len = formats.len() as u32;
    let data = [
        record(kind::HEADER_TRACING_DATA, &ids(&[len])),
        formats.clone(),
    ]
    .concat();
    let of_perf = stream(&[event(2, 1329, 7), event(2, 1330, 8), data]);
    let reader = Reader::from_stream(&of_perf[..]).expect("a stream");
    assert_eq!(names(reader.events()), [Some("probe:main"), None]);

    // A file of simpleperf, whose record holds the formats.
    let holding = record(
        kind::HEADER_TRACING_DATA,
        &[ids(&[len]), formats.clone()].concat(),
    );
    let magic = u64::from_ne_bytes(*b"PERFILE2");
    let header = words(&[
        magic,
        104,
        80,
        104,
        80,
        184,
        holding.len() as u64,
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    let file = [header, attr(2, 1329), words(&[0, 0]), holding].concat();
    let reader = Reader::new(Cursor::new(file)).expect("a file");
    assert_eq!(names(reader.events()), [Some("probe:main")]);
    assert_eq!(
        reader.features().tracing_data.as_deref(),
        Some(&formats[..])
    );
}
