//! Counts in files: `quipu stat record` and `report`, beside perf where it is installed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{can_count, run, skip, stderr};

/// Options, and a command.
const CASES: [(&str, &[&str]); 6] = [
    (
        "-e page-faults,context-switches,task-clock,cycles",
        &["true"],
    ),
    // It runs for some tens of milliseconds and is never idle.
    (
        "-e {page-faults:u,minor-faults:u} -I 10",
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
        ],
    ),
    ("-e page-faults,task-clock,cycles -a -A", SLEEP),
    ("-e page-faults,task-clock,cycles -a", SLEEP),
    ("-e page-faults,task-clock -a --per-socket", SLEEP),
    ("-e page-faults,task-clock -a --per-core", SLEEP),
];
const SLEEP: &[&str] = &["sleep", "0.01"];

/// Returns the arguments that record a case into a file.
fn recording<'a>(file: &'a Path, (options, command): (&'a str, &[&'a str])) -> Vec<&'a str> {
    let mut arguments = vec!["record", "-o", file.to_str().expect("text")];
    arguments.extend(options.split(' '));
    arguments.push("--");
    arguments.extend(command);
    arguments
}

/// Returns the lines of events in a report, without what is computed from the counts: time, place, count, unit, name.
fn lines(report: &str) -> Vec<Vec<String>> {
    let lines = report.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| {
        line.split('#')
            .next()
            .unwrap_or_default()
            .replace(',', "")
            // Of an interval in which the command did not run.
            .replace("<not counted>", "0")
    });
    let events = ["faults", "switches", "clock", "cycles"];
    let lines = lines.filter(|line| {
        let last = line.split_whitespace().next_back().unwrap_or_default();
        line.starts_with([' ', 'C', 'S'])
            && !line.contains("supported:")
            && events.iter().any(|event| last.contains(event))
    });
    let lines = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
    let mut lines: Vec<_> = lines.collect();
    // Of several CPUs perf has event by event, or CPU by CPU.
    lines.sort();
    lines
}

/// Runs perf stat, where perf starts.
fn perf(arguments: &[&str]) -> Option<Output> {
    let mut perf = crate::perf::perf()?;
    let output = perf.arg("stat").args(arguments).output();
    Some(output.expect("it started before"))
}

/// Returns what quipu and perf report of a file; none of perf where it does not start.
fn reports(file: &Path) -> (Vec<Vec<String>>, Option<Vec<Vec<String>>>) {
    let file = file.to_str().expect("text");
    let ours = run(&["report", "-i", file]);
    assert!(ours.status.success(), "{ours:?}");
    let theirs = perf(&["report", "-i", file]).map(|output| {
        assert!(output.status.success(), "{output:?}");
        lines(&stderr(&output))
    });
    (lines(&stderr(&ours)), theirs)
}

fn file(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("counts.data")
}

