//! The head of a report, its columns and the samples that shares are parts of, as `perf report` has them.

use std::process::Output;

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

/// perf has an empty table where no sample is chosen.
#[test]
fn a_choice_of_no_sample_is_refused() {
    const TEST: &str = "a_choice_of_no_sample_is_refused";
    let Some(bench) = recorded(TEST, &FAULTS) else {
        return;
    };
    for chosen in [["--comm", "nobody"], ["--tid", "1"]] {
        let ours = bench.report(&[&["-i", "p.data"][..], &chosen].concat());
        assert_eq!(ours.status.code(), Some(125), "{chosen:?}");
        assert_eq!(stdout(&ours), "", "{chosen:?}");
        assert_eq!(
            stderr(&ours),
            "quipu: p.data has no samples of what was chosen\n"
        );
        let arguments = ["report", "--stdio", "-i", "p.data", "-t", ";"];
        let theirs = perf(&bench, &[&arguments[..], &chosen].concat()).expect("it recorded");
        assert!(rows(&stdout(&theirs)).is_empty(), "{chosen:?}");
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

/// Returns the lines on PMUs, CPUs, caches and nodes, without what changes from moment to moment, and PMUs in an order of their
/// own, as a list of files has none.
fn of_hardware(text: &str) -> Vec<String> {
    let begins = [
        "# sibling",
        "# CPU",
        "# node",
        "# pmu",
        "#  L",
        "# NUMA",
        "# CACHE",
        "# memory",
        "#    0 [",
        "# MEM",
    ];
    let lines = text.lines().map(str::trim_end);
    let lines = lines.filter(|line| begins.iter().any(|begin| line.starts_with(begin)));
    let lines = lines.map(|line| match line.split_once(": ") {
        Some(("# pmu mappings", pmus)) => {
            let mut pmus: Vec<_> = pmus.split(", ").collect();
            pmus.sort_unstable();
            pmus.join(", ")
        }
        _ => line.split(", free = ").next().unwrap_or(line).to_owned(),
    });
    lines.collect()
}

#[test]
fn the_hardware_is_told_as_by_perf_in_its_files_and_ours() {
    const TEST: &str = "the_hardware_is_told_as_by_perf_in_its_files_and_ours";
    let options = ["-e", "page-faults:u", "-c", "1"];
    let Some(bench) = recorded(TEST, &options) else {
        return;
    };
    let output = bench.record(&options, &bench.program());
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    for (in_full, option) in [(false, "--header"), (true, "-I")] {
        let mut told = Vec::new();
        for file in ["p.data", "perf.data"] {
            let arguments = ["report", "--header-only", option, "-i", file];
            let theirs = perf(&bench, &arguments).expect("it recorded");
            let ours = bench.report(&arguments[1..]);
            assert_eq!(stderr(&ours), "", "{file}");
            told.extend([ours, theirs].map(|output| of_hardware(&stdout(&output))));
        }
        // Of either file, quipu and perf tell the same, and both files have the same.
        assert!(told.iter().all(|lines| *lines == told[0]), "{told:#?}");
        let has = |begin: &str| told[0].iter().any(|line| line.contains(begin));
        assert!(has("software = 1") && has("breakpoint = 5"), "{told:#?}");
        assert_eq!(has("# CPU 0: Core ID "), in_full, "{told:#?}");
        assert_eq!(has("# CPU_TOPOLOGY info available"), !in_full, "{told:#?}");
    }
    let whole = stdout(&bench.report(&["-I"]));
    assert!(
        whole.contains("# sibling threads : ") && whole.contains("hot"),
        "{whole}"
    );
}

#[test]
fn columns_are_as_wide_as_they_are_asked_for() {
    const TEST: &str = "columns_are_as_wide_as_they_are_asked_for";
    let Some(bench) = recorded(TEST, &["-e", "cpu-clock:u", "-c", "1000000"]) else {
        return;
    };
    for widths in ["12,14,3,8,8", "9,14,30,40,50", "9,14,0,0,7", "9,14"] {
        let arguments = ["report", "-n", "-i", "p.data", "-w", widths];
        let theirs = perf(&bench, &[&arguments[..], &["--stdio"]].concat()).expect("it recorded");
        let ours = bench.report(&arguments[1..]);
        assert_eq!(stderr(&ours), "", "{widths}");
        // The titles, the points below them, and the rows of the program, whose functions have names in both.
        let lines = |output: &Output| -> Vec<String> {
            let text = stdout(output);
            let of_program = |line: &str| line.contains(" sho") && line.contains("[.] t");
            let is_title = |line: &str| line.contains("Overhead") || line.starts_with("# .....");
            let lines = text
                .lines()
                .filter(|line| of_program(line) || is_title(line));
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        let (ours, mut theirs) = (lines(&ours), lines(&theirs));
        if !widths.ends_with(['0', '7', '8']) {
            // The last column has no more points than its title here.
            theirs.retain(|line| !line.starts_with("# ....."));
        }
        assert!(theirs.len() >= 2 && ours.len() >= 3, "{ours:#?}");
        for line in &theirs {
            assert!(ours.contains(line), "{widths}: {line}\n{ours:#?}");
        }
    }
}
