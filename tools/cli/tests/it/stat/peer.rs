//! Agreement with perf, where it is installed and may count.

use std::io::Write as _;

use crate::perf::perf;

use super::{can_count, run, stderr};

/// Returns the page faults of `true` in one line of `-x,`, the fewest of ten runs.
fn fewest(mut measure: impl FnMut() -> String) -> Option<u64> {
    (0..10)
        .map(|_| measure().split(',').next()?.trim().parse().ok())
        .min()
        .flatten()
}

#[test]
fn page_faults_agree_with_perf() {
    const TEST: &str = "page_faults_agree_with_perf";
    if !can_count(TEST, &["-e", "faults:u"]) {
        return;
    }
    let options = ["-x,", "-e", "page-faults:u", "--", "/bin/true"];
    let perf = || match perf() {
        Some(mut perf) => stderr(&perf.arg("stat").args(options).output().expect("it starts")),
        None => "it does not start here".to_owned(),
    };
    let Some(theirs) = fewest(perf) else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP {TEST}: perf says: {}",
            perf().trim()
        );
        return;
    };
    let ours = fewest(|| stderr(&run(&options))).expect("it can be counted");
    // Where the program is laid out is random, and so is whether a page more is needed.
    assert!(ours.abs_diff(theirs) <= 3, "ours {ours}, perf's {theirs}");
}
