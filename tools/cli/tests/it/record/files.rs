//! Files: kept, refused, truncated, full.

use std::fs;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use super::{Bench, quipu, stderr};

#[test]
fn a_file_that_is_there_is_kept_under_another_name() {
    let Some(bench) = Bench::new("a_file_that_is_there_is_kept_under_another_name") else {
        return;
    };
    let first = fs::read(bench.path("perf.data")).expect("the first recording");
    bench.record(&["-e", "page-faults:u"], "true");
    assert_eq!(fs::read(bench.path("perf.data.old")).expect("kept"), first);
    assert!(bench.report(&[]).status.success());
}

#[test]
fn truncated_and_other_files_are_refused_in_a_sentence() {
    let Some(bench) = Bench::new("truncated_and_other_files_are_refused_in_a_sentence") else {
        return;
    };
    let whole = fs::read(bench.path("perf.data")).expect("a recording");
    let report = |content: &[u8]| {
        fs::write(bench.path("x.data"), content).expect("written");
        let output = bench.report(&["-i", "x.data"]);
        (output.status.code(), stderr(&output))
    };
    for (content, reason) in [
        (&whole[..150], "truncated"),
        (&whole[..50], "it is no perf.data file"),
        (b"".as_slice(), "it is no perf.data file"),
        (b"#!/bin/sh\necho this is a script, and a rather long one for a test of this kind\n\n\n\n", "it is no perf.data file"),
    ] {
        let (status, text) = report(content);
        assert_eq!(status, Some(125), "{text}");
        assert!(text.starts_with("quipu: cannot read x.data: ") && text.contains(reason), "{text}");
    }
    let (_, missing) = {
        let output = bench.report(&["-i", "none"]);
        (output.status.code(), stderr(&output))
    };
    assert!(
        missing.contains("no such file") && missing.contains("quipu record"),
        "{missing}"
    );
    // A record that says it is longer than the file.
    let mut bad = whole.clone();
    let data = u64::from_ne_bytes(*whole[40..].first_chunk().expect("a header"));
    let at = usize::try_from(data).expect("it is small") + 6;
    bad[at..at + 2].copy_from_slice(&[3, 0]);
    let (status, text) = report(&bad);
    assert_eq!(status, Some(125));
    assert!(text.contains("malformed at byte"), "{text}");
}

#[test]
fn what_cannot_be_written_is_refused_before_the_command_runs() {
    let Some(bench) = Bench::new("what_cannot_be_written_is_refused_before_the_command_runs")
    else {
        return;
    };
    for (file, reason) in [
        ("/dev/full", "No space left"),
        ("/nowhere/perf.data", "No such file"),
    ] {
        let mark = bench.path("mark");
        let touch = format!("touch {}", mark.display());
        let output = bench.record(&["-e", "page-faults:u", "-o", file], &touch);
        assert!(
            matches!(output.status.code(), Some(125 | 2)),
            "{}",
            stderr(&output)
        );
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert!(!mark.exists(), "{file}");
    }
}

#[test]
fn a_file_that_says_nothing_of_its_machine_is_read_all_the_same() {
    const TEST: &str = "a_file_that_says_nothing_of_its_machine_is_read_all_the_same";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.record(&["-e", "page-faults:u", "-c", "1"], "true");
    let told = bench.rows(&[]);
    let mut file = fs::read(bench.path("perf.data")).expect("a recording");
    // As a recorder leaves it that is killed, or finds the disk full: no features, then no length.
    for range in [72..104, 48..56] {
        file[range].fill(0);
        let end =
            [40, 48].map(|at| u64::from_ne_bytes(*file[at..].first_chunk().expect("a header")));
        if end[1] == 0 {
            let whole = fs::read(bench.path("perf.data")).expect("a recording");
            let len = u64::from_ne_bytes(*whole[48..].first_chunk().expect("a header"));
            file.truncate(usize::try_from(end[0] + len).expect("it is small"));
        }
        fs::write(bench.path("bare.data"), &file).expect("written");
        let rows = bench.rows(&["-i", "bare.data"]);
        assert_eq!(rows.len(), told.len());
        assert!(
            rows.iter().all(|row| row["event"] == "page-faults:u"),
            "{rows:?}"
        );
    }
    // As if it were a tracepoint, whose number has no name in another kernel: the names are there from the
    // beginning.
    let attrs = u64::from_ne_bytes(*file[24..].first_chunk().expect("a header"));
    let attrs = usize::try_from(attrs).expect("it is small");
    file[attrs..attrs + 4].copy_from_slice(&2u32.to_ne_bytes());
    fs::write(bench.path("tracepoint.data"), &file).expect("written");
    let rows = bench.rows(&["-i", "tracepoint.data"]);
    assert!(!rows.is_empty() && rows.iter().all(|row| row["event"] == "page-faults:u"));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (arguments, reason) in [
        (&["record"][..], "nothing to record"),
        (
            &["record", "-e", "{cs,faults:S}", "true"],
            "belong to a whole group",
        ),
        (&["record", "-m", "3", "true"], "a power of two"),
        (
            &[
                "record",
                "-F",
                "1000000000",
                "--strict-freq",
                "-e",
                "cs",
                "true",
            ],
            "perf_event_max_sample_rate",
        ),
    ] {
        let output = quipu().args(arguments).output().expect("it starts");
        let text = stderr(&output);
        // Where nothing can be counted at all, that comes first.
        assert!(matches!(output.status.code(), Some(2 | 125)), "{text}");
        assert!(
            output.status.code() == Some(125) || text.contains(reason),
            "{text}"
        );
    }
}

