//! Small files that make a reader keep much: the memory of `quipu report` stays bounded, and what is left out is told.

use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use quipu_perf_data::{Compressor, Features, Writer};

use crate::report_of_chains::{event, ids, record, words};
use crate::skip;

/// KiB of address space in which a report has to do.
const MEMORY: u64 = 1_200_000;

/// Writes a recording of records, in pieces that are compressed if a compressor is given.
fn write(path: &Path, pieces: impl Iterator<Item = Vec<u8>>, mut compressor: Option<Compressor>) {
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event()]).expect("memory");
    for piece in pieces {
        let mut compressed = Vec::new();
        match &mut compressor {
            Some(compressor) => compressor
                .compress(&piece, &mut compressed)
                .expect("memory"),
            None => compressed = piece,
        }
        writer.write(&[&compressed]).expect("memory");
    }
    let mut features = Features::default();
    features.compression = compressor.as_ref().map(Compressor::description);
    let bytes = writer.finish(&features).expect("memory").into_inner();
    assert!(bytes.len() < 2_000_000, "{} bytes", bytes.len());
    std::fs::write(path, bytes).expect("ours");
}

/// Reports a file in little memory.
fn report(path: &Path) -> Output {
    let script = format!("ulimit -v {MEMORY}; exec \"$0\" report --stdio -i \"$1\"");
    let mut shell = Command::new("sh");
    let quipu = env!("CARGO_BIN_EXE_quipu");
    let output = shell.args(["-c", &script, quipu]).arg(path).output();
    output.expect("every system has a shell")
}

#[test]
fn what_is_compressed_beyond_measure_is_read_as_far_as_it_goes() {
    let compressor = match Compressor::new(1) {
        Ok(compressor) => compressor,
        Err(why) => return skip("what_is_compressed_beyond_measure", why),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("bomb.data");
    // A gigabyte of equal samples, and no end of a round.
    let body = [words(&[0x1800]), ids(&[7, 7]), words(&[1, 0])].concat();
    let sample = record(9, &body, None);
    let piece = sample.repeat(32_000 / sample.len());
    let pieces = (1 << 30) / piece.len();
    write(&path, std::iter::repeat_n(piece, pieces), Some(compressor));
    let output = report(&path);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("--max-memory"), "{said}");
}

#[test]
fn a_chain_of_forks_that_map_needs_no_square() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("forks.data");
    let processes = (1..8_000u32).map(|pid| {
        let time = u64::from(pid);
        let fork = [ids(&[pid + 1, pid, pid + 1, pid]), words(&[time])].concat();
        let start = 0x40_0000 + time * 0x1000;
        let mapping = [
            ids(&[pid + 1, pid + 1]),
            words(&[start, 0x1000, 0]),
            b"/x/file\0".to_vec(),
        ];
        [
            record(7, &fork, Some((pid, time))),
            record(1, &mapping.concat(), Some((pid + 1, time))),
        ]
        .concat()
    });
    let body = [words(&[0x40_1010]), ids(&[2, 2]), words(&[1, 0])].concat();
    let sample = record(9, &body, None);
    let mut records: Vec<Vec<u8>> = processes.collect();
    records.insert(1, sample);
    write(&path, records.into_iter(), None);
    let output = report(&path);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told = ["--max-memory", "mappings of forked processes are left out"];
    assert!(told.iter().any(|words| said.contains(words)), "{said}");
    // What was known before has its name.
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("file"), "{text}");
}
