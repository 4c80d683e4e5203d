//! `quipu diff`, whose rows, numbers and order are those of `perf diff`.

use std::process::Output;

use serde_json::Value;

use super::peer::perf;
use super::{Bench, quipu, skip, stderr, stdout};

/// Touches fresh pages in functions, of which the two builds share two.
const PROGRAM: &str = r"
static volatile char pages[1000L * PAGE] __attribute__((aligned(PAGE)));
static int next;
static void touch(int n) { for (int i = 0; i < n; i++) pages[next++ * (long)PAGE] = 1; }
#define DEFINE(name, n) void name(void) { for (int i = 0; i < n; i++) pages[next++ * (long)PAGE] = 1; }
";
const OLD: &str = "DEFINE(one, 100) DEFINE(two, 200) DEFINE(gone, 300)
int main(void) { one(); two(); gone(); touch(50); return 0; }";
const NEW: &str = "DEFINE(one, 400) DEFINE(two, 150) DEFINE(fresh, 60)
int main(void) { one(); two(); fresh(); touch(50); return 0; }";

pub(super) fn diff(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = quipu();
    command.current_dir(bench.directory.path()).arg("diff");
    command.args(arguments).output().expect("it starts")
}

/// Returns a bench with the recording of each program, in `perf.data.old` and `perf.data`.
fn recorded(test: &str) -> Option<Bench> {
    let bench = Bench::new(test)?;
    for (directory, functions) in [("old", OLD), ("new", NEW)] {
        std::fs::create_dir(bench.path(directory)).expect("created");
        let name = format!("{directory}/compared");
        if let Err(reason) = bench.compile(&name, &format!("{PROGRAM}{functions}")) {
            skip(test, reason);
            return None;
        }
        let program = bench.path(&name);
        let events = ["-e", "page-faults:u,minor-faults:u", "-c", "1"];
        let output = bench.record(&events, &program.to_string_lossy());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    Some(bench)
}

/// Returns the lines of rows, and the names of events, as words or with a separator.
fn rows(text: &str, separator: Option<char>) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .filter(|line| line.starts_with("# Event '") || !line.starts_with('#'));
    let lines = lines.filter(|line| !line.trim().is_empty());
    let words = |line: &str| -> Vec<String> {
        match separator {
            Some(separator) => line
                .split(separator)
                .map(|cell| cell.trim().to_owned())
                .collect(),
            None => line.split_whitespace().map(str::to_owned).collect(),
        }
    };
    lines.map(words).collect()
}

#[test]
fn rows_and_their_order_are_those_of_perf() {
    const TEST: &str = "rows_and_their_order_are_those_of_perf";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let three = ["perf.data.old", "perf.data", "perf.data.old"];
    for arguments in [
        &[][..],
        &["-c", "delta"],
        &["-c", "delta", "-s", "sym", "-C", "compared,none"],
        &["-c", "ratio", "-s", "sym"],
        &["-c", "wdiff:1,2", "-F"],
        &["-c", "ratio", "-p", "-F"],
        &["-p", "-F"],
        &["-b"],
        &["--percentage", "relative", "-s", "sym"],
        &["-o", "0"],
        &["-o", "0", "-c", "ratio", "-s", "comm,sym"],
        &["-s", "comm,dso,sym", "-p"],
        // A column that can have one text alone is left out by perf.
        &["-d", "compared,none"],
        &["-t", ";", "-p", "-F"],
        &[&three[..], &["-o", "2", "-c", "delta"]].concat(),
        &[&three[..], &["-o", "1", "-c", "ratio", "-p", "-F"]].concat(),
        &["perf.data"],
        &["perf.data", "perf.data.old"],
    ] {
        // Functions of other files have other names where they have none.
        let arguments = [&["-S", "one,two,gone,fresh,touch"], arguments].concat();
        let Some(theirs) = perf(&bench, &[&["diff"], &arguments[..]].concat()) else {
            return skip(TEST, "perf does not start here");
        };
        let ours = diff(&bench, &arguments);
        assert!(ours.status.success(), "{arguments:?}: {}", stderr(&ours));
        let separator = arguments.contains(&"-t").then_some(';');
        let mut both = [&ours, &theirs].map(|output| rows(&stdout(output), separator));
        if arguments.contains(&"-b") {
            // Perf takes the baseline, but not the delta, as a share of the rows that it shows.
            let all = both.iter_mut().flatten();
            let rows = all.filter(|row| row[0].ends_with('%'));
            rows.for_each(|row| drop(row.remove(0)));
        }
        let [ours, theirs] = both;
        assert_eq!(ours, theirs, "{arguments:?}");
        assert!(theirs.len() >= 4, "{arguments:?}: {theirs:?}");
    }
}

#[test]
fn differences_are_those_between_two_reports() {
    const TEST: &str = "differences_are_those_between_two_reports";
    let Some(bench) = recorded(TEST) else {
        return;
    };
    let event = ["-e", "minor-faults:u"];
    let of = |file| bench.rows(&[&event[..], &["--sort", "dso,sym", "-i", file]].concat());
    let (old, new) = (of("perf.data.old"), of("perf.data"));
    let output = diff(&bench, &[&event[..], &["--json", "-s", "sym"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    for (function, in_old, in_new) in [
        ("one", true, true),
        ("two", true, true),
        ("gone", true, false),
        ("fresh", false, true),
    ] {
        let row = |rows: &[Value]| rows.iter().find(|row| row["symbol"] == function).cloned();
        let (old, new) = (row(&old), row(&new));
        assert_eq!((old.is_some(), new.is_some()), (in_old, in_new));
        let line = row(&lines).expect("it is compared");
        let same = |told: &Value, row: &Value| {
            for key in ["overhead", "samples", "period"] {
                assert_eq!(told[key], row[key], "{function} {key}: {line}");
            }
        };
        if let Some(old) = &old {
            same(&line["baseline"], old);
        }
        let compared = &line["compared"][0];
        assert_eq!(compared.is_object(), in_new, "{line}");
        if let Some(new) = &new {
            same(compared, new);
            let overhead = |row: &Value| row["overhead"].as_f64().expect("a number");
            let delta = overhead(new) - old.as_ref().map_or(0.0, overhead);
            let told = compared["delta"].as_f64().expect("a number");
            assert!((told - delta).abs() < 0.000_2, "{told} {delta}: {line}");
            assert_eq!(compared["ratio"].is_number(), in_old, "{line}");
        }
    }
}

#[test]
fn what_cannot_be_compared_is_told() {
    let Some(bench) = recorded("what_cannot_be_compared_is_told") else {
        return;
    };
    for (arguments, status, reason) in [
        (
            &["-o", "2"][..],
            2,
            "-o 2: give the number of a file, from 0",
        ),
        (&["-c", "cycles"], 2, "perf diff alone"),
        (&["-c", "wdiff:1"], 2, "wdiff:1,2"),
        (&["-s", "nosuch"], 2, "there is no such key"),
        (&["-e", "cycles"], 2, "it has page-faults:u, minor-faults:u"),
        (&["nosuch.data"], 125, "nosuch.data: there is no such file"),
    ] {
        let output = diff(&bench, arguments);
        let text = stderr(&output);
        assert!(text.contains(reason), "{arguments:?}: {text}");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    }
    let program = bench.path("new/compared");
    let options = ["-e", "page-faults:u", "-o", "one.data"];
    bench.record(&options, &program.to_string_lossy());
    let output = diff(&bench, &["one.data"]);
    let told =
        "one.data has no event minor-faults:u, it has page-faults:u: nothing of it is compared";
    assert!(stderr(&output).contains(told), "{}", stderr(&output));
}