/// Returns the offsets of the records of a file, with their kinds.
fn records(file: &[u8]) -> Vec<(usize, u32)> {
    let number = |at: usize| u64::from_ne_bytes(*file[at..].first_chunk().expect("in the file"));
    let (start, len) = (number(40) as usize, number(48) as usize);
    let mut records = Vec::new();
    let mut at = start;
    while at < start + len {
        let kind = u32::from_ne_bytes(*file[at..].first_chunk().expect("a record"));
        records.push((at, kind));
        at += usize::from(u16::from_ne_bytes(
            *file[at + 6..].first_chunk().expect("a record"),
        ));
    }
    records
}

#[test]
fn what_is_whole_of_a_damaged_file_is_shown_with_what_was_left_out() {
    const TEST: &str = "what_is_whole_of_a_damaged_file_is_shown_with_what_was_left_out";
    const COMM: u32 = 3;
    const MMAP2: u32 = 10;
    const SAMPLE: u32 = 9;
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.record(&["-e", "page-faults:u", "-c", "1"], "true");
    let whole = fs::read(bench.path("perf.data")).expect("a recording");
    let records = records(&whole);
    let samples = |at: usize| records.iter().filter(|r| r.1 == SAMPLE && r.0 < at).count();
    let report = |content: &[u8]| {
        fs::write(bench.path("x.data"), content).expect("written");
        let output = bench.report(&["-i", "x.data"]);
        assert!(output.status.success(), "{}", stderr(&output));
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr(&output),
        )
    };
    // Names of processes that are called mappings are too short for that.
    let mut changed = whole.clone();
    for (at, _) in records.iter().filter(|(_, kind)| *kind == COMM) {
        changed[*at..at + 4].copy_from_slice(&MMAP2.to_ne_bytes());
    }
    let (out, err) = report(&changed);
    let all = samples(usize::MAX);
    assert!(
        all > 10 && out.contains(&format!("# Samples: {all} of")),
        "{out}"
    );
    assert!(
        err.contains("records are left out, they cannot be decoded"),
        "{err}"
    );
    // A record that says it is longer than the file: what was before it is whole.
    let (last, _) = *records.iter().rfind(|r| r.1 == SAMPLE).expect("samples");
    let mut changed = whole.clone();
    changed[last + 6..last + 8].copy_from_slice(&[3, 0]);
    let (out, err) = report(&changed);
    assert!(
        out.contains(&format!("# Samples: {} of", samples(last))),
        "{out}"
    );
    assert!(err.contains("the file is not whole"), "{err}");
}

#[test]
fn a_file_that_may_not_grow_is_told_at_once_and_the_command_goes_on() {
    const TEST: &str = "a_file_that_may_not_grow_is_told_at_once_and_the_command_goes_on";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let quipu = cargo_bin("quipu");
    // The limit is of files of 64 blocks of 512 bytes: SIGXFSZ comes with the write beyond it.
    let script = format!(
        "ulimit -f 64; exec {} record -q -e page-faults:u -c 1 -- sh -c '\
         i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i + 1)); done; echo went on >&2'",
        quipu.display()
    );
    let output = Command::new("sh")
        .current_dir(bench.directory.path())
        .args(["-c", &script])
        .output()
        .expect("sh");
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{told}");
    let (at, on) = (told.find("cannot continue writing"), told.find("went on"));
    assert!(at.is_some() && at < on, "{told}");
    assert!(told.contains("File too large"), "{told}");
    // What fitted is reported as a part.
    let report = bench.report(&[]);
    assert!(report.status.success());
    let text = String::from_utf8_lossy(&report.stdout);
    assert!(!text.starts_with("# Samples: 0 "), "{text}");
    let notes = stderr(&report);
    assert!(notes.contains("it was not finished"), "{notes}");
    assert!(
        !notes.contains("nothing of what was sampled happened"),
        "{notes}"
    );
}

