//! The forms of the report.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use super::{can_count, has_perf_events, json_rows, run, stderr};

const DEFAULT: [&str; 8] = [
    "task-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "cycles",
    "instructions",
    "branches",
    "branch-misses",
];

/// Returns an event's name without the `:u` of a fallback.
fn plain(name: &str) -> &str {
    name.strip_suffix(":u").unwrap_or(name)
}

#[test]
fn json_lines_hold_every_event_with_perfs_fields() {
    if !can_count("json_lines", &[]) {
        return;
    }
    let rows = json_rows(&stderr(&run(&["-j", "true"])));
    let perfs = [
        "counter-value",
        "event",
        "event-runtime",
        "metric-unit",
        "metric-value",
        "pcnt-running",
        "unit",
    ];
    for row in &rows {
        let keys: Vec<&str> = row
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, perfs);
    }
    let rows = json_rows(&stderr(&run(&["-j", "-v", "true"])));
    let names: BTreeSet<&str> = rows
        .iter()
        .map(|row| plain(row["event"].as_str().expect("text")))
        .collect();
    assert!(names.is_superset(&BTreeSet::from(DEFAULT)), "{names:?}");
    for row in &rows {
        let value = row["counter-value"].as_str().expect("perf writes text");
        assert!(
            value.parse::<f64>().is_ok() || ["<not counted>", "<not supported>"].contains(&value),
            "{value}"
        );
        assert!(row["unit"].is_string() && row["metric-unit"].is_string());
        assert!(row["event-runtime"].is_u64());
        assert!(row["pcnt-running"].is_f64() && row["metric-value"].is_f64());
        if value.starts_with('<') {
            assert!(row["reason"].is_string(), "{row}");
        }
    }
    let clock = &rows[0];
    assert_eq!(clock["unit"], "msec");
    let milliseconds: f64 = clock["counter-value"]
        .as_str()
        .and_then(|v| v.parse().ok())
        .expect("clocks count everywhere");
    assert!(milliseconds > 0.0);
    assert_eq!(clock["metric-unit"], "CPUs utilized");
}

#[test]
fn separated_values_have_perfs_columns() {
    if !can_count("separated_values", &[]) {
        return;
    }
    for (options, separator) in [
        (&["-x", ";"][..], ";"),
        (&["-x,"], ","),
        (&["--csv"], ","),
        (&["-x", "\\t"], "\t"),
    ] {
        let output = run(&[options, &["true"]].concat());
        let text = stderr(&output);
        let names: BTreeSet<&str> = text
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split(separator).collect();
                assert_eq!(fields.len(), 7, "{line}");
                assert!(fields[3].parse::<u64>().is_ok(), "run time: {line}");
                assert!(fields[4].parse::<f64>().is_ok(), "percentage: {line}");
                plain(fields[2])
            })
            .collect();
        assert!(names.is_superset(&BTreeSet::from(DEFAULT)), "{text}");
    }
}

#[test]
fn groups_details_and_names_as_asked_for() {
    if !can_count("groups", &[]) {
        return;
    }
    let events = ["-e", "{faults,task-clock},cs", "-e", "dummy", "-d", "-d"];
    let output = run(&[&events[..], &["-j", "true"]].concat());
    let rows = json_rows(&stderr(&output));
    let names: Vec<&str> = rows
        .iter()
        .map(|row| plain(row["event"].as_str().expect("text")))
        .collect();
    assert_eq!(&names[..4], ["faults", "task-clock", "cs", "dummy"]);
    assert_eq!(names.len(), 4 + 4 + 6);
    assert!(names.contains(&"LLC-load-misses") && names.contains(&"iTLB-loads"));
}

