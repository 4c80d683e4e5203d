//! Recordings of a program that is written beside them: its symbols and instructions are those of x86-64 everywhere.

use std::io::Cursor;

use quipu_perf_data::{EventAttr, Features, RecordedEvent, Writer, synthesized};
use tempfile::TempDir;

/// `PERF_SAMPLE_IP`, `_TID`, `_TIME`, `_CALLCHAIN`, `_CPU` and `_PERIOD`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 8;
/// `sample_id_all`, which C numbers from the other end on big-endian machines.
const FLAGS: u64 = if cfg!(target_endian = "big") {
    1 << 45
} else {
    1 << 18
};
/// `PERF_CONTEXT_USER`.
const USER: u64 = -512_i64 as u64;

/// The offset of the code of the program in its file, and its address in memory.
const OFFSET: u64 = 0x1000;
const START: u64 = 0x40_1000;

/// The functions of the program, with their instructions: `main` calls `parse`, which calls `hash`, which loops.
const FUNCTIONS: [(&str, u64, &[u8]); 3] = [
    // call parse; jmp main
    ("main", START, &[0xe8, 0x0b, 0, 0, 0, 0xeb, 0xf9]),
    // call hash; ret
    ("parse", START + 0x10, &[0xe8, 0x0b, 0, 0, 0, 0xc3]),
    // xor eax, eax; add eax, edi; dec edi; jne to the second; ret
    (
        "hash",
        START + 0x20,
        &[0x31, 0xc0, 0x01, 0xf8, 0xff, 0xcf, 0x75, 0xfa, 0xc3],
    ),
];
const IN_MAIN: u64 = START + 5;
const IN_PARSE: u64 = START + 0x15;
const IN_HASH: u64 = START + 0x22;
/// In a library that is nowhere.
const IN_LIBRARY: u64 = 0x7f00_0000_0100;

/// Returns the words of an ELF file that takes them in four and eight bytes.
fn le4(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn le8(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns the program: an ELF file with sections for code, symbols and names (elf(5)).
fn program() -> Vec<u8> {
    let mut code = vec![0x90; 0x40];
    let mut names = vec![0];
    let mut symbols = vec![0; 24];
    for (name, address, bytes) in FUNCTIONS {
        let at = (address - START) as usize;
        code[at..at + bytes.len()].copy_from_slice(bytes);
        // A global function of the first section.
        symbols.extend(le4(&[names.len() as u32, 0x1_0012]));
        symbols.extend(le8(&[address, bytes.len() as u64]));
        names.extend(name.bytes().chain([0]));
    }
    let section_names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0".to_vec();
    // The name, kind, flags, address, number of the other section, alignment and length of an entry.
    let sections = [
        (code, 1, 1, 6, START, 0, 16, 0),
        (symbols, 7, 2, 0, 0, 3, 8, 24),
        (names, 15, 3, 0, 0, 0, 1, 0),
        (section_names, 23, 3, 0, 0, 0, 1, 0),
    ];
    let mut contents = Vec::new();
    let mut table = vec![0; 64];
    for (content, name, kind, flags, address, link, align, entry) in sections {
        let offset = OFFSET + contents.len() as u64;
        table.extend(le4(&[name, kind]));
        table.extend(le8(&[flags, address, offset, content.len() as u64]));
        table.extend(le4(&[link, 1]));
        table.extend(le8(&[align, entry]));
        contents.extend(content);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // An executable of x86-64, with one segment and five sections, the last of which has their names.
    file.extend(le4(&[2 | 62 << 16, 1]));
    file.extend(le8(&[START, 64, OFFSET + contents.len() as u64]));
    file.extend(le4(&[0, 64 | 56 << 16, 1 | 64 << 16, 5 | 4 << 16]));
    file.extend(le4(&[1, 5]));
    file.extend(le8(&[OFFSET, START, START, 0x40, 0x40, OFFSET]));
    file.resize(OFFSET as usize, 0);
    [file, contents, table].concat()
}

/// Returns a record of user mode.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("short");
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend([2, size].iter().flat_map(|n| n.to_ne_bytes()));
    record.extend(body);
    record
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn ids(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

/// Returns the record of a mapping of a file: `PERF_RECORD_MMAP`.
fn mapping(start: u64, offset: u64, path: &str) -> Vec<u8> {
    let mut name = path.as_bytes().to_vec();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    let trailer = [ids(&[7, 7]), words(&[1_000]), ids(&[0, 0])];
    let body = [ids(&[7, 7]), words(&[start, 0x1000, offset]), name];
    record(1, &[body.concat(), trailer.concat()].concat())
}

/// Returns a sample of a thread on a CPU at a time in ms, for a call chain.
fn sample(at: u64, (thread, cpu): (u32, u32), period: u64, chain: &[u64]) -> Vec<u8> {
    let time = at * 1_000_000;
    let length = 1 + chain.len() as u64;
    let body = [
        words(&[chain[0]]),
        ids(&[7, thread]),
        words(&[time]),
        ids(&[cpu, 0]),
        words(&[period, length, USER]),
        words(chain),
    ];
    record(9, &body.concat())
}

/// Writes a recording of the program in a directory: `hash` has three samples or more, `main` and a library of which
/// there is no file one.
pub(super) fn write(directory: &TempDir, name: &str, more_of_hash: u64) {
    let path = directory.path().join("demo");
    let mut attr = [0; 64];
    attr[4..8].copy_from_slice(&64u32.to_ne_bytes());
    attr[16..24].copy_from_slice(&1000u64.to_ne_bytes());
    attr[24..32].copy_from_slice(&SAMPLE_TYPE.to_ne_bytes());
    attr[40..48].copy_from_slice(&FLAGS.to_ne_bytes());
    let attr = EventAttr::from_bytes(&attr).expect("a good attr");
    let event = RecordedEvent::new(attr, vec![], "cycles");
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    let in_hash = [IN_HASH, IN_PARSE, IN_MAIN];
    let mut records = vec![
        synthesized::comm(7, 7, b"demo", 24),
        synthesized::comm(7, 8, b"worker", 24),
        mapping(START, OFFSET, path.to_str().expect("text")),
        mapping(IN_LIBRARY & !0xfff, 0, "/nowhere/libz.so.1"),
        sample(10, (7, 0), 3_000, &in_hash),
        sample(11, (7, 0), 2_000, &in_hash),
        sample(12, (8, 1), 2_000, &[IN_HASH + 4, IN_PARSE, IN_MAIN]),
        sample(13, (8, 1), 1_500, &[IN_LIBRARY, IN_MAIN]),
        sample(14, (7, 0), 1_500, &[IN_MAIN]),
    ];
    records.extend((0..more_of_hash).map(|at| sample(20 + at, (7, 0), 1_000, &in_hash)));
    for record in records {
        writer.write(&[&record]).expect("memory");
    }
    let mut features = Features::default();
    features.host_name = Some("host".into());
    features.os_release = Some("6.1.0".into());
    features.version = Some("0.1".into());
    features.arch = Some("x86_64".into());
    features.cpus = Some((2, 2));
    features.cpu_description = Some("Some CPU".into());
    features.command_line = ["quipu", "record", "-g", "./demo"].map(Into::into).into();
    features.sample_time = Some((10_000_000, 14_000_000));
    let file = writer.finish(&features).expect("memory").into_inner();
    std::fs::write(directory.path().join(name), file).expect("writable");
}

/// Returns a directory with the program and its recording.
pub(super) fn directory() -> TempDir {
    let directory = TempDir::new().expect("a directory");
    std::fs::write(directory.path().join("demo"), program()).expect("writable");
    write(&directory, "perf.data", 0);
    directory
}
