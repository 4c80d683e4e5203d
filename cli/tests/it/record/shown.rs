//! The head of a report, its columns and the samples that shares are parts of, as `perf report` has them.

use super::judge::BUSY;
use super::peer::{perf, recorded_by_perf};
use super::{Bench, skip, stderr, stdout};

/// Compiles a program of three functions and has perf record it; `None` if that cannot be done here.
fn recorded(test: &str, options: &[&str]) -> Option<Bench> {
    let bench = Bench::new(test)?;
    let recorded = bench.compile("shown", BUSY).and_then(|()| {
        let program = bench.path("shown");
        recorded_by_perf(&bench, &program.to_string_lossy(), options)
    });
    if let Err(reason) = recorded {
        skip(test, reason);
        return None;
    }
    Some(bench)
}

/// Reads the rows of a report whose columns a semicolon separates.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(';'));
    lines
        .map(|line| line.split(';').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// Both reports of a file with these options: rows, and the lines that begin with the number of events.
fn both(bench: &Bench, options: &[&str]) -> [(Vec<Vec<String>>, Vec<String>); 2] {
    let arguments = [&["report", "--stdio", "-i", "p.data", "-t", ";"], options].concat();
    let theirs = perf(bench, &arguments).expect("it recorded");
    let ours = bench.report(&arguments[1..]);
    assert!(ours.status.success(), "{options:?}: {}", stderr(&ours));
    [ours, theirs].map(|output| {
        let text = stdout(&output);
        let counts = text
            .lines()
            .filter(|line| line.starts_with("# Event count"));
        (rows(&text), counts.map(str::to_owned).collect())
    })
}

const FAULTS: [&str; 5] = [
    "-e",
    "page-faults:u,minor-faults:u",
    "-c",
    "1",
    "--sample-cpu",
];

#[test]
fn columns_and_the_order_of_rows_are_those_that_are_named() {
    const TEST: &str = "columns_and_the_order_of_rows_are_those_that_are_named";
    let Some(bench) = recorded(TEST, &FAULTS) else {
        return;
    };
    for options in [
        &["-F", "overhead,sym"][..],
        &["-F", "sample,period,overhead,sym"],
        &["-F", "sym,overhead"],
        &["-F", "period,dso"],
        &["-F", "overhead,sym", "-s", "dso"],
        &["-F", "dso,sym,sample"],
    ] {
        // Stubs for linking have names from perf alone.
        let options = [options, &["--dsos", "shown,[kernel.kallsyms]"]].concat();
        let [(ours, _), (theirs, _)] = both(&bench, &options);
        assert_eq!(ours, theirs, "{options:?}");
        assert!(!ours.is_empty(), "{options:?}");
    }
    let wrong = bench.report(&["-i", "p.data", "-F", "nosuch"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("no such column"),
        "{}",
        stderr(&wrong)
    );
}

#[test]
fn shares_are_of_all_samples_or_of_the_chosen_ones() {
    const TEST: &str = "shares_are_of_all_samples_or_of_the_chosen_ones";
    let Some(bench) = recorded(TEST, &FAULTS) else {
        return;
    };
    for chosen in [
        &["--dsos", "shown"][..],
        &["-S", "main,one"],
        &["--comm", "shown"],
        &["--comm", "nobody"],
        &["--tid", "1"],
        &["--symbol-filter", "mai"],
    ] {
        let mut told = Vec::new();
        for how in ["absolute", "relative"] {
            let options = ["--percentage", how, "-n"];
            let [ours, theirs] = both(&bench, &[&options[..], chosen].concat());
            // Stubs for linking have names from perf alone, and a function of two files has two rows there.
            let known = |told: &(Vec<Vec<String>>, Vec<String>)| {
                let rows = told
                    .0
                    .iter()
                    .filter(|row| row.last().is_some_and(|sym| sym.ends_with(" main")));
                // A column that can have one text alone is left out by perf.
                let weights = rows.map(|row| row[..2].to_vec());
                (weights.collect::<Vec<_>>(), told.1.clone())
            };
            // perf applies this filter to the first event alone.
            let known = |told: &(Vec<Vec<String>>, Vec<String>)| {
                let (mut rows, mut counts) = known(told);
                if chosen[0] == "--symbol-filter" {
                    rows.truncate(1);
                    counts.truncate(1);
                }
                (rows, counts)
            };
            assert_eq!(known(&ours), known(&theirs), "{chosen:?} {how}");
            told.push(ours);
        }
        let usual = both(&bench, &[&["-n"], chosen].concat());
        assert_eq!(usual[0], told[0], "{chosen:?}");
        if chosen == ["--dsos", "shown"] {
            assert_ne!(told[0], told[1]);
        }
    }
}

#[test]
fn the_head_says_of_the_recording_what_perf_says() {
    const TEST: &str = "the_head_says_of_the_recording_what_perf_says";
    let Some(bench) = recorded(
        TEST,
        &[
            "-e",
            "{page-faults:u,cpu-clock:u}",
            "-c",
            "1000",
            "-g",
            "-d",
        ],
    ) else {
        return;
    };
    let arguments = ["report", "--header-only", "-i", "p.data"];
    let theirs = stdout(&perf(&bench, &arguments).expect("it recorded"));
    let ours = bench.report(&arguments[1..]);
    assert_eq!(stderr(&ours), "");
    let ours = stdout(&ours);
    let theirs = theirs.replace(", , id", ", id");
    let mut theirs: Vec<_> = theirs.lines().map(str::trim_end).collect();
    let mut count = 0;
    for line in ours.lines() {
        assert!(theirs.contains(&line), "{line}\n{theirs:#?}");
        theirs.retain(|known| *known != line || line.starts_with("# ="));
        count += usize::from(line.contains(": "));
    }
    for name in [
        "hostname",
        "cmdline",
        "event",
        "group",
        "time of first sample",
        "captured on",
    ] {
        let is_left = theirs
            .iter()
            .any(|line| line.starts_with(&format!("# {name}")));
        assert!(!is_left, "{name}\n{ours}\n{theirs:#?}");
    }
    assert!(count >= 12, "{ours}");
    let whole = stdout(&bench.report(&["-i", "p.data", "--header"]));
    assert!(
        whole.starts_with(&ours) && whole.contains("main"),
        "{whole}"
    );
}
