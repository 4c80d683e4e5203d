//! A recording, through the whole of `quipu report`, as text, as CSV, and as a flame graph.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_fuzz::{scratch, written};

fuzz_target!(|input: &[u8]| {
    let file = written("perf.data", input);
    let picture = scratch("picture.svg");
    let report = |options: &[&str]| {
        let file = file.to_str().expect("of ASCII");
        let words = ["quipu", "report", "-i", file];
        quipu_cli::run(words.into_iter().chain(options.iter().copied()));
    };
    report(&["--children", "-g"]);
    report(&["--csv"]);
    report(&["--flamegraph", picture.to_str().expect("of ASCII")]);
});
