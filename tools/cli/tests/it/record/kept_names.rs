//! Names are kept with a recording: what reads it shows the same where the programs are gone.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use quipu_perf_data::Reader;

use super::jit::COMPILER;
use super::{Bench, quipu, skip, stderr, stdout};

/// Code of its own, calls that are inlined, system calls and a library.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }
static inline __attribute__((always_inline)) void inlined_part(volatile long *x) { for (int i = 0; i < 50; i++) *x += i; }
static volatile long sum;
__attribute__((noinline)) void hot_part(void) { for (int i = 0; i < 1000; i++) inlined_part(&sum); }
__attribute__((noinline)) void calls_hot_part(void) { hot_part(); __asm__ volatile(""); }
int main(int count, char **words) {
    long end = now() + atol(words[1]);
    while (now() < end) {
        calls_hot_part();
        for (int i = 0; i < 100; i++) getppid();
        char *memory = malloc(200000);
        memset(memory, count, 200000);
        free(memory);
    }
    return 0;
}
"#;

/// Options of recordings, of two programs each.
const RECORDINGS: [&[&str]; 10] = [
    &["-e", "cpu-clock"],
    &["-e", "cpu-clock:u"],
    &["-e", "cpu-clock", "-g"],
    &["-e", "cpu-clock:u", "--call-graph", "dwarf"],
    &["-e", "cpu-clock", "-z"],
    &["-e", "cpu-clock", "-g", "-z"],
    &["-e", "page-faults", "-c", "1", "-d"],
    &["-e", "page-faults:u,cpu-clock", "-g"],
    &["-e", "context-switches", "-c", "1", "-g"],
    &["-e", "cpu-clock", "-a"],
];

/// Commands that read a recording.
const READINGS: [&[&str]; 6] = [
    &["report"],
    &["report", "--folded"],
    &["report", "--children", "-g"],
    &["report", "--inline", "-s", "comm,dso,sym,srcline"],
    &["script", "-F", "+srcline", "--inline"],
    &["script", "--json"],
];

/// A bench with the program and the compiler.
fn bench(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    for (name, source) in [("app", PROGRAM), ("jit", COMPILER)] {
        if let Err(reason) = bench.compile(name, source) {
            skip(test, reason);
            return None;
        }
    }
    Some(bench)
}

fn record(bench: &Bench, file: &str, options: &[&str], command: &str) -> Output {
    let options = [&["-q", "-F", "999", "-o", file][..], options].concat();
    let options: Vec<_> = match options.contains(&"-c") {
        true => options
            .into_iter()
            .filter(|o| !["-F", "999"].contains(o))
            .collect(),
        false => options,
    };
    let output = bench.record(&options, command);
    assert!(output.status.success(), "{options:?}: {}", stderr(&output));
    output
}

/// The command, as it is run where the files of this system are hidden: by a dynamic linker and libraries that are copied.
fn hidden(bench: &Bench) -> Result<Command, String> {
    let own = env!("CARGO_BIN_EXE_quipu");
    let listed = Command::new("ldd").arg(own).output();
    let listed = listed.map_err(|e| format!("no ldd(1): {e}"))?;
    let listed = stdout(&listed);
    let words = listed.split_whitespace();
    let libraries: Vec<_> = words.filter(|word| word.starts_with('/')).collect();
    let copies = bench.path("copies");
    fs::create_dir_all(&copies).expect("a directory");
    let mut linker = None;
    for library in libraries {
        let name = Path::new(library).file_name().expect("a file");
        let copy = copies.join(name);
        fs::copy(library, &copy).expect("copied");
        if name.to_string_lossy().starts_with("ld-") {
            linker = Some(copy);
        }
    }
    let linker = linker.ok_or("it is linked statically, or otherwise than here")?;
    fs::copy(own, copies.join("quipu")).expect("copied");
    // The shell is in memory by then.
    let script = format!(
        "mount -t tmpfs none /usr && mount --bind /dev/null /proc/kallsyms && exec {} --library-path {} {} \"$@\"",
        linker.display(),
        copies.display(),
        copies.join("quipu").display()
    );
    let mut command = Command::new("unshare");
    command
        .current_dir(bench.directory.path())
        .args(["-m", "sh", "-c", &script, "sh"]);
    let mut probe = Command::new("unshare");
    let probe = probe
        .args(["-m", "sh", "-c", &script, "sh", "--version"])
        .output();
    match probe {
        Ok(probe) if probe.status.success() => Ok(command),
        Ok(probe) => Err(stderr(&probe)),
        Err(error) => Err(format!("unshare(1): {error}")),
    }
}

