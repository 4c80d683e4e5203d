//! Whole programs: the examples, as cargo has built them beside this test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the folder of programs, or says why the examples are not there.
fn built(test: &str) -> Option<PathBuf> {
    let path = std::env::current_exe().expect("a path");
    let built = path.ancestors().nth(2).expect("a folder");
    let is_there = built.join("examples/fresh_pages").exists();
    if !is_there {
        println!("SKIP {test}: cargo builds the examples where it is not asked for one test");
    }
    is_there.then(|| built.to_owned())
}

fn example(built: &Path, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(built.join("examples").join(name));
    command.env("CRITERION_HOME", folder).args([
        "--bench",
        "--noplot",
        "--sample-size",
        "20",
        "--nresamples",
        "1001",
    ]);
    command
}

/// Returns criterion's report, and what is said beside it, without criterion's own lines.
fn texts(output: &Output) -> (String, String) {
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr);
    let is_ours = |line: &&str| line.starts_with("quipu-criterion: ");
    let ours: Vec<&str> = said.lines().filter(is_ours).collect();
    (text(&output.stdout), ours.join("\n"))
}

fn run(mut command: Command) -> (String, String) {
    texts(&command.output().expect("it runs"))
}

#[test]
fn an_iteration_faults_once_for_each_page() {
    let Some(built) = built("pages of an iteration") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (report, said) = run(example(&built, "fresh_pages", folder.path()));
    if said.contains("without threads") || cfg!(not(target_arch = "x86_64")) {
        return println!("SKIP pages of an iteration: {said}");
    }
    assert_eq!(said, "");
    assert!(
        report.contains("[512.00 page-faults 512.00 page-faults 512.00 page-faults]"),
        "{report}"
    );
    assert!(report.contains("[1.0000 page-faults/element 1"), "{report}");
    let results = folder
        .path()
        .join("counted/page-faults/fresh pages/touch/new/sample.json");
    let sample: serde_json::Value =
        serde_json::from_slice(&fs::read(results).expect("results")).expect("JSON");
    let numbers = |name: &str| -> Vec<f64> {
        let numbers = sample[name].as_array().expect(name).iter();
        numbers.map(|number| number.as_f64().expect(name)).collect()
    };
    let iterations = numbers("iters");
    assert_eq!(iterations.len(), 20);
    for (iterations, faults) in iterations.iter().zip(numbers("times")) {
        // A page of the program's own may fault once in a sample.
        assert!(
            (0.0..8.0).contains(&(faults - 512.0 * iterations)),
            "{faults} for {iterations}"
        );
    }
    // The next one is compared with it.
    let (report, _) = run(example(&built, "fresh_pages", folder.path()));
    assert!(
        report.contains("No change in performance detected") || report.contains("within noise"),
        "{report}"
    );
}

#[test]
fn without_a_counter_time_is_measured_or_nothing() {
    let Some(built) = built("benchmarks without a counter") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let of = |event: &str, skip: bool| {
        let mut command = example(&built, "chosen_event", folder.path());
        command.env("BENCH_EVENT", event).env_remove("BENCH_SKIP");
        if skip {
            command.env("BENCH_SKIP", "1");
        }
        command
    };
    let (report, said) = run(of("no-such-event", false));
    assert!(
        said.starts_with("quipu-criterion: wall time is measured instead: cannot "),
        "{said}"
    );
    assert!(
        report.contains(" µs ") || report.contains(" ns "),
        "{report}"
    );
    assert!(folder.path().join("fibonacci/new/sample.json").exists());
    assert!(!folder.path().join("counted").exists());

    let (report, said) = run(of("no-such-event", true));
    assert!(said.starts_with("quipu-criterion: SKIP: cannot "), "{said}");
    assert_eq!(report, "");

    let refused = of("{page-faults,task-clock}", true)
        .output()
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");

    // It does not occur, so that there is nothing to divide by.
    let (report, said) = run(of("major-faults", false));
    assert!(
        said.contains("major-faults did not occur in a sample"),
        "{said}"
    );
    assert!(!report.contains("time: "), "{report}");
}

#[test]
fn a_profile_leaves_a_flame_graph() {
    let Some(built) = built("a profile leaves a flame graph") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let profile = |path: &Path| {
        let mut command = example(&built, "chosen_event", folder.path());
        command
            .env("BENCH_EVENT", "page-faults")
            .env("PATH", path)
            .args(["--profile-time", "2"]);
        run(command)
    };
    let (_, said) = profile(folder.path());
    assert!(
        said.contains("cannot run quipu: ") && said.contains("cargo install quipu-cli"),
        "{said}"
    );

    if !built.join("quipu").exists() {
        return println!(
            "SKIP a profile leaves a flame graph: the command is not built beside this test"
        );
    }
    let (_, said) = profile(&built);
    let pictures = folder
        .path()
        .join("counted/page-faults/fibonacci/profile/flamegraph.svg");
    if !pictures.exists() {
        assert!(said.contains("quipu record failed"), "{said}");
        return println!("SKIP a profile leaves a flame graph: {said}");
    }
    let picture = fs::read_to_string(pictures).expect("a picture");
    assert!(picture.contains("chosen_event::fibonacci"), "{said}");
}
