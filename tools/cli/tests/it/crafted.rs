//! Files that are crafted to make a reader keep much: each command ends with a result or an error, in bounded memory.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use quipu_perf_data::record::kind;
use quipu_perf_data::{Compressor, EventAttr, Features, RecordedEvent, Writer};

use crate::report_of_chains::{FLAGS, ids, record, words};
use crate::skip;

/// KiB of address space, and seconds on the CPU, in which a command has to do.
const MEMORY: u64 = 1_400_000;
const SECONDS: u64 = 60;
/// Bytes of a crafted file, and of the records in it.
const LONGEST_FILE: usize = 2_000_000;
const LONGEST_RECORDS: u64 = 1 << 30;

/// Fields of a sample (`enum perf_event_sample_format`, `include/uapi/linux/perf_event.h`).
const IP_TID_TIME: u64 = 7;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const RAW: u64 = 1 << 10;
const BRANCH_STACK: u64 = 1 << 11;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const FIELDS: [u64; 6] = [
    0,
    CALLCHAIN,
    CALLCHAIN | RAW,
    BRANCH_STACK,
    READ,
    REGS_USER | STACK_USER,
];
/// `PERF_CONTEXT_USER` and `PERF_CONTEXT_USER_DEFERRED`.
const USER: u64 = -512_i64 as u64;
const DEFERRED: u64 = -640_i64 as u64;
/// `PERF_RECORD_MISC_KERNEL`; records of tests are of user mode.
const KERNEL_MODE: u8 = 1;

