//! Times off the CPU: `quipu record --off-cpu`, which perf(1) reads.

use std::collections::HashMap;

use serde_json::Value;

use super::peer::perf;
use super::privileges::record_unprivileged;
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

/// Eight threads that sleep, wait for one lock and read what another one writes; each says at its end how many nanoseconds of
/// its life it was not on a CPU, and for how many of them it could have run and had no CPU.
const WAITS: &str = r"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 8, ROUNDS = 10 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[THREADS / 2][2];
static struct { long id, born, waited, delayed; } all[THREADS];
static long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}
/* The second number of schedstat (Documentation/scheduler/sched-stats.rst). */
static long delayed(void) {
    long delay = 0;
    FILE *file = fopen(`/proc/thread-self/schedstat`, `r`);
    if (file && fscanf(file, `%*d %ld`, &delay) != 1) delay = 0;
    if (file) fclose(file);
    return delay;
}
static void nap(long milliseconds) {
    struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, 0);
}
static void spin(void) { for (volatile int i = 0; i < 100000; i++); }
static void wait_here(int own) {
    char byte = 0;
    nap(7);
    pthread_mutex_lock(&lock);
    nap(2);
    pthread_mutex_unlock(&lock);
    if (own % 2) (void)!write(pipes[own / 2][1], &byte, 1);
    else (void)!read(pipes[own / 2][0], &byte, 1);
}
static void *run(void *number) {
    int own = (long)number;
    all[own].id = syscall(SYS_gettid);
    for (int i = 0; i < ROUNDS; i++) {
        wait_here(own);
        spin();
    }
    all[own].delayed = delayed();
    all[own].waited = now(CLOCK_MONOTONIC) - all[own].born - now(CLOCK_THREAD_CPUTIME_ID);
    return 0;
}
int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS / 2; i++) if (pipe(pipes[i])) return 1;
    for (long i = 0; i < THREADS; i++) {
        all[i].born = now(CLOCK_MONOTONIC);
        if (pthread_create(&threads[i], 0, run, (void *)i)) return 1;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < THREADS; i++) printf(`%ld %ld %ld\n`, all[i].id, all[i].waited, all[i].delayed);
    return 0;
}
";

/// Returns the numbers of each line, as far as they go.
fn numbers(lines: &str) -> impl Iterator<Item = Vec<u64>> {
    let words = lines.lines().map(str::split_whitespace);
    words.map(|words| words.map_while(|word| word.parse().ok()).collect())
}

/// Asserts that what a recording says of each thread is what the thread said, to a fiftieth. A thread that lost its CPU while
/// it could have run did not sleep.
fn assert_true(bench: &Bench, file: &str, told: &str) {
    let script = ["script", "-f", "-i", file, "-F", "tid,period,event"];
    let script = quipu()
        .current_dir(bench.directory.path())
        .args(script)
        .output()
        .expect("it starts");
    let text = stdout(&script);
    let off_cpu = text.lines().filter(|line| line.contains("offcpu-time"));
    let off_cpu = off_cpu.collect::<Vec<_>>().join("\n");
    let mut found: HashMap<u64, u64> = HashMap::new();
    for sample in numbers(&off_cpu) {
        *found.entry(sample[0]).or_default() += sample[1];
    }
    let truth: Vec<_> = numbers(told).filter(|line| line.len() == 3).collect();
    assert_eq!(truth.len(), 8, "{told}");
    for thread in truth {
        let (waited, delayed) = (thread[1], thread[2]);
        let found = found.get(&thread[0]).copied().unwrap_or(0);
        let possible = waited.saturating_sub(delayed) / 50 * 49..=waited / 50 * 51;
        assert!(possible.contains(&found), "{found} of {thread:?}\n{text}");
    }
}

