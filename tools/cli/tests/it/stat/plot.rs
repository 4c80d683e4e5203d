//! Intervals as a picture: of what is counted now, and of a file.

use std::fs;
use std::path::Path;

use super::{has_perf_events, json_rows, run, stat, stderr};

/// Returns the texts of a picture that begin with the name of an interval.
fn intervals(picture: &Path) -> Vec<String> {
    let svg = fs::read_to_string(picture).expect("it was written");
    let titles = svg.split("<title>").skip(1);
    let titles = titles.filter_map(|title| title.split_once("</title>"));
    titles.map(|(title, _)| title.to_owned()).collect()
}

#[test]
fn a_line_has_every_interval_of_an_event() {
    const TEST: &str = "a_line_has_every_interval_of_an_event";
    if !has_perf_events(TEST) {
        return;
    }
    let directory = tempfile::TempDir::new().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (picture, counts) = (path("out.svg"), path("counts.json"));
    let output = run(&[
        "-e",
        "page-faults:u,task-clock:u",
        "-I",
        "50",
        "-j",
        "-o",
        &counts,
        "--plot",
        &picture,
        "--",
        "sh",
        "-c",
        "for i in 1 2 3 4; do ls /; sleep 0.05; done",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = json_rows(&fs::read_to_string(&counts).expect("the report"));
    assert_eq!(intervals(Path::new(&picture)).len(), rows.len());
    let svg = fs::read_to_string(&picture).expect("it was written");
    assert!(svg.contains("page-faults:u</tspan> per second<"), "{svg}");
    assert!(
        svg.contains("task-clock:u</tspan> msec per second<"),
        "{svg}"
    );

    let without = run(&["--plot", &picture, "--", "true"]);
    assert_eq!(without.status.code(), Some(2));
    assert!(
        stderr(&without).contains("--interval-print <MS>"),
        "{}",
        stderr(&without)
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_of_counts_is_drawn_as_it_was_counted() {
    const TEST: &str = "a_file_of_counts_is_drawn_as_it_was_counted";
    if !has_perf_events(TEST) {
        return;
    }
    let directory = tempfile::TempDir::new().expect("a directory");
    let of_stat = |arguments: &[&str]| {
        let mut stat = stat(arguments);
        stat.current_dir(directory.path())
            .output()
            .expect("it starts")
    };
    let all = [
        "record",
        "-a",
        "-e",
        "page-faults",
        "-I",
        "50",
        "--interval-count",
        "3",
    ];
    let output = of_stat(&[&all[..], &["-A", "--plot", "now.svg"]].concat());
    if output.status.code() == Some(125) {
        return eprintln!("SKIP {TEST}: {}", stderr(&output).trim());
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let report = of_stat(&["report", "--plot", "file.svg"]);
    assert!(report.status.success(), "{}", stderr(&report));
    let picture = |name: &str| intervals(&directory.path().join(name));
    let cpus = std::thread::available_parallelism().expect("a number");
    let (now, file) = (picture("now.svg"), picture("file.svg"));
    assert!(
        !now.is_empty() && (cpus.get() == 1 || now[0].starts_with("CPU0: 0.000 to ")),
        "{now:?}"
    );
    assert_eq!(now.len(), file.len());

    of_stat(&[
        "record",
        "-e",
        "page-faults:u",
        "-o",
        "whole.data",
        "--",
        "true",
    ]);
    let whole = of_stat(&["report", "-i", "whole.data", "--plot", "x.svg"]);
    assert_eq!(whole.status.code(), Some(125));
    assert!(
        stderr(&whole).contains("there are no intervals to plot"),
        "{}",
        stderr(&whole)
    );
}
