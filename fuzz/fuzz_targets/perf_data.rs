//! A recording, through the whole of `quipu report`, as text, as CSV, as a flame graph, and as files for viewers.
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
    let picture = picture.to_str().expect("of ASCII");
    report(&["--flamegraph", picture]);
    report(&["--firefox", picture]);
    report(&["--pprof", picture, "--speedscope", picture]);
});
