//! `quipu compare` from its command line: answers, gates, files, and commands that misbehave.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Runs it in a process group of its own: other tests would see what a command leaves behind.
fn compare(arguments: &[&str]) -> Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quipu"));
    command
        .env_remove("GITHUB_ACTIONS")
        .arg("compare")
        .args(arguments)
        .process_group(0);
    command.output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The output of a comparison that ended with a status.
fn said(arguments: &[&str], status: i32) -> String {
    let output = compare(arguments);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    said
}

fn json(arguments: &[&str]) -> Value {
    let output = compare(&[&["--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn metric<'v>(report: &'v Value, name: &str) -> &'v Value {
    let mut metrics = report["metrics"].as_array().expect("metrics").iter();
    metrics
        .find(|metric| metric["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn a_person_gets_a_table_of_80_columns() {
    let said = said(
        &[
            "-n", "6", "--seed", "7", "--", "sh", "-c", ":", ":::", "ls", "-R", "/etc",
        ],
        0,
    );
    assert!(
        said.contains("6 pairs in random order (--seed 7)"),
        "{said}"
    );
    assert!(said.contains("95 % interval  verdict"), "{said}");
    for line in said.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn what_differs_is_different_and_what_is_alike_is_not() {
    // 64 MB of zeros are read into a buffer that one allocates and the other does not.
    let report = json(&[
        "-n",
        "10",
        "--",
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=4K",
        "count=1",
        ":::",
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=64M",
        "count=1",
    ]);
    let memory = &metric(&report, "cpu-time")["changes"][0];
    assert_eq!(memory["verdict"], "different", "{memory}");
    assert!(memory["change"]["low"].as_f64() > Some(0.0), "{memory}");
    assert_eq!(
        metric(&report, "elapsed")["values"][1]
            .as_array()
            .expect("values")
            .len(),
        10
    );
    let alike = json(&[
        "-n",
        "10",
        "--resolution",
        "1000",
        "--",
        "true",
        ":::",
        "true",
    ]);
    assert_eq!(alike["commands"].as_array().expect("commands").len(), 2);
    assert_eq!(alike["end"], "complete");
}

#[test]
fn commands_that_end_differently_are_the_result() {
    let told = said(&["-n", "5", "true", "false"], 4);
    assert!(
        told.contains("exit status: 1") && told.contains("they do not do the same"),
        "{told}"
    );
    assert!(!told.contains("verdict"), "a table without rows: {told}");
    let of_table = told.lines().take_while(|line| !line.starts_with("quipu: "));
    for line in of_table {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let counted = said(&["-n", "5", "-i", "true", "false"], 0);
    assert!(
        counted.contains("5 of 10 runs failed, and are in all numbers"),
        "{counted}"
    );
    let alike = said(&["-n", "5", "false", "false"], 0);
    assert!(
        alike.contains("every run ended with exit status: 1"),
        "{alike}"
    );
    let killed = said(
        &["-n", "5", "--", "true", ":::", "sh", "-c", "kill -9 $$"],
        4,
    );
    assert!(killed.contains("a run of B was killed"), "{killed}");
    let endless = said(
        &[
            "-n",
            "5",
            "--timeout",
            "0.2",
            "--",
            "sleep",
            "60",
            ":::",
            "sleep",
            "60",
        ],
        4,
    );
    assert!(
        endless.contains("took longer than --timeout, and was killed"),
        "{endless}"
    );
}

#[test]
fn commands_that_are_not_there_are_a_shells_127() {
    let told = said(&["--", "true", ":::", "/nonexistent/program"], 127);
    assert!(
        told.contains("cannot execute /nonexistent/program"),
        "{told}"
    );
    said(&["--", "/etc/passwd", ":::", "true"], 126);
    for wrong in [
        &[][..],
        &["true"],
        &["ls 'a", "ls"],
        &["--fail-if", "elapsed", "true", "true"],
        &["-n", "0", "true", "true"],
    ] {
        said(wrong, 2);
    }
    said(&["--input", "/nonexistent", "true", "true"], 125);
    let lost = said(&["--directory", "/nonexistent", "true", "true"], 125);
    assert!(
        lost.contains("cannot run the commands in /nonexistent: No such file"),
        "{lost}"
    );
    let unknown = said(&["-e", "no-such-event,page-faults", "true", "true"], 125);
    assert!(unknown.contains("there is no such event"), "{unknown}");
    let failed = said(&["--prepare", "exit 3", "true", "true"], 125);
    assert!(failed.contains("--prepare failed"), "{failed}");
}

#[test]
fn output_is_thrown_away_and_input_begins_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let [input, seen] =
        ["input", "seen"].map(|name| directory.path().join(name).display().to_string());
    fs::write(&input, "twelve bytes").expect("written");
    let script = format!("wc -c >>{seen}; head -c 50000000 /dev/zero");
    let told = said(
        &[
            "-n", "2", "--warmup", "0", "--input", &input, "--", "sh", "-c", &script, ":::", "sh",
            "-c", &script,
        ],
        0,
    );
    assert!(told.len() < 10_000);
    let counts = fs::read_to_string(&seen).expect("every run wrote into it");
    let counts: Vec<&str> = counts.split_whitespace().collect();
    assert_eq!(counts, ["12"; 4]);
}

/// The order in which two commands ran, in pairs.
fn orders(seed: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let [a, b] = ["a", "b"].map(|name| format!("printf {name} >>{}", log.display()));
    let how = ["-n", "12", "--warmup", "0", "--shell", "sh", "--seed", seed];
    said(&[&how[..], &[&a, &b]].concat(), 0);
    let written = fs::read(&log).expect("it was written");
    written.chunks(2).map(text).collect()
}

#[test]
fn pairs_are_in_random_order_of_a_seed() {
    let first = orders("1");
    assert!(
        first.iter().all(|pair| pair == "ab" || pair == "ba"),
        "{first:?}"
    );
    assert!(
        first.contains(&"ab".to_owned()) && first.contains(&"ba".to_owned()),
        "{first:?}"
    );
    assert_eq!(first, orders("1"));
    assert_ne!(first, orders("2"));
}

#[test]
fn scripts_run_before_after_and_at_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("log");
    let note = |text: &str| format!("printf {text} >>{}", log.display());
    let [before, after, end, run] = ["b", "a", "e", "r"].map(note);
    let arguments = [
        "-n",
        "2",
        "--warmup",
        "1",
        "--shell",
        "sh",
        "--prepare",
        &before,
        "--conclude",
        &after,
        "--cleanup",
        &end,
        &run,
        &run,
    ];
    said(&arguments, 0);
    assert_eq!(
        fs::read_to_string(&log).expect("it was written"),
        "bra".repeat(6) + "e"
    );
}

#[test]
fn parameters_make_commands_and_environments_are_padded() {
    let report = json(&[
        "-n",
        "3",
        "-L",
        "n",
        "1,2,3",
        "--shuffle-env",
        "--shell",
        "sh",
        "test -n \"$QUIPU_COMPARE_PADDING$PATH\" && sleep 0.00{n}",
    ]);
    let names: Vec<&str> = report["commands"]
        .as_array()
        .expect("commands")
        .iter()
        .map(|c| c["label"].as_str().expect("text"))
        .collect();
    assert_eq!(names, ["A", "B", "C"]);
    assert_eq!(report["commands"][2]["parameters"][0][1], "3");
    assert_eq!(
        metric(&report, "elapsed")["changes"]
            .as_array()
            .expect("changes")
            .len(),
        2
    );
}

#[test]
fn gates_fail_where_it_is_sure_and_warn_where_it_is_open() {
    let planted = ["--", "sleep", "0.01", ":::", "sleep", "0.2"];
    let gate = |condition: &str, more: &[&str], status| {
        said(
            &[&["-n", "8", "--fail-if", condition], more, &planted].concat(),
            status,
        )
    };
    let failed = gate("elapsed > +50 %", &[], 1);
    assert!(
        failed.contains("failed for B: elapsed > +50 %: the change is"),
        "{failed}"
    );
    gate("elapsed > +5000 %", &[], 0);
    gate("elapsed < -10 %", &[], 0);
    let unknown = gate("no-such-metric > 2 %", &[], 2);
    assert!(unknown.contains("names no metric of this"), "{unknown}");
    // Two pairs say little of a difference that is there or not.
    let open = [
        "-n",
        "2",
        "--fail-if",
        "cpu-time > +0.01 %",
        "--confidence",
        "99.9",
        "--",
        "ls",
        "/",
        ":::",
        "ls",
        "/",
    ];
    let told = said(&open, 0);
    assert!(
        told.contains("inconclusive for B") || told.contains("passed for B"),
        "{told}"
    );
    if told.contains("inconclusive for B") {
        let again = compare(&[&["--fail-inconclusive"][..], &open].concat());
        assert!(matches!(again.status.code(), Some(0 | 3)));
    }
}

#[test]
fn workflows_of_github_get_annotations() {
    let mut command = Command::cargo_bin("quipu").expect("cargo builds it");
    command.env("GITHUB_ACTIONS", "true");
    let arguments = [
        "compare",
        "-n",
        "6",
        "--fail-if",
        "elapsed > +50 %",
        "--",
        "sleep",
        "0.01",
        ":::",
        "sleep",
        "0.2",
    ];
    let output = command.args(arguments).output().expect("it starts");
    let told = text(&output.stderr);
    assert!(
        told.starts_with("::error title=quipu compare::failed for B: elapsed > +50 %25: "),
        "{told}"
    );
}

#[test]
fn baselines_are_of_one_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("base.json");
    let base = file.to_str().expect("text");
    said(&["-n", "6", "--save", base, "--", "sleep", "0.01"], 0);
    let against = [
        "-n",
        "6",
        "--baseline",
        base,
        "--fail-if",
        "elapsed > +50 %",
        "--",
        "sleep",
        "0.2",
    ];
    let told = said(&against, 1);
    assert!(
        told.contains("A  sleep 0.01 (baseline)") && told.contains("at another time"),
        "{told}"
    );
    let kept = fs::read_to_string(&file).expect("it was written");
    let mut other: Value = serde_json::from_str(&kept).expect("it is JSON");
    other["machine"]["governor"] = "of another machine".into();
    fs::write(&file, other.to_string()).expect("written");
    let refused = said(&against, 125);
    assert!(
        refused.contains("its governor is of another machine, and here it is"),
        "{refused}"
    );
    said(&[&["--allow-other-machine"][..], &against].concat(), 1);
    fs::write(&file, "{}").expect("written");
    assert!(said(&against, 125).contains("is no baseline that quipu compare --save wrote"));
}

#[test]
fn programs_get_the_files_that_they_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let forms = ["markdown", "csv", "svg", "bmf", "github-benchmark"]
        .map(|form| format!("--{form}={}", path(form)));
    let mut arguments = vec!["-n", "4", "-L", "t", "1,2", "--export-json"];
    let exported = path("hyperfine");
    arguments.push(&exported);
    arguments.extend(forms.iter().map(String::as_str));
    arguments.push("sleep 0.00{t}");
    let shown = said(&arguments, 0);
    assert!(shown.contains("verdict"), "files do not replace the table");
    let read = |name: &str| fs::read_to_string(path(name)).expect(name);
    let parsed = |name: &str| serde_json::from_str::<Value>(&read(name)).expect(name);
    let markdown = read("markdown");
    assert!(
        markdown.contains("| elapsed | ") && markdown.contains("- **B**: `sleep 0.002`"),
        "{markdown}"
    );
    let lines = read("csv");
    assert_eq!(
        lines
            .lines()
            .filter(|line| line.starts_with("elapsed,s,sleep 0.00"))
            .count(),
        8
    );
    assert!(read("svg").starts_with("<svg ") && read("svg").matches("<circle").count() > 8);
    // https://bencher.dev/docs/reference/bencher-metric-format/
    let latency = &parsed("bmf")["sleep 0.001"]["latency"];
    let [low, value, high] =
        ["lower_value", "value", "upper_value"].map(|key| latency[key].as_f64().expect(key));
    assert!(low <= value && value <= high && value >= 1e6, "{latency}");
    // github-action-benchmark's README: name, unit, value; range and extra are text.
    let benchmarks = parsed("github-benchmark");
    let first = &benchmarks[0];
    assert!(
        first["name"] == "sleep 0.001: elapsed"
            && first["unit"] == "s"
            && first["value"].is_f64()
            && first["range"].is_string()
    );
    // What hyperfine's scripts read: plot_whisker.py and others.
    let results = &parsed("hyperfine")["results"];
    for key in [
        "command",
        "mean",
        "stddev",
        "median",
        "user",
        "system",
        "min",
        "max",
        "times",
        "exit_codes",
        "parameters",
    ] {
        assert!(!results[1][key].is_null(), "{key}: {results}");
    }
    assert_eq!(results[1]["times"].as_array().expect("times").len(), 4);
    assert_eq!(results[1]["parameters"]["t"], "2");
}

#[test]
fn ctrl_c_reports_what_was_measured() {
    let program = assert_cmd::cargo::cargo_bin("quipu");
    let directory = tempfile::tempdir().expect("a directory");
    let script = "echo >>runs; sleep 0.01";
    let mut command = std::process::Command::new(program);
    command.current_dir(directory.path());
    command.args([
        "compare", "-n", "10000", "--", "sh", "-c", script, ":::", "sh", "-c", script,
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Some of each, behind those that are not measured.
    let end = Instant::now() + Duration::from_secs(60);
    let runs = directory.path().join("runs");
    while fs::metadata(&runs).map_or(0, |runs| runs.len()) < 40 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    kill(
        Pid::from_raw(child.id().try_into().expect("a pid")),
        Signal::SIGINT,
    )
    .expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(
        told.contains("NOT COMPLETE: interrupted by signal 2") && told.contains("elapsed"),
        "{told}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn children_that_stay_are_named() {
    let told = said(
        &[
            "-n",
            "2",
            "--",
            "sh",
            "-c",
            "sleep 3 & sleep 0.05",
            ":::",
            "true",
        ],
        0,
    );
    assert!(told.contains("left behind: sleep ("), "{told}");
}

/// Builds a small package in two revisions of a repository.
#[test]
fn revisions_are_built_and_compared() {
    if let Err(e) = std::process::Command::new("git").arg("--version").output() {
        return crate::skip(
            "revisions_are_built_and_compared",
            format_args!("git(1): {e}"),
        );
    }
    let directory = tempfile::tempdir().expect("a directory");
    let run = |program: &str, arguments: &[&str]| {
        let status = std::process::Command::new(program)
            .args(arguments)
            .current_dir(directory.path())
            .status();
        assert!(status.expect(program).success(), "{program} {arguments:?}");
    };
    let settings = [
        "user.name=a",
        "user.email=a@b",
        "init.defaultBranch=main",
        "commit.gpgsign=false",
    ];
    let settings = settings.map(|setting| ["-c", setting]).concat();
    let git = |arguments: &[&str]| run("git", &[&settings, arguments].concat());
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::File::create(path)
            .expect("made")
            .write_all(text.as_bytes())
            .expect("written");
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"tiny\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    write("src/main.rs", "fn main() {}\n");
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    write(
        "src/main.rs",
        "fn main() { std::thread::sleep(std::time::Duration::from_millis(200)) }\n",
    );
    git(&["commit", "--quiet", "-am", "two"]);
    let mut command = Command::cargo_bin("quipu").expect("cargo builds it");
    command
        .current_dir(directory.path())
        .env_remove("GITHUB_ACTIONS");
    let arguments = [
        "compare",
        "--cargo",
        "HEAD~1..HEAD",
        "--bin",
        "tiny",
        "-n",
        "6",
        "--fail-if",
        "elapsed > +50 %",
    ];
    let output = command.args(arguments).output().expect("it starts");
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(text(&output.stdout).contains("A  HEAD~1"));
    let trees = std::process::Command::new("git")
        .args(["worktree", "list"])
        .current_dir(directory.path())
        .output();
    assert_eq!(
        text(&trees.expect("git").stdout).lines().count(),
        1,
        "no work tree is left"
    );
}
