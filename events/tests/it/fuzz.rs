//! Hostile and odd inputs: those of the corpus replayed, and new ones made of them, without a special compiler.
//!
//!     QUIPU_FUZZ="SECONDS SEED" cargo test --release -p quipu-events --test it fuzz -- --ignored --nocapture
//!
//! Inputs of `tests/corpus` are mutated and put together at random. One that makes a target panic, or
//! take longer than [`LONGEST`], is written to the corpus, where it is replayed from then on. The sequence
//! depends on the seed alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use quipu_events::Database;

use crate::targets::TARGETS;

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

/// The folder with a target's inputs.
fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(target)
}

/// Returns the files in a folder by name, each with its content.
fn read_all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn everything_in_the_corpus_holds() {
    let database = Database::embedded();
    for target in &TARGETS {
        let inputs = read_all(&corpus(target.name));
        for (path, bytes) in &inputs {
            // The harness shows it when what follows panics.
            println!("{}", path.display());
            (target.run)(&database, bytes);
        }
        let count = inputs.len();
        assert!(count >= 5, "{}: {count} inputs", target.name);
    }
}

#[test]
#[ignore = "runs for as long as $QUIPU_FUZZ says, 10 seconds by default"]
fn no_mutated_input_makes_a_target_panic_or_slow() {
    let arguments = env::var("QUIPU_FUZZ").unwrap_or_default();
    let mut arguments = arguments.split_whitespace().map(|text| text.parse().ok());
    let seconds = arguments.next().flatten().unwrap_or(10);
    let seed: u64 = arguments.next().flatten().unwrap_or(1);
    let database = Database::embedded();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let each = Duration::from_secs(seconds) / TARGETS.len() as u32;
    for target in &TARGETS {
        let folder = corpus(target.name);
        let seeds: Vec<Vec<u8>> = read_all(&folder)
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect();
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
                fs::write(&path, &input).unwrap();
                panic!("{}: {took:?} on {}", target.name, path.display());
            }
        }
        println!(
            "{}: {runs} inputs, the slowest took {slowest:?}",
            target.name
        );
    }
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
