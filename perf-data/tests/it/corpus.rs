//! Inputs of the fuzzer that are kept: each kind of record, samples of every field, bytes of a real ring,
//! and what once led somewhere new.

use std::path::Path;

#[path = "../../fuzz/exercise.rs"]
mod exercise;

use exercise::{FAILED, LAYOUT, Traits, exercise};

fn inputs() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let files = std::fs::read_dir(dir).expect("the corpus is there");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read(entry.expect("listed").path()).expect("readable")
    };
    files.map(read).collect()
}

/// Every input, and every one of its beginnings.
#[test]
fn the_corpus_is_decoded_without_a_panic() {
    let mut traits = Traits::new();
    let inputs = inputs();
    assert!(inputs.len() >= 40, "{}", inputs.len());
    for input in &inputs {
        traits.extend(exercise(input));
        for len in 0..input.len() {
            exercise(&input[..len]);
        }
    }
    if cfg!(target_endian = "big") {
        // The inputs are a little-endian machine's.
        return;
    }
    // The kernel's 22 types and one that is not known, all of them decoded at least once. The type is in
    // the top byte.
    let decoded = |kind: u64| {
        let mut found = traits.iter();
        found.any(|t| t >> 56 == kind && t >> 48 & 0xff != FAILED)
    };
    for kind in 1..=23 {
        assert!(decoded(kind), "no record of type {kind} is decoded");
    }
}

/// Each byte of each input, changed.
#[test]
fn inputs_with_one_byte_changed_are_decoded_without_a_panic() {
    for mut input in inputs() {
        for at in 0..input.len() {
            input[at] ^= 0xff;
            exercise(&input);
            input[at] ^= 0xff;
        }
        assert!(input.len() >= LAYOUT);
    }
}