#[test]
fn times_are_those_that_the_threads_were_off_their_cpus() {
    const TEST: &str = "times_are_those_that_the_threads_were_off_their_cpus";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = bench.compile("waits", &WAITS.replace('`', "\"")) {
        return skip(TEST, reason);
    }
    let waits = bench.path("waits").to_string_lossy().into_owned();
    let recorded = bench.record(&["--off-cpu"], &waits);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    assert_true(&bench, "perf.data", &stdout(&recorded));
    // Both in ns.
    let rows = bench.rows(&["--sort", "comm"]);
    let mut events: Vec<_> = rows.iter().map(|row| row["event"].as_str()).collect();
    events.dedup();
    assert!(events.iter().all(|event| {
        event.is_some_and(|event| event.starts_with("cpu-clock") || event == "offcpu-time")
    }));
    match record_unprivileged(&bench, &["--off-cpu"], &waits) {
        Some(output) if output.status.success() => {
            assert_true(&bench, "nobodys.data", &stdout(&output));
        }
        Some(output) => skip(TEST, stderr(&output).trim()),
        None => skip(TEST, "no setpriv(1)"),
    }
}

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

#[test]
fn the_time_on_and_off_the_cpu_is_one_picture() {
    const TEST: &str = "the_time_on_and_off_the_cpu_is_one_picture";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    if let Err(reason) = bench.compile("naps", NAPS) {
        return skip(TEST, reason);
    }
    let naps = bench.path("naps").to_string_lossy().into_owned();
    let recorded = bench.record(&["--off-cpu", "-g", "--firefox", "both.json"], &naps);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let period = |options: &[&str]| -> u64 {
        let rows = bench.rows(&[&["--no-children", "--sort", "sym"], options].concat());
        let periods = rows
            .iter()
            .map(|row| row["period"].as_u64().expect("a number"));
        periods.sum()
    };
    let events = bench.rows(&["--sort", "comm"]);
    let on = events.iter().find_map(|row| row["event"].as_str());
    let on = on
        .filter(|event| event.starts_with("cpu-clock"))
        .expect("the clock is the first");
    let off = period(&["-e", "offcpu-time"]);
    let all = off + period(&["-e", on]);
    assert_eq!(period(&["-e", "wall-time"]), all);

    // A report begins with it, and stacks are of it: sleeps are the innermost frames.
    let report = stdout(&bench.report(&["--no-children"]));
    let heads = report.lines().filter(|line| line.contains("of event"));
    assert_eq!(
        heads
            .map(|line| line.contains("'wall-time'"))
            .collect::<Vec<_>>(),
        [true, false, false]
    );
    let folded = stdout(&bench.report(&["--folded"]));
    let weight = |line: &str| {
        line.rsplit_once(' ')
            .and_then(|(_, weight)| weight.parse::<u64>().ok())
    };
    let weights = |of: &str| -> u64 {
        let lines = folded.lines().filter(|line| line.contains(of));
        lines.map(|line| weight(line).expect("a weight")).sum()
    };
    assert_eq!((weights(";[off CPU] "), weights("")), (off, all));
    let drawn = bench.report(&["--flamegraph", "both.svg"]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let picture = std::fs::read_to_string(bench.path("both.svg")).expect("drawn");
    let asleep = picture.split("<title>[off CPU]").nth(1).expect("a box");
    let colour = "fill=\"rgb(120,160,220)\"";
    assert!(
        asleep
            .split("</g>")
            .next()
            .is_some_and(|of_box| of_box.contains(colour)),
        "{asleep:.300}"
    );
    assert_eq!(
        picture.matches(colour).count(),
        picture.matches("<title>[off CPU]").count()
    );

    // One track for each thread.
    let file = std::fs::read(bench.path("both.json")).expect("written");
    let file: Value = serde_json::from_slice(&file).expect("JSON");
    let threads = file["threads"].as_array().expect("threads");
    let of_naps = threads.iter().filter(|thread| thread["name"] == "naps");
    assert_eq!(
        of_naps.count(),
        1,
        "{:?}",
        threads
            .iter()
            .map(|thread| &thread["name"])
            .collect::<Vec<_>>()
    );
}