#[test]
fn a_recording_shows_the_same_without_the_programs() {
    const TEST: &str = "a_recording_shows_the_same_without_the_programs";
    let Some(bench) = bench(TEST) else {
        return;
    };
    let hidden = match hidden(&bench) {
        Ok(hidden) => hidden,
        Err(reason) => return skip(TEST, reason),
    };
    let words: Vec<_> = hidden.get_args().map(ToOwned::to_owned).collect();
    let mut shown = Vec::new();
    for (at, options) in RECORDINGS.iter().enumerate() {
        for command in ["./app 150", "./jit map 1 0.15"] {
            let file = format!("{at}-{}.data", command.contains("jit"));
            record(&bench, &file, options, command);
            for reading in READINGS {
                let mut command = quipu();
                let command = command
                    .current_dir(bench.directory.path())
                    .args(reading)
                    .args(["-i", &file]);
                let output = command.output().expect("it starts");
                assert!(output.status.success(), "{}", stderr(&output));
                shown.push((reading, file.clone(), output));
            }
        }
    }
    assert_eq!(shown.len(), 2 * RECORDINGS.len() * READINGS.len());
    let all: String = shown.iter().map(|(_, _, output)| stdout(output)).collect();
    for name in [
        "inlined_part (inlined)",
        "hot_part",
        "app.c:10",
        "made in generation 0",
    ] {
        assert!(all.contains(name), "{name}");
    }
    // Gone for good, and the libraries and the kernel's symbols are hidden.
    for name in ["app", "app.c", "jit", "jit.c"] {
        fs::remove_file(bench.path(name)).expect("it is there");
    }
    // Those of this test: others run at the same time.
    let maps = fs::read_to_string(bench.path("maps")).expect("the compiler lists them");
    for map in maps.lines() {
        fs::remove_file(map).expect("it is there");
    }
    for (reading, file, before) in shown {
        let after = Command::new("unshare")
            .current_dir(bench.directory.path())
            .args(&words)
            .args(reading)
            .args(["-i", &file])
            .output()
            .expect("it starts");
        let (before_text, after_text) = (stdout(&before), stdout(&after));
        let mut lines = before_text.lines().zip(after_text.lines());
        let different = lines.find(|(before, after)| before != after);
        assert_eq!(different, None, "{reading:?} of {file}: {}", stderr(&after));
        assert!(before_text == after_text, "{reading:?} of {file}");
        assert_eq!(stderr(&before), stderr(&after), "{reading:?} of {file}");
    }
}

/// Returns what was appended to a recording, and the length of the file.
fn appendix(bench: &Bench, file: &str) -> (Option<Vec<u8>>, u64) {
    let file = File::open(bench.path(file)).expect("it was written");
    let len = file.metadata().expect("a file").len();
    let reader = Reader::new(file).expect("a recording");
    (reader.appendix().map(<[u8]>::to_owned), len)
}