#[test]
fn files_of_another_user_are_neither_replaced_nor_read_unasked() {
    const TEST: &str = "files_of_another_user_are_neither_replaced_nor_read_unasked";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let file = bench.path("perf.data");
    if std::os::unix::fs::chown(&file, Some(65534), None).is_err() {
        return super::skip(TEST, "only root can give a file away");
    }
    let before = fs::read(&file).expect("a recording");
    let output = bench.report(&[]);
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("it belongs to another user"),
        "{}",
        stderr(&output)
    );
    assert!(bench.report(&["-f"]).status.success());
    let output = bench.record(&["-e", "page-faults:u"], "true");
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr(&output).contains("it belongs to another user"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read(&file).expect("as it was"), before);
}

#[test]
fn what_a_terminal_would_obey_is_escaped() {
    let Some(bench) = Bench::new("what_a_terminal_would_obey_is_escaped") else {
        return;
    };
    let evil = bench.path("e\u{1b}[31m\nx");
    std::os::unix::fs::symlink("/bin/true", &evil).expect("a link");
    bench.record(
        &["-e", "page-faults:u", "-c", "1"],
        evil.to_str().expect("text"),
    );
    let is_obeyed = |c: char| c.is_control() && c != '\n';
    for options in [&[][..], &["--csv"], &["-g"]] {
        let output = bench.report(options);
        let out = String::from_utf8(output.stdout).expect("text");
        assert!(out.contains(r"e\x1b[31m\nx"), "{out}");
        assert!(!out.contains(is_obeyed), "{out:?}");
    }
    assert!(bench.report(&["--flamegraph", "x.svg"]).status.success());
    let picture = fs::read_to_string(bench.path("x.svg")).expect("a picture");
    assert!(picture.contains(r"e\x1b[31m\nx") && !picture.contains(|c| is_obeyed(c) && c != '\t'));
}

/// Code that is made while the program runs, whose name is in a file that the program gives away.
#[cfg(target_arch = "x86_64")]
const JITTED: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **arguments) {
    /* mov $400000000, %ecx; 1: dec %ecx; jnz 1b; ret */
    static const unsigned char code[] = {0xb9, 0x00, 0x84, 0xd7, 0x17, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    memcpy(at, code, sizeof code);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map)
        return 1;
    fprintf(map, "%lx %zx made_up\n", (unsigned long)at, sizeof code);
    fclose(map);
    if (chown(path, 65534, -1))
        return 2;
    puts(path);
    ((void (*)(void))at)();
    return 0;
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn names_that_another_user_wrote_are_left_out_and_told() {
    const TEST: &str = "names_that_another_user_wrote_are_left_out_and_told";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("jitted", JITTED).expect("a C compiler");
    let output = bench.record(&["-q", "-e", "cpu-clock:u", "-F", "199"], "./jitted");
    if output.status.code() == Some(2) {
        return super::skip(TEST, "only root can give a file away");
    }
    let map = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let told = bench.report(&[]);
    let forced = bench.report(&["-f"]);
    let _ = fs::remove_file(&map);
    let note = format!("{map}: it belongs to user 65534");
    assert!(stderr(&told).contains(&note), "{}", stderr(&told));
    assert!(!String::from_utf8_lossy(&told.stdout).contains("made_up"));
    assert!(!stderr(&forced).contains(&note), "{}", stderr(&forced));
    assert!(String::from_utf8_lossy(&forced.stdout).contains("made_up"));
}

/// Code at one address of two processes, which have made it for functions of different names.
#[cfg(target_arch = "x86_64")]
const FORKED: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    /* mov $400000000, %ecx; 1: dec %ecx; jnz 1b; ret */
    static const unsigned char code[] = {0xb9, 0x00, 0x84, 0xd7, 0x17, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    memcpy(at, code, sizeof code);
    pid_t child = fork();
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map)
        return 1;
    fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof code, child ? "of_parent" : "of_child");
    fclose(map);
    ((void (*)(void))at)();
    printf("%s\n", path);
    fflush(stdout);
    if (child)
        waitpid(child, 0, 0);
    return 0;
}
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn processes_that_share_their_mappings_have_functions_of_their_own() {
    const TEST: &str = "processes_that_share_their_mappings_have_functions_of_their_own";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("forked", FORKED).expect("a C compiler");
    let output = bench.record(&["-q", "-g", "-e", "cpu-clock:u", "-F", "199"], "./forked");
    let report = bench.report(&["--sort", "sym", "-j"]);
    let maps = String::from_utf8_lossy(&output.stdout).into_owned();
    for map in maps.lines() {
        let _ = fs::remove_file(map);
    }
    assert_eq!(maps.lines().count(), 2, "{output:?}");
    let rows = String::from_utf8_lossy(&report.stdout).into_owned();
    for name in ["of_parent", "of_child"] {
        let row = rows.lines().find(|row| row.contains(name));
        let row = row.unwrap_or_else(|| panic!("{name} is missing: {rows}"));
        let row: serde_json::Value = serde_json::from_str(row).expect("JSON");
        // Each runs for as long as the other.
        let share = row["overhead"].as_f64().expect("a share");
        assert!((25.0..75.0).contains(&share), "{name}: {share}");
    }
}
