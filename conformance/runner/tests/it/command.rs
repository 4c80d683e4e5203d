//! The command, end to end, over the simulated PMU.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::{contains, starts_with};

fn conform(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("quipu-conform").expect("the command is built");
    command.args(args);
    command
}

fn stdout(args: &[&str]) -> String {
    let output = conform(args).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn it_lists_every_check_without_running_any() {
    let listed = stdout(&["--list"]);
    for check in quipu_conformance::all() {
        assert!(listed.contains(&format!("{}\n    {}\n", check.id, check.requires)));
    }
    let number = quipu_conformance::all().count();
    assert!(listed.ends_with(&format!("{number} checks\n")));
}

#[test]
fn a_table_says_what_it_ran_on_and_why_checks_were_skipped() {
    conform(&["--backend", "sim"])
        .assert()
        .success()
        .stdout(starts_with("machine "))
        .stdout(contains("pmu     simulated"))
        .stdout(contains("pass  groups.member-order\n"))
        .stdout(contains("the backend does not offer inherit"))
        .stdout(contains(" 0 failed, "));
}

#[test]
fn tap_numbers_every_check() {
    let tap = stdout(&["--backend", "sim", "--format", "tap", "--filter", "inherit"]);
    let checks = tap.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(
        tap.starts_with(&format!("TAP version 13\n1..{checks}\n# backend: sim\n")),
        "{tap}"
    );
    assert!(
        tap.contains("ok 1 - inherit.threads-are-counted # SKIP the backend"),
        "{tap}"
    );
}

#[test]
fn json_counts_what_it_lists() {
    let json = stdout(&["--backend", "sim", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let checks = json["checks"].as_array().expect("checks");
    assert_eq!(checks.len(), quipu_conformance::all().count());
    for (sum, verdict) in [("passed", "pass"), ("failed", "fail"), ("skipped", "skip")] {
        let of = checks.iter().filter(|check| check["verdict"] == verdict);
        assert_eq!(json[sum], of.count(), "{sum}");
    }
    let skipped = checks.iter().find(|check| check["verdict"] == "skip");
    assert!(skipped.is_some_and(|check| check["reason"].is_string()));
    assert_eq!(json["pmu"], "simulated");
}

#[test]
fn junit_is_well_formed_and_has_a_suite_for_each_area() {
    let xml = stdout(&["--backend", "sim", "--format", "junit"]);
    let (mut suites, mut cases, mut skipped) = (0, 0, 0);
    let mut reader = quick_xml::Reader::from_str(&xml);
    loop {
        use quick_xml::events::Event;
        match reader.read_event().expect("well-formed") {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                b"testsuite" => suites += 1,
                b"testcase" => cases += 1,
                b"skipped" => skipped += 1,
                b"failure" => panic!("{xml}"),
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    let areas: std::collections::HashSet<_> = quipu_conformance::all()
        .map(quipu_conformance::Check::area)
        .collect();
    assert_eq!(suites, areas.len());
    assert_eq!(cases, quipu_conformance::all().count());
    assert!(skipped > 0);
}

#[test]
fn it_writes_to_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("report");
    let path = path.to_str().expect("UTF-8");
    let args = ["--backend", "sim", "--filter", "reset.", "--output", path];
    conform(&args).assert().success().stdout("");
    let written = std::fs::read_to_string(path).expect("written");
    assert!(written.contains("pass  reset.clears-value"), "{written}");
    assert!(!written.contains("groups."), "{written}");
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let nothing = ["--backend", "sim", "--filter", "no-such-check"];
    conform(&nothing)
        .assert()
        .code(2)
        .stderr(contains("no check has no-such-check in its id"));
    conform(&[]).assert().code(2).stderr(contains("--backend"));
    let nowhere = [
        "--backend",
        "sim",
        "--filter",
        "reset.twice",
        "--output",
        "/no/such/file",
    ];
    conform(&nowhere)
        .assert()
        .code(2)
        .stderr(contains("/no/such/file").and(contains("No such file")));
}

#[cfg(unix)]
#[test]
fn simulated_registers_of_every_generation_have_a_report_of_their_own() {
    for (generation, counters) in [
        ("p6", "P6, two counters of 40 bits"),
        ("amd-perfmonv2", "PerfMonV2"),
    ] {
        let backend = format!("sim-msr:{generation}");
        conform(&["--backend", &backend, "--filter", "reset."])
            .assert()
            .success()
            .stdout(contains("pmu     simulated: ").and(contains(counters)))
            .stdout(contains(" 0 failed, "));
    }
    conform(&["--backend", "sim-msr:p7"])
        .assert()
        .code(2)
        .stderr(contains("the generations are p5, p6, intel-v1, "));
}

/// Runs the suite on them if they can be used; elsewhere the reason is said.
#[cfg(target_os = "linux")]
#[test]
fn registers_that_cannot_be_used_are_no_silence() {
    let output = conform(&["--backend", "msr"]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(2) => assert!(errors.contains("cannot "), "{errors}"),
        status => assert_eq!(status, Some(0), "{output:?}"),
    }
}

/// The sums of a suite that has to have passed something and failed nothing.
fn sums(backend: &str) -> (u64, u64) {
    let json = stdout(&["--backend", backend, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["failed"], 0, "{backend}: {json}");
    let sum = |of: &str| json[of].as_u64().expect("a number");
    (sum("passed"), sum("skipped"))
}

#[cfg(unix)]
#[test]
fn every_simulated_pctr_has_its_table() {
    for machine in [
        "i386-1996:p5",
        "i386-2003:p6",
        "i386-2023:core",
        "amd64-2019:k8",
    ] {
        let (passed, skipped) = sums(&format!("sim-pctr:{machine}"));
        assert!(
            passed > skipped,
            "{machine}: {passed} passed, {skipped} skipped"
        );
    }
    for (name, reason) in [
        ("sim-pctr:p6", "an era, a colon and a CPU"),
        ("sim-pctr:amd64-2019:p6", "does not run on p6"),
        ("sim-pctr:1970:p6", "the eras are i386-1996"),
    ] {
        let refused = conform(&["--backend", name]).assert().code(2);
        refused.stderr(contains(reason));
    }
    conform(&["--backend", "sim-pctr:i386-2023:p6"])
        .assert()
        .code(2)
        .stderr(contains("knows no counters on that CPU"));
    conform(&["--backend", "pctr", "--device", "/nowhere/pctr"])
        .assert()
        .code(2)
        .stderr(contains("/nowhere/pctr"));
}

#[cfg(unix)]
#[test]
fn posix_has_its_table() {
    assert!(sums("posix").0 > 20);
}