/// Random numbers of a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns a number that is as likely small as large.
    fn of_any_size(&mut self, most: u64) -> u64 {
        let bits = self.below(u64::from(most.ilog2()) + 1);
        (1 << bits) + self.below(1 << bits)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A kind of records, and the numbers that they are made of.
#[derive(Debug, Clone, Copy)]
struct Amplifier {
    kind: u32,
    fields: u64,
    /// The length of names, chains and copies.
    len: usize,
    /// As many processes and threads, addresses and names differ.
    processes: u64,
    addresses: u64,
    names: u64,
    in_kernel: bool,
    goes_back: bool,
}

impl Amplifier {
    fn random(random: &mut Random, fields: u64) -> Self {
        let kinds: Vec<u32> = (kind::MMAP..=kind::CALLCHAIN_DEFERRED).collect();
        let kind = match random.below(3) {
            0 => kind::SAMPLE,
            _ => random.one_of(&kinds),
        };
        let mut many = || random.of_any_size(1 << 22);
        Self {
            kind,
            fields,
            processes: many(),
            addresses: many(),
            names: many(),
            len: random.of_any_size(60_000).min(60_000) as usize,
            in_kernel: random.below(4) == 0,
            goes_back: random.below(8) == 0,
        }
    }

    fn name(&self, n: u64) -> Vec<u8> {
        let mut name = format!("/x/{:x}-", n % self.names).into_bytes();
        name.resize(name.len() + self.len.min(60_000), b'y');
        name.resize(name.len() / 8 * 8 + 8, 0);
        name
    }

    /// Returns the record of a number.
    fn record(&self, n: u64) -> Vec<u8> {
        let pid = (n % self.processes) as u32 + 1;
        let own = ids(&[pid, pid]);
        let address = 0x40_0000 + n % self.addresses * 0x1000;
        let time = if self.goes_back {
            u64::MAX / 2 - n
        } else {
            n + 1
        };
        let body = match self.kind {
            kind::SAMPLE => self.sample(n, pid, address, time),
            kind::MMAP => [own, words(&[address, 0x1000, 0]), self.name(n)].concat(),
            kind::MMAP2 => {
                let place = [ids(&[8, 1]), words(&[n % self.names, 0]), ids(&[5, 2])];
                let start = words(&[address, 0x1000, 0]);
                [&[own, start][..], &place, &[self.name(n)]]
                    .concat()
                    .concat()
            }
            kind::COMM => [own, self.name(n)].concat(),
            kind::FORK | kind::EXIT => {
                let parent = (n + 1) as u32 % self.processes as u32 + 1;
                [ids(&[pid, parent, pid, parent]), words(&[time])].concat()
            }
            kind::READ => [own, words(&[n])].concat(),
            kind::THROTTLE | kind::UNTHROTTLE => words(&[time, n % self.addresses, n]),
            kind::LOST => words(&[n % self.addresses, 1]),
            kind::NAMESPACES => [own, words(&[1, n, n])].concat(),
            kind::KSYMBOL => {
                let at = words(&[0xffff_ffff_c000_0000 + n % self.addresses * 64]);
                [at, ids(&[64, 1]), self.name(n)].concat()
            }
            kind::BPF_EVENT => [ids(&[1, pid]), words(&[n])].concat(),
            kind::CGROUP => [words(&[n % self.names]), self.name(n)].concat(),
            kind::CALLCHAIN_DEFERRED => {
                let frames = (0..self.len as u64 / 8).map(|at| address + at * 0x1000);
                let frames: Vec<u64> = [n % self.names, self.len as u64 / 8]
                    .into_iter()
                    .chain(frames)
                    .collect();
                words(&frames)
            }
            _ => words(&[n, n, n]),
        };
        let trailer = (self.kind != kind::SAMPLE).then_some((pid, time));
        let mut record = record(self.kind, &body, trailer);
        if self.in_kernel {
            record[4] = KERNEL_MODE;
        }
        if self.kind == kind::COMM && n.is_multiple_of(2) {
            // `PERF_RECORD_MISC_COMM_EXEC`.
            record[5] |= 0x20;
        }
        record
    }

    fn sample(&self, n: u64, pid: u32, address: u64, time: u64) -> Vec<u8> {
        let mut body = [words(&[address]), ids(&[pid, pid]), words(&[time])].concat();
        let entries = self.len as u64 / 16;
        let has = |field| self.fields & field != 0;
        if has(READ) {
            // Of a group, with ids.
            body.extend(words(&[entries]));
            let values = (0..entries).flat_map(|at| [n, (n + at) % self.names]);
            body.extend(words(&values.collect::<Vec<_>>()));
        }
        if has(CALLCHAIN) {
            let frames = (0..entries).map(|at| address + at * 0x1000);
            let frames = [USER].into_iter().chain(frames);
            let cookie = [DEFERRED, n % self.names];
            let frames: Vec<u64> = frames.chain(cookie).collect();
            let len = if self.in_kernel {
                frames.len()
            } else {
                frames.len() - 2
            };
            body.extend(words(&[len as u64]));
            body.extend(words(&frames[..len]));
        }
        if has(RAW) {
            let len = self.len / 16 * 8 + 4;
            body.extend(ids(&[len as u32]));
            body.resize(body.len() + len, n as u8);
        }
        if has(BRANCH_STACK) {
            let entries = entries / 2;
            body.extend(words(&[entries]));
            let branches =
                (0..entries).flat_map(|at| [address, address + at * 0x1000, n << 4 & 0xffff0]);
            body.extend(words(&branches.collect::<Vec<_>>()));
        }
        if has(REGS_USER) {
            body.extend(words(&[2, address + 8, address]));
        }
        if has(STACK_USER) {
            let len = self.len / 8 * 8;
            body.extend(words(&[len as u64]));
            body.resize(body.len() + len, 0);
            body.extend(words(&[len as u64]));
        }
        body
    }
}

/// Returns a crafted file, and how it is made.
fn crafted(random: &mut Random, compressor: Option<Compressor>) -> (Vec<u8>, String) {
    let fields = random.one_of(&FIELDS);
    let mut attr = [0; 128];
    attr[4..8].copy_from_slice(&128u32.to_ne_bytes());
    attr[24..32].copy_from_slice(&(IP_TID_TIME | fields).to_ne_bytes());
    if fields & READ != 0 {
        // `PERF_FORMAT_GROUP | PERF_FORMAT_ID`.
        attr[32..40].copy_from_slice(&12u64.to_ne_bytes());
    }
    attr[40..48].copy_from_slice(&FLAGS.to_ne_bytes());
    // The stack pointer and the instruction of x86-64.
    attr[80..88].copy_from_slice(&(1_u64 << 7 | 1 << 8).to_ne_bytes());
    let attr = EventAttr::from_bytes(&attr).expect("a good attr");
    let event = RecordedEvent::new(attr, vec![1, 2], "cycles");
    let amplifiers: Vec<_> = (0..=random.below(3))
        .map(|_| Amplifier::random(random, fields))
        .collect();
    let most = random.of_any_size(LONGEST_RECORDS);
    let rounds = random.one_of(&[0, 10, 1_000, 100_000]);
    let mut compressor = compressor.filter(|_| random.below(4) != 0);
    let mut how = String::new();
    let _ = write!(how, "{most} bytes, a round of {rounds}, {amplifiers:?}");
    let mut writer = Writer::new(Cursor::new(Vec::new()), vec![event]).expect("memory");
    let (mut piece, mut written, mut n) = (Vec::new(), 0, 0);
    while written < most && writer.data_len() < LONGEST_FILE as u64 {
        for amplifier in &amplifiers {
            piece.extend(amplifier.record(n));
        }
        n += 1;
        if rounds > 0 && n.is_multiple_of(rounds) {
            piece.extend(record(kind::FINISHED_ROUND, &[], None));
        }
        if piece.len() < 1 << 16 && written + (piece.len() as u64) < most {
            continue;
        }
        written += piece.len() as u64;
        let mut compressed = Vec::new();
        match &mut compressor {
            Some(compressor) => compressor
                .compress(&piece, &mut compressed)
                .expect("memory"),
            None => compressed.clone_from(&piece),
        }
        writer.write(&[&compressed]).expect("memory");
        piece.clear();
    }
    let mut features = Features::default();
    features.arch = Some("x86_64".to_owned());
    features.compression = compressor.as_ref().map(Compressor::description);
    let file = writer.finish(&features).expect("memory").into_inner();
    (file, how)
}

/// Commands that read a file, which is F; D is a folder.
const COMMANDS: [&str; 14] = [
    "report --stdio -i F",
    "report --stdio --children -g caller -i F",
    "report --folded -i F",
    "report --json -s pid,tid,dso,sym -i F",
    "report --flamegraph D/out.svg -i F",
    "report --firefox D/out.json -i F",
    "report --pprof D/out.pb.gz -i F",
    "report --speedscope D/out.json -i F",
    "report -T --stdio -i F",
    "report -b --stdio -i F",
    "script -i F",
    "annotate -i F",
    "diff F F",
    "archive -i F -o D/out.tar.gz",
];

/// Runs commands over as many crafted files; returns what went wrong.
fn run(seed: u64, files: u64) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("crafted.data");
    let mut wrong = Vec::new();
    let (mut results, mut errors) = (0, 0);
    for number in 0..files {
        let mut random = Random(seed ^ number << 20);
        let (file, how) = crafted(&mut random, Compressor::new(1).ok());
        std::fs::write(&path, file).expect("ours");
        for _ in 0..2 {
            let command = random.one_of(&COMMANDS);
            match end(command, &path, directory.path()) {
                Ok(true) => results += 1,
                Ok(false) => errors += 1,
                Err(end) => wrong.push(format!("{seed} {number}: {command}: {end}; {how}")),
            }
        }
    }
    let wrong_ones = wrong.len();
    let _ = writeln!(
        std::io::stderr(),
        "{files} crafted files of seed {seed}: {results} results, {errors} errors, {wrong_ones} wrong ends"
    );
    wrong
}