#[test]
fn the_report_goes_to_a_file() {
    if !can_count("the_report_goes_to_a_file", &["-e", "task-clock"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report");
    let path = file.to_str().expect("text");
    let mut lines = Vec::new();
    for options in [&["-o", path][..], &["-o", path], &["-o", path, "--append"]] {
        let arguments = [options, &["-x,", "-e", "task-clock,faults", "true"]].concat();
        let output = run(&arguments);
        assert_eq!(stderr(&output), "");
        let text = std::fs::read_to_string(&file).expect("it was written");
        assert!(text.starts_with("# started on "), "{text}");
        lines.push(text.lines().count());
    }
    assert_eq!(lines, [4, 4, 8]);
    let unwritable = run(&["-o", "/no/such/directory/report", "true"]);
    assert_eq!(unwritable.status.code(), Some(125));
    assert!(stderr(&unwritable).contains("/no/such/directory/report"));
}

#[test]
fn repeats_have_a_mean_and_a_spread() {
    if !can_count("repeats", &["-e", "task-clock"]) {
        return;
    }
    let output = run(&["-r", "3", "-j", "-e", "task-clock,faults", "true"]);
    let rows = json_rows(&stderr(&output));
    for row in &rows {
        assert!(row["variance"].is_f64(), "{row}");
    }
    // The metric is that of the means: faults in a second of the time they were counted.
    let faults: f64 = rows[1]["counter-value"]
        .as_str()
        .and_then(|v| v.parse().ok())
        .expect("a number");
    let seconds = rows[1]["event-runtime"].as_f64().expect("ns") / 1e9;
    let factor = match rows[1]["metric-unit"].as_str() {
        Some("K/sec") => 1e3,
        Some("M/sec") => 1e6,
        _ => 1.0,
    };
    let rate = rows[1]["metric-value"].as_f64().expect("a rate") * factor;
    assert!((rate * seconds - faults).abs() < 0.01, "{rows:?}");
    let text = stderr(&run(&["-r", "3", "-e", "task-clock", "true"]));
    assert!(
        text.contains("(3 runs, +- standard error of the mean)") && text.contains("( +-"),
        "{text}"
    );
}

#[test]
fn people_get_a_report_with_times_and_reasons() {
    if !can_count("people_get_a_report", &[]) {
        return;
    }
    let text = stderr(&run(&["--", "true", "one", "two"]));
    for part in [
        "Performance counter stats for 'true one two':",
        "task-clock",
        "CPUs utilized",
        "seconds time elapsed",
        "seconds user",
        "seconds sys",
        "peak memory",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let lines = |word| text.lines().filter(|line| line.contains(word)).count();
    if lines("<not supported>") > 0 {
        assert_eq!(lines("not supported: "), 1, "one reason, told once: {text}");
    }
    let nothing = stderr(&run(&["-n", "true"]));
    assert!(nothing.contains("time elapsed") && !nothing.contains("task-clock"));
}

/// Returns the output on a terminal, made by script(1).
fn on_a_terminal(test: &str, no_color: Option<&str>) -> Option<String> {
    let quipu = cargo_bin("quipu");
    let mut script = Command::new("script");
    script.arg("-qec");
    script.arg(format!("{} stat -e task-clock true", quipu.display()));
    script
        .arg("/dev/null")
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    if let Some(value) = no_color {
        script.env("NO_COLOR", value);
    }
    match script.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "SKIP {test}: no script(1): {e}");
            None
        }
    }
}

#[test]
fn colour_is_for_terminals_that_may_have_it() {
    const TEST: &str = "colour_is_for_terminals_that_may_have_it";
    if !can_count(TEST, &["-e", "task-clock"]) {
        return;
    }
    assert!(!stderr(&run(&["-e", "task-clock", "true"])).contains('\x1b'));
    let (Some(coloured), Some(plain)) = (on_a_terminal(TEST, None), on_a_terminal(TEST, Some("1")))
    else {
        return;
    };
    assert!(coloured.contains("\x1b["), "{coloured}");
    assert!(
        plain.contains("task-clock") && !plain.contains('\x1b'),
        "{plain}"
    );
}

/// Backends of bare registers have the largest; a command is counted after it.
#[test]
fn the_overhead_on_registers_is_told_before_a_command_is_counted() {
    for simulated in ["msr:intel-v5", "amd64-2019:core"] {
        let of = ["--simulate", simulated, "--overhead", "-e", "cycles"];
        let alone = run(&of);
        let said = stderr(&alone);
        assert_eq!(alone.status.code(), Some(0), "{said}");
        assert!(
            said.contains("start to stop") && said.contains("cycles"),
            "{said}"
        );
        assert!(!said.contains("seconds time elapsed"), "{said}");
        let before = run(&[&of[..], &["--", "true"]].concat());
        let said = stderr(&before);
        assert_eq!(before.status.code(), Some(0), "{said}");
        let overhead = said.find("start to stop").expect("the overhead");
        assert!(
            overhead < said.find("seconds time elapsed").expect("the counts"),
            "{said}"
        );
    }
}

/// A set counts no page fault of its own, and its clock cannot run backwards.
#[test]
fn the_overhead_of_a_set_is_told_by_event_under_the_names_that_were_typed() {
    let events = [
        "--overhead",
        "-e",
        "{faults:u,task-clock},node-prefetch-misses",
    ];
    if !has_perf_events("the overhead of a set") {
        return;
    }
    let of = |form: &[&str]| run(&[&events[..], form].concat());
    let output = of(&["-j"]);
    assert_eq!(output.status.code(), Some(0));
    let rows = json_rows(&stderr(&output));
    let names: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["event"].as_str())
        .collect();
    assert_eq!(names, ["faults:u", "task-clock", "node-prefetch-misses"]);
    for kind in ["start-to-stop", "read-to-read"] {
        assert_eq!(rows[0][kind]["median"], 0, "{rows:?}");
        let clock = |of: &str| rows[1][kind][of].as_u64().expect("nanoseconds");
        assert!(
            0 < clock("lowest") && clock("lowest") <= clock("median"),
            "{rows:?}"
        );
        assert!(clock("median") <= clock("highest"), "{rows:?}");
    }
    let text = stderr(&of(&[]));
    assert!(
        text.contains("start to stop") && text.contains("faults:u"),
        "{text}"
    );
    let csv = stderr(&of(&["--csv"]));
    let columns: Vec<&str> = csv.lines().next().expect("a line").split(',').collect();
    assert_eq!(
        (columns.len(), columns[0], columns[7]),
        (8, "0", "faults:u"),
        "{csv}"
    );
}