#[test]
fn names_are_small_and_can_be_left_out() {
    let Some(bench) = bench("names_are_small_and_can_be_left_out") else {
        return;
    };
    for options in [&["-F", "4000"][..], &["-F", "4000", "-g"]] {
        let options = [&["-q", "-e", "cpu-clock", "-o", "p.data"], options].concat();
        let output = bench.record(&options, "./app 1000");
        assert!(output.status.success(), "{}", stderr(&output));
        let (names, len) = appendix(&bench, "p.data");
        let names = names.expect("kept").len() as u64;
        assert!(names * 20 < len - names, "{options:?}: {names} of {len}");
    }
    record(&bench, "n.data", &["--names", "none"], "./app 100");
    assert_eq!(appendix(&bench, "n.data").0, None);
}

#[test]
fn names_that_make_no_sense_are_left_out() {
    let Some(bench) = bench("names_that_make_no_sense_are_left_out") else {
        return;
    };
    record(&bench, "p.data", &["-e", "cpu-clock:u"], "./app 100");
    let (names, len) = appendix(&bench, "p.data");
    let begin = len as usize - 16 - names.expect("kept").len();
    let good = fs::read(bench.path("p.data")).expect("it was written");
    let mut bad = good.clone();
    bad[begin] ^= 0xff;
    fs::write(bench.path("bad.data"), bad).expect("written");
    let report = bench.report(&["-i", "bad.data"]);
    let note = "the names that were kept with the recording are malformed, and left out";
    assert!(stderr(&report).contains(note), "{}", stderr(&report));
    assert!(stdout(&report).contains("hot_part"), "{}", stdout(&report));
    // Of a file that was cut, the names alone are missing.
    fs::write(bench.path("cut.data"), &good[..begin + 5]).expect("written");
    let report = bench.report(&["-i", "cut.data"]);
    assert!(!stderr(&report).contains("kept"), "{}", stderr(&report));
    assert!(stdout(&report).contains("hot_part"), "{}", stdout(&report));
}

/// Runs perf, if it is there.
fn perf(bench: &Bench, arguments: &[&str]) -> Option<Output> {
    let mut perf = Command::new("perf");
    let perf = perf.current_dir(bench.directory.path()).args(arguments);
    let output = perf.output().ok()?;
    output.status.success().then_some(output)
}

#[test]
fn perf_reads_a_recording_with_names_as_one_without() {
    const TEST: &str = "perf_reads_a_recording_with_names_as_one_without";
    let Some(bench) = bench(TEST) else {
        return;
    };
    if perf(&bench, &["version"]).is_none() {
        return skip(TEST, "there is no perf");
    }
    record(
        &bench,
        "with.data",
        &["-e", "cpu-clock:u", "-g"],
        "./app 200",
    );
    let (names, len) = appendix(&bench, "with.data");
    let names = names.expect("kept").len() as u64;
    let whole = fs::read(bench.path("with.data")).expect("it was written");
    let without = &whole[..(len - names - 16) as usize];
    fs::write(bench.path("without.data"), without).expect("written");
    for reading in [&["report", "--stdio"][..], &["script"], &["buildid-list"]] {
        let read = |file: &str| {
            let arguments = [reading, &["-i", file]].concat();
            let output = perf(&bench, &arguments).expect("it reads the file");
            let text = (stdout(&output) + &stderr(&output)).replace(file, "FILE");
            // perf ends a report with a tip, another one each second.
            let lines = text.lines().filter(|line| !line.starts_with("# (Tip: "));
            lines.collect::<Vec<_>>().join("\n")
        };
        let (with, without) = (read("with.data"), read("without.data"));
        assert_eq!(with, without, "{reading:?}");
        assert!(
            reading[0] == "buildid-list" || with.contains("hot_part"),
            "{with}"
        );
    }
    // Which writes what it knows of a file to another.
    perf(
        &bench,
        &["inject", "-b", "-i", "with.data", "-o", "injected.data"],
    )
    .expect("it reads it");
    assert_eq!(appendix(&bench, "injected.data").0, None);
    let injected = bench.report(&["-i", "injected.data"]);
    assert!(
        stdout(&injected).contains("hot_part"),
        "{}",
        stderr(&injected)
    );
}
