//! Options that users of perf-stat(1) know.

use std::fs;

use super::{can_count, has_perf_events, json_rows, run, stat, stderr};

/// Returns the value of the only row, as a number.
fn only_value(report: &str) -> u64 {
    let rows = json_rows(report);
    assert_eq!(rows.len(), 1, "{report}");
    let value = rows[0]["counter-value"].as_str().expect("text");
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("{report}"));
    value as u64
}

/// A command that waits gives the delay its time: what it does before is not counted.
#[test]
fn counting_starts_after_the_delay() {
    if !has_perf_events("counting_starts_after_the_delay") {
        return;
    }
    let count = |options: &[&str], script| {
        let events = ["-e", "faults:u", "-j", "--", "sh", "-c", script];
        stderr(&run(&[options, &events].concat()))
    };
    let faults = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done";
    let whole = only_value(&count(&[], faults));
    let never = count(&["-D", "1000000"], faults);
    assert!(never.contains("<not counted>"), "{never}");
    let late = only_value(&count(&["-D", "200"], "sleep 3; /bin/true"));
    assert!(0 < late && late < whole / 20, "{late} of {whole}");
}

#[test]
fn so_many_intervals_are_reported() {
    if !can_count("so_many_intervals_are_reported", &["-e", "task-clock"]) {
        return;
    }
    let options = [
        "-I",
        "10",
        "--interval-count",
        "3",
        "-e",
        "task-clock",
        "-j",
    ];
    let of_command = run(&[&options[..], &["sleep", "1"]].concat());
    assert_eq!(json_rows(&stderr(&of_command)).len(), 3);
    assert_eq!(of_command.status.code(), Some(0));
    let pid = std::process::id().to_string();
    let of_process = run(&[&options[..], &["-p", &pid]].concat());
    assert_eq!(json_rows(&stderr(&of_process)).len(), 3);
}

#[test]
fn commands_run_before_and_after_each_run() {
    if !can_count("commands_run_before_and_after", &["-e", "task-clock"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let order = directory.path().join("order");
    let note = |word: &str| format!("echo {word} >> {}", order.display());
    let (pre, run_, post) = (note("pre"), note("run"), note("post"));
    let options = [
        "-r",
        "2",
        "-e",
        "task-clock",
        "--pre",
        &pre,
        "--post",
        &post,
    ];
    let ended = run(&[&options[..], &["sh", "-c", &run_]].concat());
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let order = fs::read_to_string(&order).expect("they ran");
    assert_eq!(
        order.split_whitespace().collect::<Vec<_>>(),
        ["pre", "run", "post"].repeat(2)
    );
    let failed = run(&["--pre", "exit 4", "-e", "task-clock", "--", "echo", "ran"]);
    assert_eq!(
        (failed.status.code(), &failed.stdout[..]),
        (Some(125), &b""[..])
    );
}

#[test]
fn zero_repeats_until_a_signal_with_a_report_each_time() {
    if !can_count("zero_repeats_until_a_signal", &["-e", "task-clock"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let runs = directory.path().join("runs");
    // The signal is passed on to the command, which may not have ended yet.
    let script = format!(
        "trap '' INT; echo >> {0}; [ $(wc -l < {0}) -lt 3 ] || kill -INT $PPID",
        runs.display()
    );
    let told = run(&["-r", "0", "-e", "task-clock", "-x,", "sh", "-c", &script]);
    let report = stderr(&told);
    assert_eq!(report.matches(",task-clock,").count(), 3, "{report}");
    assert_eq!(told.status.code(), Some(0));
}

#[test]
fn reports_go_to_a_descriptor_or_nowhere_and_digits_stay_together() {
    if !can_count("reports_go_to_a_descriptor", &["-e", "task-clock"]) {
        return;
    }
    let quiet = run(&["--quiet", "-e", "task-clock", "sh", "-c", "exit 3"]);
    assert_eq!(
        (quiet.status.code(), &quiet.stderr[..]),
        (Some(3), &b""[..])
    );
    let script = format!(
        "exec 7>log; echo before >&7; {} stat --log-fd 7 -e task-clock true; echo after >&7",
        env!("CARGO_BIN_EXE_quipu")
    );
    let directory = tempfile::tempdir().expect("a directory");
    let mut sh = std::process::Command::new("sh");
    let ended = sh
        .args(["-c", &script])
        .current_dir(&directory)
        .output()
        .expect("sh");
    assert_eq!(
        (ended.status.code(), &ended.stderr[..]),
        (Some(0), &b""[..])
    );
    let log = fs::read_to_string(directory.path().join("log")).expect("a report");
    assert!(
        log.starts_with("before\n") && log.contains("task-clock"),
        "{log}"
    );

    if !has_perf_events("digits_stay_together") {
        return;
    }
    let script = "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i + 1)); done";
    let report = |options: &[&str]| {
        let all = [options, &["-e", "faults:u", "sh", "-c", script]].concat();
        let report = stat(&all).output().expect("it starts");
        let report = stderr(&report);
        let line = report
            .lines()
            .find(|line| line.contains("faults:u"))
            .expect("a row")
            .trim()
            .to_owned();
        line.split(' ').next().expect("a value").to_owned()
    };
    let digits = report(&["--no-big-num"]);
    assert!(
        digits.len() >= 4 && digits.chars().all(|c| c.is_ascii_digit()),
        "{digits}"
    );
    for options in [&[][..], &["-B"]] {
        assert!(report(options).contains(','));
    }
}

#[test]
fn all_events_are_of_one_level() {
    if !has_perf_events("all_events_are_of_one_level") {
        return;
    }
    let names = |level: &str, events: &str| {
        let report = stderr(&run(&[level, "-e", events, "-j", "true"]));
        let rows = json_rows(&report);
        let names = rows
            .iter()
            .map(|row| row["event"].as_str().expect("text").to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        names("--all-user", "faults,task-clock"),
        ["faults:u", "task-clock"]
    );
    let own = "{faults,minor-faults:k,major-faults:u}";
    assert_eq!(
        names("--all-kernel", own),
        ["faults:k", "minor-faults:k", "major-faults:u"]
    );
    let value = |level| only_value(&stderr(&run(&[level, "-e", "faults", "-j", "true"])));
    assert!(value("--all-user") > 10 * value("--all-kernel"));
}
