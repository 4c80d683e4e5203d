//! Fuzzes the event file checker, name resolution and the importers, without a special compiler.
//!
//!     cargo run --release -p quipu-events --example fuzz -- [SECONDS] [SEED]
//!
//! Inputs of `tests/corpus` are mutated and put together at random. One that makes a target panic, or
//! take longer than [`LONGEST`], is written to the corpus, where the tests replay it, and the exit status
//! is 1. The sequence depends on the seed alone.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu_events::Database;

#[path = "../tests/targets/mod.rs"]
mod targets;

/// The longest that an input of at most [`LARGEST`] bytes may take. Most take less than a millisecond.
const LONGEST: Duration = Duration::from_secs(2);
/// The largest input that mutations make.
const LARGEST: usize = 64 << 10;

/// Words that inputs are made of.
const WORDS: [&str; 32] = [
    "[[cpu]]\n",
    "[cpu.events]\n",
    "[cpu.presets]\nP = \"",
    "[cpu.generalized]\ncycles = ",
    "id = \"x-a\"\n",
    "base = \"intel-skl\"\n",
    "scheme = \"intel-core\"\n",
    "masks.M = ",
    "{ code = 1, same-as = \"A\" }\n",
    "counters = [0, 63]\n",
    "default = true",
    "combine = true\n",
    "18446744073709551616",
    "-1",
    "0x",
    "1e400",
    "\"\"\"",
    "[",
    "{",
    "(",
    "((((((((",
    "\\u0000",
    "é",
    ":cmask=",
    ":u",
    ":i=0",
    ":0xff",
    "INST_RETIRED.ANY",
    "OFFCORE_RESPONSE:value=",
    "\"EventCode\": \"0x",
    "\"UMask\": \"0x1,0x2\",",
    "\n",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let seconds = arguments.next().and_then(Result::ok).unwrap_or(10);
    let seed = arguments.next().and_then(Result::ok).unwrap_or(1);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let database = Database::embedded();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let each = Duration::from_secs(seconds) / targets::TARGETS.len() as u32;
    for target in &targets::TARGETS {
        let folder = corpus.join(target.name);
        let seeds = match read_all(&folder) {
            Ok(seeds) if !seeds.is_empty() => seeds,
            _ => {
                eprintln!("{} has no inputs", folder.display());
                return ExitCode::FAILURE;
            }
        };
        let start = Instant::now();
        let mut runs = 0_u64;
        let mut slowest = Duration::ZERO;
        while start.elapsed() < each {
            let input = mutated(&seeds, &mut random);
            let before = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(&database, &input)));
            let took = before.elapsed();
            slowest = slowest.max(took);
            runs += 1;
            if outcome.is_err() || took > LONGEST {
                let path = folder.join(format!("found-{seed}-{runs}"));
                let what = if outcome.is_err() {
                    "panicked"
                } else {
                    "was slow"
                };
                let kept = fs::write(&path, &input);
                eprintln!(
                    "{} {what} ({took:?}) on {}: {kept:?}",
                    target.name,
                    path.display()
                );
                return ExitCode::FAILURE;
            }
        }
        println!(
            "{}: {runs} inputs, the slowest took {slowest:?}",
            target.name
        );
    }
    ExitCode::SUCCESS
}

fn read_all(folder: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    paths.into_iter().map(fs::read).collect()
}

/// An input of the corpus with a few mutations.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(64)).min(bytes.len());
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                let times = 1 + random.below(40);
                bytes.splice(at..at, copy.repeat(times));
            }
            3 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                bytes.splice(at..end, other[from..].iter().copied());
            }
            4 => drop(bytes.splice(at..at, random.next().to_string().into_bytes())),
            5 => bytes.insert(at, random.next() as u8),
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
        }
        bytes.truncate(LARGEST);
    }
    bytes
}

/// Xorshift (Marsaglia 2003): plain, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
