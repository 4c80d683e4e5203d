//! `quipu stat --regions`: what programs that enter regions leave.

use std::collections::BTreeMap;
use std::thread;

use nix::sys::resource::{UsageWho, getrusage};
use quipu::Count;
use quipu_regions::{Region, Report};

use super::{has_perf_events, run, stderr};

const CHILD: &str = "QUIPU_TEST_REGIONS";
const TEST: &str = "stat::regions::regions_of_all_processes_are_reported";

/// Returns the page faults of the calling thread.
fn faults() -> std::ffi::c_long {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("a usage");
    usage.minor_page_faults() + usage.major_page_faults()
}

/// Touches fresh memory: more than the C library keeps of what was given back.
fn fill() {
    std::hint::black_box(vec![1u8; 1 << 26]);
}

/// The measured program: threads that fill memory in a region, and what getrusage(2) says of it.
fn program() {
    let [outer, inner] = ["solve", "fill"].map(Region::named);
    let threads = [1, 2, 3].map(|rounds| {
        thread::spawn(move || {
            let mut own = 0;
            for _ in 0..rounds {
                outer.begin().expect("counters");
                let before = faults();
                inner.begin().expect("counters");
                fill();
                inner.end().expect("the innermost");
                own += faults() - before;
                outer.end().expect("the innermost");
            }
            (nix::unistd::gettid(), rounds, own)
        })
    });
    for thread in threads {
        let (thread, rounds, faults) = thread.join().expect("no panic");
        println!("\n{thread} {rounds} {faults}");
    }
}

/// Runs the program twice, side by side, and returns the report and what each thread says of itself.
fn measured(options: &[&str]) -> (String, BTreeMap<u64, (u64, u64)>) {
    let test = std::env::current_exe().expect("a path");
    let script = format!(
        "{CHILD}=1; export {CHILD}; '{0}' --exact {TEST} --nocapture & '{0}' --exact {TEST} --nocapture; wait",
        test.display()
    );
    let command = ["-e", "page-faults:u", "--", "sh", "-c", &script];
    let output = run(&[options, &command].concat());
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = told.lines().map(|line| {
        line.split(' ')
            .map(str::parse)
            .collect::<Result<Vec<u64>, _>>()
    });
    let told = lines.filter_map(|line| match line.ok()?[..] {
        [thread, rounds, faults] => Some((thread, (rounds, faults))),
        _ => None,
    });
    (stderr(&output), told.collect())
}

fn value(count: Option<Count>) -> u64 {
    let Some(Count::Exact(value)) = count else {
        panic!("{count:?}");
    };
    u64::try_from(value).expect("not so many")
}

#[test]
fn regions_of_all_processes_are_reported() {
    if std::env::var_os(CHILD).is_some() {
        return program();
    }
    if !has_perf_events("regions_of_all_processes_are_reported") {
        return;
    }
    let (text, told) = measured(&["--regions", "-j"]);
    assert_eq!(told.len(), 6, "{text}");
    let reports = text.lines().filter(|line| line.starts_with("{\"process\""));
    let reports: Vec<Report> = reports
        .map(|line| serde_json::from_str(line).expect("a report"))
        .collect();
    assert_eq!(reports.len(), 2, "{text}");
    for thread in reports.iter().flat_map(|report| &report.threads) {
        let (rounds, faults) = told[&thread.id];
        let [outer, inner] = &thread.regions[..] else {
            panic!("{thread:?}");
        };
        assert_eq!((outer.calls, inner.calls), (rounds, rounds));
        let own = value(inner.events[0].counted.count);
        // What the first call of getrusage(2) and of a region touches.
        assert!(own > 0 && own.abs_diff(faults) <= 4, "{own} of {faults}");
        assert!(value(outer.events[0].counted.count) >= own);
    }

    // The table has the sums, and what is left of all.
    let (text, told) = measured(&["--regions"]);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |name: &str| {
        rows.iter()
            .find(|row| row.first() == Some(&name))
            .unwrap_or_else(|| panic!("{text}"))
    };
    let number = |text: &str| {
        text.replace(',', "")
            .parse::<u64>()
            .unwrap_or_else(|e| panic!("{e}: {text}"))
    };
    let fill = row("fill");
    assert_eq!((fill[1], fill[2]), ("12", "6"), "{text}");
    let all: u64 = told.values().map(|(_, faults)| faults).sum();
    assert!(number(fill[5]).abs_diff(all) <= 24, "{text}");
    let outside = row("outside");
    let total = rows
        .iter()
        .find(|row| row.get(1) == Some(&"page-faults:u"))
        .expect("a total");
    assert_eq!(
        number(outside[3]) + number(row("solve")[5]),
        number(total[0]),
        "{text}"
    );

    // Threads apart, and a picture.
    let directory = tempfile::tempdir().expect("a directory");
    let picture = directory.path().join("regions.svg");
    let (text, told) = measured(&[
        "--regions=thread",
        "--regions-flamegraph",
        picture.to_str().expect("text"),
    ]);
    for (thread, (rounds, _)) in &told {
        let line = format!("thread {thread}: solve");
        let line = text
            .lines()
            .find(|text| text.starts_with(&line))
            .unwrap_or_else(|| panic!("{text}"));
        let calls = line.split_whitespace().nth(3).map(number);
        assert_eq!(calls, Some(*rounds), "{text}");
    }
    let picture = std::fs::read_to_string(picture).expect("drawn");
    assert!(
        picture.contains(": solve (") && picture.contains(">fill ("),
        "{picture:.2000}"
    );
}

#[test]
fn a_command_without_regions_says_so() {
    let output = run(&["--regions", "--", "true"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        stderr(&output).contains("No program entered a region"),
        "{output:?}"
    );
    for other in [&["-p", "1"][..], &["-x", ",", "--", "true"], &[]] {
        let refused = run(&[&["--regions"], other].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
}
