//! Going on in new files, rings that are written over, and branch stacks that the CPU has or has not.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::judge::{BUSY, told_by_perf, told_by_quipu};
use super::peer::perf;
use super::{Bench, quipu, skip, stderr, stdout};

/// Returns the names of the files of a recording, the oldest first.
fn files(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.directory.path()).expect("the directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.starts_with("w.data"))
        .collect();
    names.sort();
    names
}

/// Returns the times of the samples of a file, each of its CPU.
fn times(bench: &Bench, file: &str) -> Vec<String> {
    let output = quipu()
        .current_dir(bench.directory.path())
        .args(["script", "-i", file, "-F", "cpu,time", "--ns"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    text.lines()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

/// Writes a shell script beside the compiled program.
fn prepare(bench: &Bench, script: &str) -> PathBuf {
    bench.compile("busy", BUSY).expect("it compiled before");
    let path = bench.path("script.sh");
    std::fs::write(&path, script).expect("written");
    path
}

#[test]
fn every_sample_is_in_one_of_the_files() {
    const TEST: &str = "every_sample_is_in_one_of_the_files";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    prepare(
        &bench,
        "for i in 1 2 3 4 5 6 7 8; do ./busy; sleep 0.15; done",
    );
    let options = [
        "-o",
        "w.data",
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "--switch-output=200K",
    ];
    let output = bench.record(&options, "sh script.sh");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let names = files(&bench);
    assert!(names.len() > 2, "{names:?}: {}", stderr(&output));
    // Each is called by its time: fourteen digits, and hundredths of a second.
    for name in &names {
        let stamp = name.strip_prefix("w.data.").unwrap_or_default();
        assert!(
            stamp.len() == 16 && stamp.bytes().all(|b| b.is_ascii_digit()),
            "{name}"
        );
    }
    let mut all = Vec::new();
    for name in &names {
        let ours = told_by_quipu(&bench, name);
        all.extend(times(&bench, name));
        // Of a file without samples perf says no count.
        if ours.first() > 0 && perf(&bench, &["version"]).is_some() {
            assert_eq!(ours, told_by_perf(&bench, name), "{name}");
        }
        // What was running when the file began has its name and functions. The shell's own samples are few.
        assert!(
            ours.first() < 1000 || ours.shares.contains_key("main"),
            "{name}: {ours:?}"
        );
    }
    let different: BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    let told = stderr(&output);
    let last = told
        .lines()
        .rfind(|line| line.contains(" lost, "))
        .expect("the last line");
    let samples: usize = last
        .split(' ')
        .nth(3)
        .expect("a number")
        .parse()
        .expect("a number");
    assert_eq!(samples, all.len(), "{told}");
}

#[test]
fn only_the_last_files_are_kept() {
    const TEST: &str = "only_the_last_files_are_kept";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    prepare(&bench, "for i in 1 2 3 4 5 6; do ./busy; sleep 0.15; done");
    let options = [
        "-o",
        "w.data",
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "--switch-output=100K",
    ];
    let output = bench.record(
        &[&options[..], &["--switch-max-files", "2"]].concat(),
        "sh script.sh",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = stderr(&output);
    let written: Vec<&str> = told
        .lines()
        .filter_map(|line| Some(line.split_once(" in ")?.1.trim_end_matches(" ]")))
        .collect();
    assert!(written.len() > 2, "{told}");
    assert_eq!(files(&bench), written[written.len() - 2..], "{told}");
}

#[test]
fn a_ring_that_is_written_over_gives_the_newest_samples_once() {
    const TEST: &str = "a_ring_that_is_written_over_gives_the_newest_samples_once";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    // The shell waits without a page fault until the first file has its name.
    prepare(
        &bench,
        "./busy; kill -USR2 $PPID; until set -- w.data.2* && [ -e $1 ]; do :; done; ./busy",
    );
    let options = [
        "-o",
        "w.data",
        "-e",
        "page-faults:u",
        "-c",
        "1",
        "-m",
        "4",
        "--overwrite",
    ];
    let output = bench.record(
        &[&options[..], &["--switch-output"]].concat(),
        "sh script.sh",
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let names = files(&bench);
    assert_eq!(names.len(), 2, "{names:?}");
    let all: Vec<_> = names.iter().map(|name| times(&bench, name)).collect();
    for (name, times) in names.iter().zip(&all) {
        // The rings have room for fewer than the 2000 of one program.
        assert!((20..2000).contains(&times.len()), "{name}: {}", times.len());
        if perf(&bench, &["version"]).is_some() {
            assert_eq!(
                told_by_quipu(&bench, name),
                told_by_perf(&bench, name),
                "{name}"
            );
        }
    }
    let different: BTreeSet<&String> = all.iter().flatten().collect();
    assert_eq!(different.len(), all.iter().map(Vec::len).sum::<usize>());
    // The program had ended when its samples were written.
    let functions = told_by_quipu(&bench, &names[0]).shares;
    assert!(functions.contains_key("main"), "{functions:?}");
}

#[test]
fn a_file_gets_its_time_into_its_name() {
    const TEST: &str = "a_file_gets_its_time_into_its_name";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let options = [
        "-o",
        "w.data",
        "-e",
        "page-faults:u",
        "--timestamp-filename",
    ];
    let output = bench.record(&options, "true");
    let [name] = &files(&bench)[..] else {
        panic!("{:?}", files(&bench));
    };
    assert!(name.len() == "w.data.".len() + 16, "{name}");
    assert!(stderr(&output).contains(&**name), "{}", stderr(&output));
    for wrong in [
        &["--switch-output=5"][..],
        &["--switch-output=1x"],
        &["--switch-max-files", "3"],
        &["--switch-output", "--switch-max-files", "0"],
    ] {
        let output = bench.record(&[&["-e", "page-faults:u"], wrong].concat(), "true");
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let output = bench.record(
        &["-e", "page-faults:u", "-o", "-", "--switch-output"],
        "true",
    );
    assert!(
        stderr(&output).contains("one stream"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn branch_stacks_are_recorded_or_refused_as_by_perf() {
    const TEST: &str = "branch_stacks_are_recorded_or_refused_as_by_perf";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let none = bench.record(&["-b", "-e", "cpu-clock"], "true");
    assert_eq!(none.status.code(), Some(125), "{}", stderr(&none));
    assert!(
        stderr(&none).contains("cannot have BRANCH_STACK"),
        "{}",
        stderr(&none)
    );
    let wrong = bench.record(&["-j", "any,none", "-e", "cpu-clock"], "true");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("\"none\" is none of u, k"),
        "{}",
        stderr(&wrong)
    );

    let options = ["-e", "cycles:u", "-j", "any,u", "-c", "10000"];
    let Some(theirs) = perf(
        &bench,
        &[
            &["record", "-q", "-o", "p.data"],
            &options[..],
            &["--", "ls"],
        ]
        .concat(),
    ) else {
        return skip(TEST, "perf does not start here");
    };
    let ours = bench.record(&options, "ls");
    assert_eq!(
        ours.status.success(),
        theirs.status.success(),
        "{}{}",
        stderr(&ours),
        stderr(&theirs)
    );
    if !ours.status.success() {
        return skip(TEST, stderr(&ours).trim());
    }
    let told = |file: &str| {
        let events =
            stdout(&perf(&bench, &["evlist", "-v", "-i", file]).expect("it was there before"));
        let branches = events
            .split("branch_sample_type: ")
            .nth(1)
            .map(str::to_owned);
        branches.map(|text| text.split(',').next().unwrap_or_default().trim().to_owned())
    };
    assert_eq!(told("perf.data"), told("p.data"));
    let script = perf(&bench, &["script", "-F", "brstack"]).expect("it was there before");
    assert!(stdout(&script).contains("0x"), "{}", stdout(&script));
}
