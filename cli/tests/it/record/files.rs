//! Files: kept, refused, truncated, full.

use std::fs;

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
        ("-", "the file cannot be written to a pipe"),
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
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (arguments, reason) in [
        (&["record"][..], "nothing to record"),
        (
            &["record", "--call-graph", "dwarf", "true"],
            "dwarf is not supported",
        ),
        (
            &["record", "-e", "{cs,faults}", "true"],
            "leave the braces out",
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
