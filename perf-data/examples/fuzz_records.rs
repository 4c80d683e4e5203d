//! Feeds the decoder of records with bytes that no kernel wrote.
//!
//! `cargo run --release -p quipu-perf-data --example fuzz_records -- [SECONDS [SEED [DIRECTORY]]]`
//!
//! It starts from the inputs in `fuzz/corpus`, changes them, and keeps those that lead somewhere new;
//! with a directory it also writes these there. It ends with an error when the decoder panics, promises
//! something that is not so, or allocates more than an input can need, and leaves the input in
//! `fuzz-failure.bin`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[path = "../fuzz/exercise.rs"]
mod exercise;

use exercise::{LAYOUT, Traits, exercise};

thread_local! {
    /// The largest piece of memory that was asked for.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

struct Watching;

// SAFETY: every call goes on to the system's allocator unchanged; watching touches a thread-local
// without a destructor, which allocates nothing.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// The longest input that is made.
const LONGEST: usize = 4096;
/// No input needs a piece of memory larger than this: branches are collected to be shown.
const LARGEST_PIECE: usize = 4 * LONGEST + 4096;

/// Xorshift, so that a seed gives the same inputs on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 32) as usize % end.max(1)
    }
}

/// Numbers at which things change.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    7,
    8,
    9,
    255,
    0xffff,
    0x1_0000,
    u32::MAX as u64,
    1 << 32,
    1 << 61,
    1 << 63,
    u64::MAX,
];

/// Changes an input in one way.
fn mutate(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(input.len());
    let word = at & !7;
    match random.below(10) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        2 | 3 => {
            let edge = EDGES[random.below(EDGES.len())].to_ne_bytes();
            let marker = (-(random.below(5000) as i64) as u64).to_ne_bytes();
            let value = if random.below(4) == 0 { marker } else { edge };
            if let Some(place) = input.get_mut(word..word + 8) {
                place.copy_from_slice(&value);
            }
        }
        4 => input.truncate(at),
        5 => {
            let from = random.below(other.len());
            let len = random.below(256).min(other.len() - from);
            input.extend(&other[from..from + len]);
        }
        6 => {
            // Only the layout of the other one, or only its records.
            let split = LAYOUT.min(other.len()).min(input.len());
            input[..split].copy_from_slice(&other[..split]);
        }
        7 => {
            let len = random.below(64).min(input.len() - at.min(input.len()));
            let copy = input[at.min(input.len())..][..len].to_vec();
            input.splice(word.min(input.len())..word.min(input.len()), copy);
        }
        8 => {
            // Another kind of record, or another field.
            if let Some(kind) = input.get_mut(LAYOUT..LAYOUT + 4) {
                kind.copy_from_slice(&(random.below(72) as u32).to_ne_bytes());
            }
            if let Some(byte) = input.get_mut(random.below(6)) {
                *byte ^= 1 << random.below(8);
            }
        }
        _ => fit_sizes(input),
    }
    input.truncate(LONGEST);
}

/// Makes the last record end where the input ends, which few changes leave so.
fn fit_sizes(input: &mut [u8]) {
    let mut at = LAYOUT;
    while let Some(size) = input.get(at + 6..at + 8) {
        let size = usize::from(u16::from_ne_bytes([size[0], size[1]]));
        let left = input.len() - at;
        if size < 8 || size >= left {
            input[at + 6..at + 8].copy_from_slice(&(left as u16).to_ne_bytes());
            return;
        }
        at += size;
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .expect("the corpus is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    let read = |path| std::fs::read(path).expect("readable");
    paths.iter().map(read).collect()
}

/// Runs one input; what it is like, or that it went wrong.
fn run(input: &[u8]) -> Result<Traits, String> {
    LARGEST.set(0);
    let traits = std::panic::catch_unwind(|| exercise(input))
        .map_err(|_| "the decoder panicked, or broke a promise".to_owned())?;
    match LARGEST.get() {
        largest if largest > LARGEST_PIECE => {
            Err(format!("{largest} bytes were allocated at once"))
        }
        _ => Ok(traits),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default| {
        let text = arguments.get(i);
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let (seconds, seed) = (number(0, 10), number(1, 1));
    let mut random = Random(seed.max(1));
    let mut kept = corpus();
    let mut seen = Traits::new();
    for input in &kept {
        seen.extend(run(input).expect("the corpus is clean"));
    }
    let known = kept.len();
    let (start, mut inputs) = (Instant::now(), 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        for _ in 0..1000 {
            let mut input = kept[random.below(kept.len())].clone();
            for _ in 0..=random.below(6) {
                let other = &kept[random.below(kept.len())];
                mutate(&mut random, &mut input, other);
            }
            inputs += 1;
            match run(&input) {
                Ok(traits) if traits.is_subset(&seen) => {}
                Ok(traits) => {
                    if let Some(dir) = arguments.get(2) {
                        let path = Path::new(dir).join(format!("found-{:05}", kept.len()));
                        std::fs::write(path, &input).expect("written");
                    }
                    seen.extend(traits);
                    // What does not fit is not looked for any more.
                    if kept.len() < 20_000 {
                        kept.push(input);
                    }
                }
                Err(reason) => {
                    std::fs::write("fuzz-failure.bin", &input).expect("written");
                    eprintln!("{reason}: see fuzz-failure.bin");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    println!(
        "{inputs} inputs in {seconds} s from seed {seed}: no panic; {} led somewhere new",
        kept.len() - known
    );
    ExitCode::SUCCESS
}
