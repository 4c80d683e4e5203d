//! Profiles of files that this test writes.

#[cfg(target_os = "linux")]
mod sampling;

use std::fs::{self, File};

use quipu_perf_data::{EventAttr, Features, RecordedEvent, Writer, synthesized};
use quipu_profile::report::{Profile, Weight};

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME` and `_PERIOD`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 8;

fn attr() -> EventAttr {
    attr_of(0)
}

/// Returns that of the first event of a type of `perf_event_open(2)`.
fn attr_of(type_: u32) -> EventAttr {
    let mut attr = [0; 64];
    attr[..4].copy_from_slice(&type_.to_ne_bytes());
    attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
    attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_ne_bytes());
    EventAttr::from_bytes(&attr).expect("a good attr")
}

fn sample(time: u64, period: u64) -> Vec<u8> {
    sample_of(7, time, period)
}

fn sample_of(thread: u32, time: u64, period: u64) -> Vec<u8> {
    let mut record = 9u32.to_ne_bytes().to_vec();
    record.extend([2u16, 40].iter().flat_map(|n| n.to_ne_bytes()));
    record.extend(0x1000u64.to_ne_bytes());
    record.extend([thread, thread].iter().flat_map(|n| n.to_ne_bytes()));
    record.extend([time, period].iter().flat_map(|n| n.to_ne_bytes()));
    record
}

#[test]
fn samples_are_added_up_with_their_periods() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("perf.data");
    let event = RecordedEvent::new(attr(), vec![], "cycles");
    let file = File::create_new(&path).expect("a file");
    let mut writer = Writer::new(file, vec![event]).expect("a file");
    writer
        .write(&[&synthesized::comm(7, 7, b"worker", 0)])
        .expect("a file");
    for (time, period) in [(1, 100), (2, 300), (3, 50)] {
        writer.write(&[&sample(time, period)]).expect("a file");
    }
    writer.finish(&Features::default()).expect("a file");

    let profile = Profile::read(&path).expect("a recording");
    let [event] = &profile.events[..] else {
        panic!("{:?}", profile.events);
    };
    let all = Weight {
        samples: 3,
        period: 450,
    };
    assert_eq!((&*event.name, event.lost, event.total), ("cycles", 0, all));
    let hottest = profile.hottest(event);
    assert_eq!(hottest.len(), 1);
    assert_eq!(
        (hottest[0].0.title(), hottest[0].1),
        ("0x1000".to_owned(), all)
    );
}

#[test]
fn periods_beyond_64_bits_are_noted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("perf.data");
    let noted = |periods: [u64; 2]| {
        // Periods of a software event are believed.
        let event = RecordedEvent::new(attr_of(1), vec![], "cpu-clock");
        let file = File::create(&path).expect("a file");
        let mut writer = Writer::new(file, vec![event]).expect("a file");
        for period in periods {
            writer.write(&[&sample(1, period)]).expect("a file");
        }
        writer.finish(&Features::default()).expect("a file");
        let notes = Profile::read(&path).expect("a recording").notes;
        notes
            .iter()
            .any(|note| note.contains("more events than 64 bits"))
    };
    assert!(noted([u64::MAX - 1, 2]));
    assert!(!noted([u64::MAX - 2, 1]));
}

#[test]
fn threads_without_a_name_are_called_by_their_numbers() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("perf.data");
    let event = RecordedEvent::new(attr(), vec![], "cycles");
    let mut writer =
        Writer::new(File::create_new(&path).expect("a file"), vec![event]).expect("a file");
    for (thread, time) in [(7, 1), (8, 2), (0, 3)] {
        let sample = sample_of(thread, time, 1);
        writer.write(&[&sample]).expect("a file");
    }
    writer.finish(&Features::default()).expect("a file");
    let profile = Profile::read(&path).expect("a recording");
    let stacks = profile.events[0].stacks.iter();
    let tasks = stacks.map(|(stack, _)| profile.stacks.task(stack));
    let mut commands: Vec<_> = tasks.map(|task| &*task.command).collect();
    commands.sort_unstable();
    assert_eq!(commands, [":7", ":8", "swapper"]);
}

#[test]
fn a_file_that_is_no_recording_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notes.txt");
    fs::write(&path, "not a recording, but longer than a header of one\n").expect("a file");
    let refused = Profile::read(&path).expect_err("no recording").to_string();
    assert!(refused.contains("notes.txt"), "{refused}");
}