#[test]
fn perf_and_quipu_report_what_was_kept() {
    const TEST: &str = "perf_and_quipu_report_what_was_kept";
    if !can_count(TEST, &["-e", "page-faults,context-switches", "-a"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = file(&directory);
    for case in CASES {
        let recorded = run(&recording(&file, case));
        assert!(recorded.status.success(), "{recorded:?}");
        let told = lines(&stderr(&recorded));
        assert!(told.len() > 1, "{recorded:?}");
        let (ours, theirs) = reports(&file);
        assert_eq!(ours, told, "{case:?}");
        match theirs {
            Some(theirs) => assert_eq!(theirs, ours, "{case:?}"),
            None => skip(TEST, "perf does not start here"),
        }
    }
}

#[test]
fn counts_that_perf_kept_are_reported() {
    const TEST: &str = "counts_that_perf_kept_are_reported";
    let directory = tempfile::tempdir().expect("a directory");
    let file = file(&directory);
    for case in CASES {
        let recorded = perf(&recording(&file, case));
        if !recorded.is_some_and(|output| output.status.success()) {
            return skip(TEST, "perf cannot count, or does not start here");
        }
        let (ours, theirs) = reports(&file);
        assert_eq!(Some(&ours), theirs.as_ref(), "{case:?}");
        assert!(ours.len() > 1, "{case:?}");
    }
    // Other lines than those that were asked for when it was counted.
    let file = file.to_str().expect("text");
    let ours = run(&["report", "-i", file, "-A"]);
    let theirs = perf(&["report", "-i", file, "-A"]).expect("it was there before");
    assert_eq!(lines(&stderr(&ours)), lines(&stderr(&theirs)));
}

/// Returns what the report of a stream has, by `stat report -i -` of a program.
fn of_stream(mut program: Command, stream: &Path) -> Vec<Vec<String>> {
    let report = program.args(["stat", "report", "-i", "-"]);
    report.stdin(File::open(stream).expect("it was made"));
    let output = report.output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    lines(&stderr(&output))
}

#[test]
fn streams_of_perf_and_quipu_are_reported_by_both() {
    const TEST: &str = "streams_of_perf_and_quipu_are_reported_by_both";
    if !can_count(TEST, &["-e", "page-faults,context-switches", "-a"]) {
        return;
    }
    let quipu = || Command::new(env!("CARGO_BIN_EXE_quipu"));
    let directory = tempfile::tempdir().expect("a directory");
    let file = file(&directory);
    for case in CASES {
        for recorder in [Some(quipu()), crate::perf::perf()] {
            let Some(mut record) = recorder else {
                skip(TEST, "perf does not start here");
                continue;
            };
            record.arg("stat").args(recording(Path::new("-"), case));
            record.stdout(File::create(&file).expect("a new file"));
            let recorded = record.stderr(Stdio::piped()).output().expect("it starts");
            if record.get_program() == "perf" && !recorded.status.success() {
                skip(TEST, "perf cannot count");
                continue;
            }
            // Whatever reads the stream reports it.
            assert_eq!(lines(&stderr(&recorded)), Vec::<Vec<String>>::new());
            let ours = of_stream(quipu(), &file);
            assert!(ours.len() > 1, "{record:?}");
            assert_eq!(reports(&file).0, ours, "{record:?}");
            if let Some(perf) = crate::perf::perf() {
                assert_eq!(of_stream(perf, &file), ours, "{record:?}");
            }
        }
    }
}

#[test]
fn what_a_file_cannot_hold_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = file(&directory);
    let name = file.to_str().expect("text");
    for (options, why) in [
        (&["-r", "2"][..], "one run"),
        (&["-M", "IPC"], "a file has counts"),
        (&["-e", "duration_time"], "it is no counter"),
        (&["--append"], "begins anew"),
    ] {
        let output = run(&[&["record", "-o", name], options, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(why), "{output:?}");
    }
    assert!(!file.exists());
    let missing = run(&["report", "-i", name]);
    assert_eq!(missing.status.code(), Some(125), "{missing:?}");
    assert!(stderr(&missing).contains("quipu stat record -- COMMAND"));
}

#[test]
fn samples_and_counts_are_told_apart() {
    const TEST: &str = "samples_and_counts_are_told_apart";
    if !can_count(TEST, &["-e", "page-faults:u"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = file(&directory);
    let name = file.to_str().expect("text");
    let quipu = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command.args(words).output().expect("it starts")
    };
    run(&["record", "-o", name, "-e", "page-faults:u", "--", "true"]);
    for reader in ["report", "script", "annotate"] {
        let output = quipu(&[reader, "-i", name]);
        assert!(stderr(&output).contains("quipu stat report"), "{output:?}");
    }
    let on_cpus = run(&["report", "-i", name, "-A"]);
    assert!(
        stderr(&on_cpus).contains("does not tell CPUs apart"),
        "{on_cpus:?}"
    );
    let output = quipu(&[
        "record",
        "-o",
        name,
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "true",
    ]);
    if output.status.success() {
        let output = run(&["report", "-i", name]);
        assert!(stderr(&output).contains("quipu report shows"), "{output:?}");
    }
}
