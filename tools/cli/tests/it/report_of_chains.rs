//! `quipu report` of call chains that are the same numbers in other processes, and after mappings changed.

use std::io::Cursor;

use assert_cmd::Command;
use quipu_perf_data::{EventAttr, Features, RecordedEvent, Writer};

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME` and `_CALLCHAIN`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5;
/// `sample_id_all`, which C numbers from the other end on big-endian machines.
pub(super) const FLAGS: u64 = if cfg!(target_endian = "big") {
    1 << 45
} else {
    1 << 18
};
/// `PERF_CONTEXT_USER`.
const USER: u64 = -512_i64 as u64;

/// `PERF_CONTEXT_KERNEL`.
const KERNEL: u64 = -128_i64 as u64;

/// Returns a record of a kind, in user mode: its body, and the trailer of a thread and a time.
pub(super) fn record(kind: u32, body: &[u8], trailer: Option<(u32, u64)>) -> Vec<u8> {
    let mut bytes = body.to_vec();
    if let Some((thread, time)) = trailer {
        bytes.extend([thread, thread].iter().flat_map(|n| n.to_ne_bytes()));
        bytes.extend(time.to_ne_bytes());
    }
    let size = u16::try_from(8 + bytes.len()).expect("short");
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend([2, size].iter().flat_map(|n| n.to_ne_bytes()));
    record.extend(bytes);
    record
}

pub(super) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

pub(super) fn ids(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

/// `PERF_RECORD_MMAP` of a file with a name of seven bytes.
fn mapping(time: u64, pid: u32, start: u64, len: u64, file: &[u8; 7]) -> Vec<u8> {
    let body = [&ids(&[pid, pid]), &words(&[start, len, 0]), &file[..], &[0]];
    record(1, &body.concat(), Some((pid, time)))
}

/// `PERF_RECORD_FORK` of a process.
fn fork(time: u64, pid: u32, parent: u32) -> Vec<u8> {
    let body = [ids(&[pid, parent, pid, parent]), words(&[time])].concat();
    record(7, &body, Some((parent, time)))
}

/// A sample of a function at 0x1800 that one at 0x2800 called.
fn sample(time: u64, pid: u32) -> Vec<u8> {
    let chain = words(&[3, USER, 0x1800, 0x2800]);
    let body = [words(&[0x1800]), ids(&[pid, pid]), words(&[time]), chain];
    record(9, &body.concat(), None)
}

/// Returns the objects of a report with their samples, by name.
fn objects(options: &[&str], records: &[Vec<u8>]) -> Vec<(String, u64)> {
    let options = [&["--sort", "dso"], options].concat();
    let rows = rows(&Features::default(), &options, records).into_iter();
    let rows = rows.map(|row| {
        let samples = row.get("children-samples").unwrap_or(&row["samples"]);
        let object = row["object"].as_str().expect("an object");
        (object.to_owned(), samples.as_u64().expect("a number"))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort();
    rows
}

/// Returns the event of the recordings, whose samples have an address, a thread, a time and a chain.
pub(super) fn event() -> RecordedEvent {
    let mut attr = [0; 64];
    attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
    attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_ne_bytes());
    attr[40..48].copy_from_slice(&FLAGS.to_ne_bytes());
    let attr = EventAttr::from_bytes(&attr).expect("a good attr");
    RecordedEvent::new(attr, vec![], "cycles")
}

/// Returns the rows of a report of these records.
pub(super) fn rows(
    features: &Features,
    options: &[&str],
    records: &[Vec<u8>],
) -> Vec<serde_json::Value> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event()]).expect("memory");
    for record in records {
        writer.write(&[record]).expect("memory");
    }
    let file = writer.finish(features).expect("memory");
    let mut quipu = Command::cargo_bin("quipu").expect("built");
    let quipu = quipu.args(["report", "--json", "-i", "-"]);
    let quipu = quipu.args(options).write_stdin(file.into_inner());
    let output = quipu.output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).expect("text");
    let rows = text.lines().map(serde_json::from_str);
    rows.map(|row| row.expect("JSON")).collect()
}

fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    let own = expected.iter();
    own.map(|(name, samples)| ((*name).to_owned(), *samples))
        .collect()
}

#[test]
fn equal_chains_of_other_processes_and_mappings_are_told_apart() {
    let records = [
        mapping(1, 7, 0x1000, 0x2000, b"/a/a.so"),
        mapping(2, 8, 0x1000, 0x2000, b"/b/b.so"),
        sample(10, 7),
        sample(11, 8),
        // What called is another file from now on.
        mapping(20, 7, 0x2000, 0x1000, b"/c/c.so"),
        sample(21, 7),
        sample(22, 8),
        // One number, twice given.
        fork(30, 9, 8),
        sample(31, 9),
        fork(40, 9, 7),
        sample(41, 9),
    ];
    let own = [("/a/a.so", 3), ("/b/b.so", 3)];
    assert_eq!(objects(&[], &records), named(&own));
    let with_callers = [("/a/a.so", 3), ("/b/b.so", 3), ("/c/c.so", 2)];
    assert_eq!(objects(&["--children"], &records), named(&with_callers));
    let cut = |most: &str| objects(&["--children", "--max-stack", most], &records);
    assert_eq!(cut("2"), named(&with_callers));
    assert_eq!(cut("1"), named(&own));
}

/// The thread was interrupted, or has faulted, at the first instruction of a file; what called that is the last of another.
#[test]
fn the_first_user_frame_below_the_kernels_is_no_return_address() {
    let in_kernel = |time: u64, pid: u32| {
        let (user, kernel) = (
            [USER, 0x2000, 0x3000],
            [KERNEL, u64::MAX - 0xfff, u64::MAX - 0x1ff],
        );
        let chain = [&[6], &kernel[..], &user].concat();
        let body = [
            words(&[kernel[1]]),
            ids(&[pid, pid]),
            words(&[time]),
            words(&chain),
        ];
        // `PERF_RECORD_MISC_KERNEL`; no trailer.
        let mut record = record(9, &body.concat(), None);
        record[4] = 1;
        record
    };
    let records = [
        mapping(1, 7, 0x1000, 0x1000, b"/a/a.so"),
        mapping(2, 7, 0x2000, 0x1000, b"/b/b.so"),
        mapping(3, 7, 0x3000, 0x1000, b"/c/c.so"),
        in_kernel(10, 7),
    ];
    let expected = [("/b/b.so", 1), ("[kernel.kallsyms]", 1)];
    assert_eq!(objects(&["--children"], &records), named(&expected));
}