/// Returns true if a command ends with a result, false if with an error that it names.
fn end(command: &str, file: &Path, directory: &Path) -> Result<bool, String> {
    let words = command.split(' ').map(|word| {
        let word = match word {
            "F" => file.display().to_string(),
            _ => word.to_owned(),
        };
        word.replace("D/", &format!("{}/", directory.display()))
    });
    let limits = format!("ulimit -v {MEMORY}; ulimit -t {SECONDS}; exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &limits, env!("CARGO_BIN_EXE_quipu")])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .expect("every system has a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Ok(true),
        Some(2 | 125) if said.starts_with("quipu: ") => Ok(false),
        _ => Err(format!("{}: {}", output.status, said.trim())),
    }
}

#[test]
fn crafted_files_stay_in_their_budget() {
    if let Err(why) = Compressor::new(1) {
        skip("crafted_files_stay_in_their_budget", why);
    }
    let wrong = run(1, 6);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "takes half an hour; ci/long runs it"]
fn a_thousand_crafted_files_stay_in_their_budget() {
    let number = |name, usual| std::env::var(name).map_or(usual, |text| text.parse().expect(name));
    let wrong = run(number("SEED", 1), number("FILES", 1_000));
    assert!(wrong.is_empty(), "{wrong:#?}");
}
