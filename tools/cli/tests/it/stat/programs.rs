//! Output for programs: perf's lines, and on request what perf does not say.

use std::io::Write as _;
use std::process::{Child, Command};

use serde_json::Value;

use super::{can_count, has_perf_events, json_rows, run, stderr};

fn names(rows: &[Value]) -> Vec<&str> {
    let names = rows.iter().filter_map(|row| row["event"].as_str());
    names.collect()
}

fn number(row: &Value) -> f64 {
    let text = row["counter-value"].as_str().expect("a value as text");
    text.parse().unwrap_or_else(|_| panic!("{row}"))
}

#[test]
fn times_of_the_run_are_events_in_their_place() {
    if !can_count("times_of_the_run", &["-e", "faults:u"]) {
        return;
    }
    let events = "user_time,faults:u,duration_time,peak_memory";
    // User time includes that of the child before it executes the command.
    let output = run(&["-j", "-e", events, "sh", "-c", "sleep 0.1; exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    let rows = json_rows(&stderr(&output));
    assert_eq!(names(&rows).join(","), events);
    let units: Vec<&str> = rows.iter().filter_map(|row| row["unit"].as_str()).collect();
    assert_eq!(units, ["ns", "", "ns", "bytes"]);
    assert!(number(&rows[2]) > number(&rows[0]) && number(&rows[3]) > 4096.0);

    let alone = stderr(&run(&["-x,", "-e", "duration_time", "true"]));
    let fields: Vec<&str> = alone.trim_end().split(',').collect();
    assert_eq!(fields[1..3], ["ns", "duration_time"], "{alone}");
    assert_eq!(fields[0], fields[3], "it ran all of the time: {alone}");
    // An interval has its own duration, and no user time yet.
    let text = stderr(&run(&[
        "-x,",
        "-I",
        "20",
        "-e",
        "duration_time,user_time",
        "sleep",
        "0.05",
    ]));
    let first: Vec<&str> = text.lines().next().expect("a line").split(',').collect();
    assert!(first[1].parse::<u64>().is_ok_and(|ns| ns > 0), "{text}");
    assert!(text.contains(",<not counted>,ns,user_time,"), "{text}");

    let refused = run(&["-e", "{faults,duration_time}", "true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("outside of the braces"));
}

#[test]
fn totals_after_intervals_have_a_column_that_says_so() {
    if !can_count("totals_after_intervals", &["-e", "faults:u"]) {
        return;
    }
    let options = [
        "-x,",
        "-e",
        "faults:u",
        "-I",
        "10",
        "--interval-count",
        "1",
        "--summary",
    ];
    let fields = |more: &[&str]| {
        let text = stderr(&run(&[&options[..], more, &["sleep", "0.05"]].concat()));
        let last = text.lines().last().expect("a line").to_owned();
        last.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let summary = fields(&[]);
    assert_eq!(
        (summary[0].as_str(), summary.len()),
        ("         summary", 8)
    );
    assert_eq!(fields(&["--no-csv-summary"]).len(), 7);
}

#[test]
fn each_run_is_told_on_request() {
    if !can_count("each_run_is_told", &["-e", "faults:u"]) {
        return;
    }
    let options = ["-r", "2", "-e", "faults:u", "-j"];
    let plain = json_rows(&stderr(&run(&[&options[..], &["true"]].concat())));
    assert_eq!(names(&plain), ["faults:u"]);
    let rows = json_rows(&stderr(&run(
        &[&options[..], &["--json-extra", "true"]].concat()
    )));
    let all = [
        "faults:u",
        "duration_time",
        "user_time",
        "system_time",
        "peak_memory",
    ];
    for run in [Some(1), Some(2), None] {
        let of_run: Vec<Value> = rows
            .iter()
            .filter(|row| row["run"].as_u64() == run)
            .cloned()
            .collect();
        assert_eq!(names(&of_run), all, "{rows:?}");
        assert!(of_run[..2].iter().all(|row| number(row) > 0.0), "{rows:?}");
    }
    let mean = (number(&rows[0]) + number(&rows[5])) / 2.0;
    assert!((number(&rows[10]) - mean).abs() < 1e-6, "{rows:?}");

    let table = stderr(&run(&["-n", "-r", "3", "--table", "true"]));
    let (_, after) = table
        .split_once("# Table of individual measurements:")
        .expect("a table");
    let runs = after.lines().filter(|line| line.ends_with(") #")).count();
    assert_eq!(runs, 3, "{table}");
}

#[test]
fn cpus_are_added_up_by_die_node_cache_and_cluster() {
    if !can_count("cpus_are_added_up", &["-a", "-e", "cpu-clock"]) {
        return;
    }
    let online = std::thread::available_parallelism()
        .expect("a number")
        .get();
    for kind in ["cluster", "cache", "die", "node"] {
        let option = format!("--per-{kind}");
        let rows = json_rows(&stderr(&run(&[
            "-a",
            "-j",
            "-e",
            "cpu-clock",
            &option,
            "true",
        ])));
        let cpus: u64 = rows
            .iter()
            .filter_map(|row| row["aggregate-number"].as_u64())
            .sum();
        assert!(cpus >= online as u64, "{option}: {rows:?}");
        assert!(
            rows.iter().all(|row| row[kind].is_string()),
            "{option}: {rows:?}"
        );
    }
    let level = run(&["-a", "--per-cache=x", "true"]);
    assert_eq!(level.status.code(), Some(2));
    assert!(stderr(&level).contains("--per-cache=L2"));
}

/// A process that is ended when it is not needed any more.
struct Spinning(Child);

impl Drop for Spinning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_thread_that_runs_has_a_line_and_those_that_do_not_have_none() {
    const TEST: &str = "every_thread_that_runs_has_a_line";
    if !has_perf_events(TEST) || !can_count(TEST, &["-a", "-e", "cpu-clock"]) {
        return;
    }
    let spin = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn();
    let spinning = Spinning(spin.expect("sh"));
    let sleep = Command::new("sleep").arg("60").spawn();
    let asleep = Spinning(sleep.expect("sleep"));
    let output = run(&[
        "-a",
        "--per-thread",
        "-j",
        "-e",
        "cpu-clock",
        "sleep",
        "0.3",
    ]);
    let rows = json_rows(&stderr(&output));
    let of = |child: &Child, name: &str| {
        let thread = format!("{name}-{}", child.id());
        rows.iter()
            .find(|row| row["thread"] == thread.as_str())
            .map(number)
    };
    assert!(of(&spinning.0, "sh").is_some_and(|ms| ms > 0.0), "{rows:?}");
    assert_eq!(of(&asleep.0, "sleep"), None, "{rows:?}");
    let values: Vec<f64> = rows.iter().map(number).collect();
    assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
}

#[test]
fn text_of_events_is_perfs() {
    const TEST: &str = "text_of_events_is_perfs";
    if !has_perf_events(TEST) {
        return;
    }
    let rows = |events: &str| {
        let output = run(&["-j", "-e", events, "true"]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{events}: {}",
            stderr(&output)
        );
        json_rows(&stderr(&output))
    };
    let named =
        rows("faults/name=first,period=100/u,{minor-faults/name=second/,faults}:uS,dummy:b");
    assert_eq!(names(&named), ["first", "second", "faults:u", "dummy:b"]);
    assert!(number(&named[0]) > 0.0);
    assert_eq!(number(&named[0]), number(&named[2]), "{named:?}");
    // Without a PMU cycles are not supported, and with one no PMU has so many counters.
    let many = format!("{{{}faults}}:W", "cycles,".repeat(40));
    let weak = rows(&many);
    assert_eq!(weak.len(), 41);
    assert!(number(&weak[40]) > 0.0, "{weak:?}");
    let strong = json_rows(&stderr(&run(&[
        "-j",
        "-e",
        many.trim_end_matches(":W"),
        "true",
    ])));
    assert!(
        strong
            .iter()
            .all(|row| row["counter-value"] != weak[40]["counter-value"])
    );

    if !std::path::Path::new("/sys/kernel/tracing/events/sched").exists() {
        let _ = writeln!(std::io::stderr(), "SKIP {TEST}: tracefs is not mounted");
        return;
    }
    let all = rows("sched:sched_process_e*");
    assert_eq!(
        names(&all),
        ["sched:sched_process_exec", "sched:sched_process_exit"]
    );
    assert_eq!((number(&all[0]), number(&all[1])), (1.0, 1.0));
    let none = run(&["-e", "nosuch:*", "true"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("nosuch:*"));
}

/// Twenty programs run before counting begins, and one while it does.
#[test]
fn counting_starts_and_stops_when_a_pipe_says_so() {
    if !has_perf_events("counting_starts_and_stops") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = |name: &str| {
        let path = directory.path().join(name);
        crate::make_pipe(&path);
        path.to_str().expect("text").to_owned()
    };
    let (control, ack) = (pipe("control"), pipe("ack"));
    let say = |word: &str| {
        format!("echo {word} >{control}; read done <{ack}; [ $done = ack ] || exit 9;")
    };
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do /bin/true; done; {} /bin/true; {} \
         for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; {} exit 3",
        say("enable"),
        say("disable"),
        say("ping"),
    );
    let counted = |options: &[&str], script: &str| {
        let events = ["-j", "-e", "faults:u"];
        let output = run(&[&events[..], options, &["sh", "-c", script]].concat());
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        json_rows(&stderr(&output)).remove(0)
    };
    let files = format!("fifo:{control},{ack}");
    let inside = counted(&["-D", "-1", "--control", &files], &script);
    let one = number(&counted(&[], "/bin/true; exit 3"));
    assert!(
        number(&inside) > 0.0 && number(&inside) < 2.0 * one,
        "{inside} {one}"
    );
    let never = counted(&["-D", "-1", "--control", &files], "exit 3");
    assert_eq!(never["counter-value"], "<not counted>");

    for (options, word) in [
        (&["-D", "-1"][..], "--control"),
        (&["--control", "pipe:x"], "fifo:CONTROL"),
    ] {
        let refused = run(&[options, &["true"]].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
    }
}

#[test]
fn a_report_for_standard_output_and_wrong_numbers() {
    if !can_count("a_report_for_standard_output", &["-e", "faults:u"]) {
        return;
    }
    let output = run(&["-o", "-", "-x,", "-e", "faults:u", "true"]);
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(
        text.contains(",faults:u,") && !text.contains("started on"),
        "{text}"
    );
    assert_eq!(stderr(&output), "");
    for (options, word) in [
        (["-I", "-5"], "a positive number of milliseconds"),
        (["-p", "-1"], "the number of a process or thread"),
        (["-r", "many"], "a whole number"),
    ] {
        let refused = run(&[&options[..], &["true"]].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
    }
    let coloured = run(&["--color", "always", "-e", "faults:u", "true"]);
    assert!(stderr(&coloured).contains('\x1b'));
    let directory = tempfile::tempdir().expect("a directory");
    let recorded = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["record", "no-such-command-at-all"])
        .current_dir(&directory)
        .output()
        .expect("it starts");
    assert_eq!(recorded.status.code(), Some(127));
    let files = std::fs::read_dir(&directory).expect("it is there").count();
    assert_eq!(
        files, 0,
        "nothing is written for a command that does not exist"
    );
}
