//! Streams, as `perf record -o -` writes them, and compressed records.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;

use super::judge::{BUSY, report_of_perf, told_by_perf, told_by_quipu};
use super::peer::perf;
use super::{Bench, skip, stderr, stdout};

/// Has `quipu record -o -` record a program that prints, into a file.
fn stream(bench: &Bench, options: &[&str]) -> Output {
    bench.compile("busy", BUSY).expect("it compiled before");
    std::fs::write(bench.path("prints.sh"), "echo printed; exec ./busy").expect("written");
    let file = File::create(bench.path("stream.data")).expect("created");
    let output = Command::new(cargo_bin("quipu"))
        .current_dir(bench.directory.path())
        .args(["record", "-o", "-"])
        .args(options)
        .args(["--", "sh", "prints.sh"])
        .stdout(file)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

#[test]
fn perf_reads_a_stream_and_counts_the_same() {
    const TEST: &str = "perf_reads_a_stream_and_counts_the_same";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    for options in [
        &["-e", "cpu-clock:u", "-F", "4000"][..],
        &["-e", "{cpu-clock:u,page-faults:u}:S", "-F", "4000"],
        &["-e", "cpu-clock:u,page-faults:u", "-F", "4000", "-z"],
    ] {
        let output = stream(&bench, options);
        // What the command prints is no part of the stream.
        assert!(
            stderr(&output).starts_with("printed\n"),
            "{}",
            stderr(&output)
        );
        let ours = told_by_quipu(&bench, "stream.data");
        assert!(!ours.shares.is_empty(), "{ours:?}");
        let Some(header) = perf(
            &bench,
            &["report", "-i", "stream.data", "--stdio", "--header"],
        ) else {
            return skip(TEST, "perf does not start here");
        };
        assert_eq!(stderr(&header), "");
        let text = stdout(&header);
        for fact in [
            "# os release : ",
            "# nrcpus online : ",
            "quipu record",
            "turn",
        ] {
            assert!(text.contains(fact), "{fact}: {text}");
        }
        // perf 6.1 crashes at some files of a few samples.
        if report_of_perf(&bench, "stream.data")
            .status
            .code()
            .is_none()
        {
            skip(TEST, format_args!("perf report crashes: {options:?}"));
            continue;
        }
        assert_eq!(ours, told_by_perf(&bench, "stream.data"), "{options:?}");
        let names =
            stdout(&perf(&bench, &["evlist", "-i", "stream.data"]).expect("it was there before"));
        assert!(names.starts_with("cpu-clock:u\n"), "{names}");
    }
}

#[test]
fn tracepoints_of_a_stream_have_their_formats() {
    const TEST: &str = "tracepoints_of_a_stream_have_their_formats";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let probe = bench.record(&["-e", "sched:sched_process_exec"], "true");
    if probe.status.code() == Some(125) {
        return skip(TEST, stderr(&probe).trim());
    }
    stream(&bench, &["-e", "sched:sched_process_exec"]);
    let ours = super::quipu()
        .current_dir(bench.directory.path())
        .args(["script", "-i", "stream.data"])
        .output()
        .expect("it starts");
    assert!(
        stdout(&ours).contains("filename=./busy"),
        "{}",
        stdout(&ours)
    );
    let Some(script) = perf(&bench, &["script", "-i", "stream.data"]) else {
        return skip(TEST, "perf does not start here");
    };
    assert_eq!(stderr(&script), "");
    let fields = |text: &str| -> Vec<String> {
        let events = text
            .lines()
            .filter_map(|line| line.split_once("sched_process_exec: "));
        events.map(|(_, fields)| fields.trim().to_owned()).collect()
    };
    assert_eq!(fields(&stdout(&script)), fields(&stdout(&ours)));
}

#[test]
fn a_recording_is_piped_into_a_report() {
    const TEST: &str = "a_recording_is_piped_into_a_report";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let mut recording = Command::new(cargo_bin("quipu"))
        .current_dir(bench.directory.path())
        .args([
            "record",
            "-q",
            "-e",
            "page-faults:u",
            "-c",
            "1",
            "-o",
            "-",
            "--",
        ])
        .arg(bench.path("program"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let report = Command::new(cargo_bin("quipu"))
        .args(["report", "-i", "-", "--json"])
        .stdin(recording.stdout.take().expect("a pipe"))
        .output()
        .expect("it starts");
    assert_eq!(recording.wait().expect("it ends").code(), Some(7));
    assert!(report.status.success(), "{}", stderr(&report));
    let text = stdout(&report);
    let rows: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(super::samples_of(&rows, "hot") >= 300, "{text}");
}

#[test]
fn a_reader_that_goes_away_is_told_and_the_command_goes_on() {
    const TEST: &str = "a_reader_that_goes_away_is_told_and_the_command_goes_on";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("busy", BUSY).expect("it compiled before");
    std::fs::write(
        bench.path("long.sh"),
        "for i in 1 2 3 4 5 6 7 8; do ./busy; done; touch done",
    )
    .expect("written");
    let mut recording = Command::new(cargo_bin("quipu"))
        .current_dir(bench.directory.path())
        .args([
            "record",
            "-e",
            "page-faults:u",
            "-c",
            "1",
            "-o",
            "-",
            "--",
            "sh",
            "long.sh",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut reader = recording.stdout.take().expect("a pipe");
    reader.read_exact(&mut [0; 16]).expect("the header");
    drop(reader);
    let output = recording.wait_with_output().expect("it ends");
    let text = stderr(&output);
    assert!(
        text.contains("the command goes on without being recorded"),
        "{text}"
    );
    assert!(text.contains("cannot write standard output: "), "{text}");
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(bench.path("done").exists(), "{text}");
}

#[test]
fn perf_reads_compressed_records_and_counts_the_same() {
    const TEST: &str = "perf_reads_compressed_records_and_counts_the_same";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let refused = bench.record(&["-z", "-e", "page-faults:u"], "true");
    if stderr(&refused).contains("without zstd") {
        return skip(TEST, stderr(&refused).trim());
    }
    bench.compile("busy", BUSY).expect("it compiled before");
    let program = bench.path("busy").to_string_lossy().into_owned();
    for level in ["-z", "-z=22", "--compression-level=3"] {
        let options = ["-e", "page-faults:u", "-c", "1", "-g", level];
        let output = bench.record(&options, &program);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let ours = told_by_quipu(&bench, "perf.data");
        assert!(ours.first() + ours.lost >= 2000, "{ours:?}");
        let Some(header) = perf(&bench, &["report", "--header-only"]) else {
            return skip(TEST, "perf does not start here");
        };
        let text = stdout(&header);
        assert!(text.contains("# compressed : Zstd, level = "), "{text}");
        let stats = perf(&bench, &["report", "--stats"]).expect("it was there before");
        if stderr(&stats).contains("ecompress") {
            return skip(TEST, "this perf was built without zstd");
        }
        assert!(
            stdout(&stats).contains("COMPRESSED events"),
            "{}",
            stdout(&stats)
        );
        assert_eq!(ours, told_by_perf(&bench, "perf.data"), "{level}");
    }
    for wrong in ["-z=23", "-z=-1", "-z=much"] {
        let output = bench.record(&[wrong], "true");
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(
            stderr(&output).contains("a level from 0 to 22"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn what_perf_compressed_is_reported() {
    const TEST: &str = "what_perf_compressed_is_reported";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    bench.compile("busy", BUSY).expect("it compiled before");
    let program = bench.path("busy").to_string_lossy().into_owned();
    let options = ["-e", "page-faults:u", "-c", "1", "-z"];
    if let Err(reason) = super::peer::recorded_by_perf(&bench, &program, &options) {
        return skip(TEST, reason);
    }
    let ours = told_by_quipu(&bench, "p.data");
    assert!(ours.first() + ours.lost >= 2000, "{ours:?}");
    assert_eq!(ours, told_by_perf(&bench, "p.data"));
}
