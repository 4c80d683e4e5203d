//! `quipu diff`.

use super::{all_printed, recording};

#[test]
fn two_recordings() {
    let directory = recording::directory();
    recording::write(&directory, "more.data", 30);
    let runs: [&[&str]; 7] = [
        &["diff", "perf.data", "more.data"],
        &["diff", "-c", "ratio", "perf.data", "more.data"],
        &["diff", "-c", "wdiff:1,2", "perf.data", "more.data"],
        &["diff", "--json", "perf.data", "more.data"],
        &["diff", "perf.data", "missing.data"],
        &["diff", "--comms", "worker", "perf.data", "more.data"],
        &["diff", "-S", "histogram", "perf.data", "more.data"],
    ];
    insta::assert_snapshot!(all_printed(&directory, &runs));
}
