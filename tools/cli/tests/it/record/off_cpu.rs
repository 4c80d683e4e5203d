//! Times off the CPU: `quipu record --off-cpu`, which perf(1) reads.

use serde_json::Value;

use super::peer::perf;
use super::{Bench, quipu, skip, stderr, stdout};

/// Sleeps twenty times for ten milliseconds, and is busy in between.
const NAPS: &str = r"
#include <time.h>
void nap(void) { struct timespec ten = {0, 10000000}; nanosleep(&ten, 0); }
void spin(void) { for (volatile int i = 0; i < 100000; i++); }
int main(void) {
    for (int i = 0; i < 20; i++) { nap(); spin(); }
    return 0;
}
";

/// Returns the nanoseconds of each sample off the CPU that has a function in its chain.
fn sleeps(script: &str, function: &str) -> Vec<u64> {
    let samples = script
        .split("\n\n")
        .filter(|sample| sample.contains("offcpu-time"));
    let named = samples.filter(|sample| {
        let mut words = sample.split_whitespace();
        words.any(|word| word == function)
    });
    let periods = named.map(|sample| {
        sample
            .split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
    });
    periods.map(|period| period.expect("a period")).collect()
}

#[test]
fn sleeps_are_samples_of_their_nanoseconds() {
    const TEST: &str = "sleeps_are_samples_of_their_nanoseconds";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("naps", NAPS).expect("as before");
    let naps = bench.path("naps").to_string_lossy().into_owned();
    // The C library may have no frame pointers: then the caller of nap follows, where that was called from.
    let methods: &[(&[&str], &str)] =
        match cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            true => &[
                (&[], "main"),
                (&["--call-graph", "dwarf"], "nap"),
                (&["-z"], "main"),
            ],
            false => &[(&[], "main")],
        };
    for (options, function) in methods {
        let options = [&["--off-cpu", "-e", "page-faults"], *options].concat();
        let recorded = bench.record(&options, &naps);
        if recorded.status.code() == Some(125) {
            return skip(TEST, stderr(&recorded).trim());
        }
        let fields = ["script", "-F", "period,event,ip,sym"];
        let script = quipu()
            .current_dir(bench.directory.path())
            .args(fields)
            .output()
            .expect("it starts");
        let ours = sleeps(&stdout(&script), function);
        assert_eq!(ours.len(), 20, "{options:?} {}", stdout(&script));
        assert!(ours.iter().all(|ns| *ns >= 10_000_000), "{ours:?}");
        match perf(&bench, &fields) {
            Some(script) => {
                assert_eq!(stderr(&script), "", "{options:?}");
                assert_eq!(sleeps(&stdout(&script), function), ours, "{options:?}");
            }
            None => skip(TEST, "perf does not start here"),
        }
        let rows = bench.rows(&["--no-children", "--sort", "sym,dso"]);
        let in_kernel = |row: &&Value| row["event"] == "offcpu-time" && row["kernel"] == true;
        assert_eq!(rows.iter().find(in_kernel), None, "{options:?}");
        let rows = bench.rows(&["--sort", "comm"]);
        let of_sleeps = rows.iter().find(|row| row["event"] == "offcpu-time");
        let samples = of_sleeps.and_then(|row| row["samples"].as_u64());
        assert!(samples.is_some_and(|count| count >= 20), "{rows:?}");
    }
}

#[test]
fn what_spoils_the_times_is_refused() {
    const TEST: &str = "what_spoils_the_times_is_refused";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for (other, why) in [
        (&["--overwrite"][..], "--overwrite"),
        (&["-e", "{page-faults,task-clock}:S"], "--off-cpu"),
    ] {
        let output = bench.record(&[&["--off-cpu"], other].concat(), "true");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(why), "{output:?}");
    }
}
